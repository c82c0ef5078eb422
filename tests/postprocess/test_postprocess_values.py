"""Values of numbers within cells: products, points, tails, and what noise moves."""

from dataclasses import replace

import numpy as np
import pytest

from dpmodels.postprocess.graphical.histograms import Histogram, coarse_ends
from dpmodels.postprocess.graphical.values import (
    _ends,
    tail_cells,
    uncertain_cells,
    values_of_histogram,
    values_of_levels,
)

EDGES = np.linspace(-6, 6, 61)


def by_noise(values, function, sums):
    """Return how ``Σ_b f*_b sums_b`` moves by the noise of each count."""
    by_point, slopes = (function[:, None] * of[values.cell] for of in (sums, values.slopes @ sums))
    return values.by_sums(by_point, slopes)


def histogram_of(x, sd=1e-6, n_cells=5, edges=EDGES, seed=None):
    counts = np.histogram(x, edges)[0].astype(float)
    if seed is not None:
        counts += np.random.default_rng(seed).normal(0, sd, len(counts))
    ends = coarse_ends(counts, sd, edges, n_cells)
    return Histogram(edges, counts, sd, ends), np.digitize(x, edges[list(ends[1:-1])])


@pytest.mark.expensive
def test_products_of_two_numbers_in_cells_are_those_of_the_rows():
    rng = np.random.default_rng(1)
    x = rng.normal(size=400_000)
    z = 0.6 * x + 0.8 * rng.normal(size=len(x))
    values, codes = zip(*(histogram_of(of) for of in (x, z)), strict=True)
    values = [values_of_histogram(histogram) for histogram in values]
    means, stars = zip(*((v.means(v.points), v.effective(v.points)) for v in values), strict=True)
    # The standard error of the mean product is .002.
    assert abs(np.mean(stars[0][codes[0]] * stars[1][codes[1]]) - 0.6) < 0.012
    assert np.mean(means[0][codes[0]] * means[1][codes[1]]) < 0.54
    for star, mean, of in zip(stars, means, values, strict=True):
        assert abs(of.rows @ star - of.rows @ mean) < 1e-6 * len(x)
        assert abs(of.rows @ of.means(of.points**2) / of.rows.sum() - 1) < 0.012


def test_slopes_with_their_bends_are_those_of_quadratics():
    values = values_of_histogram(
        histogram_of(np.random.default_rng(2).gamma(1.5, 1, 50_000) - 3)[0]
    )
    means, square = values.means(values.points), values.means(values.away**2)
    for degree in (0, 1, 2):
        sums = values.rows * means**degree
        slopes = degree * means ** max(degree - 1, 0)
        bent = values.by_bends((values.bends @ sums)[values.cell, None] * values.points[:, None])
        without = square * (values.slopes @ sums)
        np.testing.assert_allclose(without + bent[:, 0], values.rows * square * slopes, atol=1e-6)
        assert np.allclose(bent, 0, atol=1e-6) == (degree < 2)
        assert not bent[1:-1].any()


def test_two_points_have_the_moments_of_the_cell():
    x = np.random.default_rng(2).gamma(1.5, 1, 50_000) - 3
    values = values_of_histogram(histogram_of(x)[0])
    (low, high), fraction = values.two_points
    for power in (1, 2, 3):
        moments = fraction * low**power + (1 - fraction) * high**power
        np.testing.assert_allclose(moments, values.means(values.points**power), rtol=1e-9)
    points, operator = values.nodes
    np.testing.assert_allclose(points @ operator, values.effective(values.points))


def test_a_level_is_its_own_point():
    levels = np.array([0.0, 1.0, 5.0])
    values = values_of_levels(levels)
    np.testing.assert_array_equal(values.effective(levels**2), levels**2)
    np.testing.assert_array_equal(values.nodes[1], np.eye(3))
    assert not by_noise(values, levels, np.ones((3, 2))).any()


def test_fine_cells_are_read_at_the_mean_of_a_sloping_density():
    edges = np.arange(5.0)
    (low, high) = Histogram(edges, np.array([1e5, 2e5, 3e5, 4e5]), 1.0, (0, 2, 4)).points
    np.testing.assert_allclose(((low + high) / 2)[1:3], [1.5 + 1 / 24, 2.5 + 1 / 36])
    histogram = Histogram(edges - 0.5, np.full(4, 1e5), 1.0, (0, 2, 4), step=1.0)
    np.testing.assert_array_equal(histogram.points, np.arange(4.0) * np.ones((2, 1)))


# Of 3,000 releases a variance is within 6 standard errors, 16 %: a false alarm of 1e-8.
@pytest.mark.product
def test_noise_moves_sums_as_stated():
    counts, sd, ends = np.array([900.0, 600, 300, 200, 500, 700]), 3.0, (0, 2, 4, 6)
    edges, rng = np.array([0.0, 1, 2, 4, 5, 6, 8]), np.random.default_rng(5)
    sums = np.array([[100.0], [30.0], [-80.0]])

    def total(noisy):
        histogram = Histogram(edges, noisy, sd, ends, step=1.0)
        values = values_of_histogram(histogram)
        return float(values.effective(values.points) @ sums[:, 0])

    totals = [total(counts + rng.normal(0, sd, 6)) for _ in range(3_000)]
    values = values_of_histogram(Histogram(edges, counts, sd, ends, step=1.0))
    estimates = by_noise(values, values.points, sums)
    assert np.var(totals) == pytest.approx(float((estimates**2).sum()), rel=0.16)


def test_sums_move_with_rows_of_counts_and_of_points_as_their_derivatives():
    counts, edges, rng = (
        np.array([900.0, 600, 300, 200, 500, 700]),
        np.arange(7.0),
        np.random.default_rng(6),
    )
    by_point, slopes = rng.normal(size=(2, 12, 3))

    def values_with(more, cell):
        noisy = counts + more * (np.arange(6) == cell)
        return values_of_histogram(Histogram(edges, noisy, 2.0, (0, 2, 4, 6), step=1.0))

    def totals(values):
        return values.means((by_point + values.away[:, None] * slopes).T).sum(axis=1)

    values = values_with(0.0, 0)
    moved = [(totals(values_with(1e-3, k)) - totals(values)) / 1e-3 for k in range(6)]
    np.testing.assert_allclose(values.by_sums(by_point, slopes) / 2.0, moved, rtol=1e-4, atol=1e-9)
    at = values.at_points((by_point, slopes), (by_point, slopes), values.points, values.cell)
    by_count = [at[values.source == k].mean(axis=0) for k in range(6)]
    np.testing.assert_allclose(by_count, moved, rtol=1e-4, atol=1e-9)


# 40 means with errors of 1 standard deviation or less: 5 beyond 3 are one run in 10^6.
@pytest.mark.expensive
def test_rows_beyond_the_range_are_read_by_the_tail():
    edges = np.concatenate([[0.0], 2.0 ** np.arange(-8, 10.1, 0.5)])
    distances, errors = [], []
    for seed in range(40):
        x = np.random.default_rng(seed).gamma(1, 10, 10_000)
        histogram, cell = histogram_of(x, 60.0, 6, edges, seed)
        rows = np.bincount(cell, minlength=len(histogram.ends) - 1).astype(float)
        values = values_of_histogram(Histogram(edges, histogram.counts, 60.0, histogram.ends, rows))
        estimates = by_noise(values, values.points, rows[:, None])
        gap = values.means(values.points) @ rows - x.sum()
        errors.append(gap / np.sqrt((estimates**2).sum()))
        distances.append(values.points.max() > edges[histogram.range[1]])
    assert np.mean(distances) > 0.8
    assert np.sum(np.abs(errors) > 3) < 5


# 20 sums with errors of 1 standard deviation or less: 5 beyond 3 are less than one run in 10^6.
def test_rows_that_tails_do_not_explain_are_read_beyond_the_end():
    """Rows of hours: many at 40, and at 60, beyond which noise hides those of single hours."""
    edges, errors = np.arange(-0.5, 101), []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        hours = np.rint(rng.normal(38, 7, 10_000))
        hours[:5_000] = 40
        hours[5_000:5_600] = 60
        hours[5_600:6_000] = rng.choice([65, 70, 80, 99], 400)
        histogram, cell = histogram_of(hours, 42.0, 8, edges, seed)
        rows = np.bincount(cell, minlength=len(histogram.ends) - 1).astype(float)
        values = values_of_histogram(Histogram(edges, histogram.counts, 42.0, histogram.ends, rows))
        changes = by_noise(values, values.points, rows[:, None])
        gap = values.means(values.points) @ rows - hours.sum()
        errors.append(gap / np.sqrt((changes**2).sum()))
    assert np.sum(np.abs(errors) > 3) < 5


def test_rows_of_a_cell_are_read_at_the_end_of_its_range_and_no_tail_is_negative():
    counts = np.array([0.0, 0, 30, 500, 900, 500, 30, 0, 0])

    def histogram_with(added, cell):
        rows = np.array([900.0, 1_430 + 10 / 3]) + added * (np.arange(2) == cell)
        return Histogram(np.arange(-0.5, 9), counts, 15.0, (0, 4, 9), rows, rows_sd=10.0)

    def values_with(added, cell):
        return values_of_histogram(histogram_with(added, cell))

    values = values_with(0.0, 0)
    ends = values.at_end * values.points @ np.eye(2)[values.cell]
    # Below, there are more rows beyond the range than laws have, which are read farther away.
    assert 0.0 < ends[0] < 2.5
    # Above, laws go on from the range: a row is read at its end, at their mean distance, and as
    # one of the range, as far as counts are noisier than laws.
    in_range = values.at_end[np.isin(values.source, [4, 5])]
    assert 0.1 < in_range.sum() < 0.3
    assert np.ptp(in_range) < 1e-12
    assert values.at_end.sum() == pytest.approx(2)
    assert 5.0 < ends[1] < 8.0
    for cell, end in enumerate(ends):
        after = values_with(1.0, cell)
        moved = after.rows @ after.means(after.points) - values.rows @ values.means(values.points)
        beside = by_noise(values.at_ends, values.points, values.rows[:, None])[cell, 0]
        # To first order, at the same weights of counts and laws.
        assert moved == pytest.approx(end, rel=0.002)
        assert end == pytest.approx(values.means(values.points)[cell] + beside)
    # Less all of its total a tail has no rows: the sum is as if it ended with the range.
    changes = by_noise(values, values.points, values.rows[:, None])[:, 0]
    is_tail = np.isfinite(values.largest)
    assert is_tail.sum() == 1
    below, end = _ends(histogram_with(0.0, 0))
    assert below.is_uncertain
    part = in_range.sum() / (1 - end.beyond.number / end.rows_beyond)
    middle = values.points[np.isin(values.source, [4, 5])].mean()
    total = end.beyond.total + part * end.beyond.number * (end.at - middle)
    assert float(changes[is_tail] @ values.largest[is_tail]) == pytest.approx(total)


# 60 sums with errors of 1 standard deviation or less: 6 beyond 3 are less than one run in 10^6.
@pytest.mark.expensive
def test_rows_beyond_a_range_are_those_of_its_tail_where_counts_are_noisier():
    edges, sd, errors, lengths = np.arange(-100.0, 201, 4), 20.0, [], []
    for seed in range(60):
        x = np.random.default_rng(seed).normal(50, 12, 10_000)
        histogram, cell = histogram_of(x, sd, 6, edges, seed + 1_000)
        rows = np.bincount(cell, minlength=len(histogram.ends) - 1).astype(float)
        histogram = replace(histogram, rows=rows, rows_sd=5.0, is_light=True)
        values, k = values_of_histogram(histogram), len(rows) - 1
        end = next(end for end in _ends(histogram) if end.side > 0)
        of_cell = (rows[k] * values.points * (values.cell == k))[:, None]
        variance = (values.by_sums(of_cell, np.zeros_like(of_cell)) ** 2).sum()
        error = values.means(values.points)[k] * rows[k] - x[cell == k].sum()
        # As if all rows that counts lack were beyond the range.
        middles = np.mean(histogram.points, axis=0)[histogram.is_occupied & (histogram.cell == k)]
        by_counts = sd**2 * ((middles - end.at) ** 2).sum() + end.beyond.sd**2
        errors.append(error / np.sqrt(variance))
        lengths.append(np.sqrt(variance / by_counts))
    assert np.sum(np.abs(errors) > 3) < 6
    assert max(lengths) < 1.05
    assert np.mean(lengths) < 0.85


def test_rows_of_a_cell_around_the_range_are_counted_once():
    counts = np.array([0.0, 0, 0, 900, 0, 0, 0, 0])
    for ends, below, above in (((0, 8), 300.0, 400.0), ((0, 3, 8), 0.0, 700.0)):
        histogram = Histogram(np.arange(9.0), counts, 15.0, ends, np.full(len(ends) - 1, 1_600.0))
        assert histogram.range == (3, 4)
        np.testing.assert_allclose(histogram.outside[:, 3], [below, above])
        assert [end.side for end in _ends(histogram)] == [-1, 1][len(ends) - 2 :]
        np.testing.assert_allclose(histogram.sums(histogram.weights)[-1], 1_600.0)


def test_points_of_tails_are_within_the_bounds():
    counts = np.array([0.0, 0, 30, 500, 900, 500, 30, 0, 0])
    rows = np.array([900.0, 1_100.0])
    histogram = Histogram(np.arange(-0.5, 9), counts, 15.0, (0, 4, 9), rows, 1.0)
    values = values_of_histogram(histogram)
    assert histogram.range == (3, 6)
    assert len(values.points) == 2 * 9 + 6
    assert values.points.min() >= 0.0
    assert values.points.max() <= 8.0


def test_the_mean_of_a_hidden_cell_may_be_anywhere_in_it():
    histogram = Histogram(np.arange(5.0), np.array([0.0, 1, 0, 1]), 1.0, (0, 2, 4))
    values = values_of_histogram(histogram)
    assert histogram.is_hidden.all()
    by_point = values.points[:, None] * np.eye(2)[values.cell]
    changes = values.by_sums(by_point, np.zeros_like(by_point))
    sds = np.sqrt((changes**2).sum(axis=0))
    points = values.points.reshape(2, 4)
    np.testing.assert_allclose(sds, np.ptp(points, axis=1) / np.sqrt(12))


@pytest.mark.parametrize(("rows", "is_limited"), [(400.0, False), (30.0, True)])
def test_no_mean_errs_by_more_than_the_farther_end_of_its_cell(rows, is_limited):
    counts = np.array([400.0, 50, 400, 120, 60, 5, 5, 5, 5])
    histogram = Histogram(np.arange(10.0), counts, 20.0, (0, 2, 9), np.array([450.0, rows]))
    assert not histogram.is_hidden.any()
    values, last = values_of_histogram(histogram), histogram.range[1]
    changes = values.by_sums(values.points[:, None], np.zeros((len(values.points), 1)))
    limit = 1.96 * np.sqrt((changes[2 : len(counts)] ** 2).sum())
    away = np.array([mean := values.means(values.points)[1], mean]) - histogram.edges[[2, last]]
    assert (limit == pytest.approx(np.abs(away).max())) == is_limited
    assert limit <= np.abs(away).max() * (1 + 1e-9)


@pytest.mark.parametrize(
    ("counts", "steep"),
    [
        ([2, 5, 3_000, 2_500, 4, 0, 40, 5_000, 10, 2], [2, 3, 7]),
        ([900, 400, 3_000, 2_500, 700, 200, 70, 30, 10, 2], []),
        ([3_000, 3_000, 3_000, 3_000, 3_000, 3_000, 3_000, 3_000, 3_000, 3_000], []),
    ],
    ids=["clusters", "smooth", "even to the bounds"],
)
def test_where_rows_lie_in_a_cell_beside_next_to_none_is_not_known(counts, steep):
    histogram = Histogram(np.arange(11.0), np.array(counts, float), 12.0, (0, 3, 10))
    assert histogram.steep.tolist() == steep
    values = values_of_histogram(histogram)
    changes = values.by_sums(values.points[:, None], np.zeros((len(values.points), 1)))[:, 0]
    totals = histogram.sums(histogram.weights)[histogram.cell]
    # Of any place in its cell alike, the mean of a cell has the sd 1/√12.
    expected = 0.2 / np.sqrt(12) * np.array(counts, float)[steep] / totals[steep]
    added = changes[len(changes) - len(steep) :] if steep else np.zeros(0)
    assert (added > 0.8 * expected).all()
    assert (added <= expected * (1 + 1e-9)).all()


RANGE = np.concatenate([[0.0], 1e5 * 2.0 ** (-np.arange(96)[::-1] / 6)])


def test_a_light_tail_has_a_shorter_limit_where_it_goes_by_the_counts_before_it():
    x = np.random.default_rng(4).gamma(9, 4, 10_000)
    histogram, cell = histogram_of(x, 30.0, 5, RANGE, seed=5)
    rows = np.bincount(cell, minlength=len(histogram.ends) - 1).astype(float)
    histogram = replace(histogram, rows=rows, rows_sd=20.0)
    usual, light = (_ends(replace(histogram, is_light=of))[-1].beyond for of in (False, True))
    assert light.total + 1.96 * light.sd < 0.95 * (usual.total + 1.96 * usual.sd)
    assert np.maximum(x - _ends(histogram)[-1].at, 0).sum() < light.total + 1.96 * light.sd


@pytest.mark.parametrize(
    ("draw", "is_uncertain"),
    [
        (lambda rng: rng.gamma(9, 4, 10_000), False),
        (lambda rng: rng.exponential(20, 10_000), False),
        (lambda rng: np.where(rng.random(10_000) < 0.6, 0, rng.gamma(2, 20, 10_000)), False),
        (lambda rng: 10 * rng.random(10_000) ** -1.0, True),
        (lambda rng: np.exp(rng.normal(3, 2, 10_000)), True),
        (lambda rng: np.append(rng.gamma(9, 4, 9_500), rng.uniform(200, 1e5, 500)), True),
        (lambda rng: np.append(np.full(9_000, 1e5), rng.uniform(0, 1e5, 1_000)), True),
    ],
    ids=["gamma", "exponential", "zeros", "pareto", "lognormal", "far rows", "at a bound"],
)
def test_tails_that_noise_may_hide_are_uncertain(draw, is_uncertain):
    x = np.clip(draw(np.random.default_rng(4)), 0, 1e5)
    histogram, cell = histogram_of(x, 30.0, 5, RANGE, seed=5)
    rows = np.bincount(cell, minlength=len(histogram.ends) - 1).astype(float)
    histogram = Histogram(RANGE, histogram.counts, 30.0, histogram.ends, rows)
    assert bool(uncertain_cells(histogram)) == is_uncertain
    assert set(uncertain_cells(histogram)) <= {*tail_cells(histogram), len(rows) - 1}


# Medians of 40 are 350 and 160: a ratio above .8 is less than one run in 10^6.
@pytest.mark.expensive
def test_tails_have_the_rows_that_their_cell_has_by_the_released_tables():
    edges, errors = np.concatenate([[0.0], 2.0 ** np.arange(-8, 10.1, 0.5)]), []
    for seed in range(40):
        x = np.random.default_rng(seed).gamma(4, 10, 10_000)
        histogram, cell = histogram_of(x, 60.0, 6, edges, seed)
        rows = np.bincount(cell, minlength=len(histogram.ends) - 1).astype(float)
        for known in (None, rows):
            ends = _ends(replace(histogram, rows=known, rows_sd=30.0))
            end = next(one for one in ends if one.side > 0)
            errors.append(end.beyond.total - np.maximum(x - end.at, 0.0).sum())
    by_counts, by_tables = np.abs(np.reshape(errors, (40, 2)).T)
    assert np.median(by_tables) < 0.8 * np.median(by_counts)
