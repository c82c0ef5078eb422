"""What a range cut off: shapes by the counts before the threshold, and bounds that hold."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpmodels.postprocess.ranges import (
    CellNoise,
    Outside,
    _shape_before,
    beyond_range,
    excess_beyond,
    range_cells,
    shape_before,
    tail_shape,
    threshold_before,
)

UPPER = 1e6
NOISE = CellNoise("laplace", 4.0)
EDGES = range_cells(0.0, UPPER)
LAWS = {
    "normal": stats.norm(50, 10),
    "exponential": stats.expon(scale=10),
    "pareto": stats.genpareto(0.5, scale=10),
    "heavy": stats.genpareto(0.9, scale=10),
    "lognormal": stats.lognorm(2, scale=100),
}


def expected_counts(law, n_rows=10_000, zeros=0.0):
    cells = np.diff(law.cdf(EDGES)) * n_rows * (1 - zeros)
    cells[0] += zeros * n_rows
    return cells


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("normal", -1.01, 0.1),
        ("exponential", -0.2, 0.2),
        ("pareto", 0.35, 0.65),
        ("heavy", 0.75, 1.05),
        ("lognormal", 0.5, 1.1),
    ],
)
def test_the_shape_before_the_threshold_is_that_of_the_law(name, low, high):
    law = LAWS[name]
    estimate = _shape_before(EDGES, expected_counts(law), NOISE, float(law.ppf(0.999)))
    assert low <= estimate <= high


@pytest.mark.parametrize(
    ("name", "low", "high"), [("exponential", -0.2, 0.2), ("pareto", 0.35, 0.65)]
)
def test_shapes_at_several_depths_count_by_their_rows(name, low, high):
    counts, end = expected_counts(LAWS[name], zeros=0.5), float(LAWS[name].ppf(0.999))
    assert low <= shape_before(EDGES, counts, NOISE, end) <= high
    noises = np.random.default_rng(3).laplace(0, 4, (50, len(counts)))
    shapes = [
        (shape_before(EDGES, counts + noise, NOISE, end), _shape_before(EDGES, noisy, NOISE, end))
        for noise, noisy in zip(noises, counts + noises, strict=True)
    ]
    several, single = np.std(shapes, axis=0)
    assert several < single


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("normal", 0.0, 0.01),
        ("exponential", 0.0, 0.2),
        ("pareto", 0.35, 0.65),
        ("heavy", 0.75, 1.0),
    ],
)
def test_a_range_has_the_shape_of_the_heavier_tail_that_it_cuts(name, low, high):
    counts, end = expected_counts(LAWS[name]), float(LAWS[name].ppf(0.999))
    assert low <= tail_shape(EDGES, counts, NOISE, 0.0, end) <= high
    mirrored = tail_shape(-EDGES[::-1], counts[::-1], NOISE, -end, 0.0)
    assert mirrored == tail_shape(EDGES, counts, NOISE, 0.0, end)
    # No tail is cut, and noise hides which tail there is.
    assert tail_shape(EDGES, counts, NOISE, 0.0, float(EDGES[-1])) == 0.0
    loud = replace(NOISE, sd=float(counts.sum()) / 50)
    assert tail_shape(EDGES, counts, loud, 0.0, end) == 1.0


@pytest.mark.parametrize("zeros", [0.0, 0.9])
def test_bounds_contain_what_a_heavy_tail_has_beyond(zeros):
    law = LAWS["lognormal"]
    high = float(law.ppf(0.99))
    cut = law.expect(lambda x: x - high, lb=high, ub=UPPER) * (1 - zeros)
    below, above, *_ = beyond_range(EDGES, expected_counts(law, zeros=zeros), NOISE, 0.0, high)
    assert below == 0.0
    assert cut <= above <= 20 * cut


def test_light_tails_are_bounded_by_far_less_than_heavy_ones():
    bounds = {}
    for name in ("exponential", "heavy"):
        high = float(LAWS[name].ppf(0.999))
        _, bounds[name], *_ = beyond_range(EDGES, expected_counts(LAWS[name]), NOISE, 0.0, high)
    assert bounds["exponential"] < 0.1
    assert bounds["heavy"] > 100 * bounds["exponential"]


def test_where_most_rows_are_beyond_the_threshold_no_shape_is_estimated():
    assert _shape_before(EDGES, expected_counts(LAWS["heavy"], 50), NOISE, UPPER / 2) == 0.0


@pytest.mark.parametrize(
    ("law", "smallest", "largest"),
    [
        (LAWS["normal"], 0.0, 0.8),
        (stats.gamma(4, scale=12), 0.0, 0.9),
        (LAWS["pareto"], 0.95, 1.02),
    ],
    ids=["normal", "gamma", "pareto"],
)
@pytest.mark.parametrize("noise_sd", [10.0, 20.0])
def test_laws_heavier_than_the_counts_before_the_end_count_less(law, smallest, largest, noise_sd):
    edges, noise = np.linspace(0, 1_000, 501), CellNoise("gaussian", noise_sd)
    counts = np.diff(law.cdf(edges)) * 10_000
    end = float(edges[np.searchsorted(edges, law.ppf(0.995))])
    start = threshold_before(edges, counts, noise, end)
    outside = Outside(10_000 * law.sf(start), 20.0, start)
    usual, by_shape = (
        excess_beyond(edges, counts, noise, end, outside._replace(is_light=of))
        for of in (False, True)
    )
    limits = [one.total + 1.96 * one.sd for one in (usual, by_shape)]
    assert smallest <= limits[1] / limits[0] <= largest
    excess = 10_000 * law.expect(lambda x: np.minimum(x, 1_000) - end, lb=end)
    assert excess <= limits[1]
    if smallest == 0:
        assert abs(by_shape.total - excess) <= abs(usual.total - excess)


def test_counts_of_most_rows_have_no_shape_of_a_tail():
    law, edges, noise = LAWS["normal"], np.linspace(0, 1_000, 501), CellNoise("gaussian", 120.0)
    counts, end = np.diff(law.cdf(edges)) * 10_000, float(law.ppf(0.95))
    outside = Outside(2_000, 20.0, threshold_before(edges, counts, noise, end))
    results = (
        excess_beyond(edges, counts, noise, end, outside._replace(is_light=of))
        for of in (False, True)
    )
    assert len(set(results)) == 1


@pytest.mark.parametrize("scale", [10.0, 11.4, 14.1, 18.3])
def test_an_excess_does_not_depend_on_where_scales_are_tried(scale):
    edges, noise, law = np.linspace(0, 1_000, 501), CellNoise("gaussian", 3.0), stats.expon
    counts = np.diff(law.cdf(edges / scale)) * 10_000
    end = float(edges[np.searchsorted(edges, scale * law.ppf(0.98))])
    start = threshold_before(edges, counts, noise, end)
    outside = Outside(10_000 * law.sf(start / scale), 5.0, start)
    excess = 10_000 * scale * law.sf(end / scale)
    assert excess_beyond(edges, counts, noise, end, outside).total == pytest.approx(excess, rel=0.1)


def test_where_no_law_fits_counts_a_tail_is_less_certain():
    """Rows at every fifth number: the best laws have an excess of 201 and 163 instead of 900."""
    edges, noise = np.linspace(0, 100, 101), CellNoise("gaussian", 3.0)
    counts = 2_000 * np.exp(-edges[:-1] / 8) * np.where(np.arange(100) % 5 == 0, 5.0, 0.0)
    for end in (40.0, 41.0, 45.0):
        start = threshold_before(edges, counts, noise, end)
        outside = Outside(float(counts[int(start) :].sum()), 5.0, start)
        excess = excess_beyond(edges, counts, noise, end, outside)
        assert excess.sd > excess.total / 3
