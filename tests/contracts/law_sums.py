"""Statistics add over disjoint rows, bit for bit, however the rows come."""

import csv
from collections import Counter
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from contract_cases import BOOK, FORMULA, Case, Table, table

import dpmodels.design.private
import dpmodels.design.rows
import dpmodels.noise.lattice
from dpmodels.design import private_design
from dpmodels.noise.lattice import Lattice
from dpmodels.statistics import Passes, Statistic, clipped_moments

ROWS = 97
HALVINGS = 6
# The package's re-export hides the module of the same name.
MOMENTS = import_module("dpmodels.statistics.moments")


@dataclass(frozen=True)
class Clipped:
    """The statistic of clipped rows, on a lattice, in the place of a mechanism's."""

    bits: int

    def exact(self, formula: str, data: object, codebook: object) -> tuple[Statistic, None]:
        # Of these columns some rows are short; of all, none are.
        design = private_design("~ age + wage", data, codebook)
        lattice = Lattice(self.bits, len(design.public.names))
        return clipped_moments(design, lattice, HALVINGS), None


@dataclass(frozen=True)
class Turned:
    """The statistic of rows that a matrix transforms, some of them out of the ball."""

    bits: int

    def exact(self, formula: str, data: object, codebook: object) -> tuple[Statistic, None]:
        design = private_design(formula, data, codebook)
        lattice = Lattice(self.bits, len(design.public.names))
        transform = np.random.default_rng(2).normal(size=(lattice.columns, lattice.columns))
        return Passes((design,), lattice).within(transform), None


Measured = Case | Clipped | Turned


def _formula(case: Measured) -> str:
    return case.formula if isinstance(case, Case) else FORMULA


def _integers(statistic: Statistic) -> tuple[list[list[int]], int]:
    exact, rows = statistic.cross()
    is_whole = exact.dtype == np.int64 or {type(cell) for cell in exact.ravel()} == {int}
    if not is_whole and all(isinstance(cell, Counter) for cell in exact):
        is_whole = {type(count) for cell in exact for count in cell.values()} == {int}
    assert is_whole, "not all cells are integers"
    return exact.tolist(), rows


def _exact(case: Measured, data: object) -> tuple[list[list[int]], int]:
    return _integers(case.exact(_formula(case), data, BOOK)[0])


def _taken(data: Table, rows: np.ndarray) -> dict[str, Any]:
    return {name: column[rows] for name, column in data.items()}


def parts_add_up_to_the_pooled_rows(case: Measured) -> None:
    data, order = table(ROWS), np.arange(ROWS)
    pooled = _exact(case, data)
    for site in (order % 2, order % 5, (order > 3) * 1, order * 0):
        parts = [case.exact(_formula(case), _taken(data, site == s), BOOK)[0] for s in range(5)]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        assert _integers(total) == pooled


def the_order_of_rows_is_irrelevant(case: Measured) -> None:
    data = table(ROWS)
    shuffled = np.random.default_rng(1).permutation(ROWS)
    assert _exact(case, _taken(data, shuffled)) == _exact(case, data)


def chunks_and_threads_are_irrelevant(case: Measured) -> None:
    data = table(ROWS)
    pooled = _exact(case, data)
    for read, block, carry, threads in ((1, 8192, 512, 1), (10, 3, 1, 2), (97, 7, 4, 5)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dpmodels.design.rows, "read_rows", lambda _, n=read: n)
            patch.setattr(dpmodels.noise.lattice.Lattice, "block_rows", block)
            patch.setattr(MOMENTS, "BLOCKS_PER_CARRY", carry)
            patch.setattr(dpmodels.design.private.os, "cpu_count", lambda n=threads: n)
            assert _exact(case, data) == pooled, f"blocks of {block}, {threads} threads"


def the_container_is_irrelevant(case: Measured, folder: Path) -> None:
    data = table(ROWS)
    frame = pd.DataFrame(data)
    pooled = _exact(case, data)
    for kind, container in _containers(data, frame, folder).items():
        assert _exact(case, container) == pooled, f"{kind}: other integers than a mapping"


def _containers(data: Table, frame: pd.DataFrame, folder: Path) -> dict[str, object]:
    pq.write_table(pa.table(data), folder / "rows.parquet", row_group_size=11)
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(data)
        writer.writerows(zip(*(column.tolist() for column in data.values()), strict=True))
    return {
        "lists": {name: column.tolist() for name, column in data.items()},
        "pandas": frame,
        "pandas, shuffled columns": frame[["sex", "wage", "region", "age"]].assign(more=1),
        "pandas, categories": frame.astype({"sex": "category", "region": "category"}),
        "polars": pl.DataFrame(data),
        "arrow": pa.table(data),
        "structured": frame.to_records(index=False),
        "parquet": folder / "rows.parquet",
        "csv": folder / "rows.csv",
        "stream": (frame.iloc[at : at + 13] for at in range(0, ROWS, 13)),
    }
