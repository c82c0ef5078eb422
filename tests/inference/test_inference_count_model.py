"""Maximum likelihood of noisy counts: its equation, its law, and models of all orders."""

import numpy as np
import pytest
from scipy.stats import chi2

from dpmodels.inference.count_model import (
    CumulativeLogits,
    LevelLogits,
    estimate,
    maximum,
    of_family,
)

ROWS = np.array([[x, y] for x in (0.0, 1.0) for y in (0.0, 1.0, 2.0)])
SD = 2.8


def models():
    return [
        (
            LevelLogits(np.insert(ROWS, 0, 1.0, axis=1), 3),
            np.array([0.2, 0.5, -0.3, 0.1, -0.4, 0.2]),
        ),
        (LevelLogits(ROWS, 2), np.array([0.4, -0.5])),
        (CumulativeLogits(ROWS, 4), np.array([0.6, -0.4, -1.0, 0.3, 1.2])),
    ]


@pytest.mark.parametrize(("model", "params"), models())
def test_slopes_and_information_are_derivatives(model, params):
    counts = np.random.default_rng(0).normal(40, 20, (6, model.levels))
    step, moves = 1e-6, np.eye(len(params))
    slopes = [
        (model.logs(params + step * move) - model.logs(params - step * move)) / (2 * step)
        for move in moves
    ]
    np.testing.assert_allclose(model.slopes(params), np.stack(slopes, axis=2), atol=1e-7)
    scores = [
        np.einsum("xk,xkq->q", counts, model.slopes(params + step * move))
        - np.einsum("xk,xkq->q", counts, model.slopes(params - step * move))
        for move in moves
    ]
    information = -np.array(scores) / (2 * step)
    np.testing.assert_allclose(model.observed(params, counts), information, atol=1e-4)


@pytest.mark.parametrize(("model", "params"), models())
def test_expected_counts_give_their_parameters(model, params):
    counts = np.exp(model.logs(params)) * np.array([[50.0], [80], [20], [60], [90], [30]])
    np.testing.assert_allclose(maximum(model, counts, 1e-9), params, atol=1e-7)
    np.testing.assert_allclose(maximum(model, counts - 1e-12, SD), params, atol=1e-7)


@pytest.mark.parametrize(("model", "params"), models())
def test_errors_have_the_law_of_noise_and_sampling(model, params):
    """Squared distances about rows and population; a false alarm of 1e-7 at both ends."""
    rng, n_tables, totals = np.random.default_rng(5), 100, np.zeros(2)
    for _ in range(n_tables):
        rows = np.array([rng.multinomial(400, p / p.sum()) for p in np.exp(model.logs(params))])
        fit = estimate(model, rows + rng.laplace(0, SD / np.sqrt(2), rows.shape), SD, 1.0)
        pair = np.hstack([fit.noise_root, fit.sampling_root])
        for place, (centre, root) in enumerate(
            [(maximum(model, rows.astype(float), 1e-9), fit.noise_root), (params, pair)]
        ):
            off = fit.params - centre
            totals[place] += off @ np.linalg.solve(root @ root.T, off)
    df = n_tables * len(params)
    # 5 % for terms of second order, and the heavier tails of Laplace noise.
    assert (totals > 0.95 * chi2.ppf(1e-7, df)).all()
    assert (totals < 1.05 * chi2.isf(1e-7, df)).all()


@pytest.mark.parametrize("size", [1.0, 1e4])
def test_directions_without_information_have_a_billionth_of_the_largest(size):
    """A column of zeros says nothing of its parameter, however many rows there are."""
    model = LevelLogits(np.column_stack([np.ones(3), [0.0, 1.0, 2.0], np.zeros(3)]), 2)
    counts = size * np.array([[3.0, 2.0], [2.0, 2.0], [1.0, 3.0]])
    fit = estimate(model, counts, 0.0, 1.0)
    largest = np.linalg.eigvalsh(model.observed(fit.params, counts)).max()
    assert fit.inverse[2, 2] == pytest.approx(1e9 / largest, rel=1e-6)


@pytest.mark.parametrize(("model", "params"), models())
def test_counts_of_noise_alone_have_a_finite_estimate(model, params):
    rng = np.random.default_rng(1)
    for scale in (1e-12, 1.0, 1e12):
        fit = estimate(model, scale * rng.normal(0, SD, (6, model.levels)), scale * SD, 1.0)
        assert all(np.isfinite(part).all() for part in fit)


def test_families():
    assert isinstance(of_family("ordinal", ROWS, 3), CumulativeLogits)
    assert isinstance(of_family("binomial", ROWS, 2), LevelLogits)


def test_influences_are_derivatives_where_a_cell_is_all_but_empty():
    """Of a negative count, whose probability only the penalty keeps away from 0."""
    model, sd, step = LevelLogits(np.array([[1.0, 0.0], [1.0, 1.0]]), 2), 2.0, 1e-3
    counts = np.array([[200.0, -5.0], [100.0, 50.0]])
    fit = estimate(model, counts, sd, 1.0)
    assert model.logs(fit.params)[0, 1] < -12
    for influence, move in zip(fit.influence, step * np.eye(4), strict=True):
        after, before = (
            maximum(model, counts + signed.reshape(2, 2), sd) for signed in (move, -move)
        )
        np.testing.assert_allclose(influence, (after - before) / (2 * step), atol=1e-3)
