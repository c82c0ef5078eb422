"""Caps of weights: noise and cost in units, cells, grids, the choice."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

import dpmodels as dp
from dpmodels.design.parts import SLOTS
from dpmodels.formula.tally import sampling_of
from dpmodels.mechanisms.protocol import Facts
from dpmodels.mechanisms.regression import Moments
from dpmodels.mechanisms.robust_covariance import SQUARES
from dpmodels.mechanisms.sampled_rows import UNITS, Sampled, cap_grid
from dpmodels.mechanisms.weighted_scores import ENDS, LENGTHS, MARKS, WeightedScores
from dpmodels.models.verb_spec import slots_of
from dpmodels.postprocess.ranges import CellNoise
from dpmodels.privacy import (
    ZCDP,
    Adjacency,
    ApproxDP,
    GaussianEvent,
    PureDP,
    gaussian_multiplier,
    group_events,
    planned_for_group,
)

DESIGN = dp.design(weights="w", bounds=(1, 50), weights_are="design")
SAMPLING = sampling_of(dp.Codebook({}, design=DESIGN))


def planned(guarantee, neighbours):
    """Return the plan of a cap and moments, as a verb makes it."""
    facts = Facts(3, slots_of(Adjacency(neighbours)), centred=True)
    strategy = Sampled(Moments(), SAMPLING)
    return planned_for_group(
        lambda part: strategy.plan(facts, part), lambda plan: plan.events, guarantee, SLOTS
    )


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_unit_is_charged_for_the_noise_of_its_places(neighbours):
    """The noise of counts of units follows from what a unit is charged, not a place."""
    guarantee = ApproxDP(1.0, 1e-6)
    plan = planned(guarantee, neighbours)
    events = group_events(plan.events, SLOTS)
    assert all(isinstance(event, GaussianEvent) for event in events)
    total = math.fsum(event.count / event.multiplier**2 for event in events) ** -0.5
    assert total >= gaussian_multiplier(guarantee) * (1 - 1e-9)
    units = math.sqrt(2) if neighbours == "replace" else 1.0
    assert plan.scales[UNITS] == pytest.approx(events[-1].multiplier * units, rel=1e-9)
    assert plan.scales[UNITS] >= events[-1].multiplier * units


def planned_step(guarantee, neighbours, levels, n_units=None):
    """Return the plan of a cap, moments and the scores of a step."""
    facts = Facts(3, slots_of(Adjacency(neighbours)), centred=True)
    strategy = Sampled(WeightedScores(Moments(), levels=levels, n_units=n_units), SAMPLING)
    return planned_for_group(
        partial(strategy.plan, facts), lambda plan: plan.events, guarantee, SLOTS
    )


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_strata_lengths_and_marks_are_charged(neighbours):
    """A unit is in a cell and a stratum; its vector is as long as score and marks together."""
    without, marked = (planned_step(ZCDP(0.1), neighbours, levels) for levels in (0, 4))
    assert marked.events == without.events
    assert marked.scales[UNITS] == pytest.approx(math.sqrt(2) * without.scales[UNITS])
    assert marked.scales[SQUARES] == pytest.approx(2.0625 / 2 * without.scales[SQUARES])
    lengths, squares = (event.multiplier for event in group_events(marked.events, SLOTS)[-3:-1])
    of_two = math.sqrt(2) if neighbours == "replace" else 1.0
    assert marked.scales[LENGTHS] == pytest.approx(lengths * of_two, rel=1e-9)
    assert marked.scales[SQUARES] == pytest.approx(2.0625 * squares * of_two, rel=1e-9)


@pytest.mark.parametrize(
    ("n_units", "moments"), [(None, 0.44), (500, 0.44), (4_000, 130 / 400), (10**6, 0.2)]
)
def test_scores_of_many_units_get_what_moments_do_not_need(n_units, moments):
    """Of what the cap leaves; pure guarantees are divided alike for any number of units."""
    scores = group_events(planned_step(ZCDP(0.1 / 0.97), "replace", 0, n_units).events, SLOTS)[-2]
    assert 0.5 / scores.multiplier**2 == pytest.approx(0.1 * (0.94 - moments), rel=1e-6)
    pure = [planned_step(PureDP(1.0), "replace", 0, number).events for number in (None, n_units)]
    assert pure[0] == pure[1]


@pytest.mark.parametrize("n_units", [None, 20_000])
@pytest.mark.parametrize("guarantee", [PureDP(1.0), ZCDP(0.1), ApproxDP(1.0, 1e-6)])
def test_a_step_costs_the_budget(guarantee, n_units):
    events = group_events(planned_step(guarantee, "replace", 4, n_units).events, SLOTS)
    if isinstance(guarantee, PureDP):
        cost, budget = math.fsum(event.count / event.multiplier for event in events), 1.0
    else:
        cost = math.fsum(event.count / event.multiplier**2 for event in events)
        budget = gaussian_multiplier(guarantee) ** -2
    assert 0.999 * budget < cost <= budget * (1 + 1e-9)


@pytest.mark.parametrize("guarantee", [PureDP(1.0), ZCDP(0.1)])
def test_other_guarantees_add_up(guarantee):
    events = group_events(planned(guarantee, "replace").events, SLOTS)
    if isinstance(guarantee, PureDP):
        assert math.fsum(event.count / event.multiplier for event in events) <= 1 + 1e-9
    else:
        assert math.fsum(event.count / (2 * event.multiplier**2) for event in events) <= 0.1 + 1e-9


@pytest.mark.parametrize(
    ("upper", "in_units"), list(product([0.4, 1.0, 50.0, 5040.0, 21_000.0], [False, True]))
)
def test_caps_reach_the_largest_weight(upper, in_units):
    design = dp.design(weights="w", bounds=(upper / 10, upper), weights_are="design")
    grid = cap_grid(sampling_of(dp.Codebook({}, design=design)), in_units=in_units)
    assert grid[-1] >= upper * (10 if in_units else 1)
    assert (np.diff(grid) > 0).all()
    power = grid[0]
    assert math.isclose(math.log10(power), round(math.log10(power)), abs_tol=1e-12)
    largest = SLOTS * power / grid
    np.testing.assert_allclose(largest, np.rint(largest), rtol=1e-12)


def cap_without_step(counts, noise_sd, price):
    """Return the cap of a mechanism that takes no step."""
    ends = cap_grid(SAMPLING, in_units=False)
    noise = CellNoise("gaussian", noise_sd)
    return Sampled(Moments(), SAMPLING)._cap(ends, counts(ends), noise, price, 2)


def test_no_weight_is_cut_where_there_is_no_noise():
    cap = cap_without_step(lambda ends: np.where(ends <= 25.2, 100.0, 0.0), 1e-6, 1e-9)
    assert cap.cap == pytest.approx(25.2)
    assert cap.beyond == pytest.approx(0, abs=1e-6)
    assert cap.scores is None


def test_more_noise_cuts_more_weight():
    prices = (0.1, 3.0, 100.0)
    caps = [cap_without_step(lambda ends: 1_000 * np.exp(-ends / 6), 1.0, by) for by in prices]
    assert caps[0].cap > caps[1].cap > caps[2].cap
    assert 0 <= caps[0].beyond < caps[1].beyond < caps[2].beyond < 1


def test_a_unit_moves_counts_by_at_most_the_root_of_two():
    """Brute force over neighbours in one unit, rows or sampling units."""
    from dpmodels.models.lm import lm_spec
    from dpmodels.request import requested
    from dpmodels.statistics.sampled import UnitWeights

    rng, book = np.random.default_rng(5), dp.codebook(x=(0, 1), y=(0, 1))
    words = {"weights": None, "row_norm": None, "vcov": None, "lump": None}
    for psu in (None, "u"):
        design = dp.design(weights="w", psu=psu, bounds=(1, 50), weights_are="design")
        request = requested("lm", "y ~ x", book, 1.0, 1e-6, None, None, design=design, **words)
        ends = cap_grid(sampling_of(request.codebook), in_units=psu is not None)
        for _ in range(20):
            rows = {
                "x": rng.random(60),
                "y": rng.random(60),
                "w": rng.uniform(0, 60, 60),
                "u": rng.integers(0, 12, 60),
            }
            second = {name: column.copy() for name, column in rows.items()}
            changed = np.flatnonzero(rows["u"] == rows["u"][0]) if psu else [0]
            second["w"][changed] = rng.choice([-1.0, np.nan, 1.0, 50.0, 1e9], len(changed))
            counts = [
                UnitWeights(lm_spec(request).private.bind(table), 50.0) for table in (rows, second)
            ]
            difference = counts[0].by_weight(ends) - counts[1].by_weight(ends)
            assert np.linalg.norm(difference.astype(float)) <= math.sqrt(2)
            assert np.abs(difference).sum() <= 2


STRATIFIED = dp.design(weights="w", psu="u", strata="s", bounds=(1, 50), weights_are="design")


def unit_scores(rows, cap, factors, levels):
    """Exact lengths and squares of the scores of units, with marks, on a coarse lattice."""
    from dpmodels.models.lm import lm_spec
    from dpmodels.noise.lattice import Lattice
    from dpmodels.request import requested
    from dpmodels.statistics.passes import Score
    from dpmodels.statistics.score_moments import UnitScores

    book = dp.codebook(x=(0, 1), y=(0, 1), s=["a", "b"])
    words = {"weights": None, "row_norm": None, "vcov": None, "lump": None}
    request = requested("lm", "y ~ x", book, 1.0, 1e-6, None, None, design=STRATIFIED, **words)
    design = lm_spec(request).private.bind(rows)
    for _ in design.rows.unit_weights():
        pass
    matrix = np.array([[1.0, 0.4, 0.1], [0.2, 1.0, 0.3]])
    score = Score(matrix * SLOTS * 3, np.array([0.1, 0.5, 1.0]), np.eye(2))
    capped = design.of(design.rows.capped(cap, factors))
    scores = UnitScores(capped, Lattice(12, 2), score, SLOTS)
    marks = MARKS if levels else MARKS[:1]
    ratio = math.sqrt(min(factors) / max(factors)) if factors else 1.0
    squares = scores.squares(2.0, Lattice(10, 2), marks, ratio, levels)
    return scores.by_length(ENDS).astype(float), squares.astype(float)


@pytest.mark.parametrize(("levels", "factors"), [(0, ()), (2, (1.2, 0.4))])
def test_a_unit_moves_lengths_and_squares_by_the_planned_sensitivity(levels, factors):
    """Brute force: a unit is replaced, with all of its rows, its weights and its stratum."""
    rng, moves = np.random.default_rng(7), []
    planned = math.sqrt(2) * (1 + math.fsum(m**2 for m in MARKS[: 2 if levels else 1]))
    for _ in range(12):
        rows = {
            "x": rng.integers(0, 2, 40).astype(float),
            "y": rng.integers(0, 2, 40).astype(float),
            "w": rng.choice([1.0, 8.0, 50.0, np.nan], 40),
            "u": rng.integers(0, 8, 40),
            "s": np.repeat("a", 40),
        }
        second = {name: column.copy() for name, column in rows.items()}
        changed = rows["u"] == rows["u"][0]
        second["w"][changed] = rng.choice([1.0, 50.0, 60.0])
        second["y"][changed] = rng.integers(0, 2)
        second["s"] = np.where(changed, rng.choice(["a", "b"]), second["s"])
        first, two = (unit_scores(table, 20.0, factors, levels) for table in (rows, second))
        assert np.linalg.norm(first[0] - two[0]) <= math.sqrt(2)
        moves.append(np.linalg.norm(first[1] - two[1]) / 2.0**20)
    assert 0.4 * planned < max(moves) <= planned


def test_what_a_unit_adds_is_its_marks_and_its_score():
    rows = {
        "x": np.array([0.0, 1.0, 1.0]),
        "y": np.array([1.0, 0.0, 1.0]),
        "w": np.array([40.0, 10.0, 5.0]),
        "u": np.array([1, 2, 3]),
        "s": np.array(["a", "b", "a"]),
    }
    lengths, squares = unit_scores(rows, 20.0, (), 2)
    assert lengths.sum() == 3
    assert np.diagonal(squares)[:3] == pytest.approx(
        np.array([3, 2, 1]) * [1024**2, 256**2, 256**2]
    )
    # The sum of scores is that of the strata.
    assert squares[0, 3:] / 4 == pytest.approx(squares[1, 3:] + squares[2, 3:])
    assert np.abs(squares[0, 3:]).sum() > 0


def stepped_equations(total, total_sd, noise=2.0, ball=None, cut=0.0):
    """Equations of noisy moments before and after a step, and a root of the scores."""
    from dpmodels.postprocess.normal_equations import NormalEquations
    from dpmodels.postprocess.unit_scores import stepped
    from dpmodels.released import Meat, ScoreCap, UnitCap, UnitScores

    rng = np.random.default_rng(2)
    columns = np.column_stack([np.ones(200), rng.normal(size=(200, 2))])
    moments = columns.T @ columns
    equations = NormalEquations(
        moments, np.full((3, 3), noise**2), np.eye(3)[:, :2], np.eye(3)[:, 2], intercept=True
    )
    root = np.array([[2.0, 0.0], [0.5, 1.0]])
    units = UnitScores(np.asarray(total), summed_sd=total_sd, cut=cut)

    class Release:
        estimate, second = None, np.eye(2)

    release = Release()
    release.ball = ball
    release.units = UnitCap(10.0, 0.1, 0.0, scores=ScoreCap(50.0))
    release.meat = Meat(np.eye(2), root, 0.01, 1.0, 0.2, "u", units)
    return equations, stepped(equations, release, 1.0), root


def test_the_step_is_by_the_score_of_all_weights():
    from dpmodels.postprocess.normal_equations import least_squares

    total = np.array([9.0, -6.0])
    first, second, root = stepped_equations(total, 1.0)
    difference = least_squares(second) - least_squares(first)
    assert difference == pytest.approx(np.linalg.solve(first.gram, root @ total), abs=1e-12)


def test_what_clipping_cuts_off_has_mostly_the_direction_of_the_constant():
    """Seven tenths of it along the first row of the root, two tenths across."""
    _, second, root = stepped_equations(np.zeros(2), 0.0, cut=10.0)
    allowed = np.linalg.solve(root, np.linalg.solve(root, second.pull).T)
    assert allowed == pytest.approx(np.diag([49.0, 4.0]))


def test_noise_of_the_moments_is_not_in_the_score_at_the_first_estimate():
    """There the error is that of the sum of scores; away from it noise of X'X adds to it."""
    from dpmodels.postprocess.normal_equations import least_squares

    first, second, root = stepped_equations(np.zeros(2), 3.0)
    theta = least_squares(first)
    assert np.trace(first.noise_in_score(theta)) > 8
    assert np.abs(second.noise_in_score(theta)).max() < 1e-12
    assert second.pull == pytest.approx(9.0 * root @ root.T)
    away = second.noise_in_score(theta + np.array([1.0, 0.0]))
    assert away == pytest.approx(4.0 * np.eye(2), abs=1e-9)


def test_nothing_is_identified_by_a_step_where_noise_hides_the_terms():
    """Planted: a first estimate that is far away, from which a clipped score does not lead back."""
    from dpmodels.inference.least_squares import LeastSquares

    for noise, is_identified in ((0.5, True), (60.0, False)):
        _, second, _ = stepped_equations(np.zeros(2), 3.0, noise)
        assert (LeastSquares(second).identifies(np.eye(2)) == is_identified).all()
    _, second, _ = stepped_equations(np.array([1.0, 60.0]), 3.0, 0.5)
    assert not LeastSquares(second).identifies(np.eye(2)).any()


def test_a_rotation_leaves_regressors_without_the_last_column():
    from dataclasses import replace

    from dpmodels.postprocess.unit_scores import _residual_last

    equations, _, _ = stepped_equations(np.zeros(2), 1.0)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(2, 2)))[0]
    mixed = np.eye(3)
    mixed[1:, 1:] = turn
    rotated = replace(
        equations,
        moments=mixed @ equations.moments @ mixed.T,
        regressors=mixed @ equations.regressors,
        response=mixed @ equations.response,
    )
    back = _residual_last(rotated)
    assert np.abs(back.regressors[-1]).max() < 1e-12
    assert back.gram == pytest.approx(equations.gram)
    assert back.cross == pytest.approx(equations.cross)


def test_where_noise_hides_all_units_the_cap_is_the_bound_of_a_row():
    ends = cap_grid(SAMPLING, in_units=True)
    noise, rng = CellNoise("gaussian", 60.0), np.random.default_rng(4)
    for base in (Moments(), WeightedScores(Moments())):
        for _ in range(50):
            counts = rng.normal(scale=60.0, size=len(ends))
            counts[20] += 60
            cap = Sampled(base, SAMPLING)._cap(ends, counts, noise, 1e-3, 3)
            assert cap.cap == pytest.approx(50.4)
            assert math.isnan(cap.beyond_sd)


def test_scores_are_clipped_where_few_are_longer():
    from dpmodels.postprocess.weight_caps import longest_score

    rng = np.random.default_rng(3)
    lengths = np.abs(rng.normal(size=50_000))
    cells = np.minimum(np.searchsorted(ENDS, lengths), len(ENDS) - 1)
    counts = np.bincount(cells, minlength=len(ENDS)) + rng.normal(scale=20.0, size=len(ENDS))
    noise = CellNoise("gaussian", 20.0)
    (short, _), (long, cut) = (
        longest_score(ENDS, counts, noise, price) for price in (5_000.0, 50.0)
    )
    assert short < long
    assert 2 < long <= 6
    assert cut < 0.01 * lengths.sum()


def test_what_is_cut_off_scores_is_seldom_far_more_than_is_said():
    """Of 100 choices beside noise; of the estimates alone a third are below .45 of it."""
    from dpmodels.postprocess.weight_caps import longest_score

    rng, noise = np.random.default_rng(5), CellNoise("gaussian", 25.0)
    lengths = np.exp(rng.normal(-0.3, 1.1, 5_000))
    cells = np.minimum(np.searchsorted(ENDS, lengths), len(ENDS) - 1)
    exact, parts = np.bincount(cells, minlength=len(ENDS)), []
    for _ in range(100):
        longest, cut = longest_score(ENDS, exact + rng.normal(0, 25, len(ENDS)), noise, 17.7)
        parts.append(cut / np.maximum(lengths - longest, 0).sum())
    assert np.mean(np.array(parts) < 0.45) < 0.08
    assert np.median(parts) < 1.5


def cut_off_with_hidden(price, times):
    """Of choices of a length at a price, what is said to be cut off and what is."""
    from dpmodels.postprocess.weight_caps import longest_score

    rng, noise = np.random.default_rng(6), CellNoise("gaussian", 25.0)
    lengths = np.exp(np.append(rng.normal(0, 0.7, 4_500), rng.normal(1.4, 0.9, 500)))
    cells = np.minimum(np.searchsorted(ENDS, lengths), len(ENDS) - 1)
    exact = np.bincount(cells, minlength=len(ENDS))
    for _ in range(times):
        counts = exact + rng.normal(0, 25, len(ENDS))
        longest, cut = longest_score(ENDS, counts, noise, price, 1.0, with_hidden=True)
        yield cut, np.maximum(lengths - longest, 0).sum()


def test_what_is_cut_off_in_one_direction_has_units_that_noise_hides():
    """A tenth of the units has long scores; of cells in which units are detected .65 are too few.

    Of 200 choices .27 are below .45 of the truth, with a standard error of .03: more than .45 has a
    chance below 1e-6.
    """
    below = [cut < 0.45 * beyond for cut, beyond in cut_off_with_hidden(17.7, 200)]
    assert np.mean(below) < 0.45


def test_lengths_of_logits_leave_little_that_noise_hides():
    """A tenth of the units has long scores.

    Of 400 choices 220 is cut off on average, with a standard error of 7.4: more than 272 has a
    chance below 1e-6. By lengths among those at which units are detected it is 324.
    """
    assert np.mean([beyond for _, beyond in cut_off_with_hidden(12.3, 400)]) < 272


@pytest.mark.parametrize("z", [math.sqrt(3), 1.96, 3.0])
def test_a_bound_of_a_bias_counts_as_a_standard_deviation(z):
    bias = np.append(np.linspace(0, 4, 401), [10.0, 100.0])
    half = z * np.hypot(1, bias)
    covered = norm.cdf(half - bias) - norm.cdf(-half - bias)
    assert covered.min() == pytest.approx(2 * norm.cdf(z) - 1, abs=1e-12)
    assert np.argmin(covered) == 0


def test_nothing_is_cut_off_where_noise_hides_no_unit():
    from dpmodels.postprocess.weight_caps import longest_score

    rng, noise = np.random.default_rng(7), CellNoise("gaussian", 1 / 16)
    exact = np.where(ENDS <= 4, 20.0, np.where(ENDS <= 6, 1.0, 0.0))
    for _ in range(50):
        counts = exact + rng.normal(0, noise.sd, len(ENDS))
        longest, cut = longest_score(ENDS, counts, noise, 1e-9, 1.0, with_hidden=True)
        assert longest > 5
        assert cut == 0


def test_errors_of_a_step_allow_for_all_that_clipping_cuts_off_in_any_direction():
    """Planted: scores that were all cut off along one direction, of a response with two levels."""
    from dpmodels.postprocess.unit_scores import score_at_first

    rng = np.random.default_rng(8)
    rows = {"y": rng.integers(0, 2, 2_000), "x": rng.random(2_000), "w": rng.integers(1, 20, 2_000)}
    book = dp.codebook(y=["0", "1"], x=(0, 1))
    rows["y"] = rows["y"].astype(str)
    design = dp.design(weights="w", bounds=(1, 20), weights_are="design")
    with dp.simulation(seed=8):
        fit = dp.dp_glm("y ~ x", rows, codebook=book, design=design, eps=4.0, delta=1e-6)
    meat = fit.release.meat
    units = replace(meat.units, cut=10 * np.abs(meat.units.summed).max())
    _, errors = score_at_first(replace(fit.release, meat=replace(meat, units=units)))
    whitened = np.linalg.solve(meat.root, errors)
    for direction in np.eye(2), np.array([[1.0, 1.0], [1.0, -1.0]]) / math.sqrt(2):
        assert (np.linalg.norm(direction @ whitened, axis=1) >= units.cut).all()


@pytest.mark.parametrize(
    ("shortened", "sd", "missing"), [(0.1, 0.2, 0.0), (0.6, 0.1, 0.5), (-3.0, 0.6, 1.0)]
)
def test_errors_of_a_step_allow_for_rows_that_moments_shortened(shortened, sd, missing):
    """Planted: X'X of half of the rows; and noise that hides how many were shortened."""
    from dpmodels.released import Ball

    total, ball = np.array([9.0, -6.0]), Ball(np.zeros(2), 1.0, shortened, sd)
    _, second, root = stepped_equations(total, 0.0, ball=ball)
    allowed = (0.1**2 + missing**2) * np.outer(root @ total, root @ total)
    assert second.pull == pytest.approx(allowed)


def test_a_step_by_part_of_a_gram_matrix_errs_by_that_part():
    rng = np.random.default_rng(7)
    for _ in range(200):
        root, missing = rng.normal(size=(2, 4, 4))
        whole = root @ root.T + 0.01 * np.eye(4)
        lacking = missing @ missing.T
        values = np.linalg.eigvals(np.linalg.solve(whole, lacking)).real
        fraction = rng.uniform(0.05, 0.95)
        part, score = whole - fraction / values.max() * lacking, rng.normal(size=4)
        step = np.linalg.solve(part, score)
        error = step - np.linalg.solve(whole, score)
        assert error @ part @ error <= fraction**2 * (step @ part @ step) * (1 + 1e-6)


def test_a_shortened_row_may_lack_the_square_of_the_radius_in_one_direction():
    """Planted: one row of ten is long in the first direction, and X'X has its shortened square."""
    from types import SimpleNamespace

    from dpmodels.postprocess.unit_scores import _missing_rows
    from dpmodels.released import Ball

    ball = Ball(np.zeros(2), 3.0, 0.1, 0.0, axes=np.eye(2))
    missing = _missing_rows(SimpleNamespace(ball=ball))
    whole, part = 1 + 0.1 * 3.0**2, 1.0
    assert missing == pytest.approx(1 - part / whole)
    assert _missing_rows(SimpleNamespace(ball=Ball(np.zeros(2), 3.0, 0.1, 0.0))) == 0.1


def test_about_a_line_a_step_lacks_no_rows_and_its_scores_are_shortened():
    """Planted: 9 of 10 rows are long, or hidden by noise; lengths are of the moments' radius."""
    from types import SimpleNamespace

    from dpmodels.mechanisms.weighted_scores import _in_lengths
    from dpmodels.postprocess.unit_scores import _missing_rows
    from dpmodels.released import Ball

    rows = np.array([[1.0, 0.0, 0.0], [0.5, 2.0, 0.0], [9.0, 9.0, 9.0]])
    for sd in (0.0, 2.0):
        line = Ball(np.zeros(2), 3.0, 0.9, sd, axes=np.eye(2), rows=10.0)
        assert _missing_rows(SimpleNamespace(ball=line)) == 0.0
        assert _in_lengths(rows, line) == pytest.approx(rows[:2] / (3 / math.sqrt(2)))
        other = Ball(np.zeros(2), 3.0, 0.9, sd, axes=np.eye(2))
        assert _missing_rows(SimpleNamespace(ball=other)) > 0.8
        assert _in_lengths(rows, other) is None
    assert _in_lengths(rows, None) is None


def test_a_step_by_weighted_scores_leads_to_the_weighted_estimate_from_anywhere():
    """Theorem 101 (1): and scores of all rows by the same matrix lead past it."""
    rng = np.random.default_rng(9)
    x = np.vstack([np.ones(400), rng.standard_t(1.5, 400)])
    weights, y = rng.uniform(1, 20, 400), x[0] + 2 * x[1] + rng.normal(size=400)
    shrunk = np.minimum(1.0, 2.0 / np.linalg.norm(x, axis=0)) ** 2
    gram, start = (x * weights * shrunk) @ x.T, np.array([1.5, 1.0])
    expected = np.linalg.solve(gram, x @ (weights * shrunk * y))
    score = x * weights * (y - start @ x)
    assert start + np.linalg.solve(gram, score @ shrunk) == pytest.approx(expected)
    assert (start + np.linalg.solve(gram, score.sum(axis=1)))[1] > 5


def test_errors_of_a_step_allow_for_units_beyond_a_public_cap():
    """Half of the step where noise hides the weights of sampling units, and no more of rows."""
    from types import SimpleNamespace

    from dpmodels.postprocess.unit_scores import HIDDEN_BEYOND, _weight_error
    from dpmodels.released import UnitCap

    units = UnitCap(50.4, 0.0, math.nan)
    of_rows = SimpleNamespace(units=units, adjacency=Adjacency("replace"))
    of_units = SimpleNamespace(units=units, adjacency=Adjacency("replace", 20, "school"))
    assert _weight_error(of_rows) == 0
    assert _weight_error(of_units) == HIDDEN_BEYOND


def test_scores_are_not_divided_by_a_weight_that_noise_hides():
    """Planted: cells that are clear of noise together and not by themselves, all above the cap."""
    from dpmodels.postprocess.weight_caps import WeightCap, caps_of_scores, weight_edges

    edges, noise = weight_edges(1.0, 400.0), CellNoise("gaussian", 25.0)
    counts = np.where(edges[:-1] > 20, 40.0, 0.0)
    cap = caps_of_scores(edges, counts, noise, WeightCap(float(edges[4]), 30.0, 5.0, 1200.0))
    assert 0 < cap.beyond <= 30 / (30 + edges[4])
