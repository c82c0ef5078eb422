"""Cells of declared levels: places of rows, sizes, refusals."""

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import FormulaError
from dpmodels.formula.sides import grouping, measured, parse_sides
from dpmodels.formula.tally import Tally

BOOK = dp.codebook(g=["u", "v", "w"], h=["p", "q"], y=(0, 10), big=list(range(1001)))


def value(code):
    return parse_sides(f"~ {code}", BOOK).described[0]


def test_rows_fall_in_cells_in_the_order_of_the_levels():
    tally = Tally((grouping(value("g")), grouping(value("h"))))
    columns = {"g": np.array([0.0, 2, 2, np.nan, 1]), "h": np.array([0.0, 0, 1, 1, np.nan])}
    placed = tally.place(columns)
    assert placed.cells.tolist() == [0, 4, 5, -1, -1]
    assert placed.positions is None
    assert (tally.shape, tally.cells, tally.size) == ((3, 2), 6, 7)


def test_numbers_have_their_place_in_the_declared_range():
    tally = Tally((grouping(value("h")),), measured(value("y")), 2)
    columns = {"h": np.array([0.0, 1, 1, 0]), "y": np.array([-3.0, 2.5, 99, np.nan])}
    placed = tally.place(columns)
    assert placed.cells.tolist() == [0, 1, 1, -1]
    assert placed.positions.tolist()[:3] == [0.0, 0.25, 1.0]
    assert tally.size == 2 * 3 + 1


def test_without_factors_all_rows_fall_in_one_cell():
    tally = Tally((), measured(value("y")), 1)
    assert tally.place({"y": np.array([1.0, np.nan])}).cells.tolist() == [0, -1]
    assert tally.cells == 1


def test_a_cut_places_ends_in_the_lower_interval():
    tally = Tally((grouping(value("cut(y, [0, 2, 5, 9])")),))
    y = np.array([0.0, 2.0, 2.1, 5.0, 9.0, 9.5, np.nan])
    assert tally.place({"y": y}).cells.tolist() == [0, 0, 1, 1, 2, -1, -1]


def test_a_table_may_not_be_too_large():
    big, h = grouping(value("big")), grouping(value("h"))
    Tally((big, h))
    with pytest.raises(FormulaError, match="combinations of levels; at most 1,000,000"):
        Tally((big, grouping(value("C(big)"))))
    with pytest.raises(FormulaError, match="at most 333,333"):
        Tally((big, grouping(value("C(big)"))), measured(value("y")), 2)
