"""dp_lm with products: numbers are centred inside, and coefficients are those of the formula."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.errors import FrameError
from dpmodels.models.release import result_of, specified

BOOK = dp.codebook(x=(0, 20), z=(0, 8), g=["a", "b", "c"], y=(0, 60))
WORDS = {"codebook": BOOK, "eps": 2.0, "delta": 1e-6}
MECHANISMS = ["moments", "scores", "adassp", "ellipsoid"]


def table(rows, seed=1):
    rng = np.random.default_rng(seed)
    x, z, g = rng.normal(12, 2.5, rows).clip(0, 20), rng.gamma(2, 1, rows), rng.integers(0, 3, rows)
    y = 4 + 1.1 * x + z.clip(0, 8) + np.array([0, 3, -2])[g] + 0.3 * (x - 8) * (g == 1)
    columns = {"x": x, "z": z.clip(0, 8), "g": np.array(list("abc"))[g]}
    return pd.DataFrame(columns | {"y": (y + rng.normal(0, 2, rows)).clip(0, 60)})


def fitted(formula, rows=6_000, seed=3, **words):
    with dp.simulation(seed=seed):
        return dp.dp_lm(formula, table(rows), **{**WORDS, **words})


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_product_has_the_release_of_the_model_centred_by_hand(mechanism):
    fit = fitted("y ~ x*g + z", mechanism=mechanism)
    by_hand = fitted("y ~ I(x - 10)*g + z", mechanism=mechanism)
    np.testing.assert_allclose(fit.release.second, by_hand.release.second, rtol=1e-12)
    at = {name: name.replace("x", "I(x - 10)") for name in fit.params.index if "x" in name}
    for values, by_hand_values in ((fit.params, by_hand.params), (fit.bse, by_hand.bse)):
        np.testing.assert_allclose(values[list(at)], by_hand_values[list(at.values())], rtol=1e-9)
    # At x = 10 the levels differ by what their coefficients by hand say.
    contrast = fit.t_test("g[T.b] + 10 * x:g[T.b] = 0").iloc[0]
    assert contrast["estimate"] == pytest.approx(by_hand.params["g[T.b]"], rel=1e-9)
    assert contrast["std_error"] == pytest.approx(by_hand.bse["g[T.b]"], rel=1e-6)
    rows = pd.DataFrame({"x": [3.0, 17.0], "z": [1.0, 2.0], "g": ["a", "c"]})
    np.testing.assert_allclose(fit.predict(rows), by_hand.predict(rows), rtol=1e-9)


@pytest.mark.parametrize("formula", ["y ~ x*g + z", "y ~ x*z*g", "y ~ 0 + g + x:g", "y ~ g + x:g"])
@pytest.mark.parametrize("vcov", ["iid", "HC"])
def test_without_noise_it_is_least_squares_in_columns_as_written(formula, vcov):
    fit = fitted(formula, rows=2_000, eps=1e9, mechanism="moments", vcov=vcov)
    rows = table(2_000)
    coded = fit.coder(rows)
    x = np.vstack([np.ones((int("0 +" not in formula), len(rows))), coded]).T
    slopes, squares = np.linalg.lstsq(x, rows["y"].to_numpy(), rcond=None)[:2]
    inverse = np.linalg.inv(x.T @ x)
    left = rows["y"].to_numpy() - x @ slopes
    covariance = inverse * squares / (len(rows) - x.shape[1])
    if vcov == "HC":
        meat = (x.T * left**2) @ x
        covariance = inverse @ meat @ inverse * len(rows) / (len(rows) - x.shape[1])
    errors = np.sqrt(np.diagonal(covariance))
    # At this budget the noise in a coefficient is below a hundredth of its standard error.
    assert (np.abs(fit.params - slopes) / errors).max() < 0.05
    difference = (fit.cov_params().to_numpy() - covariance) / np.outer(errors, errors)
    # Squares of the longest scores are cut.
    assert np.abs(difference).max() < (0.15 if vcov == "HC" else 0.002)


def test_what_follows_a_fit_is_in_columns_as_written(tmp_path):
    fit, by_hand = fitted("y ~ x*g + z"), fitted("y ~ I(x - 10)*g + z")
    for words in ({"at": {"x": 10.0}}, {"at": {"x": 14.0}}):
        pd.testing.assert_frame_equal(
            fit.emmeans("g", **words).table, by_hand.emmeans("g", **words).table, rtol=1e-6
        )
    sizes = fit.ridge_path([0.0]).at(0.0)
    np.testing.assert_allclose(sizes, fit.params, rtol=1e-4, atol=1e-3)
    assert fit.linear.widths.tolist() == [1, 1, 20, 20, 20, 8]
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    assert str(again.summary()) == str(fit.summary())
    assert again.release.centres == (("x", 10.0),)


def test_a_release_of_columns_as_written_is_still_read_as_such():
    formula = "y ~ x*g + z"
    fit = fitted(formula, rows=2_000, mechanism="moments")
    # Releases of earlier versions have no centres: their moments are those of the written columns.
    older = replace(fit.release, centres=None)
    again = result_of(fit.request, specified(fit.request, older), older, "", "")
    assert again.call.centres is None
    assert again.linear.products is None
    assert again.call.upper[-2:].tolist() == [8, 60]
    assert again.call.upper[:5].tolist() == [1, 1, 20, 20, 20]
    for strange in ((("x", 25.0),), (("z", 1.0),), (("y", 1.0),)):
        release = replace(fit.release, centres=strange)
        with pytest.raises(FrameError, match=r"release\.centres"):
            result_of(fit.request, specified(fit.request, release), release, "", "")


def test_a_formula_without_products_has_no_centres():
    assert fitted("y ~ x + g + z", rows=500).release.centres is None
    assert fitted("y ~ x:g", rows=500).release.centres is None
