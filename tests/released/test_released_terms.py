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
