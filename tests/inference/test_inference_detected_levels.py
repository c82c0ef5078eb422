"""Levels that exceed their noise, by how far a point is from where their rows say it is."""

from dataclasses import replace

import numpy as np

import dpmodels as dp
from dpmodels.inference.sandwich import OFF, sandwich, told_levels
from dpmodels.postprocess.normal_equations import contrasts

BOOK = dp.codebook(y=["a", "b", "c"], x=["u", "v"])
TURN = np.kron(contrasts(3), np.eye(2))


def released():
    rng = np.random.default_rng(0)
    rows = {"y": rng.choice(["a", "b", "c"], 2000), "x": rng.choice(["u", "v"], 2000)}
    words = {"codebook": BOOK, "eps": 8.0, "delta": 1e-6, "family": "multinomial"}
    words["mechanism"] = "gradients"
    with dp.simulation(seed=1):
        return dp.dp_glm("y ~ x", rows, **words).release


def quiet(shares, change):
    """A fit of these shares without noise, whose parameters of all levels moved by so much."""
    release, shares = released(), np.array(shares)
    spread = np.kron(np.diag(shares) - np.outer(shares, shares), np.diag([400.0, 1600.0]))
    bought = replace(release.curvature, bread=TURN.T @ spread @ TURN)
    covariance = sandwich(release)
    step = TURN.T @ np.kron(change, np.ones(2))
    parts = {"noise_root": 0 * covariance.noise_root, "sampling_root": 0 * covariance.sampling_root}
    return told_levels(
        replace(covariance, estimate=covariance.point + step, **parts), bought, 3
    ).tolist()


def test_levels_of_many_rows_are_told():
    release = released()
    assert told_levels(sandwich(release), release.curvature, 3).all()


def test_a_level_whose_logarithm_moved_far_is_not_told_however_the_others_are_counted():
    shares, rare = [0.495, 0.495, 0.01], OFF / np.sqrt(0.99)
    assert quiet(shares, [0, 0, 0.99 * rare]) == [True, True, True]
    assert quiet(shares, [0, 0, 1.03 * rare]) == [True, True, False]
    # The same step, with 5 added to all levels.
    assert quiet(shares, [5, 5, 5 + 1.03 * rare]) == [True, True, False]


def test_a_level_whose_curvature_noise_made_negative_is_not_told():
    assert quiet([0.51, 0.5, -0.01], [0, 0, 0]) == [True, True, False]
