"""Random codebooks, formulas that fit them, and rows of every kind of mischief."""

import json
import math
from datetime import date

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import dpmodels as dp
from dpmodels.errors import FormulaError
from dpmodels.formula.parse import parsed_formula
from dpmodels.variables import Categorical, Numeric

NUMBERS = ("x", "y", "income", "height in cm", "class", "a.b", "größe")
CATEGORIES = ("g", "sex", "region of birth", "lambda", "Sum")
LEVELS = (["F", "M"], ["a", "b", "c", "d"], [0, 1, 2], [False, True], ["1", "2.5", "x y"], [-1, 1])
CONTRASTS = ("", ", Sum", ", Poly", ", Helmert", ", Diff", ", Treatment")

BOUNDS = st.one_of(
    st.integers(-1000, 1000).map(float),
    st.floats(-1e4, 1e4).map(lambda bound: round(bound, 3)),
    st.sampled_from([0.0, 1.0, -1.0, 1e-6, 1e6, 1e12]),
)
RANGES = st.tuples(BOUNDS, BOUNDS).filter(lambda pair: pair[1] - pair[0] > 1e-4 * abs(pair[1]))


DAYS = st.dates(date(1, 1, 1), date(9999, 12, 31))
OTHERS = {
    "visits": st.sampled_from([dp.Integer(0, 15, missing=[3, -9]), dp.Integer(-2, 1)]),
    "born": st.lists(DAYS, min_size=2, max_size=2, unique=True).map(lambda d: dp.Date(*sorted(d))),
    "educ": st.sampled_from(
        [dp.Categorical({1: "low", 2: "2"}, ordered=True), dp.Categorical(["x", "y"], missing=[1])]
    ),
    "smoker": st.just(dp.Boolean(missing=["unlisted"])),
}


@st.composite
def codebooks(draw):
    numbers = draw(st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=3, unique=True))
    categories = draw(st.lists(st.sampled_from(CATEGORIES), max_size=2, unique=True))
    declared = {name: draw(RANGES) for name in numbers}
    declared |= {name: draw(st.sampled_from(LEVELS)) for name in categories}
    declared |= {name: draw(kind) for name, kind in OTHERS.items() if draw(st.booleans())}
    order = draw(st.permutations(list(declared)))
    return dp.codebook({name: declared[name] for name in order})


def written(name):
    """How a formula names a variable."""
    plain = name.isidentifier() and name not in ("class", "lambda")
    return name if plain else f"Q({json.dumps(name, ensure_ascii=False)})"


CONSTANTS = st.sampled_from(["0", "1", "-1", "2.5", "10", "1e-3", "1_000", "10 ** 2", "(1 / 3)"])


def reals(book):
    """Expressions with a value and bounds, whatever the ranges of the variables."""
    names = [written(name) for name, values in book.items() if isinstance(values, Numeric)]
    days = [
        f"{part}"
        for name, values in book.items()
        if isinstance(values, dp.Date)
        for part in (f"year({name})", f"I({name} - '2001-01-01')")
    ]
    leaves = st.sampled_from(names + days)
    return st.recursive(leaves, lambda inner: _grown(inner, book), max_leaves=4)


def _grown(inner, book):
    return st.one_of(
        st.builds("I({} {} {})".format, inner, st.sampled_from("+-*"), CONSTANTS),
        st.builds("I({} {} {})".format, inner, st.sampled_from("+-*"), inner),
        st.builds("I({} / (abs({}) + 1))".format, inner, inner),
        st.builds("I(-{})".format, inner),
        st.builds("I({} ** {})".format, inner, st.sampled_from("123")),
        st.builds("pow(1 + abs({}), {})".format, inner, st.sampled_from(["-2", "0.5", "-1 / 3"])),
        st.builds("clip({}, {}, hi=7)".format, inner, st.sampled_from(["-2", "0"])),
        st.builds("exp(clip({}, -5, 5))".format, inner),
        st.builds("{}(abs({}) + 1)".format, st.sampled_from(["log", "log2", "log10"]), inner),
        st.builds("{}(abs({}))".format, st.sampled_from(["sqrt", "log1p", "abs"]), inner),
        st.builds("{}({})".format, st.sampled_from(["sin", "cos"]), inner),
        st.builds("{}({}, {}, 3)".format, st.sampled_from(["pmin", "pmax"]), inner, inner),
        st.builds("ifelse({}, {}, {})".format, conditions(inner, book), inner, inner),
    )


def conditions(inner, book):
    simple = st.builds(
        "({} {} {})".format,
        inner,
        st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
        st.one_of(CONSTANTS, inner),
    )
    values = [
        (name, values.levels) for name, values in book.items() if isinstance(values, Categorical)
    ]
    choices = [f"(not {written(name)} in [{levels[0]!r}])" for name, levels in values]
    choices += [
        f"({written(name)} {op} {level!r})"
        for name, levels in values
        for level in levels
        for op in ("==", "!=")
    ]
    choices += [f"is_missing({written(name)})" for name in book]
    simple = simple | st.sampled_from(choices)
    return st.one_of(
        simple,
        st.builds("({} & {})".format, simple, simple),
        st.builds("({} | (~{}))".format, simple, simple),
    )


def factors(book):
    """Anything that can be multiplied in a term."""
    inner = reals(book)
    names = [written(name) for name in book]
    categories = [written(name) for name, values in book.items() if isinstance(values, Categorical)]
    kinds = [
        st.sampled_from(names),
        inner,
        st.builds("I({})".format, conditions(inner, book)),
        st.builds("cut({}, [-10, 0, 0.5, 1e3])".format, inner),
        st.builds("C(cut({}, (-1e9, 0, 1e9)){})".format, inner, st.sampled_from(CONTRASTS)),
        st.builds("poly({}, {})".format, inner, st.integers(1, 4)),
        st.builds("bs({}, [0, 0.5], {})".format, _stretched(book), st.integers(0, 3)),
    ]
    if categories:
        kinds.append(
            st.builds("C({}{})".format, st.sampled_from(categories), st.sampled_from(CONTRASTS))
        )
    return st.one_of(kinds)


def _stretched(book):
    """A number that ranges from -1 to 2, whatever the variable's own range."""
    return st.sampled_from(
        [
            f"3 * ({written(name)} - {values.lower!r}) / {values.upper - values.lower!r} - 1"
            for name, values in book.items()
            if isinstance(values, Numeric)
        ]
    )


@st.composite
def formulas(draw, book):
    """Right-hand sides over a codebook: sums of terms, crossings, nestings, powers, ``.``."""
    result = factors(book)
    term = st.one_of(
        result,
        result,
        st.builds("{}:{}".format, result, result),
        st.builds("{} * {}".format, result, result),
        st.builds("{} / {}".format, result, result),
        st.builds("({} + {}) ** 2".format, result, result),
        st.just("."),
    )
    terms = draw(st.lists(term, min_size=1, max_size=3))
    tail = draw(st.sampled_from(["", " - 1", " + 0", " + 1"]))
    formula = "~ " + " + ".join(terms) + tail
    try:
        parsed_formula(formula, book)
    except FormulaError as error:
        # A sum of one term with itself has no power.
        assume("itself, as in R" not in str(error))
    return formula


NUMBER_CELLS = st.one_of(
    st.floats(),
    st.integers(-1000, 1000),
    st.sampled_from(
        [math.nan, math.inf, -math.inf, None, 1e308, -1e308, 10**400, 5e-324, -0.0, True]
    ),
    st.sampled_from(["3.5", "many", "", "nan", b"7", 1j, [1.0], np.float32(2), np.nan]),
)
LEVEL_CELLS = st.sampled_from([None, math.nan, "unlisted", "", 1, 1.0, "1", True, 10**400, [], -1])


@st.composite
def rows(draw, book, least=1, most=8):
    """Columns of cells: in range, at the bounds, out of range, missing and foreign."""
    count = draw(st.integers(least, most))
    return {name: [draw(_cells(values)) for _ in range(count)] for name, values in book.items()}


def _cells(declared):
    if isinstance(declared, Categorical):
        dates = st.sampled_from(declared.levels)
        return st.one_of(dates, dates, dates, LEVEL_CELLS)
    if isinstance(declared, dp.Date):
        dates = st.dates(declared.lower, declared.upper)
        return st.one_of(dates, dates.map(str), dates.map(np.datetime64), DAYS, NUMBER_CELLS)
    inside = st.floats(declared.lower, declared.upper)
    ends = st.sampled_from([declared.lower, declared.upper])
    return st.one_of(inside, inside, ends, NUMBER_CELLS)
