"""Sums of gradients over rows with sampling weights, and how far one row moves them."""

from __future__ import annotations

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design.regression import Weight, joint_design
from dpmodels.formula.response import two_levels, two_sided
from dpmodels.noise.lattice import MAX_BITS, Lattice
from dpmodels.statistics.double_double import Pair
from dpmodels.statistics.gradient import Gradients
from dpmodels.statistics.losses import Logistic, Multinomial, Poisson
from dpmodels.statistics.predictors import Predictors

CAP = 8.0
BOOK = dp.codebook(x=(-1, 1), y=["no", "yes"], c=(0, 9), g=["a", "b", "c"])
RESPONSES = {"y": (Logistic(), 1), "c": (Poisson(9.0, 4.0), 1), "g": (Multinomial(3), 2)}


def rows(size=300, seed=5):
    rng = np.random.default_rng(seed)
    return {
        "x": rng.uniform(-1, 1, size),
        "y": rng.choice(["no", "yes"], size),
        "c": rng.integers(0, 10, size).astype(float),
        "g": rng.choice(list("abc"), size),
        "w": rng.integers(1, 13, size).astype(float),
    }


def gradients(data, response, weight, cap=None):
    """Return the sums of a table, and their lattice."""
    equation = two_sided(f"{response} ~ x", BOOK, most=3, linked=True)
    loss, responses = RESPONSES[response]
    equation = two_levels(equation) if response == "y" else equation
    design = joint_design(equation, BOOK, weights=weight)
    if cap is not None:
        design = design.capped(cap)
    predictors = Predictors(1, True, 0.7, 0.0, 1.0, responses=responses)
    return Gradients((design.bind(data),), predictors, loss, predictors.lattice, count_public=True)


WEIGHT = Weight("w", dp.Numeric(1, 12), sampling=True)


@pytest.mark.parametrize("response", RESPONSES)
@pytest.mark.parametrize("name", ["gradient", "curvature", "squares"])
def test_a_row_of_weight_w_counts_as_w_rows(response, name):
    data = rows()
    weights = np.minimum(data["w"], CAP).astype(int)
    repeated = {key: np.repeat(column, weights) for key, column in data.items()}
    point = np.linspace(-0.7, 0.9, 2 * (3 if response == "g" else 1))
    lattice = Lattice(MAX_BITS, len(point))
    (weighted, _), (plain, _) = (
        getattr(gradients(table, response, *weight), name)(point, lattice).cross()
        for table, weight in ((data, (WEIGHT, CAP)), (repeated, (None,)))
    )
    if name == "squares":  # Of a weight the square counts.
        table = {key: np.repeat(column, weights**2) for key, column in data.items()}
        plain = gradients(table, response, None).squares(point, lattice).cross()[0] / CAP
    scale = float(lattice.steps) ** (1 if name == "gradient" else 2)
    np.testing.assert_allclose(
        np.asarray(weighted, float) / scale, np.asarray(plain, float) / CAP / scale, atol=3e-4
    )


def test_precise_slopes_are_multiplied():
    data = rows()
    weights = np.minimum(data["w"], CAP).astype(int)
    repeated = {key: np.repeat(column, weights) for key, column in data.items()}
    point = np.array([0.3, -0.8])
    for method in ("precise_slopes", "slopes"):
        weighted, plain = gradients(data, "y", WEIGHT, CAP), gradients(repeated, "y", None)
        if method == "slopes":
            first, second = (part.slopes(point, Logistic()) for part in (weighted, plain))
            np.testing.assert_allclose(first.value, second.value / CAP, rtol=1e-12)
        else:
            pair = Pair(point, 0 * point)
            first, second = (part.precise_slopes(pair, Logistic())[0] for part in (weighted, plain))
        np.testing.assert_allclose(first.gradient, second.gradient / CAP, rtol=1e-12)
        np.testing.assert_allclose(first.curvature, second.curvature / CAP, rtol=1e-12)


@pytest.mark.parametrize("weight", [np.nan, 0.0, -3.0, 12.5, np.inf])
def test_a_row_with_an_invalid_weight_does_not_count(weight):
    data = rows(20)
    data["w"][7] = weight
    without = {key: np.delete(column, 7) for key, column in data.items()}
    point, lattice = np.array([0.2, 0.5]), Lattice(MAX_BITS, 2)
    first, second = (
        gradients(table, "y", WEIGHT).gradient(point, lattice).cross()[0]
        for table in (data, without)
    )
    assert first.tolist() == second.tolist()


@pytest.mark.parametrize("response", RESPONSES)
def test_one_row_moves_sums_by_its_share_at_most(response):
    """Brute force over extreme rows: what a row adds is at most its weight's share long."""
    size = 2 * (3 if response == "g" else 1)
    lattice, rng = Lattice(12, size), np.random.default_rng(3)
    for _ in range(40):
        point = rng.normal(scale=4, size=size)
        data = {key: column[:1] for key, column in rows(1, int(rng.integers(1e6))).items()}
        data["x"] = np.array([rng.choice([-1.0, 1.0, 0.3])])
        sums = gradients(data, response, WEIGHT, CAP)
        share = min(float(data["w"][0]), CAP) / CAP
        gradient = np.asarray(sums.gradient(point, lattice).cross()[0], float)
        assert np.linalg.norm(gradient) <= share * lattice.radius
        squares = np.asarray(sums.squares(point, lattice).cross()[0], float)
        assert np.linalg.norm(squares) <= share**2 * lattice.radius**2
        if response != "g":
            curvature = np.asarray(sums.curvature(point, lattice).cross()[0], float)
            assert np.linalg.norm(curvature) <= share * lattice.radius**2
