"""Scores about a released rate: what neighbours cost round by round, and the bounds they buy."""

import math

import numpy as np
import pytest
import statsmodels.api as sm
from replayed import honest, replayed, wild
from scipy import stats

import dpmodels as dp
from dpmodels.digest import release_digest
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.mechanisms import RateScores
from dpmodels.mechanisms.protocol import RegressionFacts
from dpmodels.mechanisms.regression.rate_scores import BIAS, SHARES, SIZES, SizeCounts
from dpmodels.models.linear import linear
from dpmodels.noise import seeded
from dpmodels.privacy import ZCDP, PureDP, adjacency, total_rho
from dpmodels.request import Request
from dpmodels.statistics.losses import Logistic, Poisson

BOOK = dp.codebook(y=(0, 40), x=(-1, 1), w=(0, 9), t=(0.1, 20), g=["a", "b", "c"])
# Ends of all ranges, beyond them, incomplete, and the smallest numbers.
ENDS = [(y, x, x * 9, t, g) for y, t in ((0, 20), (40, 0.1)) for x, g in ((1, "a"), (-1, "c"))]
POOL = [*ENDS, (3, 0.2, 4, 1.0, "b"), (1e9, 5, -1, 1e9, "b"), (-4, 1e-320, 9, 0.1, "c")]
POOL += [(None, 0, 1, 1, "a"), (2, 0.5, 3, None, "b"), (7, -0.0, 9, 2.5, "a"), (1, 1, 1, 1, "?")]
FORMULAS = ("y ~ x + w + g + offset(log(t))", "y ~ x + g - 1", "y ~ 1 + offset(log(t))")
RELATIONS = ("replace", "add-remove")
LOSS = Poisson(40.0, 2 * math.sqrt(40))


def asked(formula, relation="replace"):
    words = {"scale": "range", "row_norm": None, "family": "poisson"}
    question = Request("glm", formula, BOOK, ZCDP(1.0), adjacency(relation), words)
    equations = linear(question)
    return equations.design, RegressionFacts(equations.predictors, LOSS, adjacency(relation))


def drawn(rng, relation):
    """A table and a neighbour, whose rows stand in another order."""
    base = [POOL[at] for at in rng.integers(len(POOL), size=rng.integers(1, 5))]
    row, changed = (POOL[at] for at in rng.integers(len(POOL), size=2))
    if relation == "replace":
        return [*base, row], [changed, *base[::-1]]
    return [*base, row], base[::-1]


def columns(rows):
    return dict(zip(BOOK, map(list, zip(*rows, strict=True)), strict=True))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("relation", RELATIONS)
def test_whatever_the_answers_neighbours_cost_each_event_and_no_more(formula, relation):
    """Every round of two neighbours that were answered alike; curvature and squares together."""
    rng, largest = np.random.default_rng(7), np.zeros(len(SHARES))
    design, facts = asked(formula, relation)
    for draw in range(12):
        mechanism = RateScores(clip=None if draw % 5 else 3.0)
        rho = 10.0 ** rng.uniform(*((-8, 1) if draw % 3 else (-17, -15)))
        plan = mechanism.plan(facts, ZCDP(rho))
        assert total_rho(plan.events) == pytest.approx(rho, rel=1e-9)

        def release(rows, mechanism=mechanism, plan=plan):
            statistic = mechanism.measure(design.bind(columns(rows)), plan)
            return mechanism.release(statistic, plan, seeded(1))

        left, right = drawn(rng, relation)
        (first, second), rounds = replayed(
            lambda rows=left: release(rows),
            lambda rows=right: release(rows),
            rng,
            honest if draw % 4 == 0 else wild,
        )
        assert release_digest(first) == release_digest(second)
        distances = [float(np.linalg.norm(a - b)) for a, b in zip(*rounds, strict=True)]
        distances[-2:] = [math.hypot(*distances[-2:])]
        names = [name for name in SHARES if name not in ("second", "lengths") or "x" in formula]
        prices_of_rounds = dict(zip(names, distances, strict=True))
        paid = dict(zip(names, (event.multiplier for event in plan.events), strict=True))
        prices = np.array(
            [prices_of_rounds.get(name, 0.0) * paid.get(name, 0.0) for name in SHARES]
        )
        assert prices.max() <= 1 + 1e-9, dict(zip(SHARES, prices, strict=True))
        largest = np.maximum(largest, prices)
    assert largest.max() > 0.9
    assert largest[list(SHARES).index("last")] > 0.1


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_row_cannot_add_more_than_one_gradient_wherever_its_offset_is(relation):
    """The residual is clipped after the offset: exp(30) times a rate is not seen."""
    mechanism = RateScores()
    book = BOOK | {"t": (-30, 30)}
    words = {"scale": "range", "row_norm": None, "family": "poisson"}
    question = Request("glm", "y ~ x + offset(t)", book, ZCDP(1), adjacency(relation), words)
    equations = linear(question)
    facts = RegressionFacts(equations.predictors, LOSS, adjacency(relation))
    plan = mechanism.plan(facts, ZCDP(1.0))
    rows = mechanism.measure(equations.design.bind(columns([(0, 1.0, 0, 1e300, "a")])), plan)
    at = np.array([30.0, 30.0])
    loss = Poisson(1e300, 2.0)
    lattice = facts.predictors.lattice
    exact, _ = rows.within(facts.predictors, loss).gradient(at, lattice).cross()
    length = float(np.linalg.norm(exact.astype(float)))
    assert 0.99 * lattice.radius < length <= lattice.radius


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_smallest_budgets_that_a_plan_accepts_give_a_release(relation):
    design, facts = asked(FORMULAS[0], relation)
    accepted = 0
    for rho in 10.0 ** np.arange(-30, -12, 2):
        try:
            plan = RateScores().plan(facts, ZCDP(float(rho)))
        except BudgetError:
            assert not accepted
            continue
        accepted += 1
        statistic = RateScores().measure(design.bind(columns(POOL[:3])), plan)
        assert np.isfinite(RateScores().release(statistic, plan, seeded(1)).coefficients).all()
    assert 0 < accepted < 9


def test_what_cannot_be_is_refused_before_a_row_is_read():
    _, facts = asked(FORMULAS[0])
    with pytest.raises(BudgetError, match="delta"):
        RateScores().plan(facts, PureDP(1.0))
    with pytest.raises(ArgumentError, match="poisson"):
        RateScores().plan(RegressionFacts(facts.predictors, Logistic(), facts.adjacency), ZCDP(1))
    with pytest.raises(ArgumentError):
        RateScores(inference=1)


LAWS = {
    "poisson": stats.poisson(1.0),
    "negative binomial": stats.nbinom(2, 2 / 3),
    "many": stats.nbinom(1, 1 / 31),
    "few": stats.poisson(0.05),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("rows", [2_000, 20_000, 200_000])
def test_a_bound_cuts_little_off_and_is_not_far(law, rows):
    """Exact numbers of rows and noise of 30: what is cut off is within three times what it may."""
    ends, noise = 1000.0 * SIZES, 14.0
    values = np.arange(1_001)
    counts = np.bincount(np.searchsorted(ends, values), rows * law.pmf(values), len(ends))
    bound = SizeCounts(ends, counts[: len(ends)], 30.0).bound(noise)
    if bound is None:
        assert rows * law.sf(0) < 400
        return
    cut = rows * float(np.maximum(values - bound, 0) @ law.pmf(values))
    spread = math.hypot(noise * bound, math.sqrt(rows * law.moment(2)))
    assert cut <= 3 * BIAS * spread
    assert bound <= 2 * law.isf(1 / rows) + 2


def test_nothing_is_read_off_noise():
    tally = SizeCounts(SIZES, np.where(np.arange(len(SIZES)) % 2, 90.0, -90.0), 60.0)
    assert tally.bound(10.0) is None
    assert tally.largest() is None


def varied(seed, rows=20_000):
    """Negative-binomial counts of size 2: the mean's square over 2 more than Poisson's variance."""
    rng = np.random.default_rng(seed)
    x, g = rng.uniform(-1, 1, rows), rng.choice(["a", "b", "c"], rows)
    mean = np.exp(1.0 + TRUTH[3] * x + TRUTH[1] * (g == "b") + TRUTH[2] * (g == "c"))
    return {"y": rng.negative_binomial(2, 2 / (2 + mean)), "x": x, "g": g}


TRUTH = np.array([1.0, 0.3, -0.4, 0.5])
WIDE = BOOK | {"y": (0, 500)}


def test_standard_errors_count_negative_binomial_variation():
    data = varied(1)
    with dp.simulation(seed=1):
        fit = dp.dp_glm("y ~ g + x", data, codebook=WIDE, eps=8, delta=1e-6, family="poisson")
    dummies = [data["g"] == "b", data["g"] == "c", data["x"]]
    design = np.column_stack([np.ones(len(data["x"])), *dummies]).astype(float)
    reference = sm.GLM(data["y"], design, family=sm.families.Poisson())
    robust, naive = reference.fit(cov_type="HC0").bse, reference.fit().bse
    np.testing.assert_allclose(fit.bse_sampling, robust, rtol=0.25)
    assert (fit.bse_sampling > 1.25 * naive).all()
    residuals = data["y"] - reference.fit().fittedvalues
    assert fit.dispersion == pytest.approx((residuals**2).sum() / data["y"].sum(), rel=0.2)
    assert "dispersion" in str(fit.summary(notes="all"))


@pytest.mark.product
def test_intervals_of_negative_binomial_counts_cover():
    """Of 32 intervals of 95 % at most 13 miss, but with a chance of 1e-9 (of 8 fits as one, 1e-6).

    All are offered, with a bound that is declared a hundred times too large.
    """
    missed = 0
    for seed in range(8):
        with dp.simulation(seed=seed):
            words = {"codebook": WIDE, "eps": 1, "delta": 1e-6, "family": "poisson"}
            fit = dp.dp_glm("y ~ g + x", varied(seed), **words)
        assert fit.identified.all()
        low, high = fit.conf_int().to_numpy().T
        missed += int(((low > TRUTH) | (high < TRUTH)).sum())
    assert missed <= 13
