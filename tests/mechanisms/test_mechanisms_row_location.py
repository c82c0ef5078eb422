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
from dpmodels.mechanisms.protocol import RegressionFacts, RegressionPlan, passes
from dpmodels.mechanisms.quantile_of_norms import Lengths
from dpmodels.mechanisms.regression.objective import Objective
from dpmodels.mechanisms.regression.row_location import (
    SHARES,
    centred,
    locate_rows,
    location_scales,
    location_shares,
)
from dpmodels.models.linear import linear
from dpmodels.noise import seeded
from dpmodels.privacy import ZCDP, ApproxDP, adjacency
from dpmodels.request import Request
from dpmodels.statistics.losses import Logistic

WIDE = dp.codebook(a=(-100, 100), b=(0, 300), y=["no", "yes"])
QUIET = dict.fromkeys([*SHARES, "sd"], 1e-3)


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


def learnt(data, scales=QUIET, law=GAUSSIAN, seed=1, **words):
    rows, facts = bound(data, **words)
    expected = {name: scales[name] for name in (*location_shares(facts, law), "sd")}
    plan = RegressionPlan(ZCDP(1.0), (), facts, expected)
    return locate_rows(rows, plan, seeded(seed), law), rows


RADII = np.array([0.2, 0.8, 1.6, 5.0])
AXES = np.array([[3.0, 1.0], [-0.5, 2.0]])


@cache
def of_each_row():
    """Outcomes and, in axes about a centre off the middle, lengths, of one row and of two."""
    ends, statistics = product((-100, 0, 100, 1e9, None), (0, 300), ("yes", "no", "other")), []
    tables = [{"a": [x, 3.0], "b": [z, 3.0], "y": [y, "no"]} for x, z, y in ends]
    for data in [{"a": [3.0], "b": [3.0], "y": ["no"]}, *tables]:
        design, facts = bound(data)
        outer = facts.predictors.within(np.array([0.2, -0.1]), 5.0, AXES)
        parts = design.outcomes(), design.within(outer).lengths(RADII)
        statistics.append([part.cross()[0].astype(float) for part in parts])
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
    allowed = location_scales(facts, dict.fromkeys(SHARES, 1.0), law)
    assert farthest[0] == pytest.approx(allowed["outcomes"])
    if law is GAUSSIAN:
        assert farthest[1] == pytest.approx(allowed["lengths"])


def in_axes(data, ball):
    """Rows of the table in the axes of a released ball, in its radii."""
    scaled = np.array([data["a"], data["b"]]) - ball.centre[:, None]
    return np.linalg.solve(ball.axes, scaled / np.array([[100.0], [150.0]])) / ball.radius


def test_rows_within_count_whole_and_others_for_nothing():
    """The gradient is that of the rows in the ball, computed by hand, in rows of its radius."""
    data = table(2000)
    data["a"][:2] = 99.0
    cap, rows = learnt(data, QUIET | {"sd": 100.0})
    ball, predictors = cap.inner.ball, cap.inner.predictors
    away = in_axes(data, ball)
    is_within = np.linalg.norm(away, axis=0) <= 1
    assert 0 < (~is_within).sum() <= 0.04 * len(is_within)
    z = np.vstack([np.full(2000, predictors.constant), predictors.share * away])[:, is_within]
    theta = np.array([0.3, -1.0, 2.0])
    label = np.where(data["y"] == "yes", 1.0, 0.0)[is_within]
    exact = z @ (expit(theta @ z) - label)
    gradient = rows.within(predictors).slopes(theta, Logistic()).gradient
    np.testing.assert_allclose(gradient, exact, atol=0.05)
    lattice = rows.lattice
    sums = rows.within(predictors).gradient(theta, type(lattice)(20, 3)).cross()[0].astype(float)
    np.testing.assert_allclose(sums / 2**20, exact, atol=0.05)


@pytest.mark.parametrize("width", [6.0, 6e3])
def test_terms_have_about_unit_variance_in_the_axes_however_widely_they_are_declared(width):
    rng = np.random.default_rng(4)
    data = table(20_000)
    data["a"] = rng.normal(0.3, 1, 20_000)
    data["b"] = np.exp(rng.normal(size=20_000)) + data["a"]
    book = dp.codebook(a=(-width, width), b=(-width, 20 * width), y=["no", "yes"])
    words = {"scale": "range", "row_norm": None}
    equations = linear(Request("glm", "y ~ a + b", book, ZCDP(1.0), adjacency("replace"), words))
    facts = RegressionFacts(equations.predictors, Logistic(), adjacency("replace"))
    plan = Objective().plan(facts, ApproxDP(1.0, 1e-6))
    release = Objective().release(passes(equations.design.bind(data), facts), plan, seeded(3))
    half = np.array([[width], [21 * width / 2]])
    scaled = (np.array([data["a"], data["b"]]) - release.ball.centre[:, None]) / half
    terms = np.linalg.solve(release.ball.axes, scaled)
    within = terms[:, np.linalg.norm(terms, axis=0) <= release.ball.radius]
    assert within.shape[1] / 20_000 > 0.95
    values = np.linalg.eigvalsh(within @ within.T / within.shape[1])
    assert values[0] > 0.08
    assert values[1] < 2


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_correlations_beyond_their_noise_are_taken_out_of_the_axes(seed):
    rng, rows = np.random.default_rng(4), 4000
    common = rng.normal(size=rows)
    a, b = (np.sqrt(0.9) * common + np.sqrt(0.1) * rng.normal(size=rows) for _ in range(2))
    data = {"a": 20 + 2 * a, "b": 30 + 3 * b, "y": np.where(rng.random(rows) < 0.5, "yes", "no")}
    ball = learnt(data, QUIET | {"second": 50.0}, seed=seed)[0].inner.ball
    variances = np.linalg.eigvalsh(np.cov(in_axes(data, ball) * ball.radius))
    assert variances[0] > 0.28, variances


def test_the_constant_gives_the_outcome_its_frequency():
    data = table(often=-4.0)
    often = np.mean(data["y"] == "yes")
    assert 0.01 < often < 0.04
    for law in (GAUSSIAN, LAPLACE):
        cap, _ = learnt(data, law=law)
        constant = bound(data)[1].predictors.constant
        assert expit(cap.start[0] * constant) == pytest.approx(often, rel=1e-3)
        assert not cap.start[1:].any()
    assert not learnt(data, formula="y ~ a + b - 1")[0].start.any()


def test_where_little_is_learnt_all_rows_count():
    noisy = dict.fromkeys(QUIET, 1e4)
    for data in (table(200), table(3)):
        cap, _ = learnt(data, noisy)
        assert np.isfinite(cap.start).all()
        assert (np.linalg.norm(in_axes(data, cap.inner.ball), axis=0) <= 1).all()
    full = {"a": [-100.0, 100.0] * 500, "b": [0.0, 300.0] * 500, "y": ["no", "yes"] * 500}
    assert (np.linalg.norm(in_axes(full, learnt(full)[0].inner.ball), axis=0) <= 1).all()


def test_no_radius_exceeds_what_the_declared_ranges_allow():
    """The largest is that of the farthest corner, as these columns have no correlation."""
    corners = {"a": np.array([-100.0, -100, 100, 100]), "b": np.array([0.0, 300, 0, 300])}
    for seed_table in (table(3), table(4000)):
        cap, _ = learnt(seed_table, dict.fromkeys(QUIET, 1e4))
        farthest = np.linalg.norm(in_axes(corners, cap.inner.ball), axis=0).max()
        assert 0.95 < farthest <= 1


def test_noise_in_numbers_of_rows_does_not_make_the_radius_long():
    """In a small table noise hides which cells beyond most rows are empty."""
    radii, identified = [], []
    book = dp.codebook(x=(-4, 4), f=["a", "b"], y=["no", "yes"])
    for seed in range(8):
        rng = np.random.default_rng(seed)
        x, f = rng.normal(size=2500), rng.choice(["a", "b"], 2500, p=[0.6, 0.4])
        label = rng.random(2500) < expit(0.5 * x + 0.6 * (f == "b") - 0.3)
        rows = {"x": x, "f": f, "y": np.where(label, "yes", "no")}
        with dp.simulation(seed=seed):
            fit = dp.dp_glm("y ~ x + f", rows, codebook=book, eps=0.7, delta=1e-6)
        radii.append(fit.release.ball.radius)
        identified.append(fit.identified.all())
    assert max(radii) < 4.3  # The farthest row that can be
    assert np.median(radii) < 3
    assert np.mean(identified) > 0.7


def test_a_number_that_few_rows_have_spreads_as_its_variance_says():
    """Most rows are at its centre; the others are few standard deviations away, not many."""
    data = table(4000)
    data["a"] = np.where(np.arange(4000) % 10 == 0, 100.0, 0.0)
    ball = learnt(data)[0].inner.ball
    away = in_axes(data, ball) * ball.radius
    assert (np.linalg.norm(away, axis=0) <= ball.radius).mean() > 0.98
    assert np.abs(away).max() < 6


def test_far_rows_that_a_larger_budget_detects_do_not_hide_all_slopes():
    """Half a percent of the rows are 70 away: with them noise hides the curvature of the others."""
    ends = 2.0 ** np.append(np.arange(0, 21) / 4, 6.25)
    counts = np.zeros(len(ends))
    counts[:9], counts[9:13], counts[-1] = 5400.0, 200.0, 250.0
    squares = np.cumsum(counts * np.minimum(ends * 2.0**-0.125, 4.0) ** 2) / 4
    radii = []
    for noise in (30.0, 15.0, 8.0, 4.0, 2.0, 1.0, 0.25, 0.1):
        at = Lengths(ends, counts, 3 * noise).chosen(noise, 0.2, 4, whitened=True)
        assert noise * ends[at] ** 2 < 0.2 * squares[at] / math.sqrt(8)
        radii.append(ends[at])
    assert radii[0] < 10
    assert radii[-1] == ends[-1]  # Where noise hides nothing no rows are left out


def test_a_zero_inflated_number_with_rows_at_its_bound_is_identified_at_every_budget():
    """As capital gains are: nine of ten rows at 0, a heavy tail, and 1 in 200 at the bound."""
    rng = np.random.default_rng(1)
    gain = np.where(rng.random(20_000) < 0.9, 0, 3 * (1 + rng.pareto(1.5, 20_000)))
    gain = np.where(rng.random(20_000) < 0.005, 100.0, np.minimum(gain, 100.0))
    level = rng.choice(["a", "b"], 20_000)
    label = rng.random(20_000) < expit(0.05 * gain + 0.5 * (level == "b") - 0.5)
    rows = {"gain": gain, "level": level, "y": np.where(label, "yes", "no")}
    book = dp.codebook(gain=(0, 100), level=["a", "b"], y=["no", "yes"])
    for eps in (4.0, 8.0, 16.0):
        with dp.simulation(seed=2):
            fit = dp.dp_glm("y ~ gain + level", rows, codebook=book, eps=eps, delta=1e-6)
        assert fit.identified.all()


def test_the_noise_in_a_slope_is_that_of_the_rows_spread():
    """Bounds fifty times too wide: a fit has the errors of bounds that fit."""
    rows, budget = table(4000), {"eps": 2.0, "delta": 1e-6}
    tight = dp.codebook(a=(14, 26), b=(21, 39), y=["no", "yes"])
    sds = []
    for book in (WIDE, tight):
        with dp.simulation(seed=3):
            fit = dp.dp_glm("y ~ a + b", rows, codebook=book, **budget)
        sds.append(fit.bse_noise["a"])
    assert sds[0] < 1.1 * sds[1]


def test_coefficients_are_those_of_the_rows_within_and_are_read_back(tmp_path):
    """At next to no noise, against the maximum likelihood of the rows in the printed ball."""
    import statsmodels.api as sm

    data = table(3000)
    data["a"][:3] = 99.0
    for budget in ({"budget": ZCDP(1e3)}, {"eps": 50.0, "delta": 1e-6, "inference": False}):
        with dp.simulation(seed=1):
            fit = dp.dp_glm("y ~ a + b", data, codebook=WIDE, **budget)
        ball = fit.release.ball
        is_within = np.linalg.norm(in_axes(data, ball), axis=0) <= 1
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
        location_scales(facts, {"outcomes": 1e13}, LAPLACE)
    assert set(location_shares(facts, LAPLACE)) == {"outcomes"}
    assert math.fsum(location_shares(facts, GAUSSIAN).values()) < 0.25


def test_a_level_counts_as_if_it_were_not_rarer_than_one_row_in_ten():
    """Its column of 0 and 1 has the variance p (1 - p) of p = .1, in axes along the columns."""
    data = {"x": np.arange(4000) % 7, "g": ["a"] * 3990 + ["b"] * 10, "y": ["no", "yes"] * 2000}
    book = dp.codebook(x=(0, 6), g=["a", "b"], y=["no", "yes"])
    words = {"scale": "range", "row_norm": None}
    equations = linear(Request("glm", "y ~ x + g", book, ZCDP(1.0), adjacency("replace"), words))
    facts = RegressionFacts(equations.predictors, Logistic(), adjacency("replace"))
    rows = passes(equations.design.bind(data), facts)
    plan = RegressionPlan(ZCDP(1.0), (), facts, QUIET)
    location = centred(rows, plan, seeded(1))
    # In half-ranges: 2 of 3 for numbers from 0 to 6, and twice .3.
    sds = np.diag(np.linalg.inv(location.axes)) * rows.scaling.row_norm
    np.testing.assert_allclose(sorted(sds), [0.6, 2 / 3], rtol=0.01)
