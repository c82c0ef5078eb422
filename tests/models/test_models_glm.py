"""dp_glm: what it refuses, and what no row can make it do or tell."""

import contextlib
import io
import logging
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from glm_cases import BOOK, PURE, everything, fit, table

import dpmodels as dp
from dpmodels.errors import (
    ArgumentError,
    BudgetError,
    BudgetWarning,
    CodebookError,
    FormulaError,
    FrameError,
    LedgerError,
    NotAvailable,
)
from dpmodels.mechanisms.regression import COEFFICIENTS, NoisyGradients, Objective
from dpmodels.models.glm import dp_glm
from dpmodels.privacy import ZCDP
from tests.mines import Mine, TouchedError

MINES = {name: Mine() for name in BOOK}
BUDGETS = (PURE, {"eps": 1.0, "delta": 1e-6}, {"budget": ZCDP(0.1)})


# ---- what is refused, before a row is read ------------------------------------------


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("formula", "words", "error", "match"),
    [
        ("income ~ a", {}, CodebookError, "income"),
        ("y ~ income", {}, CodebookError, "income"),
        ("~ a", {}, FormulaError, "response"),
        ("b ~ a", {}, FormulaError, "two levels"),
        ("t ~ a", {}, FormulaError, "levels"),
        ("y ~ a", {"family": "gaussian"}, ArgumentError, "family"),
        ("y ~ a", {"family": None}, ArgumentError, "family"),
        ("y ~ a", {"family": "logit"}, ArgumentError, "family"),
        ("y ~ a", {"family": "Binomial"}, ArgumentError, "family"),
        ("y ~ a", {"family": ["binomial"]}, ArgumentError, "family"),
        ("y ~ a", {"family": "poisson", "delta": 1e-6}, FormulaError, "from 0 up"),
        ("a ~ b", {"family": "poisson", "delta": 1e-6}, FormulaError, "from 0 up"),
        ("c ~ b", {"family": "poisson"}, BudgetError, "delta"),
        ("c ~ b", {"family": "poisson", "mechanism": "objective"}, ArgumentError, "gradients"),
        ("c ~ b", {"family": "poisson", "delta": 1e-6, "clip": -1}, ArgumentError, "clip"),
        ("c ~ b", {"family": "poisson", "delta": 1e-6, "clip": "x"}, ArgumentError, "clip"),
        ("y ~ a", {"clip": 2.0}, ArgumentError, "clip"),
        ("y ~ a", {"scale": "sd"}, ArgumentError, "scale"),
        ("y ~ a", {"row_norm": -1.0}, ArgumentError, "row_norm"),
        ("y ~ a", {"row_norm": "unit"}, ArgumentError, "row_norm"),
        ("y ~ a", {"mechanism": "gauss"}, ArgumentError, "mechanism"),
        ("y ~ a", {"mechanism": Objective}, ArgumentError, "instance"),
        ("y ~ a", {"inference": "yes"}, ArgumentError, "inference"),
        ("y ~ a", {"mechanism": "gradients"}, BudgetError, "delta"),
        ("y ~ a", {"ledger": 3}, ArgumentError, "ledger"),
        ("y ~ a", {"adjacency": "swap"}, ArgumentError, "adjacency"),
        ("y ~ a", {"eps": -1.0}, BudgetError, "eps"),
    ],
)
def test_refusals_come_before_a_row_is_read(formula, words, error, match):
    with pytest.raises(error, match=match):
        fit(formula, MINES, **words)


@pytest.mark.product
def test_the_ledger_refuses_before_a_row_is_read():
    ledger = dp.Ledger(eps=0.5)
    with pytest.raises(LedgerError):
        fit(data=MINES, ledger=ledger)
    fit(ledger=dp.Ledger(eps=1.0))


def test_rows_that_can_be_read_once_are_refused():
    with pytest.raises(FrameError, match="several times"):
        fit(data=iter([pd.DataFrame(table(5))]))


# ---- no row makes an exception or a warning ------------------------------------------

SEPARATED = {"a": [-0.5, -0.2, 0.3, 0.6] * 5, "y": ["no", "no", "yes", "yes"] * 5}
PLAIN = {"a": [0.5] * 20, "b": [2.0] * 20, "g": ["u"] * 20, "y": ["yes"] * 20, "c": [3.0] * 20}
ODD = [
    {},
    SEPARATED,
    {"y": ["no"] * 20},
    {"y": ["unknown"] * 20},
    {"a": [np.nan] * 20},
    {"a": [1e300, -1e300] * 10, "b": [np.inf, -np.inf] * 10},
    {"g": ["u", "v", "w", "x"] * 5, "y": ["yes", "no"] * 10},
    {"c": [1e9, -4.0] * 10},
    {"b": [5.0, 10.0] * 10, "a": [0.0, 1.0] * 10, "y": ["yes", "no"] * 10},
    {"y": ["yes", "no", None, "unknown"] * 5, "c": [np.nan, np.inf] * 10},
]


FORMULAS = ("y ~ a + b + g", "y ~ 1", "y ~ a - 1")


@pytest.mark.parametrize("case", range(len(ODD)))
@pytest.mark.parametrize("mechanism", list(COEFFICIENTS))
def test_odd_rows_pass_in_silence(case, mechanism):
    """Every table by every mechanism; formulas, budgets and neighbours take turns."""
    data = PLAIN | ODD[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", BudgetWarning)
        for at, formula in enumerate(FORMULAS):
            budget = BUDGETS[(at + case) % 3]
            adjacency = ("replace", "add-remove")[(at + case // 3) % 2]
            mechanism_used = mechanism
            if mechanism == "gradients":
                mechanism_used = NoisyGradients(steps=2 + at)
                budget = {"budget": ZCDP(0.1)} if budget is PURE else budget
                words = {"family": "poisson", "adjacency": adjacency, **budget}
                poisson = dp_glm(formula.replace("y", "c"), data, codebook=BOOK, **words)
                assert np.isfinite(poisson.params).all()
            words = {"mechanism": mechanism_used, "adjacency": adjacency, **budget}
            result = dp_glm(formula, data, codebook=BOOK, **words)
            assert np.isfinite(result.params).all()
        everything(result)


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_rows_pass_in_silence(rows):
    data = {name: values[:rows] for name, values in table().items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", BudgetWarning)
        assert np.isfinite(fit(data=data).params).all()


@pytest.mark.guarding
@pytest.mark.expensive
@pytest.mark.parametrize("eps", [1e-9, 1e-6, 1e6, 1e9])
@pytest.mark.parametrize("options", [{}, {"delta": 1e-6}, {"inference": False}])
@pytest.mark.parametrize("mechanism", list(COEFFICIENTS))
def test_any_budget_passes_or_is_refused_before_a_row_is_read(eps, options, mechanism):
    words = {"eps": eps, "mechanism": mechanism, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", BudgetWarning)
        try:
            fit(data=MINES, **words)
        except BudgetError as error:
            assert "larger" in str(error) or "delta" in str(error)  # noqa: PT017
        except TouchedError:
            result = fit(data=table(50), **words)
            assert np.isfinite(result.params).all()
            str(result.summary())


# ---- what it tells -------------------------------------------------------------------


@pytest.mark.product
def test_a_rare_cell_is_told_nowhere():
    data = table(60)
    data["a"][3] = 0.731415926
    data["y"] = data["y"].astype(object)
    data["y"][5] = "quokka"
    out, log = io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            texts = everything(fit(data=data)) + everything(fit(data=data, mechanism="output"))
    finally:
        logging.getLogger().removeHandler(handler)
    for trace in ("73141", "quokka"):
        assert trace not in "".join([*texts, out.getvalue(), log.getvalue()])


def test_what_would_tell_rows_is_refused_and_the_rest_is_pickled():
    result = fit()
    for name in ("fittedvalues", "resid", "llf", "score"):
        with pytest.raises(NotAvailable):
            getattr(result, name)
    assert str(pickle.loads(pickle.dumps(result)).summary()) == str(result.summary())


@pytest.mark.expensive
def test_no_release_repeats_and_a_simulation_says_so():
    data = table()
    assert (fit(data=data).params != fit(data=data).params).any()
    with dp.simulation(seed=3):
        first = fit(data=data)
    with dp.simulation(seed=3):
        again = fit(data=data)
    assert first.params.equals(again.params)
    assert "NOT PRIVATE" in str(first.summary())
    assert "NOT PRIVATE" not in str(fit(data=data).summary())


# ---- what it finds -------------------------------------------------------------------


def test_a_logit_of_a_count_names_the_family_of_counts():
    book = dp.codebook(visits=(0, 20), age=(18, 90))
    with pytest.raises(FormulaError, match='write family="poisson" for a count'):
        dp.dp_glm("visits ~ age", {"visits": [1], "age": [20]}, codebook=book, eps=1.0)


def test_a_weak_direction_costs_the_numbers_on_it_alone():
    """Of 5,000 rows with numbers correlated by .98 noise hides the difference, not the others."""
    noise, reported = np.random.default_rng(3), []
    book = dp.codebook(a=(-5, 5), b=(-5, 5), c=(-5, 5), g=["u", "v"], y=dp.Boolean())
    for seed in range(6):
        a = noise.normal(size=5000)
        rows = {
            "a": a,
            "b": 0.98 * a + np.sqrt(1 - 0.98**2) * noise.normal(size=5000),
            "c": noise.normal(size=5000),
            "g": noise.choice(["u", "v"], size=5000),
        }
        odds = 0.6 * rows["a"] - 0.4 * rows["b"] + 0.5 * rows["c"] + 0.3 * (rows["g"] == "v")
        rows["y"] = noise.random(5000) < 1 / (1 + np.exp(-odds))
        with dp.simulation(seed=seed):
            result = dp_glm("y ~ a + b + c + g", rows, codebook=book, eps=1.0, delta=1e-6)
        reported.append(result.identified)
    share = pd.concat(reported, axis=1).mean(axis=1)
    assert share["c"] >= 0.8
    assert share["g[T.v]"] >= 0.8
    assert share["a"] < share["c"]
