"""Numbers of rows by place, and rows that are counted again in another range."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, FrameError
from dpmodels.formula.sides import one_measured, parse_sides
from dpmodels.formula.tally import Tally
from dpmodels.statistics.counts import CellPasses, counts, place_counts
from tests.private_rows import private_cells

BOOK = dp.codebook(y=(-8, 24), g=["u", "v"])
ENDS = np.array([-8.0, -1.0, 0.0, 1.0, 24.0])
# At and beyond the ends, on and between those of cells; incomplete ones last.
VALUES = (-9, -8, -1, -0.5, 0, 0.25, 1, 2, 24, 1e300, None, float("nan"), "many")


def bound(rows, formula="y ~ g", degree=2):
    pair = parse_sides(formula, BOOK)
    number, factors = one_measured(pair, "dp_mean")
    return private_cells(pair.text, rows, pair.codebook, (Tally(factors, number, degree),))


def placed(values, groups="uuuuuuuuuuuuu"):
    rows = {"y": list(values), "g": list(groups[: len(values)])}
    return place_counts(bound(rows), ENDS).cross()


def test_each_complete_row_is_in_the_cell_up_to_its_end():
    exact, rows = placed(VALUES)
    assert exact.tolist() == [3, 2, 2, 3]
    assert rows == len(VALUES)


def test_neighbours_in_place_move_one_row_a_cell():
    """Brute force: any row for any other, or for none."""
    values_by_name = {(v, g): placed([v], g)[0] for v, g in product(VALUES, ("u", "v", "?"))}
    nothing = np.zeros(4, dtype=object)
    for first, second in product(values_by_name.values(), repeat=2):
        assert np.abs(first - second).sum() <= 2
        assert ((first - second) ** 2).sum() <= 2
    assert max(np.abs(value - nothing).sum() for value in values_by_name.values()) == 1
    assert max(np.abs(a - b).sum() for a, b in product(values_by_name.values(), repeat=2)) == 2


@pytest.mark.parametrize(
    "ends", [(-8.0, 24.0), (-8.0, -7.9), (0.0, 0.0), (-1e-3, 23.0), (3.0, 5.0)]
)
@pytest.mark.parametrize("degree", [2, 4])
def test_neighbours_in_any_held_range_move_one_rows_units(ends, degree):
    """Brute force: parts of rows whose number is held in a range of any length, even 0."""
    total = 2**30

    def parts(value, group):
        clipped = bound({"y": [value], "g": [group]}, degree=degree).clipped(*ends)
        return counts(clipped, total).cross()[0]

    values = [parts(v, g) for v, g in product(VALUES, ("u", "v", "?"))]
    for item in values:
        assert sum(abs(int(part)) for part in item) == total
        assert (item >= 0).all()
    furthest = max(sum(abs(int(d)) for d in a - b) for a, b in product(values, repeat=2))
    assert furthest == 2 * total


def test_held_rows_are_those_clipped_beforehand():
    rows = {"y": np.linspace(-8, 24, 999), "g": ["u", "v", "v"] * 333}
    clipped = counts(bound(rows).clipped(-1.5, 3.0), 2**20).cross()[0]
    options = {**rows, "y": np.clip(rows["y"], -1.5, 3.0)}
    same = counts(bound(options).clipped(-1.5, 3.0), 2**20).cross()[0]
    assert clipped.tolist() == same.tolist()
    shares = clipped.astype(float)[:3] / 2**20
    mean = -1.5 + 4.5 * (shares[1] / 2 + shares[2]) / shares.sum()
    assert abs(mean - options["y"][::3].mean()) < 1e-5


def test_passes_over_disjoint_rows_join():
    rows = pd.DataFrame({"y": np.linspace(-9, 30, 40), "g": ["u", "v"] * 20})
    combined, first, two = (
        CellPasses((bound(part),), 2**20) for part in (rows, rows[:13], rows[13:])
    )
    pair = first + two
    for joint, value in ((pair, combined), (pair.clipped(0, 2), combined.clipped(0, 2))):
        assert joint.cross()[0].tolist() == value.cross()[0].tolist()
        assert joint.over_rows(place_counts, ENDS).cross()[1] == 40
    cell_passes = CellPasses((bound(rows),), 2**21)
    with pytest.raises(ArgumentError, match="units of a row"):
        first + cell_passes


def test_rows_read_once_are_refused():
    rows = pd.DataFrame({"y": [1.0, 2.0], "g": ["u", "v"]})
    bound(rows).require_passes()
    with pytest.raises(FrameError, match="mechanism='geometric' or 'gaussian'"):
        bound(iter([rows])).require_passes()
