"""The multinomial loss: its gradients and curvature, their lengths, and how far rows are apart."""

import math
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

import dpmodels as dp
from dpmodels.mechanisms.protocol import passes
from dpmodels.mechanisms.quantile_of_norms import MULTINOMIAL
from dpmodels.models.glm import glm_spec
from dpmodels.noise.lattice import Lattice
from dpmodels.request import requested
from dpmodels.statistics.losses import Multinomial

LEVELS = ("u", "v", "w")
BOOK = dp.codebook(y=list(LEVELS), a=(-1, 1), b=(0, 3))
WORDS = {"family": "multinomial", "inference": True, "clip": None, "scale": "range"}
WORDS |= {"person": None, "rows": None, "subset": None}


@cache
def way_of(row_norm):
    words = {**WORDS, "row_norm": row_norm}
    return glm_spec(requested("glm", "y ~ a + b", BOOK, 1.0, 1e-6, None, None, **words))


def bound(data, row_norm=None):
    way = way_of(row_norm)
    return passes(way.private.bind(data), way.facts), way.facts


def table(rows):
    return dict(zip("yab", zip(*rows, strict=True), strict=True))


def steps(values):
    return values.cross()[0].astype(float) / Lattice(20, 9).steps


def test_chances_are_those_of_each_row_wherever_it_stands():
    loss, rng = Multinomial(5), np.random.default_rng(0)
    linear = np.hstack([rng.normal(size=(5, 999)) * 30, np.full((5, 1), 1e300)])
    linear[0, :9] = -1e300
    chances = loss.chances(linear)
    np.testing.assert_allclose(chances, softmax(linear, axis=0), atol=1e-14)
    for start in (0, 3, 990):
        part = loss.chances(np.ascontiguousarray(linear[:, start : start + 7]))
        assert part.tolist() == chances[:, start : start + 7].tolist()


def test_gradients_and_curvature_are_those_of_the_likelihood():
    rng = np.random.default_rng(1)
    rows = [
        *zip(rng.choice(LEVELS, 40), rng.uniform(-1, 1, 40), rng.uniform(0, 3, 40), strict=True),
        (None, 0.3, 1.0),
        ("x", 0.3, 1.0),
        ("u", math.nan, 1.0),
    ]
    rows_bound, facts = bound(table(rows))
    point, predictors = rng.normal(size=9) * 2, facts.predictors
    coded = np.array([row[1:] for row in rows[:40]]) - [0, 1.5]
    z = np.column_stack(
        [np.full(40, predictors.constant), coded / [1, 1.5] / math.sqrt(2) * predictors.share]
    )
    assert np.linalg.norm(z, axis=1).max() <= 1 + 1e-12
    chosen = np.array([[row[0] == level for level in LEVELS] for row in rows[:40]], dtype=float)

    def value(theta):
        return -(chosen * log_softmax(z @ theta.reshape(3, 3).T, axis=1)).sum()

    def slope(theta):
        return ((softmax(z @ theta.reshape(3, 3).T, axis=1) - chosen).T @ z).ravel()

    small = np.eye(9) * 1e-5
    exact = steps(rows_bound.gradient(point, Lattice(20, 9))) * facts.loss.length
    np.testing.assert_allclose(exact, slope(point), atol=40 * 1e-5)
    differences = [(value(point + e) - value(point - e)) / 2e-5 for e in small]
    np.testing.assert_allclose(exact, differences, atol=40 * 1e-5)
    bent = steps(rows_bound.curvature(point, Lattice(20, 9))) / Lattice(20, 9).steps
    expected = [(slope(point + e) - slope(point - e)) / 2e-5 for e in small]
    np.testing.assert_allclose(bent, expected, atol=40 * 1e-5)
    assert (bent == bent.T).all()


@pytest.mark.parametrize("row_norm", [None, 0.5], ids=["whole", "shrunk"])
def test_neighbours_are_within_two_lengths_and_nearly_as_far(row_norm):
    """All rows at corners, beyond them and on both sides of a plane, beside all others."""
    bounds = ((1.0, 2.99), (0.99, 3.0))
    places = [*product((-1.0, 1.0), (0.0, 3.0)), *bounds, (9.0, 99.0), (None, 0.0)]
    rows = [(level, *at) for level in (*LEVELS, None) for at in places]
    split = 1e5 * np.array([0, 1, -1, 0, -1, 1, 0, 0, 0.0])
    farthest = 0.0
    for point in (np.zeros(9), split, 1e4 * np.eye(9)[1]):
        lattice = Lattice(16, 9)
        statistics = [bound(table([row]), row_norm)[0].gradient(point, lattice) for row in rows]
        gradients = np.array([statistic.cross()[0].astype(float) for statistic in statistics])
        assert (np.linalg.norm(gradients, axis=1) <= lattice.radius).all()
        distance = np.linalg.norm(gradients[:, None] - gradients, axis=2).max() / lattice.radius
        farthest = max(farthest, distance)
        eight = bound(table(rows[:8]), row_norm)[0].gradient(point, lattice).cross()[0]
        assert eight.tolist() == gradients[:8].sum(axis=0).astype(int).tolist()
    assert 1.99 < farthest <= 2


@pytest.mark.parametrize("levels", [3, 4, 7])
def test_both_matrices_of_a_row_are_as_long_as_was_proved(levels):
    """Over rows drawn all over the simplex, its edges and its corners; and two of them."""
    rng = np.random.default_rng(levels)
    chances = np.vstack([rng.dirichlet(np.full(levels, at), 1500) for at in (0.05, 0.3, 3.0)])
    y = rng.integers(levels, size=len(chances))
    pull = np.eye(levels)[y] - chances
    bread = (
        np.einsum("ni,ij->nij", chances, np.eye(levels)) - chances[:, :, None] * chances[:, None]
    )
    meat = pull[:, :, None] * pull[:, None]
    assert np.linalg.norm(bread, axis=(1, 2)).max() <= MULTINOMIAL.bread + 1e-12
    joint = np.stack([bread / MULTINOMIAL.bread, meat / Multinomial(levels).length ** 2], axis=1)
    long = np.linalg.norm(joint.reshape(len(joint), -1), axis=1)
    assert 0.97 * MULTINOMIAL.euclidean < long.max() <= MULTINOMIAL.euclidean
    # Across each other, where the squares of z have nothing in common.
    longest = joint[np.argsort(long)[-200:]].reshape(200, -1)
    aligned = np.linalg.norm(longest[:, None] - longest, axis=2).max()
    across = math.hypot(*np.sort(long)[-2:])
    assert max(aligned, across) <= math.sqrt(2) * MULTINOMIAL.euclidean
    assert across > 1.37 * MULTINOMIAL.euclidean


def test_constants_are_the_least_that_bound_the_likelihood():
    """By the Frobenius norm of the curvature over the simplex; the unit is of gradients."""
    grid = np.linspace(0, 1, 41)
    points = np.array([(p, q, 1 - p - q) for p, q in product(grid, grid) if p + q <= 1 + 1e-12])
    bends = np.eye(3) * points[:, None] - points[:, :, None] * points[:, None]
    largest = np.sqrt((bends**2).sum(axis=(1, 2))).max()
    loss = Multinomial(3)
    assert loss.smoothness * loss.length == pytest.approx(largest)
    pulls = np.sqrt(((points[:, None] - np.eye(3)) ** 2).sum(axis=2))
    assert loss.length == pytest.approx(pulls.max())
