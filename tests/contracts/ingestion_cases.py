"""Ids, cells and free text that differ in one record, as their writers mean them."""

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple

import pandas as pd

import dpmodels as dp

LEVELS = ("F", "M")
EAST = timezone(timedelta(hours=5))


class Ids(NamedTuple):
    """Spellings of ids by person, and how a container with types declares them."""

    kind: str  # Empty where only a container of mixed cells can hold them
    persons: tuple[tuple[Any, ...], ...]  # Spellings by person
    fresh: tuple[Any, ...] = ("Z9",)  # Ids of further persons
    missing: tuple[Any, ...] = (None, "", " ", "\t")


IDS: dict[str, Ids] = {
    "digits-18": Ids("text", tuple((str(20240101000000001 + k),) for k in range(4)), ("Z9", "5")),
    "whole-18": Ids(
        "whole", tuple((20240101000000001 + k,) for k in range(4)), (17, 2**62), missing=()
    ),
    "exponents": Ids(
        "text", tuple((name,) for name in ("12E007", "12E07", "12e7", "1E5", "100000", "12e400"))
    ),
    "decimals": Ids("text", tuple((name,) for name in ("1.1", "1.10", "1.100", "1", "1.0", ".1"))),
    "hex": Ids(
        "text", tuple((name,) for name in ("1e10", "10e9", "0x10", "16", "00e1", "deadbeef"))
    ),
    "zeros": Ids(
        "text",
        tuple((name,) for name in ("007", "07", "7", "+7", "-7", "7_0", "70", "\uff17", "\u0667")),
    ),
    "spaces": Ids(
        "text",
        (("A1", "A1 ", " A1", "\ufeffA1", "A1\r", "A1\t", "\u00a0A1", "A1\x00"), ("a1",), ("A 1",)),
    ),
    "spaced-numbers": Ids("text", (("12", " 12", "12 ", "\ufeff12"), ("13", "13\t"), ("1 2",))),
    "accents": Ids("text", (("Ren\u00e9", "Rene\u0301"), ("Rene",), ("ren\u00e9",))),
    "missing-words": Ids(
        "text",
        tuple(
            (name,) for name in ("NA", "NaN", "nan", "None", "null", "Inf", "inf", "True", "#N/A")
        ),
    ),
    "whole": Ids("whole", ((1,), (0,), (-1,), (10,), (2**53 + 1,), (2**53,)), (5,), missing=()),
    "real": Ids("real", ((1.5,), (2.5,), (0.1,), (3.0,), (-0.5,)), (7.25,), missing=(None,)),
    "mixed": Ids(
        "", ((7, "7", 7.0, Decimal(7)), ("007",), (7.5, "7.5"), ("A",), (10**30,), (10**30 + 1,))
    ),
    "logical": Ids("", ((True, "True"), (False,)), ("Z9", 5), missing=(None,)),
    "days": Ids(
        "",
        ((date(2020, 1, 1), datetime(2020, 1, 1)), (date(2020, 1, 2),), (datetime(2020, 1, 1, 5),)),
        missing=(None, pd.NaT),
    ),
    "long": Ids("text", (("x" * 1200 + "a",), ("x" * 1200 + "b",), ("x" * 1200,))),
    "punctuated": Ids(
        "text",
        tuple((name,) for name in ('a"', '"a', "a,b", "a\nb", 'x",\n"y', "1/01/001", "1-01-001")),
    ),
}


class Cells(NamedTuple):
    """What a column is declared as, and cells that one record may have."""

    kind: str
    formula: str
    verb: str
    declared: Any
    cells: tuple[Any, ...]
    others: tuple[tuple[Any, Any], ...]  # Cells of two other records


_ODD = (None, "", True, date(2020, 2, 3), float("nan"), "x")
_MIXED = (("F", "M"), (1, 2), (1.0, None), (True, False), (date(2020, 2, 3),) * 2, (None, None))

CELLS: dict[str, Cells] = {
    "number": Cells(
        "real",
        "cell",
        "dp_mean",
        (0, 10),
        (*_ODD, 1, 2.5, "3", float("inf"), 10**400, Decimal("4.5"), 2**53 + 1, "1\n2", "1,5"),
        (*_MIXED, ("1", "2"), (2**60, 3)),
    ),
    "levels": Cells(
        "text",
        "~ cell",
        "dp_table",
        list(LEVELS),
        (*_ODD, "F", "M", "f", 1, 2.0, pd.NaT, 'F"', '"F', "F\nM", "F\r", 'F",\n"M'),
        _MIXED,
    ),
    "number-levels": Cells(
        "whole",
        "~ cell",
        "dp_table",
        [1, 2, 3],
        (*_ODD, 1, 2.0, "3", "1.0", "01", 2.5, pd.NA),
        (*_MIXED, ("1", "2")),
    ),
    "number-texts": Cells(
        "text",
        "~ cell",
        "dp_table",
        ["1", "2", "03"],
        (*_ODD, 1, 2.0, "1", "1.0", "1.00", "2", "03", "3"),
        (*_MIXED, ("1", "2")),
    ),
    "date": Cells(
        "day",
        "cell",
        "dp_mean",
        dp.Date("2020-01-01", "2020-12-31"),
        (
            *(None, True, date(2020, 2, 3), "2020-03-04", "2020-03-04T23:30:00", 1, "x", pd.NaT),
            *(datetime(2020, 5, 1, 23, 30), datetime(2020, 5, 1, 23, 30, tzinfo=EAST)),
            *(pd.Timestamp("2020-05-01 23:30", tz="UTC"), date(1, 1, 1), date(9999, 12, 31)),
        ),
        (
            *(("x", "y"), (1, 2), (None, None), (date(2020, 2, 3), date(2020, 5, 6))),
            (pd.Timestamp("2020-05-01 23:30", tz="UTC"), pd.Timestamp("2020-05-02", tz="UTC")),
            (datetime(2020, 5, 1, 23, 30), datetime(2020, 5, 1)),
        ),
    ),
}

# Columns of text files whose readers infer types: the cells of two other records decide, with one
# more cell, whether all are numbers, logical values, dates, times or text. No cell here is text
# that cannot be recovered from the value of another type: leading zeros, "1.0" beside "1", words
# for missing, offsets, dates that are not ISO 8601, and "0x1F", "t" and "yes", which some convert.
_TYPED = ("", "7", "2.5", "1e3", "true", "TRUE", "False", "2020-02-03", "2020-02-03 04:05:06")
TEXT_CELLS = (*_TYPED, "2020-02-03T04:05", "12:30", "12:50", "x", "99999999999999999999", "inf")
TEXT_OTHERS = (
    *(("1", "2"), ("1.5", "3"), ("true", "false"), ("", ""), ("x", "y"), ("1", "x"), ("", "7")),
    *(("2020-02-03", "2020-03-04"), ("2020-02-03T04:05:06", "2020-03-04 05:06:07")),
    *(("12:30", "12:45"), ("2020-02-03", "true"), ("99999999999999999999", "1")),
)
INFERRED_CELLS: dict[str, Cells] = {
    name: Cells("text", formula, verb, declared, TEXT_CELLS, TEXT_OTHERS)
    for name, formula, verb, declared in (
        ("read number", "cell", "dp_mean", (0, 10)),
        ("read levels", "~ cell", "dp_table", ["x", "y"]),
        ("read numbers as levels", "~ cell", "dp_table", [1, 2, 2.5, 7]),
        ("read texts of numbers", "~ cell", "dp_table", ["1", "2", "2.5", "7", "1000", "x"]),
        ("read truth values", "~ cell", "dp_table", ["true", "false"]),
        ("read logical", "~ cell", "dp_table", [False, True]),
        ("read date", "cell", "dp_mean", dp.Date("2020-01-01", "2020-12-31")),
        ("read days as levels", "~ cell", "dp_table", ["2020-02-03", "2020-03-04", "12:30"]),
        ("read times as levels", "~ cell", "dp_table", ["2020-02-03 04:05:06", "12:45", "x"]),
    )
}

NOTES: tuple[Any, ...] = (
    *("", None, "a", "a\nb", "\n" * 30, "\r", "a\r", "\r\n", "\n", '"', '""', '"""', 'a"', '"a'),
    *('"a"', '",', ',"', "a,b", 'x"\n', '"\nF', 'x",\n"9",F,"', '\n9,F,\n9,M,"', "\ufeff", "\0"),
    *("\u2028", "\x85", "\x0b\x0c\x1c", "\\", '\\"', "'", "=1+1", "x" * 70_000, "a,\r", 1, 2.5),
    *('"\r\n', '\r"', '\ufeff"a\n', '"' * 7, ("," + '"' * 3 + "\n") * 5),
)
