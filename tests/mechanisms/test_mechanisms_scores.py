"""A line first, then moments about it: what it costs, what steers it, and what it reports."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from moment_cases import fraction_spent
from scipy.stats import binom, chi2

import dpmodels as dp
from dpmodels.codebook import Codebook
from dpmodels.design import PrivateDesign
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.mechanisms import Facts
from dpmodels.mechanisms.add_noise import SMALLEST_SCALE, gaussian_count
from dpmodels.mechanisms.regression import Scores, column_location, scores
from dpmodels.noise import seeded
from dpmodels.noise.lattice import choose_lattice, lengths, to_lattice
from dpmodels.postprocess.ellipsoid import Cells
from dpmodels.postprocess.score_rounds import (
    LENGTHS,
    RESIDUALS,
    FarRows,
    SignedCells,
    chosen_limits,
    first_coordinates,
    lognormal_tail,
    within_reach,
)
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, adjacency
from dpmodels.statistics import Statistic
from dpmodels.statistics.passes import column_counts
from dpmodels.statistics.score_moments import (
    power_sums,
    residual_sizes,
    score_lengths,
    score_moments,
)
from tests.private_rows import private_regression

RELATIONS = ("replace", "add-remove")
GUARANTEES = [ZCDP(0.1), ZCDP(1e-12), ApproxDP(1.0, 1e-6), ApproxDP(1e9, 1e-6)]
NAMES = ["x1", "x2", "y"]
FORMULA = "y ~ x1 + x2"
# Corners become as long as a score can be, in opposite directions.
EVEN = np.diag([0.0, 2.0, 2.0, 9.0])
ROUGH = np.array([[1, 0.2, -0.4, 0], [0, 3, 0.1, 0], [0, -7, 9, 0], [0.1, -0.5, 0.2, 5]])


def facts(columns=3, relation="replace"):
    return Facts(columns, adjacency(relation), centred=True)


def measured(rows, plan, formula=FORMULA, book=None, weights=None):
    """Rows whose last column, if there is one more, are weights."""
    table = dict(zip([*NAMES, "w"], rows.T, strict=False))
    book = Codebook.uniform(NAMES, (-1, 1)) if book is None else book
    if weights is not None:
        book = book | {weights: (0, 2)}
    return Scores().measure(private_regression(formula, table, book, weights=weights), plan)


def survey(rows, seed=1):
    """Skewed numbers, a factor of five levels, one of them of 4 %, and a response of them."""
    rng = np.random.default_rng(seed)
    income = np.minimum(rng.lognormal(3, 0.7, rows), 300)
    children = np.minimum(rng.poisson(0.8, rows), 8)
    region = rng.choice(5, rows, p=[0.4, 0.25, 0.2, 0.11, 0.04])
    response = 5 + 0.02 * income + 0.4 * children + np.array([0, 0.5, -0.4, 0.9, -0.8])[region]
    table = pd.DataFrame(
        {
            "income": income,
            "children": children,
            "region": np.array(list("abcde"))[region],
            "y": np.clip(response + rng.normal(0, 1, rows), 0, 20),
        }
    )
    book = dp.codebook(income=(0, 300), children=(0, 8), region=list("abcde"), y=(0, 20))
    return table, book


def least_squares(table):
    columns = [(table["region"] == level).astype(float) for level in "bcde"]
    design = np.column_stack([np.ones(len(table)), *columns, table["income"], table["children"]])
    return np.linalg.lstsq(design, table["y"], rcond=None)[0]


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
def test_the_rounds_compose_to_the_guarantee_and_use_it_up(guarantee):
    for relation in RELATIONS:
        plan = Scores().plan(facts(4, relation), guarantee)
        assert len(plan.events) == len(scores.SHARES)
        assert 1 - 1e-6 < fraction_spent(plan.events, guarantee) <= 1


def test_a_pure_guarantee_is_refused():
    with pytest.raises(BudgetError):
        Scores().plan(facts(), PureDP(1.0))


def rounds_of(passes, plan):
    """Each round's answer for some rows, in units of its noise."""
    size, weight, scales = plan.facts.columns, gaussian_count(plan.facts, 1.0), plan.scales
    ranges = column_location.column_ranges(passes.blocks, passes.scaling)
    lattice = choose_lattice(len(ranges.column), scales["powers"])
    sums = passes.measured(power_sums, ranges.powers, lattice).cross()[0].astype(float)
    sums[0] *= weight.total / weight.rows
    finer = choose_lattice(size + 1, scales["final"])
    exact = passes.measured(score_moments, ROUGH, finer).cross()[0].astype(float)
    steps = scales["final"] * finer.radius**2
    upper = exact[np.triu_indices(size + 1, 1)] * np.sqrt(2)
    limits = (0.3, 1.0, 4.0), (0.5, 2.0)
    counts = passes.measured(score_lengths, ROUGH, *limits).cross()[0].astype(float)
    coarse = choose_lattice(size + 1, scales["sizes"])
    sizes = passes.measured(residual_sizes, EVEN, coarse).cross()[0].astype(float)
    return {
        "powers": sums / (max(scales["powers"] * lattice.radius, SMALLEST_SCALE)),
        "lengths": counts / scales["lengths"],
        "sizes": sizes / (scales["sizes"] * coarse.radius**2),
        "final": np.concatenate([np.diagonal(exact), upper]) / steps,
    }


@pytest.mark.parametrize("relation", RELATIONS)
def test_neighbours_are_within_the_sensitivity_of_each_round(relation):
    """All pairs of a pool of corners, far, small, odd and incomplete rows, in each round."""
    plan = Scores().plan(facts(3, relation), ZCDP(0.1))
    events = dict(zip(scores.SHARES, plan.events, strict=True))
    rng = np.random.default_rng(7)
    corners = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T.astype(float)
    odd = [[np.nan, 1, 1], [np.inf, -np.inf, 1e308], [0, 0, 0], [5e-324, 1e-9, -0.3]]
    rows = np.vstack([corners, 0.01 * corners, rng.uniform(-1, 1, (12, 3)), odd])
    answers = [rounds_of(measured(row[None], plan), plan) for row in rows]
    furthest = {}
    for name in answers[0]:
        parts = [statistic[name] for statistic in answers]
        pairs = combinations(parts, 2) if relation == "replace" else [(part, 0) for part in parts]
        distance = max(float(np.linalg.norm(first - second)) for first, second in pairs)
        furthest[name] = distance * events[name].multiplier
    assert all(distance <= 1 + 1e-9 for distance in furthest.values()), furthest
    assert all(distance > 0.8 for distance in furthest.values()), furthest


@pytest.mark.parametrize("relation", RELATIONS)
def test_neighbours_of_weighted_rows_are_within_the_same_sensitivity(relation):
    """All pairs of corners, small and odd rows with weights of 0, the largest, and between."""
    plan = Scores().plan(facts(3, relation), ZCDP(0.1))
    events = dict(zip(scores.SHARES, plan.events, strict=True))
    rng = np.random.default_rng(8)
    corners = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T.astype(float)
    points = np.vstack([corners, rng.uniform(-1, 1, (2, 3)), [[1e308, 0, 5e-324]]])
    weights = [0.0, 1e-9, 0.3, 2.0, np.nan]
    rows = np.array([[*point, weight] for point in points for weight in weights])
    answers = [rounds_of(measured(row[None], plan, weights="w"), plan) for row in rows]
    for name in ("powers", "lengths", "sizes", "final"):
        parts = np.array([answer[name] for answer in answers])
        among = parts[:, None] - parts if relation == "replace" else parts
        furthest = float(np.linalg.norm(among, axis=-1).max()) * events[name].multiplier
        assert 0.8 < furthest <= 1 + 1e-9, (name, furthest)


def test_columns_of_weighted_rows_are_counted_once():
    """Counts by column are of rows without their weights, each in one cell of each column."""
    plan = Scores().plan(facts(), ZCDP(0.1))
    rows = np.array([[1, -0.5, 0.25, w] for w in (1e-12, 0.3, 0.7, 2.0)])
    cells = [
        measured(row[None], plan, weights="w").measured(column_counts, 20).cross()[0]
        for row in rows
    ]
    assert all(counts.sum(axis=1).tolist() == [1, 1, 1] for counts in cells)
    assert (np.array(cells[1:]) == cells[-1]).all()


@pytest.mark.parametrize("formula", ["y ~ g", "y ~ g*x1", "y ~ C(g, Sum) + poly(x1, 2)"])
def test_powers_of_factors_and_products_stay_in_their_ball(formula):
    """No declared row is shortened: means and variances would be of other rows."""
    book = dp.codebook(x1=(-2, 5), g=list("abcd"), y=(0, 3))
    levels = np.repeat(list("abcd"), 4)
    table = {"x1": np.tile([-2, 5, 0, 1.0], 4), "g": levels, "y": np.tile([0, 3.0], 8)}
    design = private_regression(formula, table, book)
    ranges = column_location.column_ranges(design.public.blocks, design.scaling)
    plan = Scores().plan(facts(len(design.public.names)), ZCDP(0.5))
    lattice = choose_lattice(len(ranges.column), plan.scales["powers"])
    rows = _coded(design, plan.lattice)
    powers = ranges.powers
    u = rows[powers.column] - powers.centre[:, None]
    expected = powers.linear[:, None] * u + powers.square[:, None] * u**2 - powers.middle[:, None]
    # Rows are rounded to the lattice: a millionth of a range.
    assert np.linalg.norm(expected, axis=0).max() <= 1 + 1e-5
    exact, _ = power_sums(design, plan.lattice, powers, lattice).cross()
    np.testing.assert_allclose(
        exact[1:].astype(float) / lattice.steps, expected.sum(axis=1), atol=1e-3
    )


def _coded(design: PrivateDesign, lattice) -> np.ndarray:
    """Scaled rows, shape (columns, rows)."""
    (rows,) = [block.copy() for block, _ in design.blocks(np.array, lattice)]
    return rows[1:] * design.scaling.row_norm / lattice.steps


def test_a_row_has_the_same_integers_wherever_it_stands():
    plan = Scores().plan(facts(), ZCDP(0.5))
    finer = choose_lattice(4, plan.scales["final"])
    rows = np.random.default_rng(2).uniform(-1, 1, (40, 3))
    alone = sum(
        measured(row[None], plan).measured(score_moments, ROUGH, finer).cross()[0] for row in rows
    )
    together = measured(rows[::-1], plan).measured(score_moments, ROUGH, finer).cross()[0]
    assert (alone == together).all()


@pytest.mark.product
def test_the_noise_of_the_coefficients_has_the_stated_law():
    """Squares of 60 independent errors over their sds: bounds of a false alarm of 1e-6.

    Rows of normal errors and radii that clip few of them, so that only noise is left.
    """
    rng = np.random.default_rng(1)
    x = rng.normal(size=(8_000, 2)) @ np.array([[1, 0.6], [0, 0.8]])
    response = x @ [0.5, -0.3] + 0.5 * rng.normal(size=8_000)
    table = dict(zip(NAMES, np.clip(np.column_stack([x, response]), -4, 4).T, strict=True))
    design = np.column_stack([np.ones(8_000), table["x1"], table["x2"]])
    plain = np.linalg.lstsq(design, table["y"], rcond=None)[0]
    squares = []
    with dp.simulation(seed=6):
        for _ in range(60):
            words = {"codebook": Codebook.uniform(NAMES, (-4, 4)), "eps": 2.0, "delta": 1e-6}
            fit = dp.dp_lm(FORMULA, table, mechanism="scores", **words)
            squares.append(((fit.params.to_numpy() - plain) / fit.bse_noise.to_numpy()) ** 2)
    low, high = chi2.ppf([0.17e-6, 1 - 0.17e-6], 60)
    total = np.sum(squares, axis=0)
    assert ((total > low) & (total < high)).all(), total


@pytest.mark.product
def test_a_survey_of_5000_rows_is_identified_and_covered():
    """Of 20 fits 140 intervals: fewer than 118 of 95 % cover with a probability below 1e-6."""
    covered, offered, wide = 0, 0, []
    for seed in range(20):
        table, book = survey(5_000, seed)
        plain = least_squares(table)
        with dp.simulation(seed=seed):
            fit = dp.dp_lm(
                "y ~ income + children + region", table, codebook=book, eps=1.0, delta=1e-6
            )
        assert fit.release.info.name == "scores"
        ends = fit.noise_int().to_numpy()
        offered += int(fit.identified.sum())
        covered += int(((ends[:, 0] <= plain) & (plain <= ends[:, 1])).sum())
        wide.append(np.median(fit.bse / fit.bse_sampling))
    assert binom.cdf(117, 140, 0.95) < 1e-6
    assert offered >= 138
    assert covered >= 118
    assert np.median(wide) < 2.5


@pytest.mark.parametrize("times", [3, 100])
def test_bounds_that_are_too_wide_cost_little(times):
    table, book = survey(20_000)
    wider = book | {"income": (-150 * times, 150 * times + 300), "y": (-10 * times, 10 * times)}
    errors = []
    for declared in (book, wider):
        with dp.simulation(seed=2):
            fit = dp.dp_lm(
                "y ~ income + children + region", table, codebook=declared, eps=1.0, delta=1e-6
            )
        assert fit.identified.all()
        errors.append(fit.bse.to_numpy()[1:])
    assert np.median(errors[1] / errors[0]) < 1.5


def test_a_model_without_intercept_is_of_the_same_rows():
    rng = np.random.default_rng(4)
    x = rng.normal(1, 1, (20_000, 2))
    response = x @ [0.7, -0.2] + rng.normal(0, 0.5, 20_000)
    table = {"x1": x[:, 0], "x2": x[:, 1], "y": response}
    plain = np.linalg.lstsq(x, response, rcond=None)[0]
    with dp.simulation(seed=2):
        fit = dp.dp_lm(
            "y ~ 0 + x1 + x2", table, codebook=Codebook.uniform(NAMES, (-6, 6)), eps=1.0, delta=1e-6
        )
    # Each within 6 sds of its noise, exceeded with probability 4e-9.
    assert (np.abs(fit.params.to_numpy() - plain) < 6 * fit.bse_noise.to_numpy()).all()


@pytest.mark.product
def test_auto_is_of_public_facts():
    table, book = survey(300)
    words = {"codebook": book, "eps": 1.0, "delta": 1e-6}

    def name(rows=table, formula="y ~ income + region", **options):
        return dp.dp_lm(formula, rows, **{**words, **options}).release.info.name

    assert name() == name(table[:20]) == name(adjacency="add-remove") == "scores"
    assert name(iter([table])) == "moments"
    assert name(delta=0.0) == "scores_pure"
    assert name(row_norm=1.0) == "moments"
    assert name(formula="y ~ 1") == "moments"
    assert name(weights="children") == "scores"


def test_auto_is_one_release_where_that_is_predicted_to_have_less_noise():
    """Columns of two values fill their bounds: there is nothing to learn about them."""
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 2, (5_000, 4))
    table = pd.DataFrame(codes, columns=["a", "b", "c", "y"])
    two = {name: dp.Numeric(0, 1, step=1) for name in table}
    wide = dict.fromkeys(table, (0, 1))
    names = []
    for declared in (two, wide):
        words = {"codebook": dp.codebook(**declared), "eps": 1.0, "delta": 1e-6}
        names.append(dp.dp_lm("y ~ a + b + c", table, **words).release.info.name)
    assert names == ["moments", "scores"]


@pytest.mark.filterwarnings("error:::dpmodels")
@pytest.mark.filterwarnings("ignore::dpmodels.errors.BudgetWarning")
@pytest.mark.parametrize("eps", [1e-3, 1.0, 1e9])
def test_odd_rows_leave_everything_finite(eps):
    plan = Scores().plan(facts(), ApproxDP(eps, 1e-6))
    rng = np.random.default_rng(2)
    odd = {
        "two": rng.uniform(-1, 1, (2, 3)),
        "equal": np.full((3_000, 3), 0.25),
        "a column of one value": rng.uniform(-1, 1, (3_000, 3)) * [1, 0, 1],
        "a constant response": rng.uniform(-1, 1, (3_000, 3)) * [1, 1, 0],
        "terms that are one": rng.uniform(-1, 1, (3_000, 1)) * [1, 1, 0.5],
        "incomplete": np.full((50, 3), np.nan),
    }
    for rows in odd.values():
        release = Scores().release(measured(rows, plan), plan, seeded(1))
        assert np.isfinite(release.second).all()
        assert np.isfinite(release.ball.axes).all()
        assert np.linalg.matrix_rank(release.ball.axes) == 3


def test_a_fit_is_saved_with_its_line(tmp_path):
    table, book = survey(3_000)
    fit = dp.dp_lm("y ~ income + region", table, codebook=book, eps=1.0, delta=1e-6)
    fit.save(tmp_path / "a.nc")
    again = dp.load(tmp_path / "a.nc")
    assert str(again.summary()) == str(fit.summary())
    assert again.release.ball.rows == fit.release.ball.rows


def test_robust_errors_go_with_it():
    table, book = survey(20_000)
    words = {"codebook": book, "eps": 1.0, "delta": 1e-6}
    with dp.simulation(seed=1):
        plain = dp.dp_lm("y ~ income + children + region", table, **words)
        robust = dp.dp_lm("y ~ income + children + region", table, vcov="HC", **words)
    assert robust.release.info.name == "scores"
    assert ((robust.bse / plain.bse).between(0.8, 1.6)).all()


def test_sites_that_are_pooled_have_the_noise_of_one_table():
    table, book = survey(6_000)
    words = {"codebook": book, "eps": 1.0, "delta": 1e-6}
    parts = {"north": table[:2_000], "south": table[2_000:]}
    with dp.simulation(seed=3):
        fit = dp.dp_lm("y ~ income + region", table, **words)
    with dp.simulation(seed=3):
        pooled = dp.dp_lm("y ~ income + region", sites=parts, protocol="pooled", **words)
    np.testing.assert_allclose(pooled.bse, fit.bse, rtol=1e-9)


@pytest.mark.product
@pytest.mark.parametrize("kind", ["even", "long"])
def test_the_noise_of_weighted_coefficients_has_the_stated_law(kind):
    """Squares of 60 independent errors over their sds: below a bound of a false alarm of 1e-6.

    Intervals allow for clipping, too: the errors may be smaller than stated, by half.
    """
    rng = np.random.default_rng(1)
    x = rng.normal(size=(8_000, 2)) @ np.array([[1, 0.6], [0, 0.8]])
    weights = rng.uniform(0.5, 2, 8_000) if kind == "even" else rng.lognormal(0, 0.8, 8_000)
    weights = np.minimum(weights, 10.0)
    response = x @ [0.5, -0.3] + 0.5 * rng.normal(size=8_000) / np.sqrt(weights)
    clipped = np.clip(np.column_stack([x, response]), -4, 4)
    table = dict(zip([*NAMES, "w"], [*clipped.T, weights], strict=True))
    design = np.column_stack([np.ones(8_000), table["x1"], table["x2"]]) * np.sqrt(weights)[:, None]
    plain = np.linalg.lstsq(design, table["y"] * np.sqrt(weights), rcond=None)[0]
    book = Codebook.uniform(NAMES, (-4, 4)) | {"w": (0, 10)}
    squares = []
    with dp.simulation(seed=6):
        for _ in range(60):
            fit = dp.dp_lm(FORMULA, table, codebook=book, eps=2.0, delta=1e-6, weights="w")
            squares.append(((fit.params.to_numpy() - plain) / fit.bse_noise.to_numpy()) ** 2)
    assert fit.release.info.name == "scores"
    low, high = chi2.ppf([0.17e-6, 1 - 0.17e-6], 60)
    total = np.sum(squares, axis=0)
    assert ((total > low / 4) & (total < high)).all(), total


def test_robust_errors_of_weighted_rows_count_the_weights():
    """Errors are of one variance given the weights: both formulas estimate the same ones."""
    rng = np.random.default_rng(2)
    x, weights = rng.normal(size=20_000).clip(-4, 4), rng.uniform(0.1, 2, 20_000)
    response = np.clip(1 + 0.5 * x + rng.normal(size=20_000) / np.sqrt(weights), -12, 12)
    table = {"x": x, "y": response, "w": weights}
    book = dp.codebook(x=(-4, 4), y=(-12, 12), w=(0, 2))
    words = {"codebook": book, "eps": 100.0, "delta": 1e-6, "weights": "w"}
    with dp.simulation(seed=1):
        plain = dp.dp_lm("y ~ x", table, **words)
        robust = dp.dp_lm("y ~ x", table, vcov="HC", **words)
    assert plain.release.info.name == robust.release.info.name == "scores"
    assert (robust.bse / plain.bse).between(0.9, 1.1).all()


def test_axes_towards_rare_levels_are_shortened_and_no_others():
    shares = np.array([0.6, 0.38, 0.02])
    covariance = np.zeros((4, 4))
    covariance[:2, :2] = np.diag(shares[1:]) - np.outer(shares[1:], shares[1:])
    covariance[2, 2] = covariance[3, 3] = 1.0
    coordinates = first_coordinates(np.append(shares[1:], [0, 0]), covariance)
    levels = [(slice(0, 2), np.array([[0, 0], [1, 0], [0, 1.0]]))]
    nearer = within_reach(coordinates, FarRows(levels, np.zeros(3), 0.0), 2.5)

    def lengths(now):
        return np.linalg.norm(now.whitening[:, :2] @ (levels[0][1] - now.centre[:2]).T, axis=0)

    assert lengths(coordinates)[2] == pytest.approx(7.0)
    assert lengths(nearer)[2] == pytest.approx(0.8 * 2.5)
    np.testing.assert_allclose(lengths(nearer)[:2], lengths(coordinates)[:2], rtol=0.02)
    np.testing.assert_allclose(np.sort(nearer.spread), [2 / 7, 1, 1], rtol=0.01)
    np.testing.assert_allclose(
        nearer.whitening @ covariance[:3, :3] @ nearer.whitening.T,
        np.diag(nearer.spread**2),
        atol=1e-9,
    )


def test_radii_grow_with_rows_that_are_beyond_them_only():
    """Rows of one length need no longer radius, however many; long tails need one."""

    def limits(counts, rows):
        terms = np.where(LENGTHS == 1.0, rows, 0.0) if counts is None else counts * rows
        residuals = np.diff(chi2.cdf(RESIDUALS**2, 1), prepend=0.0) * rows
        side = Cells(RESIDUALS, residuals / 2, 30.0)
        signed = SignedCells(side, side, 1e3)
        return chosen_limits(Cells(LENGTHS, terms, 30.0), signed, np.zeros(3), rows, 6.0)

    heavy = np.diff(1 - np.minimum(1.0, (2 * LENGTHS) ** -3.0), prepend=0.0)
    assert limits(None, 1e6).radius <= 1.2 * limits(None, 3e3).radius
    assert limits(heavy, 1e6).radius > 2 * limits(heavy, 3e3).radius
    assert limits(heavy, 1e6).cut > limits(heavy, 3e3).cut
    assert limits(None, 1e6).shift < limits(heavy, 1e6).shift


def limits_of(residuals, uneven, largest=1e3, rows=20_000):
    """Limits for terms of one length and these residuals."""
    bins = np.concatenate([[0.0], RESIDUALS[:-1], [np.inf]])
    sides = (residuals[residuals > 0], -residuals[residuals <= 0])
    above, below = (
        Cells(RESIDUALS, np.histogram(side, bins)[0] * rows / len(residuals), 43.0)
        for side in sides
    )
    terms = Cells(LENGTHS, np.where(LENGTHS == 1.0, rows, 0.0), 43.0)
    return chosen_limits(terms, SignedCells(above, below, largest), uneven, rows, 5.0)


@pytest.mark.parametrize("side", [1, -1])
def test_residuals_on_one_side_have_a_longer_cut_and_an_allowance(side):
    """Cut incomes move a mean, and slopes where they are more uneven along a term."""
    normal = np.random.default_rng(5).normal(size=200_000)
    incomes = np.exp(0.8 * normal)
    skewed = side * (incomes - incomes.mean())
    skewed /= np.sqrt((np.minimum(np.abs(skewed), 2.0 * skewed.std()) ** 2).mean())
    uneven = np.array([0.5, 0.0, 0.0])
    even = limits_of(normal, uneven)
    assert even.cut < 3
    assert not even.skew.any()
    assert abs(even.one_sided) < 0.02
    longer = limits_of(skewed, uneven)
    assert longer.cut > 2 * even.cut
    # Of a lognormal law of sd .8 as many more are below its mean, less those far above.
    assert 0.28 <= side * longer.one_sided <= 0.38
    cut_off = np.maximum(side * skewed - longer.cut, 0.0).mean()
    assert 0.5 * cut_off <= longer.skew[0] <= cut_off + 0.02
    assert longer.skew[1] > 0
    assert (longer.skew[2:] == 0).all()
    assert limits_of(skewed, 0 * uneven).cut < longer.cut
    assert limits_of(skewed, uneven, largest=2.0).cut < even.cut * 1.5


@pytest.mark.product
def test_the_lognormal_tail_is_in_units_of_cut_residuals():
    normal = np.random.default_rng(6).normal(size=400_000)
    for sigma in (0.2, 0.8):
        deviations = np.exp(sigma * normal) - np.exp(sigma**2 / 2)
        units = np.geomspace(0.1, 100, 4000)
        squares = [
            (np.minimum(np.abs(deviations[:20_000]) * unit, 2.0) ** 2).mean() for unit in units
        ]
        unit = units[np.searchsorted(squares, 1.0)]
        shares = [(deviations * unit > length).mean() for length in (1.0, 2.0, 4.0)]
        expected = lognormal_tail(sigma, np.array([1.0, 2.0, 4.0]))
        np.testing.assert_allclose(expected, shares, rtol=0.05, atol=5e-4)


@pytest.mark.product
def test_slopes_of_incomes_are_covered():
    """Noise intervals of 40 fits, with a false alarm of 1e-6 where they cover .88."""
    rng, covered = np.random.default_rng(9), 0
    book = dp.codebook(age=(18, 90), educ=(1, 16), y=(0, 400_000))
    for fit in range(40):
        age, educ = rng.integers(18, 91, 5000), rng.binomial(15, 0.6, 5000) + 1
        level = 9.5 + 0.1 * educ + (0.6 + 0.02 * educ) * rng.normal(size=5000)
        y = np.minimum(np.exp(level) * (rng.random(5000) > 0.2), 400_000)
        with dp.simulation(seed=fit):
            fitted = dp.dp_lm(
                "y ~ age + educ", {"age": age, "educ": educ, "y": y}, codebook=book, eps=1.0,
                delta=1e-6, mechanism="scores",
            )  # fmt: skip
        design = np.column_stack([np.ones(5000), age, educ])
        low, high = fitted.noise_int().loc["educ"]
        covered += low <= np.linalg.lstsq(design, y, rcond=None)[0][2] <= high
    assert covered >= binom.ppf(1e-6, 40, 0.88)


def test_moments_alone_are_refused():
    plan = Scores().plan(facts(2), ZCDP(0.1))
    with pytest.raises(ArgumentError, match="measure"):
        Scores().release(Statistic("moments", np.zeros((3, 3), object), 0), plan, seeded(1))


@pytest.mark.parametrize("weights", [None, "w"])
def test_powers_are_those_of_operations_one_after_another(weights):
    """Of incomplete rows and weighted ones too, and of rows beyond the ball of the map."""
    rng, plan = np.random.default_rng(4), Scores().plan(facts(), ZCDP(0.5))
    rows = np.column_stack([rng.uniform(-1, 1, (400, 3)), rng.uniform(0, 2, 400)])
    rows[::9, 1] = np.nan
    passes = measured(rows[:, : 3 + (weights is not None)], plan, weights=weights)
    ranges = column_location.column_ranges(passes.blocks, passes.scaling)
    for half in (ranges.half, ranges.half / 40):
        powers = replace(ranges, half=half).powers
        finer = choose_lattice(len(powers.column), plan.scales["powers"])
        (design,) = passes.designs
        expected = sum(
            _powers(block, powers, plan.lattice, finer, design.scaling.row_norm)
            for block, _ in design.blocks(np.array, plan.lattice)
        )
        exact, _ = passes.measured(power_sums, powers, finer).cross()
        assert exact.tolist() == expected.tolist()


def _powers(block, powers, lattice, finer, row_norm):
    """Sums of powers without a shortcut."""
    root = block[0] / lattice.radius
    u = block[1:][powers.column] * (row_norm / lattice.steps / np.where(root > 0, root, 1.0))
    u = u - powers.centre[:, None]
    q = u * powers.linear[:, None] + u * u * powers.square[:, None] - powers.middle[:, None]
    q = q / np.maximum(lengths(q), 1.0) * root**2
    to_lattice(q, np.ones(finer.columns), np.zeros(finer.columns), finer)
    q[:, root == 0] = 0.0
    count = np.maximum(np.rint(root**2 * finer.radius), np.ceil(lengths(q)))
    return np.append(count.sum(), q.sum(axis=1)).astype(np.int64)


def test_the_distance_that_most_rows_are_within_is_that_of_the_rows():
    """By column, to half an octave: rows at 0.1 and 0.4 on both sides of the middle."""
    signs = np.random.default_rng(1).choice([-1, 1], size=(4000, 3))
    plan = Scores().plan(facts(), ZCDP(10.0))
    passes = measured(signs * [0.1, 0.4, 0.1], plan)
    outer, inner, n_rows = column_location.column_distances(passes, np.zeros(3), plan, seeded(1))
    assert n_rows == pytest.approx(4000, rel=0.01)
    assert (outer >= [0.1, 0.4, 0.1]).all()
    assert (outer <= 2**0.51 * np.array([0.1, 0.4, 0.1])).all()
    np.testing.assert_allclose(inner, outer / np.sqrt(2), rtol=1e-9)


@pytest.mark.parametrize(("neighbours", "changed"), [("replace", 2), ("add-remove", 1)])
def test_no_round_has_less_noise_than_it_is_charged_for(neighbours, changed):
    """In fractions, since a product of floats that is rounded down would be charged too little."""
    facts = Facts(3, adjacency(neighbours), centred=True)
    plan = Scores().plan(facts, ZCDP(0.5))
    charged = dict(zip(scores.SHARES, plan.events, strict=True))
    squared_sensitivities = {
        "columns": Fraction(3 * changed),
        "rough": Fraction(changed),
        "better": Fraction(changed),
        "final": Fraction(changed),
        "lengths": Fraction(2 * changed),
        "sizes": Fraction(changed, 2) ** 2,
    }
    for name, squared in squared_sensitivities.items():
        variance = Fraction(plan.scales[name]) ** 2
        smallest = squared * Fraction(charged[name].multiplier) ** 2
        assert smallest < variance < smallest * Fraction(1 + 1e-9)
