"""Public rows as columns of a design: as they are written, and held as the rows of a fit were."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpmodels.codebook import Codebook
from dpmodels.formula.coding import Design
from dpmodels.formula.values import Columns
from dpmodels.typing import Floats
from dpmodels.variables import Numeric


@dataclass(frozen=True, eq=False)
class RowCoder:
    """Codes public rows as columns of a design; holds none."""

    design: Design
    parts: Callable[[object], Iterator[Columns]]  # of a table: its columns as they are written
    table: Callable[[object], pd.DataFrame]  # all cells of it

    def __call__(self, data: object) -> Floats:
        """Return coded rows, shape (columns, rows), nan if incomplete, held in public ranges."""
        blocks = [np.empty((len(self.design.names), 0))]
        blocks += [
            self.coded(on_steps(self.design.codebook, columns)) for columns in self.parts(data)
        ]
        return np.concatenate(blocks, axis=1)

    def read(self, data: object) -> Columns:
        """Return columns as they are written: numbers, days and level codes, nan if missing."""
        parts = list(self.parts(data))
        return {
            name: np.concatenate([np.empty(0), *(part[name] for part in parts)])
            for name in self.design.variables
        }

    def coded(self, columns: Columns) -> Floats:
        """Code columns, shape (columns, rows), nan if incomplete, held in their ranges."""
        coded = np.empty((len(self.design.names), len(next(iter(columns.values())))))
        self.design.evaluate(columns, coded)
        coded[:, np.isnan(coded).any(axis=0)] = np.nan
        return coded


def on_steps(codebook: Codebook, columns: Columns) -> Columns:
    """Round numbers to the steps that they are declared in."""
    return {name: _stepped(codebook[name], own) for name, own in columns.items()}


def _stepped(declared: object, values: Floats) -> Floats:
    if not isinstance(declared, Numeric) or not declared.step:
        return values
    # Held first: of a number far outside the quotient would overflow, and numpy tell of it.
    held = np.clip(values, declared.lower, declared.upper)
    return np.asarray(
        declared.lower + declared.step * np.rint((held - declared.lower) / declared.step)
    )
