"""Odd rows, odd budgets, odd widths: never an exception, never a warning."""

import datetime
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

import law_rows
import numpy as np
import pandas as pd
import pytest
import verbs_descriptions
import verbs_models
from contract_cases import (
    ANY,
    CASES,
    EACH_VERB,
    FEWER,
    MATRICES,
    OTHER_VERBS,
    Case,
    in_turn,
    once,
    parameters,
)
from mechanisms import Mechanism

import dpmodels as dp
from dpmodels.privacy import ZCDP, ApproxDP, PureDP

INF, NAN = float("inf"), float("nan")


class Hostile:
    """A cell whose every method raises."""

    def _raise(self, *_: object) -> NoReturn:
        raise RuntimeError

    __float__ = __eq__ = __hash__ = __repr__ = __bool__ = __len__ = __iter__ = _raise


ODD: dict[str, dict[str, Any]] = {
    "no rows": {"a": [], "b": [], "g": []},
    "one row": {"a": [0.5], "b": [2.0], "g": ["u"]},
    "two rows": {"a": [0.5, -0.5], "b": [2.0, 3.0], "g": ["u", "v"]},
    "one odd row": {"a": [INF], "b": [NAN], "g": ["z"]},
    "no complete row": {"a": [NAN] * 4},
    "nan": {"a": [NAN, 0.5, NAN, 0.1], "b": [1.0, NAN, NAN, 2.0]},
    "infinite": {"a": [INF, -INF, 1e308, -1e308], "b": [INF, 0.0, INF, -INF]},
    "None": {"a": [None] * 4, "b": [None, 1, None, 2], "g": [None, "u", "v", None]},
    "out of range": {"a": [-7, 7, 1e300, -1e300], "b": [-0.1, 10.1, 1e9, -1e9]},
    "unlisted levels": {"g": ["z", "U", "u ", ""]},
    "constant": {"a": [0.0] * 4, "b": [0.0] * 4},
    "one behind the other": {"a": [-0.5, 0.0, 0.5, 1.0], "b": [2.5, 5.0, 7.5, 10.0]},
    "corners": {"a": [-1, 1, -1, 1], "b": [0, 0, 10, 10], "g": ["u", "v", "w", "u"]},
    "text for numbers": {"a": ["x", "1", "nan", "-inf"], "b": ["1e400", "-0", "", "\x00"]},
    "numbers for levels": {"g": [1, 2.0, NAN, True]},
    "dates": {"a": [np.datetime64("2020-01-01", "ns")] * 4, "g": [datetime.date(2020, 1, 1)] * 4},
    "durations": {"a": list(np.array([1, 2, 3, 4], "m8[s]"))},
    "complex": {"a": np.array([1j, 1, 2, NAN])},
    "huge integers": {"a": [10**400, -(10**400), 10**30, 0]},
    "longdouble": {"a": np.array([1, 2, INF, 3], np.longdouble) * np.longdouble(10) ** 4000},
    "tiny": {"a": [5e-324] * 4, "b": [-0.0, 5e-324, 1e-310, 0]},
    "decimals": {"a": [Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Fraction(1, 3)]},
    "pandas' missing": {"a": [pd.NA, pd.NaT, 1, 2], "g": [pd.NA, pd.NaT, "u", "v"]},
    "containers": {"a": [[1], [2, 3], {}, ()], "g": [[1], {}, set(), ()]},
    "hostile": {"a": [Hostile()] * 4, "b": [Hostile(), 1, 2, 3], "g": [Hostile()] * 4},
    "records": {"a": list(np.zeros(4, dtype=[("field", int)]))},
    "truths": {"a": np.array([True, False, True, True]), "b": [True, False, True, None]},
    "masked": {"a": np.ma.MaskedArray([0.1, NAN, INF, 0.5], mask=[0, 1, 1, 0])},
}


# What reaches a mechanism as too few rows, rows at the ends, or rows without a second direction.
DEGENERATE = (
    *("no rows", "one row", "no complete row", "constant", "one behind the other", "corners"),
    "infinite",
)


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize("case", once(ANY[:2]))
def test_odd_rows_pass_in_silence(case: Case, odd: dict[str, Any]):
    law_rows.odd_rows_pass_in_silence(case, odd)


def directions(case: Case) -> bool:
    return case.mechanism.family == "subspace"


def _scaled(cases: Iterable[Case]) -> list[Any]:
    """Every case with all degenerate rows and scales: the ordinary run takes these in turns."""
    ordinary = in_turn(cases)
    return [
        pytest.param(case, odd, scale, id=f"{case}-{odd}-{scale}", marks=marks)
        for number, case in enumerate(cases)
        for turn, odd in enumerate(DEGENERATE)
        for place, scale in enumerate([None] if directions(case) else ["range", "sd"])
        for is_odd in [
            case not in ordinary or (not directions(case) and (number + turn + place) % 2)
        ]
        for marks in [[pytest.mark.product] * bool(is_odd)]
    ]


@pytest.mark.parametrize(("case", "odd", "scale"), _scaled(MATRICES))
def test_degenerate_rows_pass_in_silence(case: Case, odd: str, scale: str | None):
    law_rows.odd_rows_pass_in_silence(case, ODD[odd], (scale,))


def _in_turns(cases: Iterable[Case], odd: Sequence[str], limit: int) -> list[Any]:
    """Every case with all odd rows, of which the ordinary run takes at most so many, in turns."""
    return [
        pytest.param(case, value, id=f"{case}-{value}", marks=[pytest.mark.product] * is_late)
        for number, case in enumerate(dict.fromkeys(cases))
        for turn, value in enumerate(odd)
        for is_late in [(turn - limit * number) % len(odd) >= limit]
    ]


# What each mechanism makes of such rows is held above, whole; this is the covariances' own part.
@pytest.mark.parametrize(
    ("case", "odd"),
    _in_turns(
        (matrix for matrix in MATRICES if matrix.mechanism.family == "covariance"), DEGENERATE, 1
    ),
)
def test_degenerate_covariances_pass_in_silence(case: Case, odd: str):
    law_rows.degenerate_covariances_pass_in_silence(case, ODD[odd])


@pytest.mark.parametrize("odd", ["no rows", "one behind the other"])
@pytest.mark.parametrize("case", once(MATRICES))
def test_options_pass_in_silence(case: Case, odd: str):
    law_rows.options_pass_in_silence(case, ODD[odd])


def has_matrix(case: Case) -> bool:
    return case.mechanism.family in ("covariance", "subspace")


# Of all other families, one for each mechanism and guarantee, and one for each verb. What reads the
# rows again is tried on odd ones in tests/models/test_models_lm_robust.py.
OTHERWISE = [
    *{case.mechanism: case for case in FEWER if not has_matrix(case)}.values(),
    *(
        case
        for case in EACH_VERB
        if case in OTHER_VERBS and not has_matrix(case) and not case.verb.rereads
    ),
]
# One of each way to read rows: matrices, weights, cells.
READERS = [
    next(case for case in OTHERWISE if case.verb is verbs_models.LM and case.way == "weighted"),
    next(case for case in OTHERWISE if case.verb is verbs_descriptions.SUMMARY),
    next(case for case in OTHERWISE if case.verb is verbs_descriptions.QUANTILE),
]


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize("case", READERS, ids=str)
def test_odd_rows_are_measured_in_silence(case: Case, odd: dict[str, Any]):
    law_rows.odd_rows_are_measured_in_silence(case, odd)


@pytest.mark.expensive
@pytest.mark.parametrize(
    ("case", "odd"), _in_turns(OTHERWISE, [*DEGENERATE, "two rows", "unlisted levels"], 4)
)
def test_odd_rows_of_any_verb_pass_in_silence(case: Case, odd: str):
    law_rows.odd_rows_of_any_verb_pass_in_silence(case, ODD[odd])


@pytest.mark.expensive
@pytest.mark.parametrize(
    "case", once(case for case in (*FEWER, *OTHERWISE) if not has_matrix(case))
)
def test_any_budget_of_any_verb_passes_in_silence(case: Case):
    law_rows.any_budget_of_any_verb_passes_in_silence(case, BUDGETS[case.kind][:2])


ODD_BOOKS = (
    dp.codebook(a=(0, 1e-300), b=(0, 1e-305)),
    dp.codebook(a=(0, 1e-320), b=(-1e-200, 1e-200)),
    dp.codebook(a=(1e99, 1e100), b=(0, 5e-324)),
    dp.codebook(a=(-1e100, 1e100), b=(1e99, 1e99 + 1e84)),
    dp.codebook(a=(1.0, 1.0 + 2.0**-52), b=(-1.0, 1.0)),
)


@pytest.mark.parametrize(
    "book", ODD_BOOKS, ids=["tiny", "subnormal", "huge and least", "far from zero", "one ulp"]
)
@pytest.mark.parametrize("case", ANY, ids=str)
def test_odd_declarations_pass_in_silence(case: Case, book: dp.Codebook):
    law_rows.odd_declarations_pass_in_silence(case, book, scale="range")
    law_rows.odd_declarations_pass_in_silence(case, book, scale="sd", row_norm=1e-60)


BUDGETS = {
    PureDP: [PureDP(1e-9), PureDP(1e9)],
    ApproxDP: [ApproxDP(1e-9, 1e-6), ApproxDP(1e9, 1e-6), ApproxDP(1.0, 0.999)],
    ZCDP: [ZCDP(1e-18), ZCDP(1e9)],
}


@pytest.mark.expensive
@pytest.mark.parametrize("case", once(case for case in CASES if has_matrix(case)))
def test_any_budget_on_one_column_passes_in_silence(case: Case):
    law_rows.any_budget_and_width_pass_in_silence(case, 1, BUDGETS[case.kind])


def more_columns() -> list[Any]:
    """Every mechanism with more columns than rows, and the fastest with hundreds."""
    cases = [case for case in MATRICES if case.centred]
    few = [pytest.param(case, 20 if case.mechanism.slow else 60, id=str(case)) for case in cases]
    fastest = [case for case in cases if case.mechanism.name == "gauss"]
    parameters = [
        pytest.param(case, 500, id=f"{case}-500", marks=pytest.mark.product) for case in fastest
    ]
    return few + parameters


@pytest.mark.expensive
@pytest.mark.parametrize(("case", "width"), more_columns())
def test_more_columns_than_rows_pass_in_silence(case: Case, width: int):
    law_rows.any_budget_and_width_pass_in_silence(case, width, BUDGETS[case.kind][:1])


def shows_a_floor(mechanism: Mechanism) -> bool:
    return bool(mechanism.law) and mechanism.family == "covariance"


def leaves_delta(mechanism: Mechanism) -> bool:
    return PureDP in mechanism.takes and not (mechanism.baseline or mechanism.open)


@pytest.mark.parametrize(
    ("law", "case"),
    parameters(
        {
            law_rows.all_below_the_floor_is_said: shows_a_floor,
            law_rows.an_unused_delta_is_said: leaves_delta,
        },
        FEWER,
    ),
)
def test_the_table_says_it(law, case: Case):
    law(case)
