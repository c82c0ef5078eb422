"""How many cells of a table do not fit their declarations, and why."""

import datetime as dt
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.design.misfits import count_misfits
from dpmodels.frames import open_rows

COUNTS = ("missing", "not_readable", "unknown_level", "outside")


def counted(column, declared):
    book = dp.codebook(x=declared)
    return count_misfits(open_rows({"x": column}), book, ())


@pytest.mark.parametrize(
    ("cells", "declared", "expected"),
    [
        ([1, 2.5, 10.0, 0], (0, 10), (0, 0, 0, 0)),
        ([-1, 11, float("inf"), float("nan"), None, "", " "], (0, 10), (4, 0, 0, 3)),
        (["3", "many", "NA", b"4", [5], Decimal(6)], (0, 10), (0, 3, 0, 0)),
        ([-9, 3, 99], dp.Numeric(0, 10, missing=[-9, 99]), (2, 0, 0, 0)),
        ([True, False, 2], (0, 1), (0, 0, 0, 1)),
        (["F", "M", "f", "", None, "X"], ["F", "M"], (2, 0, 2, 0)),
        ([1, 2, 3.0, np.nan], [1, 2], (1, 0, 1, 0)),
        (["a", "", "b"], ["a", ""], (0, 0, 1, 0)),
        (["yes", "no", "dk"], dp.Categorical(["yes", "no"], missing=["dk"]), (1, 0, 0, 0)),
        (
            ["2001-01-01", dt.date(2003, 1, 1), "soon", 20010101, None],
            ("2001-01-01", "2002-12-31"),
            (1, 2, 0, 1),
        ),
    ],
)
def test_each_cell_counts_once_with_its_reason(cells, declared, expected):
    result = counted(cells, declared)
    assert tuple(getattr(result.columns["x"], name) for name in COUNTS) == expected
    assert result.n_rows == len(cells)
    assert result.n_fitting == len(cells) - sum(expected)


@pytest.mark.parametrize("kind", ["Int64", "float64", "string", "category", "boolean"])
def test_missing_cells_of_any_type_are_missing(kind):
    column = pd.Series([1, 0, None], dtype="object").astype("Int64").astype(kind)
    declared = ["0", "1"] if kind in ("string", "category") else (0, 1)
    assert counted(column, declared).columns["x"].missing == 1
    assert counted(column, declared).n_fitting == 2


def test_a_row_fits_if_all_of_its_cells_do():
    rows = {"a": [1, 20, 3, 40], "b": ["x", "y", "z", "z"]}
    result = count_misfits(open_rows(rows), dp.codebook(a=(0, 10), b=["x", "y"]), ())
    assert (result.n_rows, result.n_fitting) == (4, 1)


def test_ids_are_missing_or_fit():
    rows = {"id": ["p1", None, " ", "-9", 7, 7.0]}
    book = dp.codebook(id=dp.Identifier(missing=[-9]), person="id")
    result = count_misfits(open_rows(rows), book, ("id",))
    assert result.columns["id"].missing == 3
    assert result.n_fitting == 3


def test_every_cell_is_counted_as_the_verbs_read_it():
    """A cell is complete for a verb, unclipped, if and only if it fits."""
    from dpmodels.design.columns import as_written

    book = dp.codebook(a=(0, 10), b=["x", "1"], c=("2001-01-01", "2002-12-31"))
    cells = [3, "3", "x", "1", 1.0, None, np.nan, "2001-05-05", dt.date(1999, 1, 1), -1, [1], ""]
    for name, variable in book.items():
        column = np.fromiter(cells, object, len(cells))
        read = as_written(dp.codebook({name: variable}), {name: column})[name]
        counts = count_misfits(open_rows({name: cells}), dp.codebook({name: variable}), ())
        lower, upper = counts.columns[name].bounds
        assert counts.n_fitting == ((read >= lower) & (read <= upper)).sum()


def test_only_the_curators_command_counts_misfits():
    package = Path(dp.__file__).parent
    users = [
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "design.misfits" in path.read_text("utf-8") or "count_misfits" in path.read_text("utf-8")
    ]
    assert sorted(users) == ["design/misfits.py", "shell/commands.py"]
    assert not any("misfit" in name for name in dir(dp))
