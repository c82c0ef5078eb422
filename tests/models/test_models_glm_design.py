"""Generalised linear models under a survey design: R's values, steps, strata, reports."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq

import dpmodels as dp
from dpmodels.errors import NotAvailable
from dpmodels.postprocess.unit_scores import _bend_of_rates, first_point
from dpmodels.released import MomentNoise

FOLDER = Path(__file__).parent / "design_reference"
ROWS = pd.read_csv(FOLDER / "table.csv").astype({"z": str})
STORED = json.loads((FOLDER / "survey.json").read_text())
BOOK = dp.codebook(
    x=(0, 20),
    z=["0", "1"],
    visits=(0, 9),
    group=["a", "b", "c"],
    stratum=["north", "south", "east", "west"],
)
NAMES = ["Intercept", "x", "group[T.b]", "group[T.c]"]
WEIGHTS = {"weights": "w", "bounds": (1, 50), "weights_are": "design"}
SIZES = {"north": 12, "south": 9, "east": 40, "west": 8}
DESIGNS = {
    "weights": dp.design(**WEIGHTS),
    "strata": dp.design(strata="stratum", **WEIGHTS),
    "psus": dp.design(psu="psu", **WEIGHTS),
    "both": dp.design(psu="psu", strata="stratum", **WEIGHTS),
    "finite": dp.design(psu="psu", strata="stratum", fpc=SIZES, **WEIGHTS),
}
HUGE = {"codebook": BOOK, "budget": dp.ZCDP(1e30)}


def covariance(stored):
    """Return the covariance of stored coefficients."""
    size = len(stored["estimate"])
    return np.reshape(stored["covariance"], (size, size))


def estimated(fit):
    """Return the estimate and its errors in R's order, also where they are too large to print.

    The table is small: an error of the linear predictor of .6 is not told apart from a wrong
    curvature, and not reported.
    """
    matrix, order = fit.linear.matrix, [fit.call.names.index(name) for name in NAMES]
    errors = np.linalg.norm(matrix @ fit.sandwich.sampling_root, axis=1)
    return (matrix @ fit.sandwich.estimate)[order], errors[order]


@pytest.mark.expensive
@pytest.mark.parametrize("kind", DESIGNS)
@pytest.mark.parametrize("mechanism", ["objective", "gradients"])
def test_a_huge_budget_gives_r_svyglm_of_two_levels(kind, mechanism):
    """With strata and populations."""
    stored = STORED[kind]["binomial"]
    words = {"mechanism": mechanism, "design": DESIGNS[kind]}
    fit = dp.dp_glm("z ~ x + group", ROWS, **words, **HUGE)
    estimate, errors = estimated(fit)
    np.testing.assert_allclose(estimate, stored["estimate"], rtol=0, atol=1e-9)
    assert errors == pytest.approx(np.sqrt(np.diag(covariance(stored))), rel=1e-7)


@pytest.mark.expensive
@pytest.mark.parametrize("kind", DESIGNS)
@pytest.mark.parametrize("mechanism", ["scores", "gradients"])
def test_a_huge_budget_gives_r_svyglm_of_counts(kind, mechanism):
    """Errors too: the curvature is that of scores on both sides of the estimate."""
    stored = STORED[kind]["poisson"]
    words = {"family": "poisson", "mechanism": mechanism, "design": DESIGNS[kind]}
    fit = dp.dp_glm("visits ~ x + group", ROWS, **words, **HUGE)
    estimate, errors = estimated(fit)
    np.testing.assert_allclose(estimate, stored["estimate"], rtol=0, atol=1e-10)
    assert errors == pytest.approx(np.sqrt(np.diag(covariance(stored))), rel=1e-7)


def simulated(size=1_500, seed=1):
    """Return rows whose weights depend on the response."""
    rng = np.random.default_rng(seed)
    x, stratum = rng.uniform(0, 20, size), rng.choice(BOOK["stratum"].levels, size)
    w = np.exp(rng.normal(1, 0.7, size)).clip(1, 50)
    chance = 1 / (1 + np.exp(1 - 0.1 * x + 0.3 * np.log(w)))
    z = np.where(rng.random(size) < chance, "1", "0")
    return pd.DataFrame({"x": x, "z": z, "w": w, "stratum": stratum})


@pytest.mark.expensive
def test_the_step_is_printed_by_coefficient():
    words = {"codebook": BOOK, "design": DESIGNS["strata"], "eps": 3.0, "delta": 1e-6}
    with dp.simulation(seed=2):
        fit = dp.dp_glm("z ~ x", simulated(), **words)
    assert fit.release.units.scores.factors
    assert list(fit.design.columns) == ["cap", "shift", "shift_sd"]
    assert list(fit.design.index) == ["Intercept", "x"]
    assert (fit.design["shift_sd"] <= fit.bse_noise * 1.001).all()
    text = str(fit.summary(notes="all"))
    assert "One step from weights capped at" in text
    assert "scores of units (linearised" in text
    assert "are capped: results are" not in text
    assert "Intervals assume that the longest scores" in " ".join(text.split())


@pytest.mark.expensive
def test_what_has_no_step_describes_capped_weights_and_says_so():
    words = {"codebook": BOOK, "design": DESIGNS["weights"], "eps": 3.0, "delta": 1e-6}
    with dp.simulation(seed=2):
        fit = dp.dp_glm("z ~ x", simulated(), inference=False, **words)
    assert fit.release.meat is None
    assert "results are those of capped weights" in " ".join(str(fit.summary()).split())
    with pytest.raises(NotAvailable, match="inference=True"):
        _ = fit.design


def test_a_fit_without_a_design_has_none():
    rows = {"x": [1.0, 2.0] * 50, "z": ["0", "1"] * 50}
    fit = dp.dp_glm("z ~ x", rows, codebook=BOOK, eps=1.0, delta=1e-6)
    with pytest.raises(NotAvailable, match="no survey design"):
        _ = fit.design


def rates_at(budget):
    """Return a log-linear fit under a design."""
    words = {"family": "poisson", "mechanism": "scores", "design": DESIGNS["weights"]}
    with dp.simulation(seed=3):
        return dp.dp_glm("visits ~ x", ROWS, **words, codebook=BOOK, budget=budget)


@pytest.mark.expensive
def test_a_step_of_rates_starts_where_the_curvature_stands():
    """The last step before it is taken: a step from there has no gradient but that of scores."""
    release = rates_at(dp.ZCDP(1e30)).release
    assert not release.gradient.any()
    assert first_point(release) == pytest.approx(release.coefficients, abs=1e-12)


@pytest.mark.expensive
def test_a_step_of_rates_may_be_too_short_by_the_fall_of_the_curvature():
    """Of an intercept alone the bound is attained: the root of a step by -n is log(1 - n)."""
    release = rates_at(dp.ZCDP(1e30)).release
    silent = MomentNoise(np.nan, np.nan, 0.0, 0.0)
    release = replace(release, curvature=replace(release.curvature, bread_noise=silent))
    bread, direction = release.curvature.bread, np.array([1.0, -0.4])
    size = np.sqrt(np.trace(bread) / (direction @ bread @ direction))
    for n in (0.1, 0.5, 0.8):
        root = brentq(lambda t, n=n: np.expm1(t) + n, -5.0, 0.0)
        error = _bend_of_rates(release, bread @ direction * size * n)
        assert error == pytest.approx((abs(root) - n) / n, rel=1e-6)
    assert _bend_of_rates(release, 0 * direction) < 1e-5
    hidden = replace(release, curvature=replace(release.curvature, bread=-bread))
    assert _bend_of_rates(hidden, bread @ direction) > 1
    assert _bend_of_rates(replace(release, clip=None), bread @ direction) == 0.0


@pytest.mark.parametrize("response", ["count", "y"])
def test_a_table_says_that_rows_beyond_the_released_ball_were_left_out(response):
    rng = np.random.default_rng(4)
    x = np.minimum(np.exp(rng.normal(size=4_000)), 80)
    rows = pd.DataFrame({"x": x, "w": rng.integers(1, 20, 4_000)})
    rows["count"] = np.minimum(rng.poisson(np.exp(0.1 * np.minimum(x, 10))), 15)
    rows["y"] = np.where(rng.random(4_000) < 1 / (1 + np.exp(-x / 4)), "1", "0")
    book = dp.codebook(x=(0, 80), count=(0, 15), y=["0", "1"])
    options = {"codebook": book, "design": dp.design(**WEIGHTS), "eps": 1.0, "delta": 1e-6}
    family = "poisson" if response == "count" else "binomial"
    with dp.simulation(seed=4):
        fit = dp.dp_glm(f"{response} ~ x", rows, family=family, **options)
    assert fit.release.ball.shortened_sd > 0
    printed = " ".join(fit.summary().as_text().split())
    assert "Rows farther than the row norm from a released centre were left out" in printed
