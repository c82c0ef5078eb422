"""Objective perturbation, output perturbation and noisy gradients: budgets, laws, minima."""

import math
from dataclasses import replace

import numpy as np
import pytest
from moment_cases import fraction_spent
from scipy import stats

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError, FrameError
from dpmodels.mechanisms import minimise as minimum_module
from dpmodels.mechanisms.add_noise import GAUSSIAN, LAPLACE
from dpmodels.mechanisms.minimise import (
    furthest,
    mask,
    masked,
    minimise,
    spherical,
    spherical_sd,
    tolerance,
)
from dpmodels.mechanisms.protocol import RegressionFacts, passes
from dpmodels.mechanisms.quantile_of_norms import APART, LOGISTIC, both_matrices, bought_scale
from dpmodels.mechanisms.regression import NoisyGradients, Objective, Output
from dpmodels.mechanisms.regression import objective as objective_module
from dpmodels.models.linear import linear
from dpmodels.noise import seeded
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, adjacency, total_rho
from dpmodels.request import Request
from dpmodels.statistics.double_double import Pair
from dpmodels.statistics.losses import Huber, Logistic, Poisson

# False alarms of all laws here together: below 1e-6 each.
ALARM = 1e-6
BOOK = dp.codebook(a=(-1, 1), b=(0, 4), y=["no", "yes"], c=(0, 20))
BUDGETS = (PureDP(1.0), ApproxDP(1.0, 1e-6), ApproxDP(8.0, 1e-3), ZCDP(0.1))
HUGE = (PureDP(1e6), ApproxDP(1e6, 1e-6), ZCDP(1e9))
RELATIONS = ("replace", "add-remove")


def table(rows=4000, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-1, 1, rows), rng.uniform(0, 4, rows)
    label = rng.random(rows) < 1 / (1 + np.exp(-(0.5 + 1.5 * a - 0.4 * b)))
    counts = rng.poisson(np.exp(0.8 + 0.5 * a - 0.2 * b))
    return {"a": a, "b": b, "y": np.where(label, "yes", "no"), "c": counts.astype(float)}


def bound(data, loss=None, relation="replace", formula="~ a + b"):
    loss = loss or Logistic()
    response = "c" if isinstance(loss, Poisson) else "y"
    words = {"scale": "range", "row_norm": None}
    equations = linear(
        Request("glm", f"{response} {formula}", BOOK, ZCDP(1.0), adjacency(relation), words)
    )
    return equations.design.bind(data), RegressionFacts(
        equations.predictors, loss, adjacency(relation)
    )


def released(strategy, budget, data, loss=None, relation="replace", seed=1, **words):
    design, facts = bound(data, loss, relation, **words)
    plan = strategy.plan(facts, budget)
    return strategy.release(strategy.measure(design, plan), plan, seeded(seed)), facts


def rows_of(data, loss=None, ball=None, **words):
    """The rows of a table that are in a released ball, or all of them."""
    design, facts = bound(data, loss, **words)
    rows = passes(design, facts)
    if ball is None:
        return rows, facts
    half = rows.scaling.row_norm * rows.scaling.scale[:-1]
    centre = (ball.centre - rows.scaling.centre[:-1]) / half
    axes = np.linalg.inv(ball.axes) * rows.scaling.row_norm
    return rows.within(facts.predictors.within(centre, ball.radius, axes)), facts


def minimum(rows, facts, loss, ridge, about=0.0):
    """The minimiser by plain Newton steps on the rows in memory, ridged about a point."""
    theta = np.zeros(facts.columns)
    for step_loss in [*loss.path] * 2 + [loss] * 30:
        slopes = rows.slopes(theta, step_loss)
        step = np.linalg.solve(
            slopes.curvature + ridge * np.eye(len(theta)), slopes.gradient + ridge * (theta - about)
        )
        theta = theta - 0.5 * step
        if step_loss is loss and np.linalg.norm(step) < 1e-6:
            break
    return theta


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    "strategy",
    [
        Objective(),
        Objective(inference=False),
        Objective(share=0.5),
        Objective(pure=True),
        Output(),
        NoisyGradients(),
        NoisyGradients(inference=False),
    ],
)
def test_a_plan_spends_its_budget_and_no_more(budget, relation, strategy):
    _, facts = bound(table(10), relation=relation)
    if isinstance(budget, PureDP) and isinstance(strategy, NoisyGradients):
        with pytest.raises(BudgetError):
            strategy.plan(facts, budget)
        return
    plan = strategy.plan(facts, budget)
    used = fraction_spent(plan.events, plan.guarantee)
    assert used <= 1 + 1e-9
    # Pure noise under an (eps, delta) or rho guarantee may leave some of it.
    assert used >= 0.5


@pytest.mark.product
@pytest.mark.parametrize("loss", [Logistic(), Huber(0.5)])
def test_a_huge_budget_gives_the_minimum(loss):
    """Ridged about the constant that gives the outcome its frequency, or about 0."""
    data = table()
    often, about = np.mean(data["y"] == "yes"), np.zeros(3)
    if loss.bell:
        about[0] = math.log(often / (1 - often)) / bound(data)[1].predictors.constant
    for budget in HUGE:
        release, _ = released(Objective(inference=loss.bell, ridge=5.0), budget, data, loss)
        rows = rows_of(data, loss, release.ball)
        np.testing.assert_allclose(
            release.coefficients, minimum(*rows, loss, 5.0, about), atol=2e-3
        )
        release, _ = released(Output(ridge=5.0), budget, data, loss)
        right = minimum(*rows_of(data, loss, release.ball), loss, 5.0)
        np.testing.assert_allclose(release.coefficients, right, atol=2e-3)


def test_a_huge_budget_gives_the_curvature_at_the_minimum():
    data = table()
    release, _ = released(Objective(), ZCDP(1e9), data)
    slopes = rows_of(data, ball=release.ball)[0].slopes(release.coefficients, Logistic())
    np.testing.assert_allclose(release.curvature.bread, slopes.curvature, atol=0.05)
    # The labels are of the model: squared gradients are close to the curvature.
    ratio = np.diag(release.curvature.meat) / np.diag(release.curvature.bread)
    assert (np.abs(ratio - 1) < 0.2).all()


@pytest.mark.parametrize("budget", [ApproxDP(1e6, 1e-6), ZCDP(1e9)])
def test_many_steps_of_gradients_find_the_maximum_likelihood_estimate(budget):
    data = table()
    release, _ = released(NoisyGradients(steps=60, inference=False), budget, data)
    np.testing.assert_allclose(
        release.coefficients, minimum(*rows_of(data), Logistic(), 1e-6), atol=0.02
    )


def test_poisson_gradients_find_the_maximum_likelihood_estimate():
    import statsmodels.api as sm

    data = table(20_000)
    loss = Poisson(20.0, 20.0)
    design, facts = bound(data, loss)
    strategy = NoisyGradients(steps=60, inference=False)
    plan = strategy.plan(facts, ZCDP(1e9))
    coefficients = strategy.release(strategy.measure(design, plan), plan, seeded(1)).coefficients
    x = sm.add_constant(np.column_stack([data["a"], data["b"]]))
    params = sm.GLM(data["c"], x, family=sm.families.Poisson()).fit().params
    predictors, scaled = facts.predictors, design.scaling
    shares = predictors.share / (predictors.radius * scaled.row_norm) / scaled.scale[:-1]
    slopes = coefficients[1:] * shares
    intercept = coefficients[0] * predictors.constant - slopes @ scaled.centre[:-1]
    np.testing.assert_allclose([intercept, *slopes], params, atol=0.02)


def awkward():
    """Few rows, separated, of one class, constant."""
    separated = table(300)
    separated["y"] = np.where(separated["a"] > 0, "yes", "no")
    table_of_yes = table(300) | {"y": np.array(["yes"] * 300)}
    constant = table(300) | {"a": np.full(300, 0.5), "b": np.full(300, 4.0)}
    return table(3), separated, table_of_yes, constant


@pytest.mark.parametrize("loss", [Logistic(), Huber(0.5)])
def test_passes_that_run_out_leave_no_point_beyond_the_tolerance(loss, monkeypatch):
    """Accelerated gradients take over, in as many passes as they promise at most."""
    monkeypatch.setattr(minimum_module, "MOST_PASSES", 2)
    for data in awkward():
        design, facts = bound(data, loss)
        rows, tilt = passes(design, facts), np.array([0.6, -0.8, 0.0])
        point = minimise(rows, loss, 2.0, tilt, tolerance(1.0)).rounded
        gradient = rows.slopes(point, loss).gradient + 2.0 * point + tilt
        assert np.linalg.norm(gradient) <= tolerance(1.0)


def test_what_the_mask_hides_is_all_that_rounding_and_tolerance_leave():
    """Against the minimum of a longer computation, for rows summed in any order."""
    data = table(2000)
    turned = {name: values[::-1] for name, values in data.items()}
    points = []
    for rows in (data, turned):
        design, facts = bound(rows)
        for shortest in (tolerance(1.0), 1e-3 * tolerance(1.0)):
            minimum_found = minimise(passes(design, facts), Logistic(), 0.1, np.ones(3), shortest)
            points.append(minimum_found.rounded)
    distance = max(np.linalg.norm(point - second) for point in points for second in points)
    assert distance <= furthest(1.0, 0.1)


@pytest.mark.parametrize(
    ("loss", "size"),
    [(Logistic(), 0.0), (Logistic(), 1e5), (Huber(0.5), 0.0), (Huber(0.5), 1e5), (Huber(0.1), 0.0)],
)
def test_the_minimiser_keeps_its_tolerance(loss, size):
    """Whatever the rows: separated, of one class, constant, few."""
    for data in awkward():
        design, facts = bound(data, loss)
        rows = passes(design, facts)
        tilt = size * np.array([0.6, -0.8, 0.0])
        point = minimise(rows, loss, 0.05, tilt, tolerance(size)).rounded
        gradient = rows.slopes(point, loss).gradient + 0.05 * point + tilt
        assert np.linalg.norm(gradient) <= tolerance(size)


@pytest.mark.parametrize("budget", [PureDP(1.0), ZCDP(0.5)])
@pytest.mark.parametrize("ridge", [1e9, 1e12])
def test_a_ridge_about_a_far_constant_keeps_the_tolerance_and_is_masked(budget, ridge, monkeypatch):
    """Where no outcome occurs the constant is far from 0, and a large ridge about it is rounded."""
    tolerances, original = [], minimise

    def watched(rows, loss, ridge, tilt, shortest, limit):
        exact = original(rows, loss, ridge, tilt, shortest, limit)
        point = exact.rounded
        gradient = rows.slopes(point, loss).gradient + ridge * point + tilt
        tolerances.append((point, np.linalg.norm(gradient) / shortest))
        return exact

    monkeypatch.setattr(objective_module, "minimise", watched)
    data = {**table(200), "y": np.full(200, "no")}
    for seed in range(5):
        release, _ = released(Objective(ridge=ridge, inference=False), budget, data, seed=seed)
        point, length = tolerances[-1]
        assert length <= 1
        assert release.coefficient_sd > 100 * np.spacing(np.abs(point).max())


@pytest.mark.product
def test_gaussian_shares_never_come_to_more_than_the_whole():
    _, facts = bound(table(10))
    for rho in np.geomspace(1e-9, 1e3, 60):
        for strategy in (Objective(), Objective(inference=False)):
            assert total_rho(strategy.plan(facts, ZCDP(float(rho))).events) <= float(rho)


def test_spherical_noise_has_its_law():
    scale, columns = 2.5, 4
    draws = np.array([spherical(columns, scale, source) for source in map(seeded, range(4000))])
    length = np.linalg.norm(draws, axis=1)
    assert stats.kstest(length, stats.gamma(columns, scale=scale).cdf).pvalue > ALARM / 4
    # A coordinate of a uniform direction, squared, is Beta(1/2, (d - 1)/2).
    share = (draws[:, 0] / length) ** 2
    assert stats.kstest(share, stats.beta(0.5, (columns - 1) / 2).cdf).pvalue > ALARM / 4
    normal = draws.std() / spherical_sd(columns, scale)
    # The sd of 16,000 coordinates of kurtosis below 6 is known to 1 %.
    assert abs(normal - 1) < 0.06


@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE])
def test_the_mask_is_as_large_as_the_distance_asks(law):
    distance, columns, multiplier = 1e-4, 5, 30.0
    result = mask(distance, columns, multiplier, law)
    smallest = 2 * distance * multiplier * (math.sqrt(columns) if law is LAPLACE else 1)
    assert smallest <= result.scale * result.step <= 1.01 * smallest
    point = np.arange(columns) / 7
    exact = Pair(point, 0 * point)
    draws = np.array([masked(exact, result, seeded(seed), law) - point for seed in range(400)])
    sd = draws.std() / (law.sd * result.scale * result.step)
    # 2,000 draws of kurtosis at most 6: a standard error of 2.5 %.
    assert abs(sd - 1) < 0.14


@pytest.mark.parametrize("relation", RELATIONS)
def test_output_noise_is_calibrated_to_strong_convexity(relation):
    _, facts = bound(table(10), relation=relation)
    plan = Output(ridge=10.0).plan(facts, PureDP(0.5))
    n_rows = 2 if relation == "replace" else 1
    assert plan.scales["noise"] == pytest.approx(n_rows / 10 / 0.5, rel=1e-5)
    gaussian = Output(ridge=10.0).plan(facts, ZCDP(0.125))
    assert gaussian.scales["noise"] == pytest.approx(2 * n_rows / 10, rel=1e-5)


def test_neighbours_move_the_minimum_no_further_than_output_noise_allows():
    data, ridge = table(40), 0.5
    distance_bound = 0.0
    for loss in (Logistic(), Huber(0.5)):
        minimum_of_all = minimum(*rows_of(data, loss), loss, ridge)
        for relation, n_rows in (("replace", 2.0), ("add-remove", 1.0)):
            for at in range(2):
                changed = {name: values.copy() for name, values in data.items()}
                if relation == "replace":
                    changed["a"][at], changed["b"][at] = -data["a"][at], 4 - data["b"][at]
                    changed["y"][at] = "no" if data["y"][at] == "yes" else "yes"
                else:
                    changed = {name: np.delete(values, at) for name, values in changed.items()}
                distance = np.linalg.norm(
                    minimum(*rows_of(changed, loss), loss, ridge) - minimum_of_all
                )
                assert distance <= n_rows / ridge
                distance_bound = max(distance_bound, distance * ridge)
    assert distance_bound > 0.05


def test_bought_matrices_move_no_further_than_their_noise_allows():
    slopes = np.linspace(0, 1, 1_000_001)
    together = np.sqrt(16 * slopes**2 * (1 - slopes) ** 2 + slopes**4)
    assert together.max() < LOGISTIC.euclidean < 1.001 * together.max()
    assert (4 * slopes * (1 - slopes) + slopes**2).max() == pytest.approx(LOGISTIC.absolute)
    assert (math.sqrt(2), 2, 1) == APART


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_noise_of_bought_curvature_has_its_sd(relation):
    design, facts = bound(table(50), relation=relation)
    rows, point = passes(design, facts), np.array([0.1, -0.5, 1.0])
    scale = bought_scale(facts, 2.0, GAUSSIAN)
    bought = [both_matrices(rows, point, facts, scale, seeded(seed)) for seed in range(60)]
    for matrix, noise in (("bread", "bread_noise"), ("meat", "meat_noise")):
        off = np.array([getattr(release, matrix) for release in bought])[:, [0, 0, 1], [1, 2, 2]]
        ratio = (off.var(axis=0, ddof=1) / getattr(bought[0], noise).off ** 2).sum() * 59
        # Three chi-squares of 59 degrees of freedom, in two tables and two relations.
        tails = stats.chi2(177).ppf([ALARM / 8, 1 - ALARM / 8])
        assert tails[0] < ratio < tails[1]


def test_gaussian_noise_where_it_is_less():
    _, facts = bound(table(10))
    few = Objective(inference=False).plan(facts, ApproxDP(1.0, 1e-6))
    assert few.scales["gaussian"] == 0
    wide = replace(facts.predictors, terms=2000)
    plan = Objective(inference=False).plan(replace(facts, predictors=wide), ApproxDP(1.0, 1e-6))
    assert plan.scales["gaussian"] == 1
    assert Objective().plan(facts, ApproxDP(1.0, 1e-6)).scales["gaussian"] == 1
    rounded = replace(facts, loss=Huber(0.5))
    assert Objective(inference=False).plan(rounded, ZCDP(0.5)).scales["gaussian"] == 0


def test_pure_noise_in_the_linear_term_leaves_gaussian_noise_for_the_rest():
    _, facts = bound(table(10))
    plan = Objective(pure=True).plan(facts, ApproxDP(1.0, 1e-6))
    gaussian = Objective().plan(facts, ApproxDP(1.0, 1e-6))
    assert plan.scales["gaussian"] == 0
    assert plan.scales["sd"] < gaussian.scales["sd"]
    assert plan.scales["ridge"] < gaussian.scales["ridge"] / 4
    assert {type(event).__name__ for event in plan.events} == {
        "PureEvent",
        "LaplaceEvent",
        "GaussianEvent",
    }
    # Without a delta, or under zCDP, it changes nothing.
    for budget in (PureDP(1.0), ZCDP(0.5)):
        assert Objective(pure=True).plan(facts, budget) == Objective().plan(facts, budget)
    released_now, _ = released(Objective(pure=True, ridge=5.0), ApproxDP(1e6, 1e-6), table())
    assert released_now.curvature.end is not None


def test_what_cannot_be_is_refused_before_a_row_is_read():
    design, facts = bound(table(10), Poisson(20.0, 5.0))
    for strategy in (Objective(inference=False), Output()):
        with pytest.raises(ArgumentError, match="gradients"):
            strategy.plan(facts, PureDP(1.0))
    _, logistic = bound(table(10))
    with pytest.raises(BudgetError, match="ridge"):
        Objective(inference=False, ridge=1e-3).plan(logistic, PureDP(0.1))
    design, logistic = bound(iter([table(10)]))
    with pytest.raises(FrameError, match="several times"):
        passes(design, logistic)
    for words in (
        {"inference": 1},
        {"pure": 1},
        {"share": 2.0},
        {"share": "a"},
        {"ridge": 0},
        {"ridge": "x"},
    ):
        with pytest.raises(ArgumentError):
            Objective(**words)
    for words in ({"steps": 0}, {"steps": 1.5}, {"share": 0.0}, {"inference": None}):
        with pytest.raises(ArgumentError):
            NoisyGradients(**words)
    with pytest.raises(ArgumentError):
        Output(ridge=-1.0)
