"""Rows in a small part of their declared bounds, at an end of them."""

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.mechanisms import Facts
from dpmodels.mechanisms.regression import Scores, column_location
from dpmodels.noise import seeded
from dpmodels.privacy import ZCDP, adjacency
from tests.private_rows import private_regression


def test_the_noise_of_a_variance_counts_that_of_a_mean_off_the_middle():
    """Of 3,000 rows at -1 and 1,000 at 0; the sd of 400 normal draws is off by .18 at 5 sds."""
    rows = {"x": np.repeat([-1.0, 0.0], [3000, 1000]), "y": np.tile([-0.5, 0.5], 2000)}
    plan = Scores().plan(Facts(2, adjacency("replace"), centred=True), ZCDP(1.0))
    book = dp.codebook(x=(-1, 1), y=(-1, 1))
    passes = Scores().measure(private_regression("y ~ x", rows, book), plan)
    ranges = column_location.column_ranges(passes.blocks, passes.scaling)
    draws = [
        column_location.released_powers(passes, ranges, "powers", plan, seeded(seed))
        for seed in range(400)
    ]
    errors = np.std([draw.variance for draw in draws], axis=0)
    np.testing.assert_allclose(draws[0].variance_noise / errors, 1, atol=0.18)
    assert errors[0] > 1.5 * errors[1]


def located(mean, variance, *, hidden, noise):
    scalars = (np.array([value]) for value in (mean, variance, hidden, noise, noise**2))
    return column_location.PowerLocations(*scalars, 1000.0, 1000)


@pytest.mark.parametrize(
    ("shift", "hidden", "spread"),
    [(2.0, True, 0.35), (0.3, True, 2.1), (2.0, False, 4.0)],
    ids=["aside", "about", "seen"],
)
def test_rows_at_one_distance_on_one_side_are_near_each_other(shift, hidden, spread):
    first = located(0.0, 100.0, hidden=True, noise=1.0)
    second = located(shift, 16.0, hidden=hidden, noise=0.1)
    variance = column_location._counted_variances(first, second, np.array([2.1]), np.array([1.4]))
    assert variance == pytest.approx(spread**2)


@pytest.mark.parametrize("times", [10, 50])
def test_bounds_that_end_where_rows_are_cost_little(times):
    """Five fits: each slope of each is identified, and errors are those in narrow bounds."""
    rng = np.random.default_rng(6)
    table = pd.DataFrame(rng.uniform(0, 2, (5000, 3)), columns=["a", "b", "c"])
    table["y"] = table.sum(axis=1) + rng.normal(0, 1, 5000)
    errors = []
    for end in (2, 2 * times):
        book = dp.codebook(a=(0, end), b=(0, end), c=(0, end), y=(-3 * end, 6 * end))
        for seed in range(5):
            with dp.simulation(seed=seed):
                fit = dp.dp_lm("y ~ a + b + c", table, codebook=book, eps=1.0, delta=1e-6)
            assert fit.identified.all()
            errors.append(fit.bse.to_numpy()[1:])
    assert np.median(errors[5:]) < 1.25 * np.median(errors[:5])


def test_the_table_says_up_to_which_size_residuals_count():
    """One percent of the rows has a code at the bound; the others are within 8 of a line."""
    rng = np.random.default_rng(7)
    table = pd.DataFrame({"x": rng.uniform(-1, 1, 5000), "w": rng.uniform(0.5, 1, 5000)})
    table["y"] = 3 * table["x"] + rng.uniform(-8, 8, 5000)
    table.loc[:49, "y"] = 100.0
    book = dp.codebook(x=(-1, 1), w=(0, 1), y=(-100, 100))
    options = {"codebook": book, "eps": 1.0, "delta": 1e-6, "mechanism": "scores"}
    with dp.simulation(seed=3):
        fit = dp.dp_lm("y ~ x", table, **options)
        weighted = dp.dp_lm("y ~ x", table, weights="w", **options)
    assert 5 < fit.linear.residual_limit < 50
    assert np.isnan(weighted.linear.residual_limit)
    note = f"nor for residuals far beyond ±{fit.linear.residual_limit:.0f}, such as codes, which"
    assert note in " ".join(str(fit.summary()).split())
    assert "such as codes" not in str(weighted.summary(notes="all"))
