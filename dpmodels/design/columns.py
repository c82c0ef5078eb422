"""Raw columns to numbers and level codes, by the codebook alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, Final, TypeVar, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpmodels.codebook import Codebook
from dpmodels.dates import Date
from dpmodels.design.parts import Part
from dpmodels.errors import ArgumentError, shorten
from dpmodels.formula import Design
from dpmodels.formula.coding import RowCoder, on_steps
from dpmodels.formula.values import Columns
from dpmodels.frames import concatenated, open_rows, require_declared, to_codes, to_days, to_float
from dpmodels.frames.convert import LevelCodes, number, plain
from dpmodels.frames.protocol import Cells, Chunk, Coded, decoded
from dpmodels.typing import Array, Floats
from dpmodels.variables import Categorical, Variable

# 64 MB of float64: a choice, beside which what a chunk costs by itself is small.
READ_CELLS = 2**23


def read_rows(columns: int) -> int:
    """Return how many rows to read at a time: about 64 MB of the wanted columns."""
    return min(131_072, max(8_192, READ_CELLS // columns))


def converted(codebook: Codebook, chunk: Chunk) -> Columns:
    """Turn raw columns into numbers, days and level codes, nan where missing or unlisted."""
    return on_steps(codebook, as_written(codebook, chunk))


def as_written(codebook: Codebook, chunk: Chunk) -> dict[str, Floats]:
    """Do the same without rounding numbers to their declared steps."""
    return {name: _as_declared(declared, chunk[name]) for name, declared in codebook.items()}


def _as_declared(declared: Variable, cells: Cells) -> Floats:
    if isinstance(cells, Coded):
        return cells.by_entry(partial(_as_declared, declared), np.nan)
    missing = declared.missing
    if isinstance(declared, Categorical):
        levels, labels = declared.levels, readable_labels(declared)
        positions = [*range(len(levels)), *(np.nan for _ in missing), *labels.values(), np.nan]
        return np.array(positions)[to_codes(cells, (*levels, *missing, *labels))]
    read = to_days if isinstance(declared, Date) else to_float
    values = read(cells)
    if not missing:
        return values
    return np.where(np.isin(values, read(np.array(missing, dtype=object))), np.nan, values)


@lru_cache
def readable_labels(declared: Categorical) -> Mapping[str, int]:
    """Return the labels that a cell may have in place of a level, with the level's position.

    Programs that read labelled codes, such as ``pandas.read_stata``, may give the labels. A label
    that also names a level or a missing code, or that spells a number, is left out: such a cell is
    read as the level.

    >>> readable_labels(Categorical({1: "male", 2: "3", 3: "female"}))
    {'male': 0, 'female': 2}
    """
    codes = LevelCodes((*declared.levels, *declared.missing))
    return {
        label: position
        for position, label in enumerate(declared.labels)
        if codes[label] < 0 and np.isnan(number(label))
    }


def row_coder(design: Design, known: Design | None = None) -> RowCoder:
    """Return the coder of public rows, shape (columns, rows), nan if incomplete.

    `known` is the column of an offset.
    """

    def parts(data: object, require_read: bool) -> Iterator[Columns]:
        source, n_read = open_rows(data), 0
        require_declared(source, design.codebook)
        for chunk in source.chunks(design.variables, read_rows(len(design.variables))):
            columns = as_written(design.codebook, chunk)
            if require_read:
                for name, declared in design.codebook.items():
                    unread = np.flatnonzero(np.isnan(columns[name]))
                    misread = unread[~are_missing(declared, decoded(chunk[name])[unread])]
                    if len(misread):
                        row = n_read + misread[0] + 1
                        raise ArgumentError(
                            f"{name!r} in row {row} of the public rows is not what the codebook "
                            f"declares ({shorten(declared.describe(), 200)}): write such a value, "
                            "or leave the cell missing"
                        )
            n_read += len(next(iter(columns.values()), ()))
            yield columns

    return RowCoder(design, parts, _table, None if known is None else row_coder(known))


def are_missing(declared: Variable, cells: Array) -> NDArray[np.bool_]:
    """Whether cells without a value are empty or have a declared code; others are misread."""
    coded = to_codes(cells, declared.missing) >= 0
    masked, values = np.ma.getmaskarray(cells), np.ma.getdata(cells)
    blank = [isinstance(text, str) and not text.strip() for text in map(plain, values.tolist())]
    return np.asarray(coded | masked | pd.isna(values) | np.array(blank, dtype=bool))


def public_columns(codebook: Codebook, data: object) -> Columns:
    """Read public rows: numbers on their steps, days and level codes, nan where missing."""
    source = open_rows(data)
    require_declared(source, codebook)
    chunks = source.chunks(tuple(codebook), read_rows(len(codebook)))
    parts = [converted(codebook, chunk) for chunk in chunks]
    return {
        name: np.concatenate([np.empty(0), *(part[name] for part in parts)]) for name in codebook
    }


def _table(data: object) -> pd.DataFrame:
    """Return all cells of a public table, with its index where it is pandas' own."""
    if isinstance(data, pd.DataFrame):
        return data.copy()
    source = open_rows(data)
    chunks = list(source.chunks(source.names, read_rows(len(source.names))))
    cells = {name: [chunk[name] for chunk in chunks] for name in source.names}
    return pd.DataFrame({name: decoded(concatenated(parts)) for name, parts in cells.items()})


def declared_facts(formula: str, codebook: Codebook) -> dict[str, str]:
    """Return a formula and the declarations it uses, without labels and units."""
    declared = {f"variable {name!r}": _stated(variable) for name, variable in codebook.items()}
    return {"formula": formula, **declared}


def _stated(variable: Variable) -> str:
    missing = f", missing {list(variable.missing)!r}" if variable.missing else ""
    match variable:
        case Categorical(levels=levels):
            return repr(list(levels)) + missing
        case Date(lower=lower, upper=upper):
            return f"{lower} to {upper}{missing}"
    step = f" by {variable.step!r}" if variable.step else ""
    return f"{float(variable.lower)!r} to {float(variable.upper)!r}{step}{missing}"


# Rows that take several places of a table and count as often.

Answer = TypeVar("Answer")
Span = slice | NDArray[np.intp]


# A choice: sums of a block are below 2**53, and below 2**59 as often as they count.
FOLDS: Final = 64
# A choice: of more different numbers of places, blocks are of their binary digits.
MANY_PLACES: Final = 64


def placed(
    places: Array | None, n_rows: int, block: int, folds: int = 1
) -> Iterator[tuple[Span, int, int]]:
    """Yield blocks of rows, the number of rows in each, and how often they count.

    `places`, shape (rows,), are whole numbers from 0. A block is of adjacent rows that take
    the same number of places; rows that take none are left out. It has at most `block` rows, and
    at most ``folds * block`` as often as they count. A row with more places comes repeatedly, and
    where there are many different numbers once for each binary digit of its own.
    """
    if places is None:
        for at in range(0, n_rows, block):
            yield slice(at, at + block), min(block, n_rows - at), 1
        return
    if n_rows == 0:
        return
    edges = [*(np.flatnonzero(np.diff(places)) + 1).tolist(), n_rows]
    if len(edges) > MANY_PLACES and places.max() < folds * block:
        rows, often = as_often(places)
        for part, size, times in placed(often, len(rows), block, folds):
            yield rows[part], size, times
        return
    for start, end in pairwise([0, *edges]):
        rounds, left = divmod(int(places[start]), folds * block)
        for times in [folds * block] * rounds + [left] * (left > 0):
            size = min(block, folds * block // times)
            for at in range(start, end, size):
                span = slice(at, min(at + size, end))
                yield span, span.stop - at, times


def as_often(counts: Array) -> tuple[NDArray[np.intp], Array]:
    """Return rows, each once for every binary digit of its count, and how often each counts then.

    So few blocks of rows count equally often, however many counts there are.

    >>> import numpy as np
    >>> [array.tolist() for array in as_often(np.array([1, 6, 0]))]
    [[0, 1, 1], [1, 2, 4]]
    """
    digits = range(int(counts.max(initial=0)).bit_length())
    rows = [np.flatnonzero(counts >> digit & 1) for digit in digits]
    times = np.repeat(2 ** np.arange(len(rows), dtype=np.int64), [len(part) for part in rows])
    return np.concatenate([np.zeros(0, dtype=np.intp), *rows]), times


def in_blocks(
    part: Part, max_rows: int, function: Callable[[Span], Answer]
) -> Iterator[tuple[Answer, int]]:
    """Apply an additive function to blocks of rows, and yield the number of rows too."""
    for span, size, times in placed(part.places, part.rows, max_rows, FOLDS):
        yield multiplied(function(span), times), times * size


def by_rows(
    part: Part, max_rows: int, function: Callable[[Part], Answer]
) -> Iterator[tuple[Answer, int]]:
    """Apply an additive function to parts of at most `max_rows` rows, as :func:`in_blocks` does."""
    return in_blocks(part, max_rows, lambda span: function(part.at(span)))


def multiplied(answer: Answer, times: int) -> Answer:
    """Multiply an additive answer by how often its rows count."""
    if times == 1 or answer is None:
        return answer
    value: Any = answer
    if isinstance(value, dict):
        value = {key: multiplied(part, times) for key, part in value.items()}
    elif isinstance(value, tuple):
        parts = (multiplied(part, times) for part in value)
        value = type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    else:
        value = value * times
    return cast("Answer", value)
