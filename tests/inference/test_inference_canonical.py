"""Canonical correlations from noisy moments: exact without noise, covered with it."""

import math

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.stats import binom

from dpmodels.inference.correlations import canonical
from dpmodels.postprocess.normal_equations import NormalEquations

ROWS, RUNS = 2_000, 60


def made(rng, left, right, rhos, dummy=False):
    rows = rng.normal(size=(ROWS, left + right))
    for k, rho in enumerate(rhos):
        rows[:, left + k] = rho * rows[:, k] + math.sqrt(1 - rho**2) * rows[:, left + k]
    rows[:, :left] @= np.eye(left) + 0.2 * rng.normal(size=(left, left))
    if dummy:
        rows[:, -1] = rows[:, -1] > 0.7
    return 0.25 * rows + 0.1


def exact(rows, left):
    centred = rows - rows.mean(axis=0)
    first, second = (np.linalg.qr(part)[0] for part in np.split(centred, [left], axis=1))
    return np.linalg.svd(first.T @ second)[1]


def released(rows, sd, rng):
    matrix = np.column_stack([np.ones(len(rows)), rows])
    size = matrix.shape[1]
    noise = np.triu(rng.normal(size=(size, size)) * sd)
    moments, entries = matrix.T @ matrix + noise + np.triu(noise, 1).T, np.eye(size)
    variance = np.full((size, size), max(sd, 1e-9) ** 2)
    return NormalEquations(moments, variance, entries[:, :-1], entries[:, -1], True)


def test_without_noise_they_are_those_of_orthogonal_bases():
    rng = np.random.default_rng(1)
    rows = made(rng, 3, 2, (0.7, 0.2))
    estimates = canonical(released(rows, 0.0, rng), 3)
    assert estimates.correlations == pytest.approx(exact(rows, 3), abs=1e-9)
    centred = rows - rows.mean(axis=0)
    variates = centred[:, :3] @ estimates.left, centred[:, 3:] @ estimates.right
    assert variates[0].T @ variates[0] == pytest.approx(np.eye(2), abs=1e-9)
    assert variates[0].T @ variates[1] == pytest.approx(np.diag(estimates.correlations), abs=1e-9)
    assert estimates.separated.all()
    assert not estimates.ridged
    assert estimates.noise_ends(0.95) == pytest.approx(
        np.repeat(estimates.correlations, 2).reshape(2, 2)
    )


# Far apart, alike, none at all, of one column, near 1, and with a column of 0 and 1.
@pytest.mark.parametrize(
    ("left", "right", "rhos", "sd", "dummy"),
    [
        (2, 2, (0.8, 0.3), 2.0, False),
        (2, 2, (0.5, 0.5), 2.0, False),
        (2, 3, (), 2.0, False),
        (1, 3, (0.4,), 4.0, True),
        (2, 2, (0.98, 0.97), 1.0, False),
    ],
)
def test_noise_intervals_cover_the_exact_correlations(left, right, rhos, sd, dummy):
    rng = np.random.default_rng(3)
    rows = made(rng, left, right, rhos, dummy)
    truth, hits = exact(rows, left), []
    for _ in range(RUNS):
        low, high = canonical(released(rows, sd, rng), left).noise_ends(0.95).T
        hits.append((low <= truth) & (truth <= high))
    # 93 % of each, at least: a false alarm at 1e-6 of all.
    assert (np.sum(hits, axis=0) >= binom.ppf(1e-7, RUNS, 0.93)).all()


def test_the_noise_sd_is_that_of_the_estimates():
    rng = np.random.default_rng(5)
    rows = made(rng, 2, 2, (0.8, 0.3))
    fits = [canonical(released(rows, 2.0, rng), 2) for _ in range(RUNS)]
    spread = np.std([fit.correlations for fit in fits], axis=0)
    # The sd of 60 normal deviates is within 50 % of theirs but at 1e-6.
    assert (np.abs(np.median([fit.noise_sd for fit in fits], axis=0) / spread - 1) < 0.5).all()


def test_noise_alone_stays_below_its_floor():
    rng = np.random.default_rng(7)
    rows = made(rng, 3, 3, ())
    truth = exact(rows, 3)[0]
    fits = [canonical(released(rows, 5.0, rng), 3) for _ in range(RUNS)]
    beyond = [fit.correlations[0] > truth + fit.edge(0.0) for fit in fits]
    assert np.mean(beyond) < 0.2
    # Half of it is not too large.
    assert np.mean([fit.correlations[0] > fit.edge(0.0) / 3 for fit in fits]) > 0.5


def test_a_side_without_an_inverse_has_a_ridge_and_no_interval():
    rng = np.random.default_rng(9)
    rows = made(rng, 2, 2, (0.8, 0.3))
    rows[:, 1] = rows[:, 0] + 1e-3 * rows[:, 1]
    noisy = canonical(released(rows, 2.0, rng), 2)
    assert noisy.ridged
    assert noisy.is_identified
    assert noisy.noise_ends(0.95).tolist() == [[0.0, 1.0]] * 2
    assert (noisy.correlations <= 1).all()
    rows[:, :2] = 0.1
    lost = canonical(released(rows, 2.0, rng), 2)
    assert not lost.is_identified
    assert lost.noise_ends(0.95).tolist() == [[0.0, 1.0]] * 2


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9])
def test_the_edge_is_that_of_the_mean_square_of_the_noise_in_the_pencil(rho):
    """F has -rho times the noise of each side beside the noise between them: a sum over entries."""
    rng = np.random.default_rng(4)
    estimates = canonical(released(made(rng, 3, 2, (0.7, 0.2)), 2.0, rng), 3)
    left, right = estimates._whitened
    size, square = len(left), 0.0
    for i, j in zip(*np.triu_indices(size), strict=True):
        noise = np.zeros((size, size))
        noise[i, j] = noise[j, i] = 2.0
        between = left.T @ noise @ right
        pencil = np.block(
            [
                [-rho * left.T @ noise @ left, between],
                [between.T, -rho * right.T @ noise @ right],
            ]
        )
        square = square + pencil @ pencil
    assert estimates.edge(rho) == pytest.approx(2 * math.sqrt(np.linalg.eigvalsh(square)[-1]))


@pytest.mark.parametrize(("left", "right"), [(1, 3), (3, 1), (2, 2), (2, 3)])
def test_the_pencil_of_two_sides_has_all_of_its_eigenvectors(left, right):
    """Also those of eigenvalues of 0, of the columns that the larger side has more."""
    rng = np.random.default_rng(11)
    rows = made(rng, left, right, (0.6,))
    pencil = canonical(released(rows, 0.0, rng), left)
    values, vectors = pencil._pencil
    first, second = pencil._whitened
    block = first.T @ pencil.equations.moments @ second
    joint = np.block([[np.zeros((left, left)), block], [block.T, np.zeros((right, right))]])
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(left + right), atol=1e-9)
    np.testing.assert_allclose(joint @ vectors, vectors * values, atol=1e-9)
    assert np.sum(np.abs(values) < 1e-9) == abs(left - right)


@pytest.mark.product
def test_estimates_lack_the_bias_of_the_noise():
    rng = np.random.default_rng(13)
    rows = made(rng, 3, 2, (0.7, 0.2))
    fits = [canonical(released(rows, 4.0, rng), 3) for _ in range(2_000)]
    is_read = np.array([fit.separated[0] and not fit.ridged for fit in fits])
    assert is_read.mean() > 0.95
    raw, corrected = (
        np.array([getattr(fit, name)[0] for fit in fits])[is_read] - exact(rows, 3)[0]
        for name in ("correlations", "estimates")
    )
    error = raw.std() / math.sqrt(len(raw))
    assert raw.mean() > 5 * error
    assert abs(corrected.mean()) < raw.mean() / 2


def test_matrices_within_two_multiples_of_another_move_correlations_no_farther():
    # docs/theory.md, Theorem 118 (c).
    rng = np.random.default_rng(11)
    for left, right in ((2, 2), (3, 2), (1, 4)):
        rows = made(rng, left, right, (0.8, 0.3)[: min(left, right)])
        weights = rng.uniform(0.7, 1.0, len(rows))[:, None] ** 0.5
        centred = rows - rows.mean(axis=0)
        shortened = centred * weights
        scatter, of_shortened = centred.T @ centred, shortened.T @ shortened
        low, high = eigh(of_shortened, scatter, eigvals_only=True)[[0, -1]]
        before, after = of_scatter(scatter, left), of_scatter(of_shortened, left)
        for sign in (1, -1):
            ratios = (1 + sign * after) / (1 + sign * before)
            assert (ratios >= low / high - 1e-12).all()
            assert (ratios <= high / low + 1e-12).all()


def of_scatter(scatter, left):
    first, second = scatter[:left, :left], scatter[left:, left:]
    roots = [np.linalg.inv(np.linalg.cholesky(block)) for block in (first, second)]
    return np.linalg.svd(roots[0] @ scatter[:left, left:] @ roots[1].T)[1]
