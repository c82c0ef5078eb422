"""Regressions at the limits of floating point: no root of what rounding made negative."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from matplotlib.figure import Figure

import dpmodels as dp
from dpmodels.errors import NotAvailable
from dpmodels.released import MomentNoise

pytestmark = pytest.mark.kernels

BOOK = dp.codebook(y=(0, 10), x=(-1, 1), z=(-1, 1), far=(1e6, 1e6 + 2))


def rows(count=2_000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, count)
    y = np.clip(5 + x + rng.normal(size=count), 0, 10)
    return {"x": x, "z": x, "y": y, "far": 1e6 + 1 + rng.uniform(-1, 1, count)}


def fitted(formula="y ~ x + z", data=None, **words):
    with dp.simulation(seed=1):
        return dp.dp_lm(formula, data or rows(), codebook=BOOK, **({"eps": 1e9} | words))


@pytest.fixture(scope="module")
def twins():
    """A regression on the same column twice; its noise is less than of any draw below."""
    return fitted(eps=1e12)


def noisy(fit, sd, seed):
    """The same release with noise of a standard deviation on moments of exactly equal columns."""
    rng, release = np.random.default_rng(seed), fit.release
    second, total = release.second.copy(), release.total + sd * rng.normal(size=3)
    second[1], second[:, 1] = second[0], second[:, 0]
    second[1, 1], total[1] = second[0, 0], total[0]
    half = np.triu(sd * rng.normal(size=(3, 3)))
    law = MomentNoise(sd, sd, sd, sd)
    return replace(
        fit,
        release=replace(release, total=total, second=second + half + np.triu(half, 1).T, noise=law),
    )


def everything(fit):
    """All statements about a regression, with warnings as errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit.summary().as_text()
        tables = fit.tidy(), fit.noise(), fit.glance()
        tests = fit.t_test("x + z = 0, x - z = 0, Intercept = 2"), fit.wald_test("x = 0, z = 0")
        fit.wald_test("x = 1, z = x"), fit.plot(ax=Figure().subplots())
        try:
            at = fit.get_prediction({"x": [0.1, -1.0], "z": [0.2, 1.0], "far": [1e6, 1e6 + 1]})
        except NotAvailable:
            at = None
    return *tables, *tests, at


@pytest.mark.expensive
@pytest.mark.parametrize("sd", 10.0 ** np.arange(-18, 1, 3.0))
def test_equal_columns_leave_the_rest_as_it_is(twins, sd):
    plain = smf.ols("y ~ x", pd.DataFrame(rows())).fit()
    for seed in range(3):
        fit = noisy(twins, sd, seed)
        tidy, _, _, sums, _, _ = everything(fit)
        assert not fit.identified[["x", "z"]].any()
        assert np.isinf(tidy["std_error"][1:]).all()
        if sd <= 1e-3:
            assert fit.params["Intercept"] == pytest.approx(plain.params["Intercept"], rel=1e-3)
            assert sums["estimate"].iloc[0] == pytest.approx(plain.params["x"], rel=1e-3)
            errors = np.array([fit.bse["Intercept"], sums["std_error"].iloc[0]])
            is_finite = np.isfinite(errors)
            longer = errors[is_finite] / plain.bse.to_numpy()[is_finite]
            # What is hidden may have slopes of a thousand: noise times that adds to the errors.
            assert (longer > 0.99).all()
            assert (longer < (1.01 if sd < 1e-3 else 1.25)).all()


@pytest.mark.guarding
@pytest.mark.expensive
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("eps", [1e6, 1e9, 1e13])
def test_equal_columns_of_many_rows_and_a_huge_budget(seed, eps):
    with dp.simulation(seed=seed):
        fit = dp.dp_lm("y ~ x + z", rows(3_000, seed), codebook=BOOK, eps=eps)
    everything(fit)
    assert not fit.identified[["x", "z"]].any()


@pytest.mark.parametrize("formula", ["y ~ far + x + z", "y ~ 0 + far + x + z", "y ~ 0 + x + z"])
def test_columns_far_from_their_origin(formula):
    fit = fitted(formula)
    fit = fit if len(fit.params) > 2 else noisy(fit, 1e-9, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit.summary().as_text()
        fit.tidy()
        fit.t_test("x + z = 0")
    assert np.isinf(fit.bse[["x", "z"]]).all()
    alone = fitted("y ~ far + x")
    assert (alone.bse_noise > 0).all()
    assert alone.get_prediction({"far": [1e6], "x": [0.0]})["mean_se"][0] > 0


def test_a_variance_is_no_less_than_the_rounding_of_its_own_computation(twins):
    """Without any noise: reports of floating point numbers stay within their digits."""
    silent = replace(twins, release=replace(twins.release, noise=MomentNoise(0.0, 0.0, 0.0, 0.0)))
    everything(silent)
    smallest = 2.0**-52 * np.abs(silent.params["Intercept"])
    assert silent.bse_noise["Intercept"] > smallest
    assert np.isfinite(silent.strength)
