"""Rows, budgets and refusals that the tests of the verbs on one number share."""

import warnings

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import (
    ArgumentError,
    BudgetError,
    BudgetWarning,
    CodebookError,
    FormulaError,
    FrameError,
    LedgerError,
)
from tests.mines import Mine

BOOK = dp.codebook(y=(-10, 30), z=(0, 1), g=["u", "v", "w"], h=["p", "q"])
MINES = {name: Mine() for name in BOOK}

# Refused by every verb on one number, whatever the rows.
REFUSED = [
    ("income ~ h", {}, CodebookError, "income"),
    ("y ~ income", {}, CodebookError, "income"),
    ("y + z ~ h", {}, FormulaError, "one variable"),
    ("~ y + z", {}, FormulaError, "one variable"),
    ("~ 1", {}, FormulaError, "one variable"),
    ("g ~ h", {}, FormulaError, "category of 3 levels"),
    ("~ g", {}, FormulaError, "category of 3 levels"),
    ("bs(y, knots=[0, 1]) ~ h", {}, FormulaError, "several columns"),
    ("y ~ z", {}, FormulaError, "z"),
    ("y ~", {}, FormulaError, "formula"),
    ("y ~ h", {"adjacency": "swap"}, ArgumentError, "adjacency"),
    ("y ~ h", {"ledger": 3}, ArgumentError, "ledger"),
    ("y ~ h", {"eps": -1.0}, BudgetError, "eps"),
    ("y ~ h", {"eps": 1e-60}, BudgetError, "larger eps"),
    ("y ~ h", {"eps": None}, BudgetError, "eps"),
    ("y ~ h", {"delta": 1.0}, BudgetError, "delta"),
]
FRAMES = {
    "no rows": {"y": [], "h": []},
    "one row": {"y": [3.0], "h": ["p"]},
    "two rows": {"y": [3.0, 7.0], "h": ["p", "q"]},
    "a group of one row": {"y": [3.0] * 400, "h": ["p"] * 399 + ["q"]},
    "an empty group": {"y": np.linspace(0, 5, 400), "h": ["p"] * 400},
    "one value": {"y": [7.0] * 400, "h": ["p", "q"] * 200},
    "beyond the bounds": {"y": [1e300, -1e300, np.inf, -np.inf] * 100, "h": ["p", "q"] * 200},
    "all missing": {"y": [np.nan] * 400, "h": [None] * 400},
    "unlisted levels": {"y": np.linspace(0, 5, 400), "h": ["p", "strange"] * 200},
}


def table(rows=2000, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "y": rng.gamma(2.0, 3.0, rows) - 5,
        "z": rng.random(rows),
        "g": rng.choice(["u", "v", "w"], rows, p=[0.6, 0.3, 0.1]),
        "h": rng.choice(["p", "q"], rows),
    }


def incomplete():
    """Rows and the values of the complete ones by group."""
    data = table()
    y = data["y"].copy()
    y[::7] = np.nan
    h = data["h"].astype(object)
    h[::11] = "strange"
    is_complete = ~np.isnan(y) & (h != "strange")
    return {**data, "y": y, "h": h}, {level: y[is_complete & (h == level)] for level in "pq"}


def refuses(verb, formula, words, error, match):
    ledger = words.get("ledger", dp.Ledger(eps=1000.0, delta=0.5))
    options = {"eps": 1.0, "ledger": ledger, **words}
    with pytest.raises(error, match=match):
        verb(formula, MINES, codebook=BOOK, **options)
    assert not isinstance(ledger, dp.Ledger) or ledger.entries == ()


def refuses_frames_and_budgets(verb):
    with pytest.raises(FrameError):
        verb("y ~ h", {"y": Mine()}, codebook=BOOK, eps=1.0)
    ledger = dp.Ledger(eps=0.5)
    with pytest.raises(LedgerError):
        verb("y ~ h", MINES, codebook=BOOK, eps=1.0, ledger=ledger)
    assert ledger.entries == ()


def every_text(fit):
    summary = fit.summary()
    formats = (summary.as_text, summary.as_html, summary.as_latex, summary.as_markdown)
    return [*(text() for text in formats), repr(fit), fit.tidy().to_csv(), fit.glance().to_csv()]


def is_silent(verb, name, formula, **words):
    """No exception and no warning, whatever the rows and the budget."""
    texts = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", BudgetWarning)
        for eps in (1e-9, 1.0, 1e9):
            fit = verb(formula, FRAMES[name], codebook=BOOK, eps=eps, **words)
            texts.append(every_text(fit)[0])
            assert fit.conf_int() is not None
    return texts


def body(text):
    """The words between the headings and the notes."""
    sections = text.split("----\n")[1:]
    return " ".join(sections).split("====")[0]


def is_private(fit):
    """What is copied is what is printed, and nothing else."""
    import copy
    import pickle

    for again in (pickle.loads(pickle.dumps(fit)), copy.copy(fit), copy.deepcopy(fit)):
        assert str(again.summary()) == str(fit.summary())
    with pytest.raises(AttributeError):
        fit.release = None
