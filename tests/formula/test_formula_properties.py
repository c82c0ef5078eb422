"""Laws of every formula: cells in their public range, rows that know nothing of each other."""

from datetime import date

import numpy as np
import pytest
from examples import examples
from formula_strategies import codebooks, formulas, rows
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpmodels as dp
from dpmodels.design import row_coder
from dpmodels.formula import design

MANY = settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))


@st.composite
def designs(draw):
    book = draw(codebooks())
    return design(draw(formulas(book)), book)


def codes(public, data):
    return row_coder(public)({name: data[name] for name in public.variables})


def same(left, right):
    return np.array_equal(left, right, equal_nan=True)


@pytest.mark.product
@MANY
@given(st.data(), designs())
def test_cells_lie_in_their_range_or_the_row_is_missing(data, public):
    coded = codes(public, data.draw(rows(public.codebook)))
    complete = ~np.isnan(coded).any(axis=0)
    assert np.isnan(coded[:, ~complete]).all()
    inside = coded[:, complete]
    assert (inside >= public.lower[:, None]).all()
    assert (inside <= public.upper[:, None]).all()


@pytest.mark.product
@MANY
@given(st.data(), designs())
def test_rows_in_their_declared_ranges_are_complete(data, public):
    table = data.draw(rows(public.codebook))
    listed = {
        name: [cell if _declared(cell, values) else _some(values) for cell in table[name]]
        for name, values in public.codebook.items()
    }
    outside = any("cut(" in name for name in public.names)
    assert outside or not np.isnan(codes(public, listed)).any()


def _declared(cell, variable):
    if cell in variable.missing:
        return False
    if isinstance(variable, dp.Date):
        return type(cell) is date
    if hasattr(variable, "levels"):
        return type(cell) in map(type, variable.levels) and cell in variable.levels
    return type(cell) is float and cell == cell


def _some(variable):
    return variable.levels[-1] if hasattr(variable, "levels") else variable.lower


@pytest.mark.product
@MANY
@given(st.data(), designs())
def test_each_row_is_coded_on_its_own(data, public):
    table = data.draw(rows(public.codebook, least=2))
    codes_of_all = codes(public, table)
    for row in range(codes_of_all.shape[1]):
        alone = codes(public, {name: cells[row : row + 1] for name, cells in table.items()})
        assert same(codes_of_all[:, [row]], alone)


@pytest.mark.product
@MANY
@given(st.data(), designs())
def test_adding_removing_or_changing_a_row_leaves_the_others(data, public):
    table = data.draw(rows(public.codebook, least=2))
    second = data.draw(rows(public.codebook, most=1))
    codes_of_all = codes(public, table)
    fewer = codes(public, {name: cells[1:] for name, cells in table.items()})
    codes_with_more = codes(public, {name: second[name] + cells for name, cells in table.items()})
    changed = codes(public, {name: second[name] + cells[1:] for name, cells in table.items()})
    assert same(fewer, codes_of_all[:, 1:])
    assert same(codes_with_more[:, 1:], codes_of_all)
    assert same(changed[:, 1:], codes_of_all[:, 1:])


def test_long_columns_are_coded_as_single_rows_are():
    # Vectorised loops treat the ends of an array apart; the coding must not show it.
    book = dp.codebook(x=(0.5, 9), y=(-3, 3), g=["a", "b", "c"])
    public = design(
        "~ log(x) + exp(y) + sqrt(x) + I(x ** 1.7) + poly(x, 5) + bs(y, [-1, 1]) + log1p(x):g",
        book,
    )
    random = np.random.default_rng(0)
    table = {
        "x": random.uniform(0, 10, 1003),
        "y": random.normal(size=1003),
        "g": random.choice(["a", "b", "c", "d"], 1003),
    }
    codes_of_all = codes(public, table)
    for row in (*range(12), 500, *range(995, 1003)):
        alone = codes(public, {name: cells[row : row + 1] for name, cells in table.items()})
        assert same(codes_of_all[:, [row]], alone)


@pytest.mark.product
@MANY
@given(codebooks().flatmap(lambda book: st.tuples(st.just(book), formulas(book))))
def test_a_design_is_a_function_of_the_formula_and_the_codebook(pair):
    book, formula = pair
    first, second = design(formula, book), design(formula, book)
    assert first.names == second.names
    assert len(set(first.names)) == len(first.names)
    assert same(first.lower, second.lower)
    assert same(first.upper, second.upper)
    assert (first.lower <= first.upper).all()
    assert np.isfinite(first.lower).all()
    assert np.isfinite(first.upper).all()
