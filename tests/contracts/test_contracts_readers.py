"""Readers that infer types from text: no cell decides a refusal, or how another record is read."""

import csv
from datetime import date

import law_ingestion as law
import numpy as np
import planted_ingestion as planted
import pytest
from ingestion_cases import INFERRED_CELLS, TEXT_OTHERS
from ingestion_sources import INFERRING, READERS
from verb_entry import people, repeatable
from verbs import forms

import dpmodels as dp
from dpmodels.errors import CodebookError, DPModelsError

# Sites have rows of their own each, and are not readers.
FORMS = {name: form for name, form in forms("stored").items() if "protocol" not in form.arguments}
CONTEXTS = range(len(TEXT_OTHERS))
TURNS = {name: turn for turn, name in enumerate(INFERRING)}


@pytest.mark.parametrize("name", INFERRING)
def test_a_cell_gives_its_column_a_type_and_changes_no_other(name, tmp_path):
    source, turn = INFERRING[name], TURNS[name]
    column = list(INFERRED_CELLS)[turn % len(INFERRED_CELLS)]
    law.no_cell_renames_another(source, tmp_path, turn)
    law.no_cell_decides_a_refusal(source, tmp_path, column, turn)
    law.no_id_moves_another(source, tmp_path)


@pytest.mark.product
@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("name", INFERRING)
def test_the_invariant_for_all_cases_of_a_reader(name, context, tmp_path):
    source = INFERRING[name]
    law.no_cell_renames_another(source, tmp_path, context)
    columns = list(INFERRED_CELLS)
    for column in columns[context % 9 :: 9] if name == "duckdb" else columns:  # Which is slow
        law.no_cell_decides_a_refusal(source, tmp_path, column, context)
        law.one_cell_changes_one_row(source, tmp_path, column, context)


# --- Every verb


def _write(path, *, odd):
    """Write rows of the table of verbs; the first has no value, and makes all columns text if odd.

    Both spellings are missing values, and the person of the first row has no other.
    """
    rows = {name: cells.tolist() for name, cells in people().items()}
    head = dict.fromkeys(rows, "?" if odd else "")
    head |= {"id": "x" if odd else "999", "region": ""}  # "?" would be a level that occurs
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(rows)
        writer.writerow(head.values())
        writer.writerows(zip(*rows.values(), strict=True))
    return str(path)


def _answer(form, data, **more):
    with repeatable(form.id):
        try:
            fit = form.ask(data, **more)
        except DPModelsError as error:
            return f"{type(error).__name__}: {error}"
    return str(fit.summary())


def a_row_decides_nothing(form, read, folder, **more):
    """A verb prints the same of two tables whose columns have other types by one missing row."""
    plain, odd = (
        _answer(form, read(_write(folder / f"{odd}.csv", odd=odd)), **more) for odd in (False, True)
    )
    assert plain == odd
    return plain


# Rows of a query are sorted where they are split at random, each by a coin of its own. So another
# order gives the same distribution, but not the same split by one seed.
PAIRS = [
    pytest.param(form, name, id=f"{form.id}-{name}")
    for form in FORMS.values()
    for name in ("polars-dates", "polars-scan", "arrow", "duckdb")
    if (form.verb.suffix, name) != ("-tuned", "polars-scan")
]


@pytest.mark.product
@pytest.mark.parametrize(("form", "name"), PAIRS)
def test_a_row_decides_neither_a_refusal_nor_a_number(form, name, tmp_path):
    text = a_row_decides_nothing(form, READERS[name], tmp_path)
    assert not text.startswith("FrameError"), text


MEAN = FORMS["mean age ~ sex"]


@pytest.mark.product
@pytest.mark.parametrize("name", ["polars-dates", "polars-scan", "arrow", "duckdb"])
def test_a_row_decides_nothing_of_subsets_and_persons(name, tmp_path):
    subset = "(grade != 1) & (seen == True) & (day > '2001-02-03') & (region != 's')"
    for words in ({"subset": subset}, {"person": "id", "rows": 9}, {"person": "id"}):
        text = a_row_decides_nothing(MEAN, READERS[name], tmp_path, **words)
        assert "Private means" in text, text


@pytest.mark.parametrize("name", ["polars", "polars-scan", "arrow"])
def test_a_row_decides_nothing_of_a_private_codebook(name, tmp_path):
    read = READERS[name]
    typed, text = (read(_write(tmp_path / f"{odd}.csv", odd=odd)) for odd in (False, True))
    refusals = []
    for data in (typed, text):
        with pytest.raises(CodebookError) as caught:
            dp.dp_mean("wage ~ C(region)", data, codebook="private", eps=1.0, delta=1e-6)
        refusals.append(str(caught.value))
    assert refusals[0] == refusals[1]
    assert "in tables in memory" in refusals[0]
    types = dp.private_codebook(wage="numeric", limit=1e4)
    answers = []
    for data in (typed, text):
        with repeatable("private"):
            fit = dp.dp_mean("wage ~ C(region)", data, codebook=types, eps=20.0, delta=1e-3)
        answers.append(str(fit.summary()))
    assert answers[0] == answers[1]


# --- The contract is itself tested


def _law(reader, column, context):
    return lambda folder: law.no_cell_decides_a_refusal(INFERRING[reader], folder, column, context)


def _row(reader, column, context):
    return lambda folder: law.one_cell_changes_one_row(INFERRING[reader], folder, column, context)


def _names(reader, context):
    return lambda folder: law.no_cell_renames_another(INFERRING[reader], folder, context)


DATES, CLOCKS = 7, 9
FAULTS = [
    (planted.columns_are_refused_by_types_in_memory, _law("polars", "read levels", 0)),
    (planted.columns_are_refused_by_types_in_memory, _law("arrow", "read date", 0)),
    (planted.dates_are_no_levels, _row("polars-dates", "read days as levels", DATES)),
    (planted.dates_are_no_levels, _row("arrow", "read days as levels", DATES)),
    (planted.dates_are_no_levels, _names("arrow", DATES)),
    (planted.clocks_are_missing, _row("polars-dates", "read times as levels", CLOCKS)),
    (planted.clocks_are_missing, _names("polars-dates", CLOCKS)),
]


@pytest.mark.parametrize(
    ("fault", "contract"),
    FAULTS,
    ids=[f"{fault.__name__}-{number}" for number, (fault, _) in enumerate(FAULTS)],
)
def test_planted_fault_of_a_reader_is_detected(fault, contract, tmp_path):
    contract(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        fault(patch)
        with pytest.raises(AssertionError):
            contract(tmp_path)


def test_a_row_that_decides_a_kind_is_detected(tmp_path):
    """A verb whose answer depends on whether a column is text fails the law of all verbs."""

    def strict(path):
        data = READERS["polars"](path)
        numbers = [name for name in data.columns if data[name].dtype.is_numeric()]
        return data.with_columns(data[name] for name in numbers).select(
            *(data[name] if name in numbers else data[name].is_null() for name in data.columns)
        )

    with pytest.raises(AssertionError):
        a_row_decides_nothing(MEAN, strict, tmp_path)


def test_dates_and_numpy_times_are_levels_as_their_texts_are():
    rows = {"text": ["2020-02-03", "2020-03-04", "?"]}
    rows["date"] = [date(2020, 2, 3), date(2020, 3, 4), None]
    rows["time"] = np.array(["2020-02-03", "2020-03-04", "NaT"], "M8[s]")
    tables = []
    for cells in rows.values():
        with repeatable("levels"):
            fit = dp.dp_table(
                "~ x", {"x": cells}, codebook={"x": ["2020-02-03", "2020-03-04"]}, eps=1.0
            )
        tables.append(str(fit.summary()))
    assert len(set(tables)) == 1
