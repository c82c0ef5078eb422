"""Derivatives by which results carry errors over, held against differences."""

import math
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from differences import derivative

import dpmodels as dp
from dpmodels.inference.links import IDENTITY, LOG, LOGIT
from dpmodels.results.coefficient_model import predicted
from dpmodels.results.derived_table import Terms
from dpmodels.results.marginal_means import Fitted, _effects, _mean, _rate
from dpmodels.results.tabulated import ByLevel, OrdinalResult

BOOK = dp.codebook(y=[0, 1], x=(0, 4), z=(-1, 1), g=["u", "v", "w"])
RNG = np.random.default_rng(7)
ROWS = pd.DataFrame(
    {
        "x": RNG.uniform(0.2, 3.8, 60),
        "z": RNG.uniform(-0.9, 0.9, 60),
        "g": RNG.choice(["u", "v", "w"], 60),
    }
)


@pytest.fixture(scope="module")
def fitted():
    """A fit of squares and products, whose coefficients are replaced."""
    data = ROWS.assign(y=RNG.integers(0, 2, 60))
    with dp.simulation(seed=3):
        fit = dp.dp_glm("y ~ x*z + I(x**2) + g", data, codebook=BOOK, eps=5.0)
    return Fitted(fit.linear, LOGIT, Terms(fit.coder.design, fit.call.names), fit.coder)


def at(model, params, link=LOGIT):
    return model._replace(law=SimpleNamespace(params=np.asarray(params)), link=link)


PARAMS = np.array([-0.6, 0.5, -0.8, -0.1, 0.4, 0.7, 0.3])


def columns(model):
    return model.coder.read(ROWS)


@pytest.mark.parametrize("link", [IDENTITY, LOG, LOGIT], ids=lambda link: link.name)
def test_mean_responses_and_their_derivatives(fitted, link):
    data, size = columns(fitted), len(fitted.terms.names)
    params = PARAMS[:size]
    assert size == 7

    def mean(values):
        return _mean(at(fitted, values, link), data, "g", 1.0)[0]

    value, towards = _mean(at(fitted, params, link), data, "g", 1.0)
    rows = fitted.rows({**data, "g": np.ones(60)})
    assert value == pytest.approx(link.mean(rows @ params).mean())
    assert towards == pytest.approx(derivative(mean, params), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("link", [IDENTITY, LOG, LOGIT], ids=lambda link: link.name)
@pytest.mark.parametrize("name", ["x", "z"])
def test_mean_slopes_and_their_derivatives(fitted, link, name):
    data = columns(fitted)

    def rate(values):
        return _rate(at(fitted, values, link), data, name)[0]

    def response(step):
        rows = fitted.rows({**data, name: data[name] + step})
        return link.mean(rows @ PARAMS).mean()

    value, towards = _rate(at(fitted, PARAMS, link), data, name)
    assert value == pytest.approx((response(1e-5) - response(-1e-5)) / 2e-5, rel=1e-6)
    assert towards == pytest.approx(derivative(rate, PARAMS), rel=1e-5, abs=1e-7)


def test_effects_of_levels_are_differences_from_the_first(fitted):
    model, data = at(fitted, PARAMS), columns(fitted)
    means = [_mean(model, data, "g", code)[0] for code in (0.0, 1.0, 2.0)]
    effects = list(_effects(model, data, "g"))
    assert [effect[1] for effect in effects] == ["v - u", "w - u"]
    assert [effect[2] for effect in effects] == pytest.approx(
        [means[1] - means[0], means[2] - means[0]]
    )
    for effect, code in zip(effects, (1.0, 2.0), strict=True):

        def change(values, code=code):
            compared, base = (_mean(at(fitted, values), data, "g", c)[0] for c in (code, 0.0))
            return compared - base

        assert effect[3] == pytest.approx(derivative(change, PARAMS), rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("family", ["multinomial", "ordinal"])
def test_probabilities_of_levels_and_their_derivatives(family):
    rows = RNG.normal(size=(6, 2))
    params = np.array([0.3, -0.5, -0.4, 0.9]) if family == "ordinal" else np.linspace(-0.5, 0.6, 4)

    def shares(values):
        fit = SimpleNamespace(
            call=SimpleNamespace(family=family),
            classes=("a", "b", "c"),
            linear=SimpleNamespace(params=values),
        )
        return ByLevel._shares(fit, rows)

    probabilities, slopes = shares(params)
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(6))
    by_difference = derivative(lambda values: shares(values)[0], params)
    assert slopes == pytest.approx(by_difference, rel=1e-6, abs=1e-8)


class Law:
    """A law of coefficients with a known covariance."""

    params = np.array([-0.4, 0.7, -1.1])
    root = RNG.normal(size=(3, 3)) * 0.02

    def identifies(self, rows):
        return rows[:, 2] < 9

    def errors(self, rows):
        return np.linalg.norm(rows @ self.root, axis=1)

    def intervals(self, rows, level):
        half = {0.95: 1.959964, 0.5: 0.67449}[level] * self.errors(rows)
        middle = rows @ self.params
        return np.column_stack([middle - half, middle + half])


@pytest.mark.parametrize("link", [IDENTITY, LOG, LOGIT], ids=lambda link: link.name)
def test_errors_of_predictions_are_those_of_the_delta_method(link):
    rows = RNG.normal(size=(8, 3))
    rows[2], rows[3], rows[4, 1] = rows[1], [1, 0, 9.5], math.nan
    offset = RNG.normal(size=8)
    offset[2] = offset[1]
    law = Law()
    table = predicted(law, link, rows, 0.95, offset).to_numpy()
    assert np.isnan(table[[3, 4]]).all()
    assert (table[1] == table[2]).all()
    for at_row in (0, 1, 5, 6, 7):

        def mean(values, at_row=at_row):
            return link.mean(rows[at_row] @ values + offset[at_row])

        assert table[at_row, 0] == pytest.approx(mean(law.params))
        sd = np.linalg.norm(derivative(mean, law.params) @ law.root)
        assert table[at_row, 1] == pytest.approx(sd, rel=1e-6)
        eta = rows[at_row] @ law.params + offset[at_row]
        half = 1.959964 * np.linalg.norm(rows[at_row] @ law.root)
        assert table[at_row, 2:] == pytest.approx(link.mean(np.array([eta - half, eta + half])))


@pytest.mark.parametrize("n_slopes", [0, 1, 4, 7])
@pytest.mark.parametrize("classes", [("a", "b"), ("a", "b", "c", "d")])
def test_slopes_come_before_the_thresholds_between_the_levels(n_slopes, classes):
    between = [f"{low}|{high}" for low, high in pairwise(classes)]
    names = [*(f"x{n}" for n in range(n_slopes)), *between]
    fit = SimpleNamespace(params=pd.Series(np.arange(len(names)), names), classes=classes)
    assert OrdinalResult.slopes.fget(fit).index.tolist() == names[:n_slopes]
    assert OrdinalResult.thresholds.fget(fit).index.tolist() == between
