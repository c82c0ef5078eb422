"""Waves and row-wise limits: intervals that hold for every argument, and are reached."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpmodels as dp
from dpmodels.formula.expression import compile_factor

ENDS = st.one_of(
    st.floats(-100, 100),
    st.sampled_from([0.0, np.pi, -np.pi, np.pi / 2, 1.5 * np.pi, 2 * np.pi, 1e6, 1e15, -1e99]),
)
RANGES = st.lists(ENDS, min_size=2, max_size=2, unique=True).map(sorted)


@given(st.sampled_from(["sin", "cos"]), RANGES)
def test_waves_lie_in_their_ranges_and_reach_them(name, ends):
    value = compile_factor(f"{name}(x)", dp.codebook(x=tuple(ends)))
    points = np.linspace(*ends, 4001)
    exact = getattr(np, name)(points)
    assert exact.min() >= value.lower - 1e-15
    assert exact.max() <= value.upper + 1e-15
    evaluation = value.evaluate({"x": points})
    assert (evaluation >= value.lower).all()
    assert (evaluation <= value.upper).all()
    if ends[1] - ends[0] < 400:
        # An end, or the top of an arch between two points of the grid.
        step = (ends[1] - ends[0]) / 4000
        assert exact.max() >= value.upper - step**2
        assert exact.min() <= value.lower + step**2


@pytest.mark.expensive
@given(st.lists(RANGES, min_size=2, max_size=3), st.data())
def test_limits_of_a_row_have_the_limits_of_the_ranges(ranges, data):
    book = dp.codebook({f"x{j}": tuple(ends) for j, ends in enumerate(ranges)})
    cells = {f"x{j}": data.draw(st.floats(*ends)) for j, ends in enumerate(ranges)}
    columns = {name: np.array([cell, np.nan]) for name, cell in cells.items()}
    for name, choose in (("pmin", min), ("pmax", max)):
        value = compile_factor(f"{name}({', '.join(book)})", book)
        assert value.lower == choose(low for low, _ in ranges)
        assert value.upper == choose(high for _, high in ranges)
        evaluation = value.evaluate(columns)
        assert evaluation[0] == choose(cells.values())
        assert np.isnan(evaluation[1])
