"""Raw columns to numbers and level codes, by the codebook alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.codebook import Codebook
from dpmodels.formula import Design
from dpmodels.frames import open_rows, require_declared, to_codes, to_float
from dpmodels.typing import Floats
from dpmodels.variables import Categorical, Numeric

# 64 MB of float64: a choice, beside which what a chunk costs by itself is small.
READ_CELLS = 2**23


def read_rows(columns: int) -> int:
    """Return how many rows to read at a time: about 64 MB of the wanted columns."""
    return min(131_072, max(8_192, READ_CELLS // columns))


def converted(codebook: Codebook, chunk: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
    """Turn raw columns into numbers and level codes, nan where missing or unlisted."""
    columns: dict[str, Floats] = {}
    for name, declared in codebook.items():
        if isinstance(declared, Categorical):
            codes = to_codes(chunk[name], declared.levels)
            columns[name] = np.where(codes < 0, np.nan, codes)
        else:
            columns[name] = _stepped(declared, to_float(chunk[name]))
    return columns


def _stepped(declared: Numeric, values: Floats) -> Floats:
    """Round values to the declared steps, where there are any."""
    if not declared.step:
        return values
    # Held first: of a number far outside the quotient would overflow, and numpy tell of it.
    held = np.clip(values, declared.lower, declared.upper)
    return np.asarray(
        declared.lower + declared.step * np.rint((held - declared.lower) / declared.step)
    )


def row_coder(design: Design) -> Callable[[object], Floats]:
    """Return a function that codes public rows, shape (columns, rows), nan if incomplete."""

    def code(data: object) -> Floats:
        source = open_rows(data)
        require_declared(source, design.codebook)
        blocks = [np.empty((len(design.names), 0))]
        for chunk in source.chunks(design.variables, read_rows(len(design.variables))):
            columns = converted(design.codebook, chunk)
            block = np.empty((len(design.names), len(next(iter(columns.values())))))
            design.evaluate(columns, block)
            blocks.append(block)
        coded = np.concatenate(blocks, axis=1)
        coded[:, np.isnan(coded).any(axis=0)] = np.nan
        return coded

    return code


def declared_facts(formula: str, codebook: Codebook) -> dict[str, str]:
    """State a formula and the declarations it uses; labels and units are no part of them."""
    declared = {
        f"variable {name!r}": repr(list(variable.levels))
        if isinstance(variable, Categorical)
        else f"{variable.lower!r} to {variable.upper!r}"
        + (f" by {variable.step!r}" if variable.step else "")
        for name, variable in codebook.items()
    }
    return {"formula": formula, **declared}
