"""The ingestion invariant over sources, spellings of ids, types and one-record changes."""

from pathlib import Path

import law_ingestion as law
import pandas as pd
import planted_ingestion as planted
import pyarrow as pa
import pytest
from ingestion_cases import CELLS, IDS
from ingestion_sources import SOURCES, Record, Schema

import dpmodels as dp
from dpmodels.errors import CodebookError, FrameError
from dpmodels.frames import delimited

RED = (AssertionError, pytest.fail.Exception)
CONTEXTS = [(column, place) for column, cell in CELLS.items() for place in range(len(cell.others))]
QUOTING = [name for name in SOURCES if name.startswith("csv") and name != "csv-lines"]
IN_PLACE = [name for name, source in SOURCES.items() if not source.scattered]


def _spellings(name: str) -> list[str]:
    source = SOURCES[name]
    return [
        spelling for spelling, ids in IDS.items() if ids.kind or not (source.typed or source.text)
    ]


def _few(options: list, turn: int, number: int) -> list:
    """Return some options, others at each turn."""
    return [options[(turn * number + step) % len(options)] for step in range(number)]


@pytest.mark.parametrize("name", SOURCES)
def test_one_id_is_one_person(name, tmp_path):
    for spelling in _few(_spellings(name), list(SOURCES).index(name), 1):
        law.one_id_is_one_person(SOURCES[name], tmp_path, spelling)


@pytest.mark.parametrize("name", IN_PLACE)
def test_one_cell_changes_one_row_or_person(name, tmp_path):
    turn = list(SOURCES).index(name)
    for column, place in _few(CONTEXTS, 5 * turn, 1):
        law.one_cell_changes_one_row(SOURCES[name], tmp_path, column, place, person=turn % 2 == 0)


@pytest.mark.parametrize("name", ["csv-lines", *QUOTING[::2]])
def test_one_text_changes_one_row_of_a_csv_file(name, tmp_path):
    law.one_text_changes_one_row(SOURCES[name], tmp_path, list(SOURCES).index(name) % 3)


@pytest.mark.product
@pytest.mark.parametrize("name", SOURCES)
def test_the_invariant_for_all_cases_of_a_source(name, tmp_path):
    source = SOURCES[name]
    for spelling in _spellings(name):
        law.one_id_is_one_person(source, tmp_path, spelling)
    if source.scattered:
        law.one_cell_changes_one_row(source, tmp_path, "levels", 0)
        return
    for column, context in CONTEXTS:
        for person in (False, True):
            law.one_cell_changes_one_row(source, tmp_path, column, context, person=person)
    for place in range(3):
        law.one_text_changes_one_row(source, tmp_path, place)


@pytest.mark.product
@pytest.mark.parametrize("name", QUOTING)
@pytest.mark.parametrize("longest", [5, 6, 7, 8])
def test_pieces_in_which_a_file_is_read_change_nothing(name, longest, tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "_PIECE", longest)
    for place in range(3):
        law.one_text_changes_one_row(SOURCES[name], tmp_path, place)
    for spelling in ("punctuated", "long"):
        law.one_id_is_one_person(SOURCES[name], tmp_path, spelling)


# --- The end and the head of a file


@pytest.mark.parametrize("end", ['9,F,"open', '9,"F', '9,F,"x"', "9,F,", '9,"', '"', ""])
def test_an_unfinished_last_record_changes_no_other(end, tmp_path):
    path = tmp_path / "rows.csv"
    table = law.Table(
        SOURCES["csv-all"]._replace(make=lambda *_: path), tmp_path, "levels", law.ROWS, Schema()
    )
    recorded = []
    for last in ("9,M,ok\n", end or "\n"):
        path.write_text(f"id,cell,note\n1,F,a\n2,M,\n{last}", encoding="utf-8")
        recorded.append(table.observed([]))
    law.require_neighbours(*recorded, 2, end)
    assert recorded[0].n == 3


@pytest.mark.parametrize("head", ["\ufeffid", '"id"', '\ufeff"id"', '"i\nd",id', '"a"",\n",id'])
def test_the_head_of_a_file_is_one_record(head, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(f"{head},cell,note\n1,F,F,F\n2,F,F,F\n", encoding="utf-8")
    source = SOURCES["csv-all"]._replace(make=lambda *_: path)
    assert law.Table(source, tmp_path, "levels", law.ROWS, Schema()).observed([]).n == 2


# --- One table given twice, and whose codebook counts


def _twice(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": [1, 2], "cell": ["F", "M"], "note": ["", ""]})
    for twice in (lambda: [frame, frame], lambda: iter([frame, frame.copy(deep=False)])):
        source = SOURCES["pandas"]._replace(make=lambda *_, twice_given=twice: twice_given())
        table = law.Table(source, tmp_path, "levels", law.ROWS_ADDED, Schema())
        # An iterable is refused while it is read.
        try:
            observed = table.observed([])
        except FrameError as error:
            observed = law.Observed(refusal=str(error))
        assert "given twice" in observed.refusal, "each row of a table counts twice"


def test_a_table_given_twice_is_refused(tmp_path):
    _twice(tmp_path)


def test_equal_tables_are_not_one_table(tmp_path):
    """Whether cells are equal decides on no refusal: that would be an answer about rows."""
    parts = SOURCES["list-of-frames"]
    table = law.Table(parts, tmp_path, "levels", law.ROWS, Schema("whole"))
    same, record = Record("1", 1, "F"), Record("2", 2, "M")
    for records in ([same, record, same, record], [same, same, same, same], [same, same], []):
        assert table.observed(records).n == len(records)


def _overruled() -> None:
    """A table may not choose whom its readers protect."""
    book = dp.codebook(cell=["F", "M"])
    frame = book.attach(pd.DataFrame({"id": [1, 1], "cell": ["F", "M"]}))
    with dp.options(codebook=dp.codebook(cell=["F", "M"], person="id")):
        for data in (frame, pa.Table.from_pandas(frame), [frame]):
            try:
                fit = dp.dp_table("~ cell", data, eps=1.0)
            except CodebookError:
                continue
            assert "one row" not in str(fit.summary()), "a row is protected instead of a person"


def test_an_attached_codebook_may_not_weaken_the_unit():
    _overruled()


# --- The contract is itself tested: each planted fault has to be convicted


def _id(source: str, spelling: str):
    return lambda folder: law.one_id_is_one_person(SOURCES[source], folder, spelling)


def _cell(source: str, column: str, context: int):
    return lambda folder: law.one_cell_changes_one_row(SOURCES[source], folder, column, context)


def _text(source: str, place: int = 1):
    return lambda folder: law.one_text_changes_one_row(SOURCES[source], folder, place)


FAULTS = [
    *((planted.ids_are_compared_as_floats, _id("csv-all", name)) for name in ("digits-18", "hex")),
    *(
        (planted.ids_are_compared_as_floats, _id("pandas", name))
        for name in ("whole-18", "decimals")
    ),
    (planted.ids_are_compared_as_floats, _id("polars", "zeros")),
    (planted.words_of_missing_are_missing, _id("lists", "missing-words")),
    (planted.ids_are_not_stripped, _id("parquet", "spaces")),
    *((planted.quoted_records_are_read_by_line, _text(value)) for value in QUOTING[::2]),
    (planted.quoted_records_are_read_by_line, _id("csv-minimal", "punctuated")),
    (planted.quotes_span_lines_of_writers_who_do_not_quote, _text("csv-lines")),
    (planted.a_quote_opens_a_cell_anywhere, _text("csv-lines")),
    (planted.carriage_returns_end_records, _text("csv-lines")),
    *(
        (planted.columns_are_refused_by_inferred_types, _cell(name, "levels", 1))
        for name in ("pandas", "arrays")
    ),
    (planted.cells_are_read_by_the_type_of_their_column, _cell("lists", "number", 1)),
    (planted.a_table_may_be_given_twice, _twice),
    (planted.an_attached_codebook_overrules, lambda folder: _overruled()),
]


@pytest.mark.parametrize(
    ("fault", "contract"),
    FAULTS,
    ids=[f"{fault.__name__}-{number}" for number, (fault, _) in enumerate(FAULTS)],
)
def test_planted_fault_of_ingestion_is_convicted(fault, contract, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        fault(patch)
        with pytest.raises(RED):
            contract(tmp_path)
