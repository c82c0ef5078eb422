"""Levels that are told from noise, by their own curvature and by how far the point was off."""

from dataclasses import replace

import numpy as np

import dpmodels as dp
from dpmodels.inference.sandwich import sandwich
from dpmodels.inference.told_levels import EDGES, told_levels
from dpmodels.postprocess.contrasts import contrasts

BOOK = dp.codebook(y=["a", "b", "c"], x=["u", "v"])


def released():
    rng = np.random.default_rng(0)
    rows = {"y": rng.choice(["a", "b", "c"], 2000), "x": rng.choice(["u", "v"], 2000)}
    words = {"codebook": BOOK, "eps": 8.0, "delta": 1e-6, "family": "multinomial"}
    with dp.simulation(seed=1):
        return dp.dp_glm("y ~ x", rows, **words).release


def test_a_level_without_rows_is_not_told_and_the_others_are():
    release, turn = released(), np.kron(contrasts(3), np.eye(2))
    bought = release.curvature
    assert told_levels(sandwich(release), bought, 3).tolist() == [True, True, True]
    shares = np.array([0.5, 0.5, 0.0])
    spread = np.kron(np.diag(shares) - np.outer(shares, shares), np.diag([400.0, 1600.0]))
    edge = 2 * bought.bread_noise.off * np.sqrt(2)
    # Of noise alone, at last more than it may be.
    for size, told in ((0.5, False), (1.5, False), (EDGES + 0.01, True)):
        own = spread + np.kron(np.diag([0, 0, 2.25]), size * edge * np.eye(2))
        held = replace(bought, bread=turn.T @ own @ turn)
        known = sandwich(replace(release, curvature=held, gradient=0 * release.gradient))
        quiet = replace(known, noise_root=0 * known.noise_root, sampling_root=known.noise_root * 0)
        assert told_levels(quiet, held, 3).tolist() == [True, True, told]


def test_a_level_whose_point_was_far_off_is_not_told():
    release, turn = released(), np.kron(contrasts(3), np.eye(2))
    own = sandwich(release)
    for size, told in ((0.1, True), (2.0, False)):
        moved = own.point + turn.T @ np.array([0, 0, 0, 0, size, size])
        found = told_levels(replace(own, estimate=moved), release.curvature, 3)
        assert found[2] == told
