"""Rows far beyond a released range, counted at points beside the parts of a mean: Theorem 110."""

import math
from itertools import combinations_with_replacement

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.formula.sides import one_measured, parse_sides
from dpmodels.formula.tally import Tally
from dpmodels.inference.proportions import Noise
from dpmodels.mechanisms.counts import Rounds, ranges
from dpmodels.mechanisms.protocol import CountFacts, release_terms
from dpmodels.postprocess import far_points
from dpmodels.postprocess.far_points import detected, joined, points_beyond, widened
from dpmodels.postprocess.ranges import CellNoise
from dpmodels.privacy import PureDP, adjacency
from dpmodels.released import CountsRelease, HeldIn
from dpmodels.results.count_tables import counted
from dpmodels.statistics.counts import CellPasses, shares_at
from tests.private_rows import private_cells

BOOK = dp.codebook(y=(-1_000, 9_999), g=["u", "v"])
RANGE = HeldIn(-20.0, 80.0, 0.0, 0.0)
BEYOND = points_beyond(RANGE, -1_000.0, 9_999.0)
UNITS = 2**40
POOL = (
    None,
    -1e9,
    -1_000,
    -700,
    -300,
    -21,
    -20,
    -19.9,
    0,
    30,
    79,
    80,
    81,
    400,
    700,
    5_000,
    9_998.5,
)
POOL = (*POOL, 9_999, 1e9, *BEYOND)


def exact_parts(rows, groups=None, beyond=BEYOND):
    formula = "~ y" if groups is None else "y ~ g"
    sides = parse_sides(formula, BOOK)
    number, factors = one_measured(sides, "dp_mean")
    data = {"y": rows} if groups is None else {"y": rows, "g": groups}
    cells = private_cells(formula, data, sides.codebook, (Tally(factors, number, 2),))
    passes = CellPasses((cells,), UNITS, count_public=True)
    return passes.clipped(RANGE.lower, RANGE.upper, beyond).cross()[0]


def test_points_double_their_distance_up_to_the_declared_bounds():
    assert (BEYOND[0], BEYOND[-1]) == (-1_000.0, 9_999.0)
    above = np.array([point for point in BEYOND if point > 80]) - 80
    assert (above[1:] == 2 * above[:-1]).all()
    assert 400 <= above[0] < 800
    assert points_beyond(RANGE, -20.0, 300.0) == (300.0,)
    assert points_beyond(RANGE, -200.0, 200.0) == ()


@pytest.mark.parametrize("grouped", [False, True])
def test_a_row_is_one_in_all_parts_and_points_together(grouped):
    """Brute force, all pairs of rows of a pool: L1 norm 2, L2 norm √2, both reached, none above."""
    groups = ["u", "v"] if grouped else [None]
    rows = [(value, group) for value in POOL for group in groups]
    vectors = [exact_parts([value], [group] if grouped else None) for value, group in rows]
    parts = 3 + len(BEYOND)
    for vector in vectors:
        assert sum(vector.tolist()) == UNITS
        assert min(vector.tolist()) >= 0
    pairs = list(combinations_with_replacement(vectors, 2))
    for paired in (False, True) if not grouped else (False,):
        changes = [first - second for first, second in pairs]
        if paired:
            released = [np.array([m[2] - m[0], *m[1:2], *m[3:]], dtype=object) for m in changes]
        else:
            released = changes
        lengths = [sum(abs(x) for x in m.tolist()) for m in released]
        squares = [sum(x * x for x in m.tolist()) for m in changes]
        assert max(lengths) == 2 * UNITS
        assert max(squares) == 2 * UNITS**2
    assert len(vectors[0]) == parts * (2 if grouped else 1) + 1


def test_rows_between_points_keep_their_sum():
    positions = np.linspace(5.5, 90.0, 200)
    points = np.array([-9.0, 5.0, 11.0, 30.0, 100.0])
    at = shares_at(positions, points, UNITS) / UNITS
    assert at.sum(axis=0) == pytest.approx(1)
    assert points @ at == pytest.approx(positions)
    assert not shares_at(np.array([1.0, 1.5, 2.9, -4.0]), points, UNITS).any()


def release_of(values, *, paired):
    plan = Rounds().plan(CountFacts(1, 4, True, adjacency("replace")), PureDP(1.0))
    noise = {"law": "laplace", "noise_sd": 1.0, "step": 1e-9, "paired": paired}
    terms = release_terms(Rounds.info, plan, 200)
    return CountsRelease(values=values, held=RANGE, **noise, **terms)


@pytest.mark.parametrize("paired", [False, True])
def test_joined_parts_have_the_noise_that_their_law_states(paired, monkeypatch):
    """The derivative of any sum of joined parts by each noise variable, against its weights."""
    monkeypatch.setattr(far_points, "detected", lambda *_: [len(BEYOND) - 2, len(BEYOND) - 1])
    cells, size = (1, 6) if paired else (2, 11)
    weights_of_sum = np.random.default_rng(4).normal(size=cells * 3)

    def joined_with(noise):
        raw = np.full(size, 200 / size) + noise
        inside, at_points = np.split(raw[:-1].reshape(cells, 5), [3], axis=1)
        values = np.append(inside, raw[-1])
        if paired:
            difference, middle = noise[0], values[1]
            ends = 200 - middle - values[3]
            values = np.array([(ends - difference) / 2, middle, (ends + difference) / 2, values[3]])
        outer = np.zeros((cells, len(BEYOND)))
        outer[:, -2:] = at_points
        return ranges._with_points(release_of(values, paired=paired), outer, BEYOND)

    start = joined_with(np.zeros(size))
    slopes = [
        weights_of_sum @ (joined_with(step).values - start.values)[:-1] for step in np.eye(size)
    ]
    points = start.held.points
    weights = Noise("laplace", 1.0, 0 if paired else size, paired=paired, points=points).weights(
        weights_of_sum
    )
    # Of a pair the last part has no noise of its own.
    slopes = np.delete(slopes, 2) if paired else np.array(slopes)
    assert np.sort(np.abs(weights)) == pytest.approx(np.sort(np.abs(slopes)), abs=1e-9)


def test_joined_parts_have_the_moments_of_the_rows():
    rows = np.array([-20.0, 5.0, 30.0, 79.0, 80.0, 9_999.0, BEYOND[-2]])
    exact = exact_parts(rows)[:-1].astype(float) / UNITS
    limits = widened(RANGE, list(BEYOND))
    parts = exact @ joined(limits.points)
    positions = (rows + 1_000) / (9_999 + 1_000)
    expected = [len(rows), positions.sum(), (positions**2).sum()]
    sums = [parts.sum(), parts @ [0, 0.5, 1], parts @ [0, 0, 1]]
    assert sums == pytest.approx(expected)


def test_points_up_to_the_farthest_with_rows_are_detected():
    noise, is_below = CellNoise("laplace", 3.0), np.array([True, True, False, False, False])
    assert detected(np.array([[9.0, 0, 0, 9, 9]]), is_below, noise) == []
    assert detected(np.array([[0.0, 30, 0, 0, 0]]), is_below, noise) == [1]
    assert detected(np.array([[0.0, 0, 5, 30, 3]]), is_below, noise) == [2, 3]
    assert detected(np.array([[0.0, 0, 5, 30, 9]]), is_below, noise) == [2, 3, 4]
    assert detected(np.array([[20.0, 0, 0, 0, 12]]), is_below, noise) == [0, 1, 2, 3, 4]
    assert detected(np.array([[0.0, 0, 0, 0, 8]] * 4), is_below, noise) == [2, 3, 4]


def fit_with(values, seed, formula="~ y", levels=("u", "v"), **person):
    rng, book = np.random.default_rng(seed), dp.codebook(y=(0, 99_999), g=list(levels))
    data = {"y": values, "g": rng.choice(["u", "v"], len(values)), "id": np.arange(len(values))}
    with dp.simulation(seed=seed):
        return dp.dp_mean(formula, data, codebook=book, eps=1.0, **person)


def skewed(share, seed):
    rng = np.random.default_rng(seed)
    rows = np.exp(rng.normal(3, 1, 5_000))
    rows[rng.random(5_000) < share] = 99_999
    return rows


@pytest.mark.parametrize("formula", ["~ y", "y ~ g"])
def test_one_in_a_hundred_rows_at_a_far_bound_are_covered(formula):
    """Of 20 intervals 16 or more cover; without points 3 did."""
    mean = 0.99 * math.exp(3.5) + 0.01 * 99_999
    covered = []
    for seed in range(20):
        ends = fit_with(skewed(0.01, seed), seed, formula).conf_int()
        covered += ((ends["lower"] <= mean) & (mean <= ends["upper"])).tolist()
    assert np.mean(covered) >= 0.8


def test_without_far_rows_a_release_is_that_without_points(monkeypatch):
    rows = np.random.default_rng(1).uniform(0, 100, 5_000)
    fit = fit_with(rows, 1)
    monkeypatch.setattr(far_points, "points_beyond", lambda *_: ())
    same = fit_with(rows, 1)
    assert (fit.release.values == same.release.values).all()
    assert fit.release.held == same.release.held
    assert fit.release.held.points is None


def test_persons_and_many_groups_have_no_points(monkeypatch):
    rows, calls = skewed(0.0, 1), []
    monkeypatch.setattr(far_points, "points_beyond", lambda *args: calls.append(args) or ())
    levels = ["u", "v", *map(str, range(99))]
    fit_with(rows, 1, "y ~ g", levels)
    fit_with(rows, 1, person="id", rows="mean")
    assert not calls
    fit_with(rows, 1)
    assert len(calls) == 1


@pytest.mark.parametrize("formula", ["~ y", "y ~ g"])
@pytest.mark.parametrize("counted", [2, "mean"])
def test_means_of_several_rows_a_person_are_released_in_a_range(formula, counted):
    """Parts of persons' rows are more than those of rows: a range must not divide them as such."""
    people = [str(at // 2) for at in range(4_000)]
    values = np.random.default_rng(1).normal(10, 1, 4_000)
    data = {"y": values, "g": ["u", "v"] * 2_000, "id": people}
    options = {"codebook": BOOK, "eps": 2.0, "person": "id", "rows": counted}
    with dp.simulation(seed=1):
        fit = dp.dp_mean(formula, data, **options)
        if formula == "y ~ g":
            dp.dp_ttest(formula, data, **options)
    assert fit.release.held is not None
    assert fit.params.to_numpy() == pytest.approx(10.0, abs=0.5)


def test_a_result_of_joined_parts_has_the_range_and_the_noise_of_all_points():
    fit = fit_with(skewed(0.01, 2), 2)
    limits, table = fit.release.held, counted(fit.call, fit.release)
    assert limits.upper == 99_999
    assert table.noise.points == limits.points
    assert fit.bse_noise.iloc[0] == pytest.approx(99_999 * fit.release.noise_sd / 5_000, rel=0.2)
