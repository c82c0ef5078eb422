"""Many runs of a recipe on one table, with all their outcomes.

A run that raises an error, or returns non-finite numbers or another number of
them, is an outcome like any other: its frequency is tested too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from dpmodels.errors import ArgumentError
from dpmodels.typing import Floats

Batch = Callable[[object, int], ArrayLike]


@dataclass(frozen=True, repr=False, eq=False)
class Runs:
    """The outcomes of independent runs: values by kind, names of kinds, and the kind of each run.

    A matrix of values has shape (runs of that kind, finite numbers).
    """

    values: tuple[Floats, ...]
    kinds: tuple[str, ...]
    codes: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.codes)

    def cut(self, start: int, stop: int) -> Runs:
        """Return the runs from `start` to before `stop`."""
        chosen = self.codes[start:stop]
        before = np.bincount(self.codes[:start], minlength=len(self.kinds))
        counts = np.bincount(chosen, minlength=len(self.kinds))
        values = tuple(
            block[skip : skip + count]
            for block, skip, count in zip(self.values, before, counts, strict=True)
        )
        return Runs(values, self.kinds, chosen)

    def fraction(self, kind: str) -> float:
        """Return the fraction of the runs of a kind."""
        return float(np.mean(self.codes == self.code(kind))) if len(self) else 0.0

    def code(self, kind: str) -> int:
        """Return the code of a kind, -1 if it never occurred."""
        return self.kinds.index(kind) if kind in self.kinds else -1

    def of(self, kind: str) -> Floats:
        """Return the values of the runs of one kind."""
        return self.values[self.code(kind)] if kind in self.kinds else np.empty((0, 0))


def run(recipe: Recipe, rows: object, runs: int, batch: Batch | None = None) -> Runs:
    """Run a recipe many times on the same rows, or its batch once, with one line per run.

    ArgumentError if the batch does not return one line per run.
    """
    if batch is not None:
        try:
            output = batch(rows, runs)
            if isinstance(output, list):
                return _of_lines(output)
            values = np.asarray(output, dtype=np.float64)
        except Exception as error:
            return _sorted([_raised(error)] * runs, [np.empty(0)] * runs)
        if values.ndim == 0 or len(values) != runs:
            raise ArgumentError(
                f"batch returned an array of shape {values.shape} for {runs} runs: return one line "
                "per run, shape (runs, k)"
            )
        return _of_matrix(values.reshape(runs, -1))
    outcomes = [_once(recipe, rows) for _ in range(runs)]
    return _sorted([kind for kind, _ in outcomes], [value for _, value in outcomes])


def _raised(error: Exception) -> str:
    return f"raises {type(error).__name__}"


def _once(recipe: Recipe, rows: object) -> tuple[str, Floats]:
    try:
        value = released(recipe(rows))
    except Exception as error:
        return _raised(error), np.empty(0)
    finite = np.isfinite(value)
    return _kind(finite), value[finite]


def _kind(finite: NDArray[np.bool_]) -> str:
    numbers = f"{finite.size} number{'s' if finite.size != 1 else ''}"
    if finite.all():
        return numbers
    absent = np.flatnonzero(~finite)
    positions = ", ".join(map(str, absent[:6])) + (", ..." if len(absent) > 6 else "")
    return f"{numbers}, {len(absent)} not finite (at {positions})"


def _of_matrix(values: Floats) -> Runs:
    finite = np.isfinite(values)
    if finite.all():
        return Runs((values,), (_kind(finite[0]),), np.zeros(len(values), dtype=np.intp))
    return _of_lines(list(values))


def _of_lines(lines: list[Floats]) -> Runs:
    masks = [np.isfinite(line) for line in lines]
    values = [line[mask] for line, mask in zip(lines, masks, strict=True)]
    return _sorted([_kind(mask) for mask in masks], values)


def _sorted(kinds: Sequence[str], values: Sequence[Floats]) -> Runs:
    distinct = tuple(sorted(set(kinds)))
    code_of = {kind: code for code, kind in enumerate(distinct)}
    codes = np.array([code_of[kind] for kind in kinds], dtype=np.intp)
    parts: list[list[Floats]] = [[] for _ in distinct]
    for code, value in zip(codes, values, strict=True):
        parts[code].append(value)
    # Two masks may have the same description: then the shorter lines are padded.
    return Runs(tuple(map(_stacked, parts)), distinct, codes)


def _stacked(lines: list[Floats]) -> Floats:
    width = max(map(len, lines))
    return np.stack([np.pad(line, (0, width - len(line))) for line in lines])


def commonest(*sides: Runs) -> str:
    """Return the most frequent kind of outcome with numbers over both tables, empty without any."""
    counted: Counter[str] = Counter()
    for side in sides:
        for code, n_runs in enumerate(np.bincount(side.codes, minlength=len(side.kinds))):
            numbers = side.values[code].shape[1]
            counted[side.kinds[code]] += int(n_runs) if numbers else 0
    kind, n_runs = counted.most_common(1)[0]
    return kind if n_runs else ""


# A recipe: any function from a table to a release.

# A recipe may have the attributes batch(rows, runs) -> array of shape (runs, k), law ("gaussian")
# and score(values of shape (m, k)) -> array of shape (m,); see `dpmodels.audit.verb.audit`.
Recipe = Callable[[object], object]


def released(value: object) -> Floats:
    """Lay out a released value as one line of numbers in a fixed order.

    Parameters
    ----------
    value : number, array, mapping, xarray, pandas, or a result with ``tidy()``
        Strings and categories are hashed to numbers; None becomes nan.

    Returns
    -------
    ndarray of float64, shape (k,)

    Examples
    --------
    >>> released({"mean": 2.5, "n": 4}), released([[1, 2], [3, 4]]).tolist()
    (array([2.5, 4. ]), [1.0, 2.0, 3.0, 4.0])
    """
    match value:
        case Mapping():
            return _joined([released(part) for part in value.values()])
        case xr.DataArray() | pd.Series() | pd.Index():
            return _flat(value.to_numpy())
        case xr.Dataset():
            return _joined([_flat(part.to_numpy()) for part in value.data_vars.values()])
        case pd.DataFrame():
            return _joined([_flat(value[name].to_numpy()) for name in value.columns])
        case str() | bytes() | None:
            return np.array([_number(value)])
        case list() | tuple() if not _is_numeric(value):
            return _joined([released(part) for part in value])
    if hasattr(value, "tidy"):
        return released(value.tidy())
    return _flat(np.asarray(value))


def _is_numeric(value: object) -> bool:
    try:
        return np.asarray(value).dtype.kind in "biuf"
    except ValueError:
        return False


def _joined(parts: list[Floats]) -> Floats:
    return np.concatenate(parts) if parts else np.empty(0)


def _flat(array: NDArray[np.generic]) -> Floats:
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], axis=-1)
    if array.dtype.kind in "biuf":
        return np.ravel(array).astype(np.float64)
    return np.array([_number(cell) for cell in np.ravel(array)], dtype=np.float64)


def _number(cell: Any) -> float:
    """Return a cell as a number; a string is hashed to an integer below 2**52."""
    if cell is None:
        return float("nan")
    if isinstance(cell, str | bytes):
        code = pd.util.hash_array(np.array([str(cell)], dtype=object))[0]
        return float(int(code) >> 12)
    try:
        return float(cell)
    except (TypeError, ValueError):
        return _number(repr(cell))
