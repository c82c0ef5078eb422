"""Every argument error is typed, names the argument and the fix, and costs nothing."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from contract_cases import BOOK, FORMULA, Case, mined_stream, minefield

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
BIG = dp.codebook(a=list(range(999)), b=list(range(999)), c=list(range(999)))
NAN, INF = float("nan"), float("inf")


def _bad(argument: str, error: type[DPModelsError], *values: Any) -> list[Any]:
    return [(argument, {argument: value}, error) for value in values]


# The argument the message has to name, what is changed, and the type of the error.
BAD: list[tuple[str, dict[str, Any], type[DPModelsError]]] = [
    *_bad("eps", BudgetError, 0.0, -1, NAN, INF, 1e300, "1", True, 1j, None, [1.0]),
    *_bad("delta", BudgetError, 0.0, -1e-9, 1.0, 1.5, NAN, INF, "0", None),
    ("budget", {"budget": dp.ZCDP(1.0)}, BudgetError),
    ("budget", {"eps": None, "delta": 0.0, "budget": 0.5}, BudgetError),
    ("delta", {"eps": None, "budget": dp.ZCDP(1.0)}, BudgetError),
    ("delta", {"eps": None, "delta": 0.0, "budget": dp.PureDP(1.0)}, BudgetError),
    ("eps", {"eps": None, "delta": 0.0}, BudgetError),
    *_bad("ncomp", ArgumentError, 0, -1, 6, 2.5, 2.0, NAN, "2", True, [1]),
    *_bad("mechanism", ArgumentError, "gaus", "", "Gauss", None, 3, dp.mechanisms.Gauss),
    *_bad("adjacency", ArgumentError, "add", "", "Replace", 1, ["replace"]),
    *_bad("person", ArgumentError, "", 3, ["id"]),
    *_bad("rows", ArgumentError, 0, -1, 1.5, True, "all", "mean"),
    *_bad("subset", ArgumentError, "", 3),
    *_bad("subset", FormulaError, "age", "nowhere > 1", "age > age.mean()"),
    *_bad("scale", ArgumentError, "std", "", True, 1.0, ["sd"], np.ones(2), np.array("sd")),
    *_bad("center", ArgumentError, "yes", None, 1, 0.0, np.zeros(5)),
    *_bad("row_norm", ArgumentError, 0, -1.0, NAN, INF, "1", True, 1e-300, -(10**400), [1.0]),
    *_bad("codebook", CodebookError, None, {"age": (0, 100)}, "cb.json", dp.codebook),
    ("'wage'", {"codebook": dp.codebook(age=(0, 100))}, UnknownVariable),
    ("'age'", {"codebook": dp.codebook()}, UnknownVariable),
    ("'height'", {"formula": "~ age + height"}, UnknownVariable),
    *_bad("formula", FormulaError, "", "~", "~ 1", "age ~ wage", "~ age +", None, 3, ["age"]),
    *_bad("formula", FormulaError, "~ __import__('os')", "~ mean(age)"),
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


# What every verb refuses, and what each verb besides, in the same form.
OF_ALL_VERBS = [
    *_bad("eps", BudgetError, 0.0, NAN, "1", None),
    *_bad("delta", BudgetError, 1.0, -1e-9),
    ("budget", {"budget": dp.ZCDP(1.0)}, BudgetError),
    *_bad("adjacency", ArgumentError, "add", 1),
    *_bad("rows", ArgumentError, 0, "mean"),
    *_bad("subset", FormulaError, "nowhere > 1"),
    *_bad("ledger", ArgumentError, 3, dp.Ledger),
    *_bad("codebook", CodebookError, None, {"age": (0, 100)}),
    ("is not in the codebook", {"codebook": dp.codebook(size=(0, 100))}, UnknownVariable),
    *_bad("formula", FormulaError, "", "~", "~ age +", "a ~ b ~ c", None, ["age"]),
    *_bad("formula", FormulaError, "age ~ __import__('os')", "~ mean(age)"),
    ("column", {"data": minefield(("size",))}, FrameError),
    ("data", {"data": None}, FrameError),
]
TWO_SIDED = [
    ("response", {"formula": "~ age + sex"}, FormulaError),
    *_bad("row_norm", ArgumentError, 0, -1.0, NAN, "1"),
]
ONE_NUMBER = [
    ("takes one variable", {"formula": "age + wage ~ sex"}, FormulaError),
    ("category", {"formula": "region ~ sex"}, FormulaError),
]
FACTORS = [("is a number", {"formula": "~ wage + sex"}, FormulaError)]
OF_VERBS: dict[str, list[tuple[str, dict[str, Any], type[DPModelsError]]]] = {
    "dp_lm": [
        *TWO_SIDED,
        *_bad("weights", ArgumentError, 3, ["age"]),
        ("'height'", {"weights": "height"}, CodebookError),
        ("'wage'", {"weights": "wage", "formula": "age ~ sex"}, CodebookError),
        ("response", {"formula": "region ~ age"}, FormulaError),
        *_bad("mechanism", ArgumentError, "gradients", "ppca", dp.mechanisms.Zero()),
    ],
    "dp_glm": [
        *TWO_SIDED,
        *_bad("family", ArgumentError, "gamma", None, ["poisson"]),
        ("response", {"formula": "age ~ sex", "family": "binomial", "clip": None}, FormulaError),
        ("response", {"formula": "wage ~ sex", "family": "poisson"}, FormulaError),
        ("response", {"formula": "region ~ sex", "family": "binomial", "clip": None}, FormulaError),
        ("clip", {"formula": "age ~ sex", "family": "poisson", "clip": 0.0}, ArgumentError),
        ("clip", {"formula": "sex ~ age", "family": "binomial", "clip": 1.0}, ArgumentError),
        *_bad("scale", ArgumentError, "sd", 1.0),
        *_bad("mechanism", ArgumentError, "moments", "gauss"),
        (
            "mechanism",
            {"formula": "age ~ sex", "family": "poisson", "mechanism": "output"},
            ArgumentError,
        ),
    ],
    "dp_svm": [
        *TWO_SIDED,
        *_bad("width", ArgumentError, 0.0, 99, "1"),
        *_bad("ridge", ArgumentError, 0.0, -1, "1"),
        *_bad("mechanism", ArgumentError, "gradients", "geometric"),
        ("response", {"formula": "age ~ wage"}, FormulaError),
    ],
    "dp_mean": ONE_NUMBER,
    "dp_var": ONE_NUMBER,
    "dp_hist": [
        ("takes one variable", {"formula": "age + wage + I(age + 1) ~ sex"}, FormulaError),
        *ONE_NUMBER[1:],
        *_bad("breaks", ArgumentError, 1, 2.5, "4", [1], [0, 50], [0, 50, 20], [0, 50, 50]),
        *_bad("breaks", ArgumentError, [-9, 0, 9], [0, 50, NAN], True, None, 10**9),
    ],
    "dp_margins": [
        ("is a number", {"formula": "~ wage*sex"}, FormulaError),
        ("left side", {"formula": "sex ~ region"}, FormulaError),
        ("names no variable", {"formula": "~ 1"}, FormulaError),
        *_bad("mechanism", ArgumentError, "geometric", "gaussian", 3),
        ("1,000,000,000 cells", {"formula": "~ a + a:b:c", "codebook": BIG}, FormulaError),
    ],
    "dp_table": [
        *FACTORS,
        (
            "dp_margins('~ sex:region + region:age'",
            {"formula": "~ sex:region + region:age"},
            FormulaError,
        ),
        ("names no variable", {"formula": "1 ~ region"}, FormulaError),
    ],
    "dp_summary": [("is a number", {"formula": "sex ~ wage"}, FormulaError)],
    "dp_ttest": [
        *ONE_NUMBER,
        ("two groups", {"formula": "wage ~ region"}, FormulaError),
        *_bad("mu", ArgumentError, NAN, "0", None),
    ],
    "dp_bounds": [
        ("dp_bounds", {"formula": "age ~ sex"}, FormulaError),
        ("'sex'", {"formula": "~ age + sex"}, FormulaError),
        ("log1p(age)", {"formula": "~ log1p(age)"}, FormulaError),
    ],
    "dp_fdr": [
        *_bad("q", ArgumentError, 0.0, 1.0, -0.1, NAN, "0.1", None),
        *_bad("most", ArgumentError, 0, -1, 9, 2.5, "3", True),
        *_bad("method", ArgumentError, "bonferroni", None, 3),
        *_bad("alternative", ArgumentError, "greater", None),
        ("a + b + c ~ y", {"formula": "~ age + wage"}, FormulaError),
        ("a + b + c ~ y", {"formula": "age | sex"}, FormulaError),
        ("one variable", {"formula": "age ~ sex + wage"}, FormulaError),
        ("both sides", {"formula": "age + sex ~ sex"}, FormulaError),
        ("3 levels", {"formula": "age ~ region"}, FormulaError),
        ("two-sided", {"mechanism": "adapt", "alternative": "two-sided"}, ArgumentError),
        (
            "adapt",
            {"mechanism": "adapt", "alternative": "larger", "delta": 0.0},
            BudgetError,
        ),
        ("one value", {"formula": "wage + I(age * 0) ~ sex"}, CodebookError),
    ],
    "dp_levels": [
        ("levels", {"formula": "sex ~ region"}, FormulaError),
        *_bad("codebook", CodebookError, 3),
        ("levels", {"formula": "~ sex:region"}, FormulaError),
        ("delta", {"delta": 0.0}, BudgetError),
        ("delta", {"eps": None, "delta": 0.0, "budget": dp.ZCDP(1.0)}, BudgetError),
    ],
    "dp_select": [
        ("'~ sex:region'", {"formula": "~ sex + region"}, FormulaError),
        ("'~ sex:region'", {"formula": "~ sex*region"}, FormulaError),
        ("one variable", {"formula": "~ sex | region"}, FormulaError),
        ("two at least", {"formula": "age ~ wage"}, FormulaError),
        ("must be a number", {"formula": "region ~ age + wage"}, FormulaError),
        ("score", {"formula": "sex ~ age + wage", "score": "count"}, ArgumentError),
        ("score", {"formula": "~ sex", "score": "gain"}, ArgumentError),
        ("noisy_counts", {"formula": "sex ~ .", "mechanism": "noisy_counts"}, ArgumentError),
        (
            "threshold=",
            {"formula": "sex ~ .", "mechanism": "sparse_vector", "threshold": None},
            ArgumentError,
        ),
        ("beyond what is", {"formula": "sex ~ .", "eps": 1e-9, "delta": 0.0}, BudgetError),
        ("is a number", {"formula": "~ age"}, FormulaError),
        ("at least 3", {"formula": "~ cut(age, [0, 100])"}, FormulaError),
        *_bad("k", ArgumentError, 0, -1, 10**7, 1.5, "2", True),
        ("k= and threshold= are both", {"k": 2, "threshold": 5.0}, ArgumentError),
        ("goes with threshold=", {"most": 2, "threshold": None}, ArgumentError),
        *(
            ("most", {"k": None, "threshold": 0.5, "most": most}, ArgumentError)
            for most in (0, 10**7, 2.0)
        ),
        *(
            ("threshold", {"k": None, "threshold": least}, ArgumentError)
            for least in (NAN, np.inf, "9", True, -1, 1e300)
        ),
        *_bad("score", ArgumentError, "counts", 3),
        *_bad("values", ArgumentError, 0.0, 0.001, 0.95, 2, "yes", None),
        *_bad("mechanism", ArgumentError, "exponential", "geometric"),
        ("whatever their", {"k": None, "threshold": 0.5, "mechanism": "peeling"}, ArgumentError),
    ],
    "dp_series": [
        *_bad("time", ArgumentError, 3, None, ["region"]),
        *_bad("time", FormulaError, "sex", "age"),
        ("is not in the codebook", {"time": "day"}, UnknownVariable),
        *_bad("by", ArgumentError, 2, "week", True),
        ("is a number", {"formula": "~ age"}, FormulaError),
        ("is a number", {"formula": "~ 1 | age"}, FormulaError),
        ("one kind of event", {"formula": "~ sex + (age > 50)"}, FormulaError),
        ("is the time", {"formula": "~ region"}, FormulaError),
        *_bad("mechanism", ArgumentError, "geometric", "wavelet"),
    ],
    "dp_survfit": [
        *_bad("breaks", ArgumentError, 1, 2.5, [50, 20], [0, 50, NAN], None, 10**9),
        *_bad("breaks", FormulaError, 2_000),
        *_bad("mechanism", ArgumentError, "partition", "gauss"),
        ("Surv(time, event)", {"formula": "age ~ sex"}, FormulaError),
        ("two arguments", {"formula": "Surv(age) ~ sex"}, FormulaError),
        ("not negative", {"formula": "Surv(wage, sex) ~ region"}, FormulaError),
        ("no declared number", {"formula": "Surv(age + 1, sex) ~ 1"}, FormulaError),
        ("3 levels", {"formula": "Surv(age, region) ~ sex"}, FormulaError),
        ("two levels", {"formula": "Surv(age, wage) ~ sex"}, FormulaError),
        ("is a number", {"formula": "Surv(age, sex) ~ wage"}, FormulaError),
        ("twice", {"formula": "Surv(age, sex) ~ sex"}, FormulaError),
        ("of whom", {"formula": "Surv(age, sex) ~ 0"}, FormulaError),
    ],
    "dp_quantile": [
        *ONE_NUMBER,
        *_bad("probs", ArgumentError, 1.5, [-0.1], [], NAN, "0.5", None, [0.5, "1"]),
        *_bad("level", ArgumentError, 0.0, 1.0, "0.9"),
    ],
}


def bad_calls(case: Case) -> list[Any]:
    """Every wrong call of a case's verb."""
    name = case.verb.name
    words = inspect.signature(getattr(dp, name)).parameters
    named = _bad("mechanism", ArgumentError, "laplce", None, 3) if "mechanism" in words else []
    unknown = ("height", {"formula": f"{case.formula} + height"}, UnknownVariable)
    every = [*OF_ALL_VERBS, unknown]
    if name == "dp_levels":
        # Its variables need no declaration: a name that is unknown is no column of the data.
        every = [bad for bad in every if bad[0] != "codebook"]
        every = [(*bad[:2], FrameError) if bad[2] is UnknownVariable else bad for bad in every]
        every = [bad for bad in every if bad[0] != "is not in the codebook"]
    return [*every, *named, *OF_VERBS.get(name, [])]


def a_bad_call_of_a_verb_is_refused_for_free(
    case: Case, argument: str, changes: dict[str, Any], kind: type[DPModelsError]
) -> None:
    plain = {"formula": case.formula, "codebook": BOOK, "eps": 1.0, "delta": 1e-6}
    own = dict(case.verb.words[0])
    ledger = dp.Ledger(10, 1e-5)
    words = plain | own | {"data": minefield(), "ledger": ledger} | changes
    formula, data = words.pop("formula"), words.pop("data")
    with pytest.raises(kind) as raised:
        getattr(dp, case.verb.name)(formula, data, **words)
    the_error_is_helpful(raised.value, argument)
    assert ledger.entries == (), "a call that is refused was charged"
