"""From the formula to the lattice: every row an integer vector in the ball, on its own."""

import numpy as np
import pytest
from examples import examples
from formula_strategies import codebooks, formulas, rows
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpmodels as dp
from dpmodels.design import private_design, row_coder
from dpmodels.noise.lattice import Lattice

MANY = settings(max_examples=examples(25), suppress_health_check=list(HealthCheck))
SCALINGS = st.fixed_dictionaries(
    {
        "scale": st.sampled_from(["range", "sd", None]),
        "center": st.booleans(),
        "row_norm": st.sampled_from([None, 1e-3, 0.3, 1.0, 7.5]),
    }
)


@st.composite
def tables(draw, most=8):
    book = draw(codebooks())
    formula = draw(formulas(book))
    return formula, draw(rows(book, most=most)), book


def on_lattice(design, bits):
    """Integer rows, shape (rows, columns), and which of them are complete."""
    lattice = Lattice(bits, len(design.public.names))
    blocks = design.blocks(np.copy, lattice)
    lattice_rows = np.concatenate([block for block, _ in blocks], axis=1)
    return lattice_rows[1:].T, lattice_rows[0] == 2.0**bits


@pytest.mark.product
@MANY
@given(tables(), SCALINGS, st.sampled_from([8, 13, 20]))
def test_rows_are_integers_in_the_ball_and_incomplete_rows_are_zero(table, scaling, bits):
    formula, data, book = table
    design = private_design(formula, data, book, **scaling)
    integers, complete = on_lattice(design, bits)
    for row in integers.tolist():
        assert all(number.is_integer() for number in row)
        assert sum(int(number) ** 2 for number in row) <= 4**bits
    coded = row_coder(design.public)({name: data[name] for name in design.public.variables})
    assert (complete == ~np.isnan(coded).any(axis=0)).all()
    assert (integers[~complete] == 0).all()


@pytest.mark.product
@MANY
@given(tables(), SCALINGS, st.sampled_from([8, 20]))
def test_a_row_on_the_lattice_does_not_depend_on_the_others(table, scaling, bits):
    formula, data, book = table
    integers, complete = on_lattice(private_design(formula, data, book, **scaling), bits)
    for row in range(len(integers)):
        values_by_name = {name: cells[row : row + 1] for name, cells in data.items()}
        alone, listed = on_lattice(private_design(formula, values_by_name, book, **scaling), bits)
        assert np.array_equal(alone[0], integers[row])
        assert listed[0] == complete[row]


@pytest.mark.product
@MANY
@given(tables(), st.sampled_from(["range", None]), st.booleans())
def test_no_row_is_longer_than_the_declared_worst_case(table, scale, center):
    formula, data, book = table
    design = private_design(formula, data, book, scale=scale, center=center)
    public, scaling = design.public, design.scaling
    coded = row_coder(public)({name: data[name] for name in public.variables})
    scaled = (coded - scaling.centre[:, None]) / scaling.scale[:, None]
    lengths = np.sqrt((scaled**2).sum(axis=0))
    assert not (lengths > scaling.worst_case * (1 + 1e-9)).any()


@pytest.mark.product
@MANY
@given(tables(), SCALINGS)
def test_the_lattice_keeps_rows_up_to_rounding(table, scaling):
    formula, data, book = table
    design = private_design(formula, data, book, **scaling)
    public, chosen, lattice = design.public, design.scaling, Lattice(20, len(design.public.names))
    integers, complete = on_lattice(design, 20)
    coded = row_coder(public)({name: data[name] for name in public.variables}).T
    unit = (coded - chosen.centre) / (chosen.scale * chosen.row_norm)
    length = np.sqrt((unit**2).sum(axis=1, keepdims=True))
    clipped = (unit / np.maximum(length, 1.0))[complete]
    # Rounding, shrinking a longer row onto the ball, and the cancellation of far-off ranges.
    slack = 1.5 * np.sqrt(lattice.columns) + 2.0**20 * 1e-15 * np.abs(
        chosen.centre / chosen.scale / chosen.row_norm
    )
    assert (np.abs(integers[complete] - clipped * lattice.steps) <= slack + 2).all()


def test_a_row_that_is_clipped_keeps_its_direction():
    book = dp.codebook(x=(-1, 1), y=(-1, 1))
    data = {"x": [0.8, 0.1], "y": [0.6, 0.0]}
    design = private_design("~ x + y", data, book, row_norm=0.5)
    integers, _ = on_lattice(design, 20)
    assert np.abs(integers[0] - 2.0**20 * np.array([0.8, 0.6])).max() <= 2
    assert np.abs(integers[1] - 2.0**20 * np.array([0.2, 0.0])).max() <= 2
