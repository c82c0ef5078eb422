"""Where the rounds of scores start for products: the covariance of independent factors."""

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design.regression import joint_design
from dpmodels.formula.centring import centred_sides, product_centres
from dpmodels.formula.response import two_sided
from dpmodels.mechanisms import Facts
from dpmodels.mechanisms.regression import Scores, column_location
from dpmodels.mechanisms.regression.product_moments import put_products
from dpmodels.noise import seeded
from dpmodels.privacy import ApproxDP, adjacency
from tests.private_rows import private_regression

BOOK = dp.codebook(x=(0, 20), z=(0, 8), g=["a", "b", "c"], y=(0, 60))
ROWS = 200_000


def coded(design, seed=1):
    """Scaled columns of rows whose variables are independent."""
    rng = np.random.default_rng(seed)
    columns = {"x": rng.normal(14, 2, ROWS).clip(0, 20), "z": rng.gamma(2, 1, ROWS).clip(0, 8)}
    columns |= {"g": rng.choice(3, ROWS, p=[0.6, 0.3, 0.1]) + 0.0, "y": rng.uniform(0, 60, ROWS)}
    out = np.empty((len(design.public.names), ROWS))
    design.public.evaluate(columns, out)
    return (out - design.scaling.centre[:, None]) / design.scaling.scale[:, None]


def started(formula):
    """The covariance that follows from means and variances, and that of the rows."""
    sides = two_sided(formula, BOOK)
    design = joint_design(centred_sides(sides, product_centres(sides)), BOOK)
    blocks, exact = design.public.blocks[:-1], np.cov(coded(design))
    covariance = np.diag(np.diagonal(exact)).copy()
    start, shares = 0, {}
    for block in blocks:
        if block.term == ("g",):
            levels = slice(start, start + len(block.names))
            shares[start] = np.array([0.6, 0.3, 0.1])
            covariance[levels, levels] = exact[levels, levels]
        start += len(block.names)
    put_products(covariance, blocks, design.scaling, coded(design).mean(axis=1), shares)
    return covariance, exact


@pytest.mark.parametrize("formula", ["y ~ x*g + z", "y ~ x*z + g", "y ~ x*z*g"])
def test_independent_factors_have_the_covariance_that_follows_from_their_own(formula):
    covariance, exact = started(formula)
    spread = np.sqrt(np.diagonal(exact))
    difference = ((covariance - exact) / np.outer(spread, spread))[:-1, :-1]
    # Correlations of 200,000 rows have an sd of 0.0022 at most: 6 of them, 1e-6 for all of 60.
    assert np.abs(difference).max() < 0.02
    assert np.linalg.eigvalsh(covariance)[0] > 0


def test_columns_without_products_stay_as_they_are():
    covariance, exact = started("y ~ x + g + z")
    np.testing.assert_array_equal(np.diagonal(covariance), np.diagonal(exact))
    at = [2, 3]
    assert (covariance[np.ix_(at, at)] == np.diag(np.diagonal(exact)[at])).all()
    # A factor that is no term by itself leaves its product alone.
    covariance, exact = started("y ~ x:g")
    np.testing.assert_array_equal(covariance, np.diag(np.diagonal(exact)))


def test_rounds_of_scores_start_with_it():
    """An interaction of two numbers away from 0, without noise: correlations of .2 and more."""
    rng = np.random.default_rng(4)
    table = {"x": rng.uniform(13, 19, 20_000), "z": rng.uniform(0.4, 3.6, 20_000)}
    table["y"] = rng.uniform(0, 60, 20_000)
    plan = Scores().plan(Facts(4, adjacency("replace"), centred=True), ApproxDP(1e9, 1e-6))
    passes = Scores().measure(private_regression("y ~ x * z", table, BOOK), plan)
    columns = column_location.released_columns(passes, plan, seeded(2))
    spread = np.sqrt(np.diag(columns.covariance))
    correlations = (columns.covariance / np.outer(spread, spread))[:3, :3]
    exact = np.corrcoef([table["x"], table["z"], table["x"] * table["z"]])
    assert np.abs(exact[2, :2]).min() > 0.2
    np.testing.assert_allclose(correlations, exact, atol=0.05)
