"""Fine cells of numbers: those for few rows are among those for many."""

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.formula.cut_columns import all_pairs, cut_columns, fine_edges, with_fine_cells
from dpmodels.formula.values import Real

BOUNDS = [(0, 100), (-200, 400), (-7, 0), (3, 1e5), (0, 40)]


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("step", [0.0, 1.0])
def test_cells_for_few_rows_are_unions_of_those_for_many(bounds, step):
    number = Real("x", *map(float, bounds), lambda columns: columns["x"], step=step)
    few, many = (np.array(fine_edges(number, 128, finer=finer)) for finer in (False, True))
    distances = np.abs(many - few[:, None]).min(axis=1)
    assert distances.max() <= 1e-8 * np.ptp(many)
    assert (few[0], few[-1]) == (many[0], many[-1])
    assert len(many) >= len(few)
    assert len(many) <= 3 * len(few)


def columns_of(**ranges):
    layout, columns = cut_columns("~ .", dp.codebook(**ranges), 5)
    return with_fine_cells(columns, all_pairs(layout))


def test_a_column_knows_its_cells_for_few_rows():
    fine, few = (column.fine for column in columns_of(x=(0, 100), k=dp.Integer(0, 30)))
    assert (fine.variable, few.variable) == (0, 1)
    assert len(fine.edges) > 2 * len(fine.sparse)
    assert fine.of_few_rows.edges == tuple(fine.edges[k] for k in fine.sparse)
    assert few.of_few_rows.edges == few.edges
    assert len(few.edges) == 32


def test_many_columns_have_the_cells_of_few_rows_alone():
    columns = columns_of(**{f"x{k}": (0, 100) for k in range(12)})
    assert all(c.fine.sparse == tuple(range(len(c.fine.edges))) for c in columns)
