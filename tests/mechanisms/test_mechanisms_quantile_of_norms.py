"""Where most rows lie: sensitivities by brute force, the rows that count, and what is learnt."""

import math
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from scipy.special import expit

import dpmodels as dp
from dpmodels.errors import BudgetError
from dpmodels.mechanisms.add_noise import GAUSSIAN, LAPLACE
from dpmodels.mechanisms.protocol import RegressionFacts, passes
from dpmodels.mechanisms.quantile_of_norms import locate_quantile, location_scales, location_shares
from dpmodels.models.linear import linear
from dpmodels.noise import seeded
from dpmodels.privacy import ZCDP, adjacency
from dpmodels.request import Request
from dpmodels.statistics.losses import Logistic

WIDE = dp.codebook(a=(-100, 100), b=(0, 300), y=["no", "yes"])
QUIET = {"outcomes": 1e-3, "sum": 1e-3, "lengths": 1e-3, "sd": 1e-3}


def bound(data, relation="replace", formula="y ~ a + b"):
    words = {"scale": "range", "row_norm": None}
    equations = linear(Request("glm", formula, WIDE, ZCDP(1.0), adjacency(relation), words))
    facts = RegressionFacts(equations.predictors, Logistic(), adjacency(relation))
    return passes(equations.design.bind(data), facts), facts


def table(rows=4000, often=0.0):
    rng = np.random.default_rng(0)
    a, b = rng.normal(20, 2, rows), rng.normal(30, 3, rows)
    label = rng.random(rows) < expit(often + 0.4 * (a - 20) - 0.2 * (b - 30))
    return {"a": a, "b": b, "y": np.where(label, "yes", "no")}


def learnt(data, scales=QUIET, law=GAUSSIAN, **words):
    rows, facts = bound(data, **words)
    expected = {name: scales[name] for name in (*location_shares(facts, law), "sd")}
    return locate_quantile(rows, facts, expected, seeded(1), law), rows


RADII = np.array([0.05, 0.3, 0.6, 1.2])


@cache
def of_each_row():
    """Outcomes, sums and lengths, about a centre off the middle, of one row and of two."""
    ends, statistics = product((-100, 0, 100, 1e9, None), (0, 300), ("yes", "no", "other")), []
    tables = [{"a": [x, 3.0], "b": [z, 3.0], "y": [y, "no"]} for x, z, y in ends]
    for data in [{"a": [3.0], "b": [3.0], "y": ["no"]}, *tables]:
        design, facts = bound(data)
        radii = facts.predictors.within(np.array([0.2, -0.1]), facts.predictors.radius)
        parts = design.outcomes(), design.sums(), design.within(radii).lengths(RADII)
        unit = (1.0, design.lattice.radius, 1.0)
        statistics.append(
            [p.cross()[0].astype(float) / u for p, u in zip(parts, unit, strict=True)]
        )
    return statistics


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE])
def test_neighbours_are_no_farther_apart_than_the_noise_allows(relation, law):
    """Every row in place of every other, or of none."""
    alone, *statistics = of_each_row()
    pairs = (
        combinations(statistics, 2)
        if relation == "replace"
        else ((alone, statistic) for statistic in statistics)
    )
    power = 1 if law is LAPLACE else 2
    farthest = np.max(
        [[np.linalg.norm(x - y, power) for x, y in zip(*pair, strict=True)] for pair in pairs],
        axis=0,
    )
    _, facts = bound({"a": [3.0], "b": [3.0], "y": ["no"]}, relation)
    allowed = location_scales(facts, {"outcomes": 1.0, "sum": 1.0, "lengths": 1.0}, law)
    # Reached by the counts; sums are of the terms alone, whose part of the joint ball is smaller.
    assert farthest[0] == pytest.approx(allowed["outcomes"])
    assert farthest[2] == pytest.approx(allowed["lengths"])
    if law is GAUSSIAN:
        assert 0.5 * allowed["sum"] < farthest[1] <= allowed["sum"]


def test_rows_within_count_whole_and_others_for_nothing():
    """The gradient is that of the rows in the ball, computed by hand, in rows of its radius."""
    data = table(2000)
    data["a"][:2] = 99.0
    cap, rows = learnt(data, QUIET | {"sd": 100.0})
    ball, predictors = cap.inner.ball, cap.inner.predictors
    assert 5 <= ball.radius * 100 <= 20
    scaled = np.array([data["a"], data["b"]]) / np.array([[100.0], [150.0]])
    away = scaled - (ball.centre / np.array([100.0, 150.0]))[:, None]
    is_within = np.linalg.norm(away, axis=0) <= ball.radius
    assert 0 < (~is_within).sum() <= 0.04 * len(is_within)
    z = np.vstack([np.full(2000, predictors.constant), predictors.share * away / ball.radius])[
        :, is_within
    ]
    theta = np.array([0.3, -1.0, 2.0])
    label = np.where(data["y"] == "yes", 1.0, 0.0)[is_within]
    exact = z @ (expit(theta @ z) - label)
    gradient = rows.within(predictors).slopes(theta, Logistic()).gradient
    np.testing.assert_allclose(gradient, exact, atol=0.05)
    lattice = rows.lattice
    sums = rows.within(predictors).gradient(theta, type(lattice)(20, 3)).cross()[0].astype(float)
    np.testing.assert_allclose(sums / 2**20, exact, atol=0.05)


def test_the_constant_gives_the_outcome_its_frequency():
    data = table(often=-4.0)
    often = np.mean(data["y"] == "yes")
    assert 0.01 < often < 0.04
    for law in (GAUSSIAN, LAPLACE):
        cap, _ = learnt(data, law=law)
        constant = bound(data)[1].predictors.constant
        assert expit(cap.start[0] * constant) == pytest.approx(often, rel=1e-3)
        assert not cap.start[1:].any()
    assert cap.inner.ball is None
    assert not learnt(data, formula="y ~ a + b - 1")[0].start.any()


def test_where_little_is_learnt_all_rows_count():
    noisy = dict.fromkeys(QUIET, 1e4)
    cap, _ = learnt(table(200), noisy)
    assert cap.inner.ball is None
    assert abs(cap.start[0]) < 10
    lost = locate_quantile(*bound(table(3)), noisy, seeded(5), GAUSSIAN).inner
    assert lost.ball is None
    full = {"a": [-100.0, 100.0] * 500, "b": [0.0, 300.0] * 500, "y": ["no", "yes"] * 500}
    assert learnt(full)[0].inner.ball is None


def test_the_noise_in_a_slope_is_that_of_the_rows_spread():
    """Bounds fifty times too wide: a fit has the errors of bounds that fit."""
    rows, budget = table(4000), {"eps": 2.0, "delta": 1e-6}
    tight = dp.codebook(a=(14, 26), b=(21, 39), y=["no", "yes"])
    sds = []
    for book in (WIDE, tight):
        with dp.simulation(seed=3):
            fit = dp.dp_glm("y ~ a + b", rows, codebook=book, **budget)
        sds.append(fit.bse_noise["a"])
    assert sds[0] < 2 * sds[1]


def test_coefficients_are_those_of_the_rows_within_and_are_read_back(tmp_path):
    """At next to no noise, against the maximum likelihood of the rows in the printed ball."""
    import statsmodels.api as sm

    data = table(3000)
    data["a"][:3] = 99.0
    for budget in ({"budget": ZCDP(1e3)}, {"eps": 50.0, "delta": 1e-6, "inference": False}):
        with dp.simulation(seed=1):
            fit = dp.dp_glm("y ~ a + b", data, codebook=WIDE, **budget)
        ball = fit.release.ball
        away = np.array([data["a"], data["b"]]) - ball.centre[:, None]
        is_within = np.linalg.norm(away / np.array([[100.0], [150.0]]), axis=0) <= ball.radius
        x = sm.add_constant(np.column_stack([data["a"], data["b"]])[is_within])
        reference = sm.Logit((data["y"] == "yes").astype(float)[is_within], x).fit(disp=0)
        assert (np.abs(fit.params - reference.params) < 0.7 * reference.bse).all()
        assert "left out" in str(fit.summary())
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    assert again.params.equals(fit.params)
    assert str(again.summary()) == str(fit.summary())


def test_noise_beyond_meaning_is_refused():
    _, facts = bound(table(2))
    with pytest.raises(BudgetError, match="larger"):
        location_scales(facts, {"outcomes": 1e12}, LAPLACE)
    assert set(location_shares(facts, LAPLACE)) == {"outcomes"}
    assert math.fsum(location_shares(facts, GAUSSIAN).values()) < 0.2
