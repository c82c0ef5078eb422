"""Every argument error is typed, names the argument and the fix, and costs nothing."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from contract_cases import BOOK, FORMULA, Case, mined_stream, minefield
from verb_entry import Refusal, bad

import dpmodels as dp
from dpmodels.errors import (
    ArgumentError,
    BudgetError,
    CodebookError,
    DPModelsError,
    FormulaError,
    FrameError,
    UnknownVariable,
)

# One of these words opens what to do instead.
FIXES = (
    *("write", "expected", "give", "declare", "rename", "name ", "check", "list ", "use "),
    *(
        "for example",
        "the functions are",
        "subtract",
        "non-empty",
        "compare it",
        "count its",
        "goes with",
        "or an instance",
    ),
)
GOOD = {"formula": FORMULA, "codebook": BOOK, "eps": 1.0, "delta": 1e-6, "mechanism": "gauss"}
NAN, INF = float("nan"), float("inf")

BAD: list[Refusal] = [
    *bad("eps", BudgetError, 0.0, -1, NAN, INF, 1e300, "1", True, 1j, None, [1.0]),
    *bad("delta", BudgetError, 0.0, -1e-9, 1.0, 1.5, NAN, INF, "0", None),
    ("budget", {"budget": dp.ZCDP(1.0)}, BudgetError),
    ("budget", {"eps": None, "delta": 0.0, "budget": 0.5}, BudgetError),
    ("delta", {"eps": None, "budget": dp.ZCDP(1.0)}, BudgetError),
    ("delta", {"eps": None, "delta": 0.0, "budget": dp.PureDP(1.0)}, BudgetError),
    ("eps", {"eps": None, "delta": 0.0}, BudgetError),
    *bad("ncomp", ArgumentError, 0, -1, 6, 2.5, 2.0, NAN, "2", True, [1]),
    *bad("mechanism", ArgumentError, "gaus", "", "Gauss", None, 3, dp.mechanisms.Gauss),
    *bad("adjacency", ArgumentError, "add", "", "Replace", 1, ["replace"]),
    *bad("person", ArgumentError, "", 3, ["id"]),
    *bad("rows", ArgumentError, 0, -1, 1.5, True, "all", "mean"),
    *bad("subset", ArgumentError, "", 3),
    *bad("subset", FormulaError, "age", "nowhere > 1", "age > age.mean()"),
    *bad("scale", ArgumentError, "std", "", True, 1.0, ["sd"], np.ones(2), np.array("sd")),
    *bad("center", ArgumentError, "yes", None, 1, 0.0, np.zeros(5)),
    *bad("row_norm", ArgumentError, 0, -1.0, NAN, INF, "1", True, 1e-300, -(10**400), [1.0]),
    *bad("codebook", CodebookError, None, {"age": (0, 100)}, "cb.json", dp.codebook),
    ("'wage'", {"codebook": dp.codebook(age=(0, 100))}, UnknownVariable),
    ("'age'", {"codebook": dp.codebook()}, UnknownVariable),
    ("'height'", {"formula": "~ age + height"}, UnknownVariable),
    *bad("formula", FormulaError, "", "~", "~ 1", "age ~ wage", "~ age +", None, 3, ["age"]),
    *bad("formula", FormulaError, "~ __import__('os')", "~ mean(age)"),
    ("log(wage)", {"formula": "~ log(wage)"}, FormulaError),
    ("center", {"formula": "~ center(age)"}, FormulaError),
    ("row_norm", {"formula": "~ I(age ** 9) : I(wage ** 20 * 9e60)", "scale": None}, ArgumentError),
]

BAD_CODEBOOKS: list[tuple[str, dict[str, Any]]] = [
    ("age", {"age": (100, 0)}),
    ("age", {"age": (5, 5)}),
    ("age", {"age": (0, INF)}),
    ("age", {"age": (NAN, 1)}),
    ("age", {"age": (0, "100")}),
    ("age", {"age": (False, True)}),
    ("age", {"age": (0, 1, 2)}),
    ("age", {"age": 100}),
    ("age", {"age": None}),
    ("sex", {"sex": ["F"]}),
    ("sex", {"sex": []}),
    ("sex", {"sex": ["F", "F"]}),
    ("sex", {"sex": ["F", None]}),
    ("sex", {"sex": "FM"}),
    ("name", {" ": (0, 1)}),
]

# Tables, by what the message has to name.
TWICE = pd.DataFrame(np.zeros((2, 5)), columns=["age", "wage", "sex", "region", "age"])
BAD_DATA: list[tuple[str, Any]] = [
    ("'region'", minefield(("age", "wage", "sex"))),
    ("'age'", minefield(("Age", "wage", "sex", "region"))),
    ("'region'", mined_stream(("age", "wage", "sex"))),
    ("'age'", TWICE),
    ("data", None),
    ("data", 3),
    ("data", b"rows"),
    ("iterable", [1, 2]),
    ("list", []),
    ("array", np.zeros((3, 4))),
    ("Series", pd.Series([1.0])),
    ("'wage'", {"age": [1], "wage": [1, 2], "sex": ["F"], "region": ["n"]}),
    ("'wage'", {"age": [1], "wage": "1", "sex": ["F"], "region": ["n"]}),
    ("rows.txt", "rows.txt"),
    ("nowhere.csv", Path("nowhere.csv")),
    (".", Path()),
]


def the_error_is_helpful(error: DPModelsError, argument: str) -> None:
    text = str(error)
    assert argument in text, f"{argument} is not named: {text}"
    assert any(fix in text.lower() for fix in FIXES), f"what to write is not said: {text}"
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None


def a_bad_call_is_refused_for_free(
    argument: str, changes: dict[str, Any], kind: type[DPModelsError]
) -> None:
    words = GOOD | {"data": minefield()} | changes
    formula, data = words.pop("formula"), words.pop("data")
    ledger = dp.Ledger(10, 1e-5)
    with pytest.raises(kind) as raised:
        dp.dp_pca(formula, data, ledger=ledger, **words)
    the_error_is_helpful(raised.value, argument)
    assert ledger.entries == (), "a call that is refused was charged"


def a_bad_codebook_is_refused(variable: str, declared: dict[str, Any]) -> None:
    with pytest.raises(CodebookError) as raised:
        dp.codebook(declared)
    the_error_is_helpful(raised.value, variable)


def bad_data_are_refused_for_free(what: str, data: Any) -> None:
    a_bad_call_is_refused_for_free(what, {"data": data}, FrameError)


# What every verb refuses; what each verb refuses besides stands in the table of verbs.
OF_ALL_VERBS = [
    *bad("eps", BudgetError, 0.0, NAN, "1", None),
    *bad("delta", BudgetError, 1.0, -1e-9),
    ("budget", {"budget": dp.ZCDP(1.0)}, BudgetError),
    *bad("adjacency", ArgumentError, "add", 1),
    *bad("rows", ArgumentError, 0, "mean"),
    *bad("subset", FormulaError, "nowhere > 1"),
    *bad("ledger", ArgumentError, 3, dp.Ledger),
    *bad("codebook", CodebookError, None, {"age": (0, 100)}),
    ("is not in the codebook", {"codebook": dp.codebook(size=(0, 100))}, UnknownVariable),
    *bad("formula", FormulaError, "", "~", "~ age +", "a ~ b ~ c", None, ["age"]),
    *bad("formula", FormulaError, "age ~ __import__('os')", "~ mean(age)"),
    ("column", {"data": minefield(("size",))}, FrameError),
    ("data", {"data": None}, FrameError),
]


def bad_calls(case: Case) -> list[Any]:
    """Every wrong call of a case's verb."""
    name = case.verb.name
    words = inspect.signature(getattr(dp, name)).parameters
    options = bad("mechanism", ArgumentError, "laplce", None, 3) if "mechanism" in words else []
    unknown = ("height", {"formula": f"{case.formula} + height"}, UnknownVariable)
    every = [*OF_ALL_VERBS, unknown]
    if name == "dp_levels":
        # Its variables need no declaration: a name that is unknown is no column of the data.
        every = [call for call in every if call[0] != "codebook"]
        every = [(*call[:2], FrameError) if call[2] is UnknownVariable else call for call in every]
        every = [call for call in every if call[0] != "is not in the codebook"]
    return [*every, *options, *case.verb.refused]


def a_bad_call_of_a_verb_is_refused_for_free(
    case: Case, argument: str, changes: dict[str, Any], kind: type[DPModelsError]
) -> None:
    plain = {"formula": case.formula, "codebook": BOOK, "eps": 1.0, "delta": 1e-6}
    options = dict(case.verb.options[0])
    ledger = dp.Ledger(10, 1e-5)
    words = plain | options | {"data": minefield(), "ledger": ledger} | changes
    formula, data = words.pop("formula"), words.pop("data")
    with pytest.raises(kind) as raised:
        getattr(dp, case.verb.name)(formula, data, **words)
    the_error_is_helpful(raised.value, argument)
    assert ledger.entries == (), "a call that is refused was charged"
