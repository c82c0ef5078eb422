"""Sums of gradients against rows one by one: exact, bounded, additive, and silent."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import dpmodels as dp
from dpmodels.errors import PrivacyError
from dpmodels.models.linear import linear
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import ZCDP, adjacency
from dpmodels.request import Request
from dpmodels.statistics.gradient import Gradients
from dpmodels.statistics.losses import Huber, Logistic, Poisson

BOOK = dp.codebook(a=(-1, 1), b=(0, 10), g=["u", "v", "w"], y=["no", "yes"], c=(0, 20))
READ = Lattice(20, 5)
OUT = Lattice(20, 5)
LOSSES = (Logistic(), Huber(0.5), Poisson(20.0, 5.0))


def table(rows, seed=0):
    rng = np.random.default_rng(seed)
    data = {
        "a": rng.normal(size=rows) * 2,
        "b": rng.uniform(-1, 12, rows),
        "g": rng.choice(["u", "v", "w", "x"], rows, p=[0.4, 0.3, 0.2, 0.1]),
        "y": rng.choice(["no", "yes"], rows),
        "c": rng.poisson(4, rows).astype(float),
    }
    data["a"][::9] = np.nan
    return data


def bind(formula, data, book):
    words = {"scale": "range", "row_norm": None}
    estimates = linear(Request("glm", formula, book, ZCDP(1.0), adjacency("replace"), words))
    return estimates._replace(design=estimates.design.bind(data))


def gradients(data, loss=LOSSES[0], formula=None):
    response = "c" if isinstance(loss, Poisson) else "y"
    bound = bind(formula or f"{response} ~ a + b + g", data, BOOK)
    lattice = Lattice(20, bound.predictors.terms + 1)
    return Gradients((bound.design,), bound.predictors, loss, lattice), bound


def part(data, rows):
    return {name: values[rows] for name, values in data.items()}


@pytest.mark.parametrize("loss", LOSSES)
def test_they_are_the_gradients_of_the_loss(loss):
    data = {name: values[:200] for name, values in table(200).items()}
    rows, bound = gradients(data, loss)
    theta = np.array([0.3, -1.0, 0.5, 2.0, -0.2])[: bound.predictors.columns]
    exact, count = rows.gradient(theta, OUT).cross()
    frame = pd.DataFrame(data)
    frame = frame[np.isfinite(frame["a"]) & frame["g"].isin(["u", "v", "w"])]
    scaled, columns = bound.design.scaling, bound.predictors
    coded = np.array(
        [
            (frame["g"] == "v").to_numpy(float),
            (frame["g"] == "w").to_numpy(float),
            np.clip(frame["a"], -1, 1),
            np.clip(frame["b"], 0, 10),
        ]
    )
    x = (coded - scaled.centre[:-1, None]) / scaled.scale[:-1, None]
    x *= columns.share / (columns.radius * scaled.row_norm)
    z = np.vstack([np.full(len(frame), columns.constant), x])
    if isinstance(loss, Poisson):
        pull = np.clip((frame["c"].to_numpy() - np.exp(theta @ z)) / loss.clip, -1, 1)
    else:
        sign = np.where(frame["y"] == "yes", 1.0, -1.0)
        pull = sign * loss.slope(sign * (theta @ z))
    assert count == 200
    np.testing.assert_allclose(exact.astype(float) / OUT.steps, -z @ pull, atol=200 * 1e-5)
    assert np.linalg.norm(z, axis=0).max() <= 1 + 1e-12


@pytest.mark.parametrize("loss", [Logistic(), Poisson(20.0, 5.0)])
def test_curvature_and_squares_are_those_of_the_gradients(loss):
    """The curvature by differences of exact gradients, one row at a time for the squares."""
    data = part(table(40), slice(1, 9))
    rows, _ = gradients(data, loss)
    theta, step = np.array([0.3, -1.0, 0.5, 1.0, -0.2]), 2.0**-7
    fine = np.array(
        [
            (
                rows.gradient(theta + direction, OUT).cross()[0]
                - rows.gradient(theta - direction, OUT).cross()[0]
            )
            / (2 * step * OUT.steps)
            for direction in np.eye(5) * step
        ]
    ).astype(float)
    bent = rows.curvature(theta, OUT).cross()[0].astype(float) / OUT.steps**2 * loss.smoothness
    # Rounding of eight rows by 2^-20 over a step of 2^-7, and the third derivative's part.
    np.testing.assert_allclose(bent, fine, atol=5e-3)
    squares = np.zeros((5, 5))
    for at in range(8):
        own, _ = gradients(part(data, slice(at, at + 1)), loss)
        gradient = own.gradient(theta, OUT).cross()[0].astype(float) / OUT.steps
        squares += np.outer(gradient, gradient)
    result = rows.squares(theta, OUT).cross()[0].astype(float) / OUT.steps**2
    np.testing.assert_allclose(result, squares, atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_no_row_moves_them_further_than_the_radius(loss):
    data = table(60, seed=5)
    data["a"][::7] *= 1e9
    theta = np.array([9.0, -40.0, 3.0, 100.0, 0.0])
    longest = 0
    for at in range(60):
        rows, _ = gradients(part(data, slice(at, at + 1)), loss)
        exact, _ = rows.gradient(theta, Lattice(12, 5)).cross()
        square = sum(int(x) ** 2 for x in exact)
        assert square <= 2**24
        longest = max(longest, square)
    assert longest > 0.2 * 2**24


def test_they_add_over_rows_and_are_the_same_in_any_order():
    data, theta = table(9000), np.array([0.1, 1.0, -0.4, 0.2, 2.0])
    combined, _ = gradients(data)
    shuffled, _ = gradients(part(data, np.random.default_rng(1).permutation(9000)))
    first, _ = gradients(part(data, slice(0, 3001)))
    second, _ = gradients(part(data, slice(3001, None)))
    exact = combined.gradient(theta, OUT).cross()[0].tolist()
    assert shuffled.gradient(theta, OUT).cross()[0].tolist() == exact
    joined = first + second
    assert joined.gradient(theta, OUT).cross()[0].tolist() == exact
    assert joined.rows == 9000
    assert joined.cross()[0].shape == (5,)
    assert joined.moments(READ).cross()[0].tolist() == combined.moments(READ).cross()[0].tolist()


@pytest.mark.parametrize("loss", [Logistic(), Poisson(20.0, 5.0)])
def test_equal_rows_add_the_same_each_where_terms_cancel(loss):
    """Of 10 terms, whose last bits in floating point are many steps of the lattice."""
    rng = np.random.default_rng(8)
    names = [f"x{i}" for i in range(10)]
    book = dp.codebook.uniform(names, (-1, 1)) | BOOK
    response = "c" if isinstance(loss, Poisson) else "y"
    row = {name: np.array([rng.uniform(-1, 1)]) for name in names}
    row |= {"y": np.array(["yes"]), "c": np.array([3.0])}
    formula = f"{response} ~ {' + '.join(names)}"
    bound, lattice, out = bind(formula, row, book), Lattice(20, 11), Lattice(20, 11)
    ((block, _),) = bound.design.blocks(np.copy, lattice)
    line = block[1:-1, 0]
    theta = np.append(0.5, 2.0**24 * (np.roll(line, 1) - np.roll(line, -1)))

    def gradient(count):
        data = {name: np.repeat(values, count) for name, values in row.items()}
        design = bound.design.bind(data)
        rows = Gradients((design,), bound.predictors, loss, lattice)
        return rows.gradient(theta, out).cross()[0]

    alone = gradient(1)
    assert alone.any()
    for count in (2, 3, 4, 7, 8, 15, 16, 17, 33):
        assert gradient(count).tolist() == (count * alone).tolist()


def test_rows_of_another_ball_add_the_same_in_any_order_and_those_beyond_nothing():
    data, theta = table(3000), np.array([0.1, 1.0, -0.4, 0.2, 2.0])
    combined, bound = gradients(data)
    ball = bound.predictors.within(np.array([0.1, 0.05, -0.1, 0.1]), 0.8)
    rows_within = combined.within(ball)
    exact = rows_within.gradient(theta, OUT).cross()[0]
    order = np.random.default_rng(1).permutation(3000)
    shuffled, _ = gradients(part(data, order))
    assert shuffled.within(ball).gradient(theta, OUT).cross()[0].tolist() == exact.tolist()
    sums, n_within = np.zeros(5, dtype=object), 0
    for block, _ in bound.design.blocks(np.copy, READ):
        away = block[1:-1] - np.array(ball.centre)[:, None]
        inside = (block[0] > 0) & ((away**2).sum(axis=0) <= (0.8 * READ.steps) ** 2)
        z = ball.read(block, READ)
        assert (z[:, ~inside] == 0).all()
        assert (z[0, inside] == ball.constant).all()
        assert np.linalg.norm(z, axis=0).max() <= 1
        n_within += inside.sum()
    for at in range(40):
        alone, _ = gradients(part(data, slice(at, at + 1)))
        sums = sums + alone.within(ball).gradient(theta, OUT).cross()[0]
    first, _ = gradients(part(data, slice(0, 40)))
    assert first.within(ball).gradient(theta, OUT).cross()[0].tolist() == sums.tolist()
    assert 0 < n_within < 2000
    assert rows_within.lengths(np.array([0.8])).cross()[0].tolist() == [n_within]


def test_a_parameter_is_rounded_below_what_is_seen():
    """Against floating point where nothing cancels; 9000 rows, each off by half a step."""
    rows, bound = gradients(table(9000))
    theta = np.array([5.0, -40.0, 3.0, 100.0, 0.1])
    exact = rows.gradient(theta, OUT).cross()[0].astype(float) / OUT.steps
    np.testing.assert_allclose(exact, rows.slopes(theta, Logistic()).gradient, atol=9000 * 2.0**-20)
    assert bound.predictors.columns == 5


def test_floating_slopes_agree_with_the_exact_sums():
    rows, _ = gradients(table(3000))
    theta = np.array([0.1, 1.0, -0.4, 0.2, 2.0])
    slopes = rows.slopes(theta, Logistic())
    exact = rows.gradient(theta, OUT).cross()[0].astype(float) / OUT.steps
    np.testing.assert_allclose(slopes.gradient, exact, atol=0.02)
    bent = rows.curvature(theta, OUT).cross()[0].astype(float) / OUT.steps**2 / 4
    np.testing.assert_allclose(slopes.curvature, bent, atol=0.02)
    assert slopes.energy <= 3000


def test_a_label_survives_a_row_that_is_shrunk():
    """Of both levels, with and without an intercept, whatever the row's length."""
    for formula in ("y ~ b", "y ~ b - 1"):
        rows, bound = gradients({"b": [10.0], "y": ["yes"]}, formula=formula)
        up, _ = rows.gradient(
            np.zeros(bound.predictors.columns), Lattice(20, bound.predictors.columns)
        ).cross()
        rows, _ = gradients({"b": [10.0], "y": ["no"]}, formula=formula)
        down, _ = rows.gradient(
            np.zeros(bound.predictors.columns), Lattice(20, bound.predictors.columns)
        ).cross()
        assert up.tolist() == [-x for x in down.tolist()]
        assert any(up.tolist())


def test_rows_are_not_shown_and_not_pickled():
    rows, _ = gradients(table(10))
    assert repr(rows) == "<Statistic gradients of a loss, not released>"
    with pytest.raises(PrivacyError):
        pickle.dumps(rows)
    assert math.isclose(float(expit(0)), 0.5)
