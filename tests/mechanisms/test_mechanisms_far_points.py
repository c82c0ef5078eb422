"""Rows far beyond a released range, at points beside its parts: Theorems 110 and 114."""

import math
from itertools import combinations_with_replacement

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design.cells import unbound_cells
from dpmodels.design.rows import requested_of
from dpmodels.formula.sides import one_measured, parse_sides
from dpmodels.formula.tally import Tally
from dpmodels.inference.means import power_weights
from dpmodels.inference.proportions import Noise
from dpmodels.mechanisms.counts import Rounds, ranges
from dpmodels.mechanisms.protocol import CountFacts, release_terms
from dpmodels.postprocess import far_points
from dpmodels.postprocess.far_points import detected, joined, parts_joined, points_beyond, widened
from dpmodels.postprocess.ranges import CellNoise
from dpmodels.privacy import Adjacency, PureDP, adjacency
from dpmodels.released import CountsRelease, HeldIn
from dpmodels.results.count_tables import counted
from dpmodels.statistics.counts import CellPasses
from dpmodels.statistics.shares import shares_at
from tests.private_rows import private_cells

BOOK = dp.codebook(y=(-1_000, 9_999), g=["u", "v"])
RANGE = HeldIn(-20.0, 80.0, 0.0, 0.0)
BEYOND = points_beyond(RANGE, -1_000.0, 9_999.0, 1)
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


def exact_parts(rows, groups=None, beyond=BEYOND, degree=2):
    formula = "~ y" if groups is None else "y ~ g"
    sides = parse_sides(formula, BOOK)
    number, factors = one_measured(sides, "dp_mean")
    data = {"y": rows} if groups is None else {"y": rows, "g": groups}
    cells = private_cells(formula, data, sides.codebook, (Tally(factors, number, degree),))
    passes = CellPasses((cells,), UNITS)
    return passes.clipped(RANGE.lower, RANGE.upper, beyond).cross()[0]


def test_points_double_their_distance_up_to_the_declared_bounds():
    assert (BEYOND[0], BEYOND[-1]) == (-1_000.0, 9_999.0)
    above = np.array([point for point in BEYOND if point > 80]) - 80
    assert (above[1:] == 2 * above[:-1]).all()
    assert 400 <= above[0] < 800
    assert points_beyond(RANGE, -20.0, 300.0, 100) == (300.0,)
    assert points_beyond(RANGE, -20.0, 300.0, 101) == ()
    assert points_beyond(RANGE, -200.0, 200.0, 1) == ()


@pytest.mark.parametrize(("grouped", "degree"), [(False, 2), (True, 2), (False, 4), (True, 4)])
def test_a_row_is_one_in_all_parts_and_points_together(grouped, degree):
    """Brute force, all pairs of rows of a pool: L1 norm 2, L2 norm √2, both reached, none above."""
    groups = ["u", "v"] if grouped else [None]
    rows = [(value, group) for value in POOL for group in groups]
    vectors = [
        exact_parts([value], [group] if grouped else None, degree=degree) for value, group in rows
    ]
    parts = degree + 1 + len(BEYOND)
    for vector in vectors:
        assert sum(vector.tolist()) == UNITS
        assert min(vector.tolist()) >= 0
    pairs = list(combinations_with_replacement(vectors, 2))
    for paired in (False, True) if not grouped and degree == 2 else (False,):
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


def parts_of_persons(persons, neighbours, degree=2):
    """Return integers of the rows of some persons, lists of pairs of a number and a group."""
    sides = parse_sides("y ~ g", BOOK)
    number, factors = one_measured(sides, "dp_mean")
    tally = Tally(factors, number, degree, degree == 2)
    unbound = unbound_cells("y ~ g", sides.codebook, (tally,))
    design = unbound.among(lambda terms: requested_of(terms, neighbours, None))
    rows = [(at, *row) for at, person in enumerate(persons) for row in person]
    ids, values, groups = map(list, zip(*rows, strict=True))
    data = {"id": ids, "y": values, "g": groups}
    passes = CellPasses((design.bind(data),), UNITS)
    return passes.clipped(RANGE.lower, RANGE.upper, BEYOND).cross()[0]


@pytest.mark.parametrize(("places", "degree"), [("mean", 2), (3, 2), ("mean", 4)])
def test_a_person_is_one_in_all_parts_and_points_together(places, degree):
    """Brute force, all pairs of persons of three rows at most: as for rows, in units of persons."""
    rng, neighbours = np.random.default_rng(5), Adjacency("replace", places, "id")
    pool = [(value, group) for value in POOL for group in ("u", "v", "elsewhere")]
    persons = [[row] for row in pool]
    persons += [[pool[at] for at in rng.integers(0, len(pool), 3)] for _ in range(150)]
    vectors = [parts_of_persons([person], neighbours, degree) for person in persons]
    whole = UNITS * neighbours.places
    for vector in vectors:
        assert sum(vector.tolist()) == whole
        assert min(vector.tolist()) >= 0
        assert len(vector) == 2 * (degree + 1 + len(BEYOND) + (degree == 2) * (2 + len(BEYOND))) + 1
    changes = [(a - b).tolist() for a, b in combinations_with_replacement(vectors, 2)]
    assert max(sum(map(abs, change)) for change in changes) == 2 * whole
    assert max(sum(x * x for x in change) for change in changes) == 2 * whole**2


def test_joined_parts_of_persons_have_the_moments_of_their_shares():
    neighbours, at_end = Adjacency("replace", "mean", "id"), 9_999
    persons = [[(30.0, "u"), (-20.0, "v")], [(at_end, "u"), (at_end, "v")], [(at_end, "u")] * 2]
    exact = parts_of_persons(persons, neighbours)[:-1].astype(float).reshape(2, -1)
    limits = widened(RANGE, list(BEYOND))
    parts = exact / UNITS / neighbours.places @ parts_joined(limits.points, 2, clustered=True)
    # Shares C and places t by group: of C, C t, C², C² t and C² t².
    expected = []
    for shares, values in (([0.5, 0.5, 1], [30, at_end, at_end]), ([0.5, 0.5], [-20, at_end])):
        c, t = np.array(shares), (np.array(values) + 1_000) / (at_end + 1_000)
        expected.append([c.sum(), c @ t, c @ c, c**2 @ t, c**2 @ t**2])
    sums = [[p.sum(), p[1] / 2 + p[2] + p[4], p[:3].sum(), p[1] / 2 + p[2], p[2]] for p in parts]
    assert np.array(sums) == pytest.approx(np.array(expected), rel=1e-6)


def test_rows_between_points_keep_their_sum_of_squares():
    positions = np.linspace(5.0, 70.0, 200)
    points = np.array([-9.0, 5.0, 9.5, 18.5, 36.5, 72.5])
    at = shares_at(positions, points, UNITS, 2) / UNITS
    assert at.sum(axis=0) == pytest.approx(1)
    assert (points - 0.5) ** 2 @ at == pytest.approx((positions - 0.5) ** 2)
    # Values are then up to a sixteenth too small.
    assert (points @ at >= positions * 15 / 16).all()
    assert (points @ at <= positions + 1e-9).all()
    assert (shares_at(np.linspace(-99, 200, 5_000), points, UNITS, 2) >= 0).all()


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


@pytest.mark.parametrize(
    ("paired", "degree", "clustered"),
    [(False, 2, False), (True, 2, False), (False, 4, False), (False, 2, True)],
)
def test_joined_parts_have_the_noise_that_their_law_states(paired, degree, clustered, monkeypatch):
    """The derivative of any sum of joined parts by each noise variable, against its weights."""
    monkeypatch.setattr(far_points, "detected", lambda *_: [len(BEYOND) - 2, len(BEYOND) - 1])
    cells, lines, parts = 1 if paired else 2, 1 + clustered, degree + 1 + 2 * clustered
    size = cells * (parts + 2 * lines) + 1
    weights_of_sum = np.random.default_rng(4).normal(size=cells * parts)

    def joined_with(noise):
        raw = np.full(size, 200 / size) + noise
        inside, at_points = np.split(raw[:-1].reshape(cells, -1), [parts], axis=1)
        values = np.append(inside, raw[-1])
        if paired:
            difference, middle = noise[0], values[1]
            ends = 200 - middle - values[3]
            values = np.array([(ends - difference) / 2, middle, (ends + difference) / 2, values[3]])
        outer = np.zeros((cells, lines, len(BEYOND)))
        outer[:, :, -2:] = at_points.reshape(cells, lines, 2)
        return ranges._with_points(release_of(values, paired=paired), outer, BEYOND)

    start = joined_with(np.zeros(size))
    slopes = [
        weights_of_sum @ (joined_with(step).values - start.values)[:-1] for step in np.eye(size)
    ]
    made_of = parts_joined(start.held.points, degree, clustered=clustered)
    noise = Noise("laplace", 1.0, 0 if paired else size, paired=paired, joined=made_of)
    weights = noise.weights(weights_of_sum)
    # Of a pair the last part has no noise of its own.
    slopes = np.delete(slopes, 2) if paired else np.array(slopes)
    assert np.sort(np.abs(weights)) == pytest.approx(np.sort(np.abs(slopes)), abs=1e-9)


@pytest.mark.parametrize("degree", [2, 4])
def test_joined_parts_have_the_moments_of_the_rows(degree):
    rows = np.array([-20.0, 5.0, 30.0, 79.0, 80.0, 9_999.0, BEYOND[-2]])
    exact = exact_parts(rows, degree=degree)[:-1].astype(float) / UNITS
    limits = widened(RANGE, list(BEYOND))
    parts = exact @ joined(limits.points, degree)
    positions = (rows + 1_000) / (9_999 + 1_000)
    expected = [(positions**power).sum() for power in range(degree + 1)]
    sums = [parts @ power_weights(degree, power) for power in range(degree + 1)]
    assert sums == pytest.approx(expected)


def test_points_up_to_the_farthest_with_rows_are_detected():
    noise, is_below = CellNoise("laplace", 3.0), np.array([True, True, False, False, False])
    assert detected(np.array([[9.0, 0, 0, 9, 9]]), is_below, noise) == []
    assert detected(np.array([[0.0, 30, 0, 0, 0]]), is_below, noise) == [1]
    assert detected(np.array([[0.0, 0, 5, 30, 3]]), is_below, noise) == [2, 3]
    assert detected(np.array([[0.0, 0, 5, 30, 9]]), is_below, noise) == [2, 3, 4]
    assert detected(np.array([[20.0, 0, 0, 0, 12]]), is_below, noise) == [0, 1, 2, 3, 4]
    assert detected(np.array([[0.0, 0, 0, 0, 8]] * 4), is_below, noise) == [2, 3, 4]


def fit_with(values, seed, formula="~ y", levels=("u", "v"), verb=dp.dp_mean, **person):
    rng, book = np.random.default_rng(seed), dp.codebook(y=(0, 99_999), g=list(levels))
    ids = person.pop("id", np.arange(len(values)))
    data = {"y": values, "g": rng.choice(["u", "v"], len(values)), "id": ids}
    with dp.simulation(seed=seed):
        return verb(formula, data, codebook=book, eps=1.0, **person)


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


def test_a_variance_covers_one_in_a_hundred_rows_at_a_far_bound():
    """Of 20 intervals 16 or more cover; without points 4 did."""
    square, mean = 0.99 * math.exp(8) + 0.01 * 99_999**2, 0.99 * math.exp(3.5) + 0.01 * 99_999
    covered = []
    for seed in range(20):
        low, high = fit_with(skewed(0.01, seed), seed, verb=dp.dp_var).conf_int().iloc[0]
        covered.append(low <= square - mean**2 <= high)
    assert np.mean(covered) >= 0.8


@pytest.mark.product
@pytest.mark.parametrize("formula", ["~ y", "y ~ g"])
@pytest.mark.parametrize("places", ["mean", 2])
def test_means_of_persons_count_far_persons(formula, places):
    """Two rows a person, in one or both groups; most intervals have the mean."""
    mean, covered, n_points = 0.99 * math.exp(3.5) + 0.01 * 99_999, [], 0
    for seed in range(10):
        rows = np.repeat(skewed(0.01, seed), 2)
        ids = np.arange(len(rows)) // 2
        fit = fit_with(rows, seed, formula, id=ids, person="id", rows=places)
        n_points += len((fit.release.held and fit.release.held.points) or ())
        ends = fit.conf_int()
        covered += ((ends["lower"] <= mean) & (mean <= ends["upper"])).tolist()
    # Of ten intervals that cover with .9 fewer than five do once in 7,000 times; seeds are fixed.
    assert np.mean(covered) >= 0.5
    assert n_points > 0


def test_without_far_rows_a_release_is_that_without_points(monkeypatch):
    rows = np.random.default_rng(1).uniform(0, 100, 5_000)
    fit = fit_with(rows, 1)
    monkeypatch.setattr(far_points, "points_beyond", lambda *_: ())
    same = fit_with(rows, 1)
    assert (fit.release.values == same.release.values).all()
    assert fit.release.held == same.release.held
    assert fit.release.held.points is None


def test_many_groups_have_no_points(monkeypatch):
    rows, points = skewed(0.0, 1), []

    def spied(*args):
        points.append(points_beyond(*args))
        return points[-1]

    monkeypatch.setattr(far_points, "points_beyond", spied)
    levels = ["u", "v", *map(str, range(99))]
    fit_with(rows, 1, "y ~ g", levels)
    assert points == [()]
    fit_with(rows, 1)
    fit_with(rows, 1, person="id", rows="mean")
    assert len(points) == 3
    assert all(points[1:])


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
    assert (table.noise.joined == joined(limits.points, 2)).all()
    assert fit.bse_noise.iloc[0] == pytest.approx(99_999 * fit.release.noise_sd / 5_000, rel=0.2)
