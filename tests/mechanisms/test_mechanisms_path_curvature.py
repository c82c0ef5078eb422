"""Curvature along Newton's step: its sensitivity, its exactness and its noise."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

import dpmodels as dp
from dpmodels.mechanisms import path_curvature
from dpmodels.mechanisms.add_noise import GAUSSIAN, LAPLACE
from dpmodels.mechanisms.gradient_noise import Noisy
from dpmodels.mechanisms.path_curvature import ALONE, ALONG, newton_step, path_matrices, path_scales
from dpmodels.mechanisms.protocol import passes
from dpmodels.mechanisms.quantile_of_norms import LOGISTIC, bought_lattice
from dpmodels.models.glm import glm_spec
from dpmodels.noise import seeded
from dpmodels.noise.lattice import Lattice, choose_lattice
from dpmodels.released import MomentNoise
from dpmodels.request import requested
from dpmodels.statistics.losses import Huber, Logistic, mean_bend

BOOK = dp.codebook(y=["n", "y"], a=(-1, 1), b=(-1, 1))
MULTIPLIERS = {"first": 50.0, "along": 40.0}
ALARM = 1e-6
# Linear predictors of the row (1, 1) at both ends of the way that moves it furthest.
POINT, END = np.array([0.5, 1.0, -0.2]), np.array([-1.2, -3.2, -0.2])


def way_of(unit, relation):
    words = {"family": "binomial", "inference": True, "clip": None, "scale": "range"}
    words |= {"row_norm": None} | ({"person": "id", "rows": unit} if unit else {})
    return glm_spec(requested("glm", "y ~ a + b", BOOK, 1.0, 1e-6, None, relation, **words))


def tables():
    ends = [(-1.0, 1.0), (0.1, -1.0), (1.0, 0.0), (1.0, 1.0)]
    rows = [(label, *end) for label in ("n", "y") for end in ends]
    return [[], *([row] * (1 + at % 3) for at, row in enumerate(rows)), rows[::2], rows[3:5]]


def bound(way, table):
    columns = dict(zip("yab", zip(*table, strict=True), strict=True)) if table else {}
    data = {name: list(columns.get(name, [])) for name in "yab"}
    return passes(way.private.bind({**data, "id": [3] * len(table)}), way.facts)


def furthest(unit, relation, law, point=POINT, end=END, long=math.inf):
    """How far neighbours are apart in each release, by its noise and what it is charged.

    Steps from `long` on, in log odds, are long.
    """
    way = way_of(unit, relation)
    scales, places = path_scales(way.facts, MULTIPLIERS, law), way.facts.adjacency.places
    sums = []

    def read(question, at, facts, scale, *_):
        lattice = bought_lattice(facts, scale, law)
        sums.append(question(at, lattice).cross()[0].astype(float) / lattice.radius**2 / scale)
        return lambda entropy: (np.zeros((3, 3)), MomentNoise(math.nan, math.nan, 1.0, 1.0))

    def score(rows, at, facts, scale, _):
        lattice = choose_lattice(facts.columns, scale)
        sums.append(np.diag(rows.gradient(at, lattice).cross()[0].astype(float)))
        sums[-1] /= lattice.radius * scale
        return Noisy(np.zeros(3), scale)

    cells = []
    for table in tables():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(path_curvature, "requested_matrix", read)
            patch.setattr("dpmodels.mechanisms.quantile_of_norms.requested_matrix", read)
            patch.setattr(path_curvature, "newton_step", lambda *_: end - point)
            patch.setattr(path_curvature, "LONG", long)
            patch.setattr(path_curvature, "STEEP", long)
            patch.setattr("dpmodels.mechanisms.path_curvature.noisy_gradient", score)
            rows, gradient = bound(way, table), np.zeros(3)
            path_matrices(rows, point, gradient, way.facts, scales, seeded(1), law)
        cells.append((np.array([sums.pop(0)]), np.array(sums)))
        sums.clear()
    upper = np.triu_indices(3)
    pairs = combinations(cells, 2) if relation == "replace" else [(cell, (0, 0)) for cell in cells]
    distances = []
    for left, right in pairs:
        moves = [left_sum - right_sum for left_sum, right_sum in zip(left, right, strict=True)]
        if law is LAPLACE:
            distances.append([np.abs(move[:, upper[0], upper[1]]).sum() for move in moves])
        else:
            distances.append([math.sqrt((move**2).sum()) for move in moves])
    return np.max(distances, axis=0) * list(MULTIPLIERS.values()) / places


@pytest.mark.parametrize("unit", ["mean", 3])
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize(("law", "smallest"), [(GAUSSIAN, 0.5), (LAPLACE, 0.28)])
def test_neighbours_are_within_the_sensitivity_of_both_releases(law, smallest, unit, relation):
    for point, end in ((POINT, END), (END, POINT), (POINT, POINT)):
        assert (furthest(unit, relation, law, point, end) <= 1).all()
    assert (furthest(unit, relation, law) > smallest).all()


@pytest.mark.parametrize("unit", ["mean", 3])
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_neighbours_are_within_the_sensitivity_of_scores_and_matrices(relation, unit):
    """Where a step is long scores, curvature and squares together are one release."""
    for point, end in ((POINT, END), (END, POINT)):
        distances = furthest(unit, relation, GAUSSIAN, point, end, long=0.0)
        assert (distances <= 1).all()
    assert distances[1] > 0.4


def of_forty_rows():
    way = way_of(None, "replace")
    data = {"y": ["n", "y"] * 20, "a": [0.5, -0.5] * 20, "b": [0.1, 0.9, -0.4, 0.0] * 10}
    rows = passes(way.private.bind(data), way.facts)
    return way, rows, path_scales(way.facts, MULTIPLIERS, GAUSSIAN)


def test_a_long_step_is_lengthened_and_has_scores_and_a_short_one_does_not():
    spec, rows, scales = of_forty_rows()
    step, releases = np.array([0.1, 1.0, 0.0]), []
    for size in (0.1, 4.0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(path_curvature, "newton_step", lambda *_, size=size: size * step)
            arguments = (rows, step, np.zeros(3), spec.facts, scales, seeded(1), GAUSSIAN)
            releases.append(path_matrices(*arguments))
            at_end = path_matrices(*arguments, at_end=True)
    short, long = releases
    np.testing.assert_allclose(at_end.end, 5.0 * step)
    assert at_end.score is None
    np.testing.assert_allclose(short.end, 1.1 * step)
    assert short.score is None
    factor = (long.end - step)[1] / 4.0
    assert 1 < factor <= path_curvature.LONGEST
    assert long.score_sd == pytest.approx(scales["score"], rel=1e-6)
    # Scores are of the rows at the end, but for their noise.
    exact = rows.slopes(long.end, Logistic()).gradient
    assert np.abs(long.score - exact).max() < 6 * long.score_sd


def secants(odds):
    """The largest mean curvature up to each of several log odds, from ends in [-6, 0], to 1e-5."""
    grid, column = np.linspace(-6, -0.005, 1_200), np.asarray(odds)[:, None]
    return 4 * ((expit(column) - expit(grid)) / (column - grid)).max(axis=1) + 1e-5


def test_the_length_of_mean_curvature_and_squared_gradients():
    """On each interval of log odds the secant is largest at its start, the slope at its end."""
    odds = np.linspace(0, 14, 2_801)
    steep, slope = secants(odds[:-1]), expit(odds[1:])
    assert 1.13 < np.hypot(steep, slope**2).max() < ALONG.euclidean
    assert 1.6 < (steep + slope**2).max() < ALONG.absolute
    # Beyond, w falls further; for slopes below a half it is at most 1.
    assert math.hypot(secants([14.0])[0], 1) < ALONG.euclidean > math.hypot(1, 1 / 4)
    assert secants([14.0])[0] + 1 < ALONG.absolute > 1 + 1 / 4
    assert ALONE.euclidean == 1


def test_a_row_reaches_more_than_at_one_point():
    """The planted fault: the sensitivity of curvature and squares at the same point."""
    loss = Logistic()
    first, last = np.array([1.0]), np.array([-2.8])
    distance = math.hypot(4 * mean_bend(loss, first, last)[0], loss.slope(last)[0] ** 2)
    assert LOGISTIC.euclidean < 1.13 < distance < ALONG.euclidean


@pytest.mark.parametrize("loss", [Logistic(), Huber(0.5)])
def test_mean_bend_is_the_mean_of_bends(loss):
    rng = np.random.default_rng(1)
    first, last = rng.normal(0, 4, 300), rng.normal(0, 4, 300)
    last[:50] = first[:50] + rng.normal(0, 0.02, 50)
    parts = (np.arange(20_000) + 0.5) / 20_000
    exact = [loss.bend(a + (b - a) * parts).mean() for a, b in zip(first, last, strict=True)]
    is_smooth = loss.bell or np.abs(last - first) > 0.1
    distance = np.abs(mean_bend(loss, first, last) - exact) * is_smooth
    assert distance.max() < (1e-6 if loss.bell else 1e-3)
    assert (mean_bend(loss, first * 1e9, last * 1e9) <= loss.smoothness).all()


def test_mean_curvature_is_the_difference_of_gradients():
    rng = np.random.default_rng(2)
    table = [
        (str(label), *row)
        for label, row in zip(
            rng.choice(["n", "y"], 300), rng.uniform(-1, 1, (300, 2)), strict=True
        )
    ]
    way = way_of(None, "replace")
    columns = dict(zip("yab", zip(*table, strict=True), strict=True))
    rows = passes(
        way.private.bind({name: list(column) for name, column in columns.items()}), way.facts
    )
    lattice = Lattice(20, 3)
    mean = rows.mean_curvature(POINT, END, lattice).cross()[0].astype(float) / lattice.steps**2 / 4
    ends = [rows.slopes(at, Logistic()).gradient for at in (POINT, END)]
    np.testing.assert_allclose(mean @ (END - POINT), ends[1] - ends[0], atol=1e-3)


def test_the_step_is_newtons_where_noise_is_small_and_bounded_where_it_is_not():
    rng = np.random.default_rng(3)
    half = rng.normal(size=(4, 9))
    curvature, gradient = half @ half.T, rng.normal(size=4)
    quiet = newton_step(curvature, MomentNoise(math.nan, math.nan, 1e-9, 1e-9), gradient)
    np.testing.assert_allclose(quiet, -np.linalg.solve(curvature, gradient), rtol=1e-6)
    noisy = newton_step(curvature - 5 * np.eye(4), MomentNoise(math.nan, math.nan, 3, 2), gradient)
    assert np.linalg.norm(noisy) <= np.linalg.norm(gradient) / (2 * 0.5 * 2 * 2 * 2)


def test_the_noise_of_each_release_has_its_sd():
    way, rows, scales = of_forty_rows()
    words = (rows, POINT, np.zeros(3), way.facts, scales)
    bought = [path_matrices(*words, seeded(seed), GAUSSIAN) for seed in range(60)]
    np.testing.assert_array_equal(bought[0].end, POINT)
    ratio = bought[0].bread_noise.off / bought[0].first_noise.off
    assert ratio == pytest.approx(ALONG.euclidean * 40 / 50, rel=1e-3)
    for matrix, noise in (
        ("first", "first_noise"),
        ("bread", "bread_noise"),
        ("meat", "meat_noise"),
    ):
        off = np.array([getattr(release, matrix) for release in bought])[:, [0, 0, 1], [1, 2, 2]]
        result = (off.var(axis=0, ddof=1) / getattr(bought[0], noise).off ** 2).sum() * 59
        tails = stats.chi2(177).ppf([ALARM / 6, 1 - ALARM / 6])
        assert tails[0] < result < tails[1]
