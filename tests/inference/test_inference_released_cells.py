"""Estimates from released cells: exact without noise, and their covariance is that of the noise."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import expon, genpareto, halfnorm, lognorm

from dpmodels.errors import NotAvailable
from dpmodels.inference.cell_estimates import (
    CellLaw,
    CurvatureNoise,
    Scores,
    _products,
    _solved,
    are_detected,
    distribution,
    identified,
    pair_regression,
    ratios,
    regression,
)
from dpmodels.inference.cell_values import Nodes, ValueNoise, no_noise
from dpmodels.inference.links import IDENTITY, LOGIT
from dpmodels.inference.released_cells import ReleasedCells, noise_of, sampled
from dpmodels.postprocess.graphical.histograms import Histogram
from dpmodels.postprocess.graphical.measurements import Residuals, centred_table
from dpmodels.postprocess.graphical.values import values_of_histogram, values_of_levels
from dpmodels.postprocess.residuals import components, summed

Z_95 = 1.959964
SIZES = (4, 3, 3)
TERM = (0, 1, 2)
PAIRS = tuple(combinations(TERM, 2))
RNG = np.random.default_rng(4)
# Nobody has a missing value.
COUNTS = RNG.integers(40, 400, SIZES).astype(float)
COUNTS[-1], COUNTS[:, -1], COUNTS[:, :, -1] = 0, 0, 0
CODES = np.indices(SIZES).reshape(3, -1)
SDS = {part: 3.0 if part else 0.0 for part in components(PAIRS)}


def still(scores, k):
    """Values of cells that are known."""
    return no_noise(k), *np.zeros((2, COUNTS.size, k))


def fitted(table, design, response, link, by_values=still):
    """A regression on cells that are their own points."""
    nodes = Nodes(tuple(map(np.eye, SIZES)), tuple(map(np.arange, SIZES)))
    return regression(table, design, response, link, nodes, by_values)


def released(counts, sds, rng=None):
    """Components of all pairs, with normal noise if there is a generator."""
    tables = {}
    for part, sd in sds.items():
        table = summed(counts, TERM, part)
        noise = 0.0 if rng is None else sd * rng.normal(size=table.shape)
        tables[part] = centred_table(table + noise)
    return Residuals(SIZES, tables, sds)


def independent(counts):
    """A poor model: the product of the margins, with some of all cells."""
    total = counts.sum()
    model = np.ones(SIZES)
    for i in TERM:
        shape = [1, 1, 1]
        shape[i] = SIZES[i]
        model = model * (summed(counts, TERM, (i,)) + 0.5).reshape(shape) / total
    return model / model.sum() * total


EXACT = ReleasedCells(TERM, independent(COUNTS), released(COUNTS, SDS))


def test_the_corrected_table_has_the_released_margins():
    corrected = EXACT.corrected.reshape(SIZES)
    for pair in PAIRS:
        expected = EXACT.released.table(pair)
        np.testing.assert_allclose(summed(corrected, TERM, pair), expected, atol=1e-4)


def columns(missing=np.nan):
    """A constant, a number and an indicator; the response is the last variable."""
    values = [np.append(np.arange(size - 1.0), missing) for size in SIZES]
    first, two, y = (values[i][CODES[i]] for i in TERM)
    return np.column_stack([np.ones(len(y)), first, two]), y


def weighted(counts):
    """Least squares on the cells."""
    design, y = columns()
    weights = np.sqrt(counts.ravel())
    design, y = np.nan_to_num(design), np.nan_to_num(y)
    return np.linalg.lstsq(design * weights[:, None], y * weights, rcond=None)[0]


VALUES = [values_of_levels(np.arange(size - 1.0)) for size in SIZES]


def scores():
    return [Scores(i, VALUES[i], VALUES[i].points, 0.7) for i in TERM]


def test_least_squares_of_pairs_are_those_of_the_rows():
    law, *_ = pair_regression(released(COUNTS, SDS), scores(), intercept=True)
    np.testing.assert_allclose(law.params, weighted(COUNTS), rtol=1e-9)


# Of 2,000 rows at each of 50 numbers, `power` determines how many have the second level.
@pytest.mark.parametrize(("power", "sd"), [(1.0, 1e-3), (3.0, 1e-3), (3.0, 1e4), (0.4, 1e-3)])
def test_slopes_allow_for_lines_that_bend_in_the_cells_at_both_ends(power, sd):
    edges, x = np.linspace(0, 1, 51), (np.arange(50) + 0.5) / 50
    counts, chance, ends = np.full(50, 2e3), x**power, (0, 15, 25, 35, 50)
    histogram = Histogram(edges, counts, 1e-6, ends)
    tables = np.add.reduceat(np.column_stack([1 - chance, chance]) * 2e3, ends[:-1])
    sds = {part: sd if part else 0.0 for part in ((), (0,), (1,), (0, 1))}
    parts = {part: centred_table(summed(np.pad(tables, (0, 1)), (0, 1), part)) for part in sds}
    cells = (values_of_histogram(histogram), values_of_levels(np.arange(2.0)))
    columns = [Scores(i, of, of.points, 0.5) for i, of in enumerate(cells)]
    law, *_ = pair_regression(Residuals((5, 3), parts, sds), columns, intercept=True)
    error = law.params[1] - np.polyfit(x, chance, 1)[0]
    bend = math.sqrt(law.values.covariance[1, 1])
    # The noise of the tables is 10^7 times as large in one case, and hides that the line bends.
    assert (bend > 1e-3) == (power != 1 and sd < 1)
    assert abs(error) < max(Z_95 * bend, 1e-6) or sd > 1


def test_the_released_residual_squares_are_those_of_the_rows():
    *_, squares = pair_regression(released(COUNTS, SDS), scores(), intercept=True)
    design, y = columns()
    residuals = np.nan_to_num(y) - np.nan_to_num(design) @ weighted(COUNTS)
    assert squares == pytest.approx(float(COUNTS.ravel() @ residuals**2))
    much = {part: 1e4 * sd for part, sd in SDS.items()}
    assert np.isnan(pair_regression(released(COUNTS, much), scores(), intercept=True)[-1])


def test_intervals_end_where_a_tail_would_be_negative():
    covariance, once = np.array([[4.0, 0], [0, 2.0]]), np.array([[1.0, 0], [1.0, -1.0]])
    law = CellLaw(np.zeros(2), covariance, np.eye(2), ValueNoise(covariance, once, np.ones(2)))
    below, above = law.distances(2.0, full=True)
    # Two tails together, at most one sd each, beside a variance of 5 - 2; then of 3 - 1.
    np.testing.assert_allclose(below, [2 * np.sqrt(3 + 1), 2 * np.sqrt(2 + 1)])
    np.testing.assert_allclose(above, [2 * np.sqrt(3 + 2), 2 * np.sqrt(2 + 0.25)])
    symmetric = CellLaw(np.zeros(2), covariance, np.eye(2)).distances(2.0, full=True)
    for ends in (below, above):
        assert (ends <= symmetric[0] + 1e-12).all()
    assert (law.distances(2.0, full=False)[0] < below).all()


@pytest.mark.parametrize("scale", [0.1, 0.5, 1.0, 3.0, 30.0])
@pytest.mark.parametrize(
    "law",
    [expon(), halfnorm(), lognorm(1.0), lognorm(2.0), genpareto(0.45)],
    ids=["exponential", "half-normal", "log-normal", "heavy", "Pareto"],
)
def test_intervals_with_one_tail_cover_whatever_its_part_is(law, scale):
    """Theorem 93 (c): noise with an sd of 1 beside a tail with the stated median and quantile."""
    totals = law.ppf((np.arange(4_000) + 0.5) / 4_000)
    sd = (law.ppf(0.975) - law.median()) / Z_95
    tail = ValueNoise(np.array([[scale**2]]), np.array([[scale]]), np.array([law.median() / sd]))
    estimate = CellLaw(np.zeros(1), 1 + tail.covariance, np.zeros((1, 1)), tail)
    (below,), (above,) = estimate.distances(Z_95, full=False)
    errors = scale * (law.median() - totals) / sd
    coverage = float(np.mean(ndtr(below - errors) - ndtr(-above - errors)))
    assert 0.935 < coverage < 0.971


def coefficients(params, variance, curvature, covariance=0.0, tails=None, largest=0.3):
    """Return the law of independent coefficients, with one tail of each if there are tails."""
    k = len(params)
    ones, none = np.ones(k), np.zeros((0, k))
    values = tails and ValueNoise(*(np.diag(x * ones) for x in (tails**2, tails)), largest * ones)
    noise = CurvatureNoise(
        curvature * ones, covariance * ones, np.diag(tails * ones) if tails else none
    )
    return CellLaw(params, np.diag(variance * ones), np.zeros((k, k)), values, noise)


def test_ends_are_the_values_at_which_the_noise_there_explains_the_estimate():
    """Theorem 98 (a): the roots of Fieller's equation, and infinite where it has none."""
    law = coefficients(np.array([1.0, -3.0]), 0.04, 0.09, 0.02)
    for sds in (1.0, 1.96, 3.0):
        below, above = law.distances(sds, full=False)
        for ends in (-below, above):
            error = 0.04 - 2 * ends * 0.02 + 0.09 * ends**2
            np.testing.assert_allclose(ends**2, sds**2 * error, rtol=1e-9)
    assert np.isinf(law.distances(3.34, full=False)).all()
    plain = CellLaw(law.params, law.noise, law.sampling)
    faint = coefficients(law.params, 0.04, 1e-20)
    np.testing.assert_allclose(faint.distances(2.0, full=True), plain.distances(2.0, full=True))


def test_the_noise_at_a_value_is_that_of_the_score_there():
    """Theorem 98 (a), for pairs: of the residuals there, along the direction that leads there."""
    table, parts = released(COUNTS, SDS), [Scores(0, VALUES[0], np.ones(3), 1.0), *scores()]
    law, inverse, _ = pair_regression(table, scores(), intercept=True)
    for k, offset in ((0, 0.5), (1, -2.0), (2, 1.0)):
        along = np.append(inverse[:, k], 0.0)
        residual = np.append(-law.params, 1.0) - offset * along / inverse[k, k]
        weights = _products(parts, along[:, None], residual[:, None])
        sums = sum(float(weights[term].ravel() @ table.table(term).ravel()) for term in weights)
        assert sums == pytest.approx(-offset)
        at_value = law._variances_at(np.full(3, offset), full=False)[k]
        assert noise_of(weights, table)[0, 0] == pytest.approx(at_value)


@pytest.mark.parametrize(("curvature", "is_reported"), [(0.26, True), (0.261, False)])
def test_coefficients_are_reported_where_their_intervals_are_bounded(curvature, is_reported):
    law = identified(coefficients(np.ones(1), 0.04, curvature))
    assert np.isfinite(law.params[0]) == is_reported
    # A tail that is at most .3 sds too large hides less than noise that may be of any size.
    with_tail = identified(coefficients(np.ones(1), 0.04, curvature, tails=np.sqrt(curvature)))
    assert np.isfinite(with_tail.params[0])


def test_ends_beside_a_tail_are_those_of_its_signs_there():
    """Theorem 98 (b): each end is where the distance of Theorem 93 (c) at that value leads to."""
    law = coefficients(np.ones(3), 0.04, 0.05, 0.01, tails=0.15)
    below, above = law.distances(Z_95, full=False)
    for ends, sign in ((-below, 1), (above, -1)):
        tail = sign * (0.15 - 0.15 * ends)
        rest = 0.04 - 0.02 * ends + 0.05 * ends**2 - tail**2
        allowed = np.where(tail > 0, min(0.3 / Z_95, 1.0), 1.0)
        np.testing.assert_allclose(np.abs(ends), Z_95 * np.sqrt(rest + (allowed * tail) ** 2))


@pytest.mark.parametrize("tails", [None, 0.15])
def test_p_values_are_those_of_the_intervals(tails):
    params = np.array([0.0, 0.2, -0.2, 0.5, -0.5])
    law = coefficients(params, 0.04, 0.04, 0.01, tails=tails)
    assert law.roots()[0] == 0
    for k, root in enumerate(law.roots()[1:], start=1):
        assert np.sign(root) == np.sign(params[k])
        below, above = (ends[k] for ends in law.distances(abs(root), full=True))
        assert params[k] == pytest.approx(below if root > 0 else -above)
    assert np.isinf(coefficients(params, 0.0, 0.0).roots()[1:]).all()


@pytest.mark.product
@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_reported_coefficients_are_covered_where_noise_nearly_hides_the_curvature(correlation):
    """Theorem 98 (c), with a curvature at the limit: a hundred batches of 500."""
    rng = np.random.default_rng(5)
    curvature, sd, slope = 1.0, 1 / Z_95, 2.0
    covered, by_delta = [], []
    for _ in range(100):
        e, d = rng.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], 500).T
        noisy = curvature + sd * d
        noisy = noisy[noisy > 1.96 * sd]
        gradient = curvature * slope + 0.5 * e[curvature + sd * d > 1.96 * sd]
        params = gradient / noisy
        both = 0.5 * sd * correlation
        law = coefficients(
            params,
            (0.25 - 2 * params * both + (sd * params) ** 2) / noisy**2,
            (sd / noisy) ** 2,
            (both - params * sd**2) / noisy**2,
        )
        below, above = law.distances(Z_95, full=False)
        covered.append((params - below <= slope) & (slope <= params + above))
        by_delta.append(np.abs(params - slope) <= Z_95 * np.sqrt(np.diagonal(law.noise)))
    assert np.concatenate(covered).mean() == pytest.approx(0.95, abs=0.008)
    assert np.concatenate(by_delta).mean() < 0.93


def test_two_variables_in_one_clique_need_no_model():
    """A mean by group is that of the released pair, whatever the model of the rest is."""
    y, group = CODES[2].astype(float), (CODES[1] == 1) & (CODES[2] < 2)
    below = (group * 1.0)[:, None]
    law = ratios(EXACT, below * y[:, None], below)
    pair = summed(COUNTS, TERM, (1, 2))[1]
    np.testing.assert_allclose(law.params, pair[1] / pair[:2].sum(), rtol=1e-6)


# 400 releases: variances are within 5.5 sds of the stated ones, 39 %. One of 7 numbers would fail
# in a run of 10^6.
REPEATS, NEAR = 400, 0.39


@pytest.mark.product
def test_the_noise_of_estimates_is_what_is_stated():
    rng = np.random.default_rng(11)
    small = {part: sd / 20 for part, sd in SDS.items()}
    design, y = columns()
    group = ((CODES[1] == 1) & (CODES[2] < 2)).astype(float)[:, None]
    draws = {"pairs": [], "logit": [], "mean": []}
    model = independent(COUNTS)
    for _ in range(REPEATS):
        table = ReleasedCells(TERM, model, released(COUNTS, small, rng))
        table.__dict__.update(_sums=EXACT._sums, _weights=EXACT._weights, _factor=EXACT._factor)
        draws["pairs"].append(pair_regression(table.released, scores(), intercept=True)[0].params)
        draws["mean"].append(ratios(table, group * CODES[2][:, None], group).params)
        if len(draws["logit"]) < REPEATS // 4:
            draws["logit"].append(fitted(table, design, y, LOGIT).params)
    table = ReleasedCells(TERM, model, released(COUNTS, small))
    stated = {
        "pairs": pair_regression(table.released, scores(), intercept=True)[0].noise,
        "mean": ratios(table, group * CODES[2][:, None], group).noise,
        "logit": fitted(table, design, y, LOGIT).noise,
    }
    for name, params in draws.items():
        close = NEAR * np.sqrt(REPEATS / len(params))
        ratio = np.var(params, axis=0) / np.diagonal(stated[name])
        assert (np.abs(ratio - 1) < close).all(), (name, ratio)


def test_weights_of_margins_have_the_covariance_of_the_cells():
    """Of one table: a cell's noise variance, and a total without noise."""
    table = released(COUNTS, SDS)
    weights = np.zeros((SIZES[0] * SIZES[1], 2))
    weights[5, 0], weights[:, 1] = 1, 1
    noise = noise_of({(0, 1): weights}, table)
    np.testing.assert_allclose(noise[0, 0], table.cell_variance((0, 1)))
    np.testing.assert_allclose(noise[1], 0, atol=1e-9)


def test_sampling_is_the_covariance_of_scores_over_rows():
    rows, counts = np.array([[1.0], [4.0]]), np.array([30.0, 10.0])
    assert sampled(rows, counts, 2)[0, 0] == pytest.approx(2 * 40 * 9 * 0.75 * 0.25)


def test_noise_that_hides_the_regressors_has_no_estimate():
    rng = np.random.default_rng(3)
    table = released(COUNTS / 400, {part: 400.0 * bool(part) for part in SDS}, rng)
    assert not are_detected(table, scores()).all()
    design, _ = columns()
    with pytest.raises(NotAvailable, match="noise hides the regressors"):
        fitted(EXACT, np.repeat(design[:, :1], 2, axis=1), CODES[2] * 1.0, IDENTITY)


def test_a_group_that_noise_hides_has_no_mean():
    table = ReleasedCells(TERM, EXACT.model, released(COUNTS / 1e4, SDS))
    law = ratios(table, (CODES[1] == 1)[:, None] * 1.0, (CODES[1] == 1)[:, None] * 1.0)
    assert np.isnan(law.params).all()
    assert np.isnan(law.noise).all()


def test_a_distribution_is_monotone_and_reaches_its_ends():
    below = ((CODES[0] < 3) * 1.0)[:, None]
    above = np.column_stack([below[:, 0] * (CODES[0] < k) for k in (1, 2)])
    law = distribution(EXACT, np.array([0.0, 1.0, 2.0, 3.0]), above, below)
    shares = summed(COUNTS, TERM, (0,))[:3] / COUNTS.sum()
    at = law.quantile(shares[0])
    low, high = law.interval(0.5, 0.95, full=True)
    assert at == pytest.approx(1.0)
    assert law.quantile(0.999999) <= 3.0
    assert low < law.quantile(0.5) < high


def test_least_squares_with_a_link_are_least_squares():
    design, y = columns()
    law = fitted(EXACT, design, y, IDENTITY)
    np.testing.assert_allclose(law.params, weighted(COUNTS), atol=0.02)


def test_a_step_to_infinity_has_no_estimate():
    x, counts = np.array([0.0, 0, 20, 20, 25, 25]), np.array([-16.0, 21, 50, -23, 49, 26])
    design = np.column_stack([np.ones(6), x])
    with pytest.raises(NotAvailable, match="noise hides the regressors"):
        _solved(counts, design, np.tile([0.0, 1.0], 3), LOGIT, np.zeros(2))


def test_squares_that_noise_makes_negative_have_no_estimate():
    counts, design = np.array([300.0, -100.0, -80.0]), np.array([[1.0, 0, 2], [1, 1, 0], [1, 3, 1]])
    with pytest.raises(NotAvailable, match="noise hides"):
        _solved(counts, design, np.array([1.0, 0, 1]), IDENTITY, np.zeros(3))


def test_more_columns_than_cells_have_no_estimate():
    rng = np.random.default_rng(0)
    for _ in range(100):
        sizes = 10.0 ** rng.integers(-3, 4, 2)
        design = np.column_stack([np.ones(2), rng.normal(size=(2, 2)) * sizes])
        with pytest.raises(NotAvailable, match="noise hides the regressors"):
            _solved(rng.random(2), design, rng.integers(0, 2, 2) * 1.0, LOGIT, np.zeros(3))


def test_estimates_do_not_depend_on_the_units_of_columns():
    x, y = np.array([-2.0, -1.0, 1.0, 2.0]), np.array([0.2, 0.5, 0.4, 0.7])
    slopes = [
        _solved(np.ones(4), np.column_stack([np.ones(4), x * unit]), y, LOGIT, np.zeros(2))[0][1]
        for unit in (1.0, 1e9)
    ]
    assert slopes[1] * 1e9 == pytest.approx(slopes[0], rel=1e-6)


def test_noise_in_the_values_of_cells_hides_coefficients_as_noise_in_tables_does():
    design, y = columns()
    plain = fitted(EXACT, design, y, IDENTITY)

    def with_noise(fraction):
        """The noise of sums of scores over cells as a fraction of the sums of their sizes."""

        def by_values(scores, k):
            total = np.nan_to_num(np.abs(scores(design, y))).T @ COUNTS.ravel()
            noise = ValueNoise.of(np.diag(fraction * total), np.full(len(total), np.inf))
            return noise, *still(scores, k)[1:]

        return fitted(EXACT, design, y, IDENTITY, by_values)

    little, more, much = map(with_noise, (0.1, 0.45, 0.6))
    np.testing.assert_allclose(little.params, plain.params)
    np.testing.assert_allclose(more.params, plain.params)
    assert (np.diagonal(little.noise) > np.diagonal(plain.noise)).all()
    assert np.isnan(much.params).all()
    assert np.isfinite(much.sampling).all()
