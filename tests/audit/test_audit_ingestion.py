"""The audit's own pairs vary identity, file and type: wrong readers are flagged, a right one not.

The readers stand in front of a verb and give it text, so that the verdict is about them alone.
"""

import csv
import functools
from collections.abc import Callable
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.audit.coupled import CSVFile, coupled, worst_pair
from dpmodels.audit.registry import SMALL
from dpmodels.audit.verb_recipes import verb_recipe
from dpmodels.errors import FrameError
from dpmodels.sites import Parties

BOOK = dp.codebook(a=(0, 1), b=(0, 1), g=["x", "y"])
RUNS = 600


def text_of(cell: Any) -> str:
    return f"p{str(cell).strip()}"


def records(path: PathLike[str]) -> dict[str, list[Any]]:
    with open(path, newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file)
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def read(
    table: Any,
    *,
    file: Callable[[Any], dict[str, list[Any]]] = records,
    identity: Callable[[Any], Any] = text_of,
    frame: Callable[[pd.DataFrame], object] = lambda frame: None,
) -> dict[str, list[Any]]:
    if isinstance(table, PathLike):
        table = file(table)
    elif isinstance(table, pd.DataFrame):
        frame(table)
        table = {name: table[name].astype(object).tolist() for name in table}
    return {
        name: list(map(identity, cells)) if name == "id" else list(cells)
        for name, cells in table.items()
    }


def as_floats(cell: Any) -> Any:
    try:
        return f"p{float(cell)}"
    except ValueError:
        return text_of(cell)


def by_line(path: PathLike[str]) -> dict[str, list[Any]]:
    names, *rows = (line.split(",") for line in Path(fspath(path)).read_text().splitlines())
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def refused_by_type(frame: pd.DataFrame) -> None:
    if any(frame[name].dtype.kind == "i" for name in frame if name != "id"):
        raise FrameError("a column of whole numbers holds no level")


FAULTS: dict[str, dict[str, Any]] = {
    "ids of 18 digits": {"identity": as_floats},
    "an id with a space after it": {"identity": lambda cell: f"p{cell}|"},
    "ids that spell one number": {"identity": as_floats},
    "an id that spells a missing value": {
        "identity": lambda cell: None if cell == "NA" else text_of(cell)
    },
    "line breaks in a quoted cell": {"file": by_line},
    "a missing cell among whole numbers": {"frame": refused_by_type},
}
VERBS = {
    "table": functools.partial(dp.dp_table, "~ g", codebook=BOOK, eps=1.0),
    "mean": functools.partial(dp.dp_mean, "a ~ g", codebook=BOOK, eps=1.0),
}
PERSONS: tuple[dict[str, Any], ...] = ({}, {"person": "id"}, {"person": "id", "rows": 1})


def behind(reader: Callable[[Any], Any], verb: Any, **words: Any) -> Any:
    """Return the verb with a reader of tables in front of it."""

    @functools.wraps(verb.func)
    def asked(formula: str, data: object, **more: Any) -> Any:
        if isinstance(data, Parties):
            return verb.func(formula, replace(data, data=tuple(map(reader, data.data))), **more)
        return verb.func(formula, reader(data), **more)

    return functools.partial(asked, *verb.args, **verb.keywords, **words)


def audited(verb: Any, **words: Any) -> Any:
    with dp.simulation(seed=3):
        return dp.audit(verb, runs=RUNS, confidence=SMALL, **words)


@pytest.mark.parametrize("words", PERSONS, ids=str)
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_a_right_reader_is_consistent(verb, adjacency, words):
    # False alarms: 1e-6 each.
    assert audited(behind(read, verb, adjacency=adjacency, **words)).verdict == "consistent"


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_reader_is_flagged(name):
    reader = functools.partial(read, **FAULTS[name])
    audit = audited(behind(reader, VERBS["table"], person="id", rows=1))
    assert audit.verdict == "VIOLATION"
    floats = {"ids of 18 digits", "ids that spell one number"}
    assert audit.pair == name or {audit.pair, name} == floats


@pytest.mark.parametrize("name", ["ids of 18 digits", "an id with a space after it"])
def test_a_wrong_reader_is_flagged_where_the_number_of_persons_is_private(name):
    reader = functools.partial(read, **FAULTS[name])
    verb = behind(reader, VERBS["mean"], person="id", rows=1, adjacency="add-remove")
    with dp.simulation(seed=3):  # A person's rows are drawn alike in all runs
        assert coupled(verb, [worst_pair(verb_recipe(verb))]).verdict == "VIOLATION"


@pytest.mark.parametrize("turned", [False, True])
def test_a_refusal_of_one_table_alone_is_reported(turned):
    reader = functools.partial(read, frame=refused_by_type)
    frame, mixed = pd.DataFrame({"g": [1, 2, 1, 2]}), pd.DataFrame({"g": [1, 2, 1, None]})
    pair = dp.audit.Pair(*((mixed, frame) if turned else (frame, mixed)))
    audit = audited(behind(reader, VERBS["table"]), pair=pair)
    assert audit.verdict == "VIOLATION"
    assert "raised" in {finding.kind for finding in audit.findings}


@pytest.mark.parametrize("words", PERSONS[1:], ids=str)
def test_coupled_runs_reach_persons(words):
    result = coupled(behind(read, VERBS["mean"], **words))
    assert result.verdict == "consistent"
    assert result.pairs > 3
    assert result.findings == ()
    assert result.largest > 0.9 * result.limit


def test_lines_that_are_declared_records_have_no_pair_of_a_quoted_cell():
    def by_lines(formula, data, *, csv="records", **extra):
        reader = functools.partial(read, file=by_line)
        return behind(reader, VERBS["table"]).func(formula, data, **extra)

    by_lines.__name__ = "dp_table"
    verb = functools.partial(by_lines, "~ g", codebook=BOOK, eps=1.0)
    assert worst_pair(verb_recipe(verb)).name == "line breaks in a quoted cell"
    declared = functools.partial(verb, csv="lines")
    assert worst_pair(verb_recipe(declared)).name != "line breaks in a quoted cell"


@pytest.mark.parametrize("words", PERSONS, ids=str)
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_the_package_is_consistent(verb, adjacency, words):
    # False alarms: 1e-6 each.
    audit = audited(functools.partial(verb, adjacency=adjacency, **words))
    assert audit.verdict == "consistent"


def test_a_file_is_removed_with_its_table():
    table = CSVFile({"a": [1]})
    path = Path(table)
    assert path.read_bytes() == b"a\r\n1\r\n"
    del table
    assert not path.exists()
