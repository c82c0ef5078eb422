"""Spreads, axes and a radius from released counts and rough moments."""

import math

import numpy as np
import pytest

from dpmodels.postprocess.ellipsoid import (
    Cells,
    Spreads,
    radius,
    sensitivity_to_noise,
    shape,
    spreads,
    tail,
)
from dpmodels.postprocess.normal_equations import even
from dpmodels.released import MomentNoise

RADII = 2.0 ** (-np.arange(40, -1, -1) / 4) * 40
QUIET = MomentNoise(0.0, 0.0, 0.0, 0.0)


def counted(sizes, sd=0.0, radii=RADII):
    """Exact numbers of rows by size; the first column varies slowest."""
    ends = np.concatenate([[0.0], radii])
    counts = [
        np.histogram(np.minimum(sizes_of_group, radii[-1]), ends)[0]
        for sizes_of_group in np.atleast_2d(sizes)
    ]
    return Cells(radii, np.array(counts, float) if sizes.ndim == 2 else counts[0].astype(float), sd)


def test_spreads_are_those_of_the_rows():
    rng = np.random.default_rng(1)
    rows = np.abs(rng.normal(size=(2, 20_000)) * [[1.0], [0.2]])
    result = spreads(counted(rows, sd=20.0), 20_000.0, np.array([4.0, 4.0]))
    assert result.detected == pytest.approx([1.0, 0.2], rel=0.1)
    assert ((result.reach > 2.5 * result.detected) & (result.reach < 5 * result.detected)).all()
    hidden = 0.001 * np.minimum(4.0, 8 * result.reach) ** 2
    assert result.safe == pytest.approx(np.sqrt(result.detected**2 + hidden))


def test_columns_that_nothing_is_told_of_reach_as_far_as_can_be():
    result = spreads(Cells(RADII, np.ones((2, len(RADII))), 50.0), 100.0, np.array([2.0, 2.0]))
    assert (result.detected == RADII[-1]).all()
    assert np.isfinite(result.safe).all()


def test_axes_make_the_spread_of_the_rows_equal():
    spread = np.array([1.0, 0.01, 5.0])
    correlation = np.array([[1, 0.9, 0.2], [0.9, 1, 0.1], [0.2, 0.1, 1]])
    spreads = Spreads(spread, spread, 3 * spread)
    ellipsoid = shape(1e4, np.zeros(3), correlation, QUIET, spreads, np.ones(3))
    assert ellipsoid.covariance == pytest.approx(correlation * np.outer(spread, spread))
    inverse = np.linalg.inv(ellipsoid.axes)
    assert inverse @ ellipsoid.covariance @ inverse.T == pytest.approx(np.eye(3), abs=1e-9)
    farther = spreads._replace(reach=spread * [3, 3, 48])
    longer = shape(1e4, np.zeros(3), correlation, QUIET, farther, np.ones(3)).axes
    ratio = np.linalg.norm(longer, axis=0) / np.linalg.norm(ellipsoid.axes, axis=0)
    # A column that reaches 16 times as far is 4 times as long beside the others.
    assert ratio[2] / ratio[0] == pytest.approx(4)


def test_no_column_is_shorter_than_its_spread_says():
    """A column is as long as the root of its reach, in spreads, and of one spread at the least."""
    spread, reach = np.array([2.0, 1.0, 0.5]), np.array([0.5, 1.2, 4.0])
    axes = [
        shape(1e4, np.zeros(3), np.eye(3), QUIET, Spreads(spread, spread, far), np.ones(3)).axes
        for far in (spread, reach * spread)
    ]
    lengths = np.linalg.norm(axes[1], axis=1) / np.linalg.norm(axes[0], axis=1)
    expected = np.sqrt([1.0, 1.2, 4.0])
    assert lengths == pytest.approx(expected / expected.prod() ** (1 / 3))


def test_shortening_leaves_the_line_where_symmetric_errors_grow_with_a_term():
    """Each residual stands beside its mirror image, so that only the shortening moves the line."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(5_000, 2)) @ np.array([[1, 0.6], [0, 0.8]])
    error = (0.2 + np.abs(x[:, 0])) * np.abs(rng.normal(size=5_000))
    line = np.array([0.7, -0.4])
    x, error = np.vstack([x, x]), np.concatenate([error, -error])
    rows = np.column_stack([x, x @ line + error])
    rows -= rows.mean(axis=0)
    spread = rows.std(axis=0)
    correlation = np.corrcoef(rows.T)
    spreads = Spreads(spread, spread, np.abs(rows).max(axis=0))
    # The line that the axes know of is that of least squares.
    plain = np.linalg.lstsq(rows[:, :2], rows[:, 2], rcond=None)[0]
    ellipsoid = shape(1e4, np.zeros(3), correlation, QUIET, spreads, np.zeros(3))
    turned = rows @ np.linalg.inv(ellipsoid.axes).T
    clipped = rows / np.maximum(np.linalg.norm(turned, axis=1) / 1.5, 1.0)[:, None]
    slopes = np.linalg.lstsq(clipped[:, :2], clipped[:, 2], rcond=None)[0]
    assert np.mean(np.linalg.norm(turned, axis=1) > 1.5) > 0.1
    # In standard errors of 0.02; by a symmetric root it is off by more.
    assert slopes == pytest.approx(plain, abs=0.002)


def test_axes_lost_in_noise_stay_invertible():
    rng = np.random.default_rng(2)
    spreads = Spreads(np.ones(4), np.ones(4), np.full(4, 3.0))
    noise = MomentNoise(1e6, 1e6, 1e6, 1e6)
    second = rng.normal(size=(4, 4)) * 1e5
    ellipsoid = shape(1.0, rng.normal(size=4) * 1e5, second + second.T, noise, spreads, np.zeros(4))
    assert np.linalg.cond(ellipsoid.axes) < 10
    assert np.isfinite(ellipsoid.centre).all()


def test_what_is_feared_beyond_what_is_told_falls_off_like_the_told():
    rng = np.random.default_rng(3)
    light = np.linalg.norm(rng.normal(size=(6, 20_000)), axis=0)
    heavy = light * np.sqrt(4 / rng.chisquare(4, 20_000))
    feared = []
    for sizes in (light, heavy):
        cells_counted = counted(sizes, sd=34.0)
        last = int(np.flatnonzero(cells_counted.detected)[-1])
        ahead = tail(cells_counted)[last + 1 :]
        assert (np.diff(ahead) <= 0).all()
        assert (ahead <= cells_counted.detected[last]).all()
        feared.append(float(ahead @ (RADII[last + 1 :] / RADII[last]) ** 2 / ahead[0]))
    # In squared lengths, against those of the first cell beyond.
    assert feared[1] > 1.3 * feared[0]


def test_the_radius_is_wider_where_noise_is_smaller_or_tails_are_heavier():
    rng = np.random.default_rng(4)
    light = np.linalg.norm(rng.normal(size=(6, 20_000)), axis=0)
    heavy = light * np.sqrt(4 / rng.chisquare(4, 20_000))
    lengths = [
        radius(counted(sizes, sd), 6, off, 0.25).length
        for sizes, sd, off in ((light, 34, 60.0), (light, 34, 6.0), (heavy, 34, 6.0))
    ]
    assert lengths[0] < lengths[1] < lengths[2]
    assert radius(Cells(RADII, np.zeros(len(RADII)), 34.0), 6, 6.0, 0.25) is None


def test_noise_moves_coefficients_as_foretold():
    """Against the coefficients of moments with the same small noise in every entry."""
    rng = np.random.default_rng(5)
    root = rng.normal(size=(4, 4))
    covariance = root @ root.T
    terms, response = covariance[:-1, :-1], covariance[:-1, -1]
    plain, errors = np.linalg.solve(terms, response), np.sqrt(np.diagonal(np.linalg.inv(terms)))
    measured = []
    for axes in (np.eye(4), np.linalg.cholesky(covariance)):
        squares = []
        for _ in range(400):
            noise = rng.normal(size=(4, 4)) * 1e-5 / math.sqrt(2)
            moved_covariance = covariance + axes @ (noise + noise.T) @ axes.T
            slopes = np.linalg.solve(moved_covariance[:-1, :-1], moved_covariance[:-1, -1])
            squares.append(np.mean(((slopes - plain) / errors) ** 2))
        foretold = 1e-5 * sensitivity_to_noise(covariance, axes)
        measured.append(math.sqrt(np.mean(squares)) / foretold)
    # Twice the variance on the diagonal is left out of the law: at most a factor of root 2.
    assert all(0.9 < slope < 1.6 for slope in measured), measured


def test_noise_in_evened_columns_is_even():
    axes = np.random.default_rng(6).normal(size=(5, 5)) * [[1], [9], [0.1], [1], [3]]
    rows = even(axes) @ axes
    assert rows[:-1] @ rows[:-1].T == pytest.approx(np.eye(4), abs=1e-9)
    assert np.linalg.norm(rows[-1]) == pytest.approx(1)
