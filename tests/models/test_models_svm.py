"""dp_svm: margins and labels of public rows, and what it refuses."""

import pickle
import warnings

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError, FormulaError, LedgerError, NotAvailable
from dpmodels.models.svm import dp_svm
from dpmodels.privacy import ZCDP
from dpmodels.results.classifiers import SVMResult
from tests.mines import Mine

BOOK = dp.codebook(x=(-1, 1), z=(0, 4), label=["left", "right"], t=["p", "q", "r"])
BUDGETS = ({"eps": 1.0}, {"eps": 1.0, "delta": 1e-6}, {"budget": ZCDP(0.5)})


def table(rows=4000, seed=0):
    rng = np.random.default_rng(seed)
    x, z = rng.uniform(-1, 1, rows), rng.uniform(0, 4, rows)
    right = 2 * x - z + 2 + 0.3 * rng.normal(size=rows) > 0
    return {"x": x, "z": z, "label": np.where(right, "right", "left"), "t": ["p"] * rows}


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("mechanism", ["auto", "objective", "output"])
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_it_classifies_public_rows(budget, mechanism, adjacency):
    with dp.simulation(seed=2):
        fit = dp_svm(
            "label ~ x + z",
            table(),
            codebook=BOOK,
            mechanism=mechanism,
            adjacency=adjacency,
            **budget,
        )
    public = table(seed=9)
    # Objective perturbation is as good as the rows allow; output noise of length 1 is not.
    fraction = 0.9 if mechanism != "output" else 0.75
    assert (fit.predict(public) == public["label"]).mean() > fraction
    margin = fit.decision_function({"x": [0.5, np.nan], "z": [1.0, 1.0]})
    p = fit.params
    assert margin[0] == pytest.approx(p["Intercept"] + 0.5 * p["x"] + p["z"])
    assert fit.predict({"x": [0.9, np.nan], "z": [0.0, 1.0]}).tolist() == ["right", None]
    assert fit.classes == ("left", "right")


def test_a_huge_budget_gives_the_penalised_minimum():
    from scipy.optimize import minimize

    data = table(800)
    fit = dp_svm("label ~ x + z", data, codebook=BOOK, budget=ZCDP(1e9), ridge=4.0)
    x = np.vstack([np.full(800, 0.5), data["x"] / np.sqrt(2), (data["z"] / 2 - 1) / np.sqrt(2)])
    rows = x / np.sqrt(1.25) * np.where(data["label"] == "right", 1, -1)

    def objective(theta):
        m = theta @ rows
        middle = (1.5 - m) ** 2 / 2
        loss = np.where(m > 1.5, 0, np.where(m < 0.5, 1 - m, middle))
        return loss.sum() + 2 * theta @ theta

    best = minimize(objective, np.zeros(3), tol=1e-12).x
    np.testing.assert_allclose(fit.release.coefficients, best, atol=1e-3)


ODD = (
    {"label": ["left"] * 20},
    {"label": ["else"] * 20},
    {"x": [np.nan] * 20},
    {"x": [0.3] * 20, "z": [4.0] * 20},
    {"x": [1e300, -1e300] * 10},
)


@pytest.mark.parametrize("case", range(len(ODD)))
@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_odd_rows_pass_in_silence(case, mechanism):
    plain = {"x": [-0.5, 0.5] * 10, "z": [1.0] * 20, "label": ["left", "right"] * 10}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for at, formula in enumerate(("label ~ x + z", "label ~ 1", "label ~ x - 1")):
            words = {"mechanism": mechanism, **BUDGETS[(at + case) % 3]}
            fit = dp_svm(formula, plain | ODD[case], codebook=BOOK, **words)
            assert np.isfinite(fit.params).all()
        for text in (fit.summary().as_text(), fit.summary().as_latex()):
            assert "support vector machine" in text


def test_refusals_come_before_a_row_is_read():
    rows = {name: Mine() for name in BOOK}
    with pytest.raises(FormulaError, match="two levels"):
        dp_svm("x ~ z", rows, codebook=BOOK, eps=1.0)
    with pytest.raises(FormulaError, match="levels"):
        dp_svm("t ~ z", rows, codebook=BOOK, eps=1.0)
    for words in ({"width": 0.0}, {"ridge": -1.0}, {"mechanism": "scores"}, {"scale": "sd"}):
        with pytest.raises(ArgumentError):
            dp_svm("label ~ x", rows, codebook=BOOK, eps=1.0, **words)
    with pytest.raises(LedgerError):
        dp_svm("label ~ x", rows, codebook=BOOK, eps=1.0, ledger=dp.Ledger(eps=0.5))


def test_what_it_does_not_tell():
    fit = dp_svm("label ~ x", table(100), codebook=BOOK, eps=1.0)
    for name in ("score", "fittedvalues", "resid"):
        with pytest.raises(NotAvailable):
            getattr(fit, name)
    for name in ("conf_int", "noise_int"):
        with pytest.raises(NotAvailable, match="dp_glm"):
            getattr(fit, name)()
    assert str(pickle.loads(pickle.dumps(fit)).summary()) == str(fit.summary())
    with pytest.raises(NotAvailable):
        dp_svm("label ~ 1", table(100), codebook=BOOK, eps=1.0).predict({"x": [0.1]})
    assert len(fit.tidy()) == 2
    assert fit.glance()["mechanism"].item() == "objective"
    assert "SVMResult" in repr(fit)


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_what_is_read_back_prints_and_classifies_the_same(mechanism, tmp_path):
    data = table(500)
    fit = dp_svm("label ~ x + z", data, codebook=BOOK, eps=1.0, mechanism=mechanism)
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    assert isinstance(again, SVMResult)
    assert str(again.summary()) == str(fit.summary())
    assert (again.predict(data) == fit.predict(data)).all()


@pytest.mark.guarding
@pytest.mark.parametrize(
    "budget", [{"eps": 1e-9}, {"eps": 1e-9, "delta": 1e-6}, {"eps": 1e9}, {"budget": ZCDP(1e9)}]
)
@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_any_budget_passes_or_is_refused(budget, mechanism):
    words = {"mechanism": mechanism, **budget}
    for rows in (1, 100):
        try:
            fit = dp_svm("label ~ x + z", table(rows), codebook=BOOK, **words)
        except BudgetError as error:
            assert "larger" in str(error)  # noqa: PT017
            continue
        assert np.isfinite(fit.params).all()
        assert "Coefficients" in str(fit.summary())
