"""What has crossed: terms that every release has, and digests that ledgers hold."""

from dataclasses import fields, replace

import numpy as np
import pytest

from dpmodels.digest import in_order, release_digest
from dpmodels.privacy import PureDP, adjacency
from dpmodels.privacy.events import LaplaceEvent
from dpmodels.released import (
    BoughtCurvature,
    CoefficientsRelease,
    CountsRelease,
    Meat,
    MechanismInfo,
    MomentNoise,
    MomentsRelease,
    Shared,
)
from dpmodels.released.terms import Clipping, UnitCap

TERMS = {
    "rows": 7,
    "info": MechanismInfo("name", "theorem", "sensitivity", "noise", "exact lattice", "source"),
    "guarantee": PureDP(1.0),
    "adjacency": adjacency("replace"),
    "events": (LaplaceEvent(1.0),),
    "simulated": False,
}
SHARED = Shared("full", ("a", "b"), "sums", "all", 3, 24)
COUNTS = CountsRelease(
    values=np.array([1.0, 2.0]),
    law="laplace",
    noise_sd=0.5,
    step=1.0,
    paired=True,
    shared=SHARED,
    **TERMS,
)
MOMENTS = MomentsRelease(
    count=7.0,
    total=np.array([0.5]),
    second=np.array([[2.0]]),
    noise=MomentNoise(1.0, 1.0, 2.0, float("nan")),
    estimate=np.array([[1.5]]),
    **TERMS,
)
COEFFICIENTS = CoefficientsRelease(
    coefficients=np.array([0.25]),
    ridge=1.0,
    gradient=None,
    gradient_sd=float("nan"),
    coefficient_sd=0.5,
    curvature=None,
    **TERMS,
)


@pytest.mark.parametrize(
    ("release", "clipped"),
    [
        (COUNTS, "df8ffd353e7845db0c79cbbb3c89bd9362185a35db67bb0503b876260764b479"),
        (MOMENTS, "17237742df45342ee8f9948ab601813d0ce2f2fc44e79211964802cd783166af"),
        (COEFFICIENTS, "f63e6dbcc73a39fdce4fc4e36e13505d4301a9590b2a2b559f96ab71cdd7f4bd"),
    ],
)
def test_a_digest_is_what_ledgers_of_the_first_version_hold(release, clipped):
    assert release_digest(release) == clipped


@pytest.mark.parametrize("release", [COUNTS, MOMENTS, COEFFICIENTS])
def test_a_digest_is_of_every_field(release):
    changed = {
        field.name: release_digest(_with(release, field.name, "another"))
        for field in fields(release)
    }
    assert release_digest(release) not in changed.values()
    assert len(set(changed.values())) == len(changed)


def _with(release, name, value):
    return type(release)(**{**vars(release), name: value})


def test_scores_of_rows_have_the_digest_that_they_had_before_there_were_those_of_persons():
    result = np.eye(2)
    rows = Meat(result, result, 0.1, 0.2, 0.05)
    assert in_order(rows) == ["squares", "root", "sd", "most", "share"]
    assert in_order(replace(rows, person="id"))[-1] == "person"
    noise = MomentNoise(np.nan, np.nan, 1.0, 1.0)
    assert in_order(BoughtCurvature(result, result, noise, noise))[-1] == "meat_noise"


def test_shares_beyond_a_bound_are_of_the_values_that_are_not_missing():
    clipping = Clipping(
        ("x", "y", "none"), (30.0, 4.0, 1.0), (60.0, 190.0, -1.0), (10.0, 6.0, 2.0), noise_sd=1.0
    )
    assert clipping.shares()[:2] == (("x", 0.3, 0.1, 0.01), ("y", 0.02, 0.03, 0.005))
    # Of three noise standard deviations of values or fewer there may be none.
    assert clipping.shares()[2][0] == "none"
    assert np.isnan(clipping.shares()[2][1:]).all()
    # Many are more than 5 % and more than three standard deviations of the noise.
    assert clipping.much() == (("x", "below", 0.3), ("x", "above", 0.1))
    exact = replace(clipping, below=(5.0, 0.0, 0.0), within=(95.0, 1.0, 1.0), above=(0.0, 1.0, 1.0))
    assert exact.much() == ()
    hidden = Clipping(("x",), (29.0,), (71.0,), (0.0,), noise_sd=10.0)
    assert hidden.much() == ()
    assert replace(hidden, below=(31.0,), within=(69.0,)).much() == (("x", "below", 0.31),)
    # Noise may make the others negative: a share is still at most 1.
    assert Clipping(("x",), (90.0,), (-10.0,), (0.0,), 1.0).much() == (("x", "below", 1.0),)


def test_the_correction_of_units_is_that_of_a_sample_without_replacement():
    cap = UnitCap(3.0, 0.0, 1.0)
    assert cap.correction(10) == 10 / 9
    assert replace(cap, population=40.0).correction(10) == pytest.approx(0.75 * 10 / 9)
    assert replace(cap, population=10.0).correction(10) == 10 / 9
    assert [cap.correction(n_units) for n_units in (1, float("nan"))] == [1.0, 1.0]
    assert COUNTS.sampling_correction == 1.0
    assert replace(COUNTS, units=cap).sampling_correction == 7 / 6
    assert replace(COUNTS, units=cap, rows=None).sampling_correction == 1.0
