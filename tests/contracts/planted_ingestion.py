"""Faults between raw input and private design, each planted with a monkeypatch."""

from importlib import import_module

import numpy as np
import polars as pl
import pytest

from dpmodels.codebook import Codebook
from dpmodels.errors import FrameError
from dpmodels.frames import to_float
from dpmodels.frames.columns import NativeRows, kind_of_arrow
from dpmodels.frames.delimited import open_delimited
from dpmodels.frames.open import Tables
from dpmodels.frames.persons import Keys, person_keys
from dpmodels.variables import Categorical

# The packages' re-exports hide modules of the same name.
COLUMNS = import_module("dpmodels.frames.columns")
CONVERT = import_module("dpmodels.frames.convert")
DECLARED = import_module("dpmodels.resolve_codebook")
DELIMITED = import_module("dpmodels.frames.delimited")
OPEN = import_module("dpmodels.frames.open")
PERSONS = import_module("dpmodels.frames.persons")
ROWS = import_module("dpmodels.design.rows")


def ids_are_compared_as_floats(patch: pytest.MonkeyPatch) -> None:
    def floats(cells, secret, missing=()):
        keys, values = person_keys(cells, secret, missing), to_float(cells)
        number = np.isfinite(values)
        high = np.where(number, (values + 0.0).view(np.uint64), keys.high)
        return Keys(high, np.where(number, 0, keys.low), keys.has_id)

    patch.setattr(PERSONS, "person_keys", floats)


def words_of_missing_are_missing(patch: pytest.MonkeyPatch) -> None:
    def dropped(cells, secret, missing=()):
        return person_keys(cells, secret, (*missing, "NA", "nan", "Inf"))

    patch.setattr(PERSONS, "person_keys", dropped)


def ids_are_not_stripped(patch: pytest.MonkeyPatch) -> None:
    def marked(cells, secret, missing=()):
        texts = [cell if cell is None else f"<{cell}>" for cell in cells.tolist()]
        return person_keys(np.array(texts, object), secret, missing)

    patch.setattr(PERSONS, "person_keys", marked)


def quoted_records_are_read_by_line(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OPEN, "open_delimited", lambda path, mode: open_delimited(path, "lines"))


def quotes_span_lines_of_writers_who_do_not_quote(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OPEN, "open_delimited", lambda path, mode: open_delimited(path, "records"))


def a_quote_opens_a_cell_anywhere(patch: pytest.MonkeyPatch) -> None:
    def toggling(file):
        record = ""
        for line in file:
            record += line
            if record.count('"') % 2 == 0:
                yield record.rstrip("\r\n").replace('"', "").split(",")
                record = ""

    def toggling_blocks(file, positions, rows, *, lines):
        yield [tuple(cells[at] for at in positions) for cells in toggling(file)]

    patch.setattr(DELIMITED, "blocks", toggling_blocks)
    patch.setattr(DELIMITED, "first_record", lambda file, *, lines: next(toggling(file), []))


def carriage_returns_end_records(patch: pytest.MonkeyPatch) -> None:
    opened = DELIMITED._opened

    def universal(path):
        file = opened(path)
        file.reconfigure(newline=None)
        return file

    patch.setattr(DELIMITED, "_opened", universal)


def columns_are_refused_by_inferred_types(patch: pytest.MonkeyPatch) -> None:
    require_declared = ROWS.require_declared

    def inferred(source, declared):
        require_declared(source, declared)
        for name, variable in declared.items():
            cells = next(source.chunks((name,), 100))[name]
            text = isinstance(variable, Categorical) and isinstance(variable.levels[0], str)
            if text and cells.dtype.kind in "biu":
                raise FrameError("whole numbers, where levels are text")

    patch.setattr(ROWS, "require_declared", inferred)


def cells_are_read_by_the_type_of_their_column(patch: pytest.MonkeyPatch) -> None:
    converted = ROWS.converted

    def promoted(codebook, chunk):
        texts = {name: np.asarray(cells.tolist()) for name, cells in chunk.items()}
        strict = {
            name: cells if cells.dtype.kind in "biuf" else np.full(len(cells), np.nan)
            for name, cells in texts.items()
        }
        return converted(codebook, strict)

    patch.setattr(ROWS, "converted", promoted)


def a_table_may_be_given_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Tables, "require_new", lambda self, data, label: None)


def an_attached_codebook_overrules(patch: pytest.MonkeyPatch) -> None:
    def first(codebook, data, sites):
        return codebook if codebook is not None else DECLARED._attached(data, sites) or Codebook()

    patch.setattr(DECLARED, "_codebook_source", first)


def columns_are_refused_by_types_in_memory(patch: pytest.MonkeyPatch) -> None:
    def declared(self, name):
        import pyarrow as pa

        table = self.frame if isinstance(self.frame, pa.Table) else self.frame.to_arrow()
        return kind_of_arrow(table.schema.field(name).type)

    patch.setattr(NativeRows, "kind", declared)


def dates_are_no_levels(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CONVERT, "time_texts", lambda times: [""] * len(times))


def clocks_are_missing(patch: pytest.MonkeyPatch) -> None:
    cells = COLUMNS._polars_cells

    def dropped(series):
        return cells(series.cast(pl.Duration) if series.dtype == pl.Time else series)

    patch.setattr(COLUMNS, "_polars_cells", dropped)
