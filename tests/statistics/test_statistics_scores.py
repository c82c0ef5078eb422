"""Squares of scores: exact, of each row by itself, and never longer than the lattice's radius."""

from fractions import Fraction

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design import private_design
from dpmodels.noise.lattice import Lattice
from dpmodels.statistics.passes import Score, score_squares

SIZE = 3
LATTICE, FINER = Lattice(20, SIZE), Lattice(18, 2)
RNG = np.random.default_rng(1)
SCORE = Score(RNG.normal(size=(2, SIZE + 1)) / 9, RNG.normal(size=SIZE + 1), np.eye(SIZE))
TURN = RNG.normal(size=(SIZE, SIZE))


def squares(rows, score=SCORE):
    names = [f"x{at}" for at in range(SIZE)]
    book = dp.codebook.uniform(names, (-1, 1))
    design = private_design("~ .", dict(zip(names, rows.T, strict=True)), book)
    exact, count = score_squares(design, LATTICE, score, FINER).cross()
    assert count == len(rows)
    return exact


def test_rows_add_the_same_integers_wherever_they_stand():
    rows = RNG.uniform(-1, 1, (90, SIZE))
    rows[7] = np.nan
    total = squares(rows)
    assert (sum(squares(row[None]) for row in rows) == total).all()
    assert (squares(rows[::-1]) == total).all()
    assert not squares(rows[7:8]).any()
    assert all(isinstance(value, int) for value in total.ravel())


@pytest.mark.parametrize("turned", [np.eye(SIZE), TURN])
def test_a_score_is_the_product_of_regressors_and_residual(turned):
    rows = RNG.uniform(-0.5, 0.5, (50, SIZE))
    ones = np.ones((50, 1))
    change = rows @ turned.T / np.sqrt(SIZE)
    change /= np.maximum(np.linalg.norm(change, axis=1, keepdims=True), 1)
    inside = np.hstack([ones, change])
    scores = (inside @ SCORE.regressors.T) * (inside @ SCORE.residual)[:, None]
    scores /= np.maximum(np.linalg.norm(scores, axis=1, keepdims=True), 1)
    expected = scores.T @ scores
    result = squares(rows, SCORE._replace(transform=turned))
    assert result.astype(float) / FINER.steps**2 == pytest.approx(expected, rel=1e-3)


def test_long_rows_count_by_the_inverse_of_their_squared_length():
    """By lines of their own; and each row by itself, to the bit."""
    rows, lines = RNG.uniform(-1, 1, (50, SIZE)), 3 * RNG.normal(size=(2, SIZE + 1))
    inside = np.hstack([np.ones((50, 1)), rows / np.sqrt(SIZE)])
    sizes = np.linalg.norm(inside @ lines.T, axis=1)
    # Whatever was drawn before, half of the rows are long.
    lines, sizes = lines / np.median(sizes), sizes / np.median(sizes)
    assert sizes.min() < 1 < sizes.max()
    scores = (inside @ SCORE.regressors.T) * (inside @ SCORE.residual)[:, None]
    scores /= np.maximum(sizes, 1)[:, None] ** 2
    scores /= np.maximum(np.linalg.norm(scores, axis=1, keepdims=True), 1)
    score = SCORE._replace(lengths=lines)
    total = squares(rows, score)
    assert total.astype(float) / FINER.steps**2 == pytest.approx(scores.T @ scores, rel=1e-3)
    assert (sum(squares(row[None], score) for row in rows) == total).all()
    assert score.digest != SCORE.digest


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12, 1e120])
def test_no_row_is_longer_than_the_radius(size):
    corners = np.vstack([np.eye(SIZE), -np.eye(SIZE), np.zeros((1, SIZE)), np.ones((1, SIZE))])
    large = Score(SCORE.regressors * size, SCORE.residual * size, TURN)
    for row in corners:
        assert np.trace(squares(row[None], large)) <= 4**FINER.bits


def test_products_with_integer_rows_are_exact():
    """What is multiplied are integers whose partial sums float64 holds: rationals say the same."""
    row = RNG.uniform(-1, 1, SIZE)
    names = [f"x{at}" for at in range(SIZE)]
    design = private_design(
        "~ .",
        {n: [v] for n, v in zip(names, row, strict=True)},
        dp.codebook.uniform(names, (-1, 1)),
    )
    ((block, _),) = design.blocks(lambda block: block.copy(), LATTICE)
    units = [Fraction(1 / LATTICE.radius), *[Fraction(1 / LATTICE.steps)] * SIZE]
    exact_squares = [
        float(
            sum(
                Fraction(f) * u * Fraction(int(z))
                for f, u, z in zip(line, units, block[:, 0], strict=True)
            )
        )
        for line in np.vstack([SCORE.regressors, SCORE.residual])
    ]
    score = np.array(exact_squares[:-1]) * exact_squares[-1]
    score /= max(np.linalg.norm(score), 1)
    result = squares(row[None]).astype(float) / FINER.steps**2
    assert result == pytest.approx(np.outer(score, score), abs=4 / FINER.steps)
