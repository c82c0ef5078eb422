"""Numbers of rows by place, and rows that are counted again in another range."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, FrameError
from dpmodels.formula.sides import one_measured, parse_sides
from dpmodels.formula.tally import Tally
from dpmodels.statistics.cell_passes import CellPasses, place_counts
from dpmodels.statistics.counts import counts
from tests.private_rows import private_cells

BOOK = dp.codebook(y=(-8, 24), g=["u", "v"])
ENDS = np.array([-8.0, -1.0, 0.0, 1.0, 24.0])
# At and beyond the ends, on and between those of cells; incomplete ones last.
VALUES = (-9, -8, -1, -0.5, 0, 0.25, 1, 2, 24, 1e300, None, float("nan"), "many")


def bound(rows, formula="y ~ g", degree=2):
    both = parse_sides(formula, BOOK)
    number, factors = one_measured(both, "dp_mean")
    return private_cells(both.text, rows, both.codebook, (Tally(factors, number, degree),))


def placed(values, groups="uuuuuuuuuuuuu"):
    rows = {"y": list(values), "g": list(groups[: len(values)])}
    return place_counts(bound(rows), ENDS, count_public=True).cross()


def test_each_complete_row_is_in_the_cell_up_to_its_end():
    exact, rows = placed(VALUES)
    assert exact.tolist() == [3, 2, 2, 3]
    assert rows == len(VALUES)


def test_neighbours_in_place_move_one_row_a_cell():
    """Brute force: any row for any other, or for none."""
    own = {(v, g): placed([v], g)[0] for v, g in product(VALUES, ("u", "v", "?"))}
    nothing = np.zeros(4, dtype=object)
    for one, other in product(own.values(), repeat=2):
        assert np.abs(one - other).sum() <= 2
        assert ((one - other) ** 2).sum() <= 2
    assert max(np.abs(one - nothing).sum() for one in own.values()) == 1
    assert max(np.abs(a - b).sum() for a, b in product(own.values(), repeat=2)) == 2


@pytest.mark.parametrize(
    "ends", [(-8.0, 24.0), (-8.0, -7.9), (0.0, 0.0), (-1e-3, 23.0), (3.0, 5.0)]
)
@pytest.mark.parametrize("degree", [2, 4])
def test_neighbours_in_any_held_range_move_one_rows_units(ends, degree):
    """Brute force: parts of rows whose number is held in a range of any length, even 0."""
    whole = 2**30

    def parts(value, group):
        held = bound({"y": [value], "g": [group]}, degree=degree).clipped(*ends)
        return counts(held, whole, count_public=True).cross()[0]

    own = [parts(v, g) for v, g in product(VALUES, ("u", "v", "?"))]
    for one in own:
        assert sum(abs(int(part)) for part in one) == whole
        assert (one >= 0).all()
    furthest = max(sum(abs(int(d)) for d in a - b) for a, b in product(own, repeat=2))
    assert furthest == 2 * whole


def test_held_rows_are_those_clipped_beforehand():
    rows = {"y": np.linspace(-8, 24, 999), "g": ["u", "v", "v"] * 333}
    held = counts(bound(rows).clipped(-1.5, 3.0), 2**20, count_public=True).cross()[0]
    own = {**rows, "y": np.clip(rows["y"], -1.5, 3.0)}
    same = counts(bound(own).clipped(-1.5, 3.0), 2**20, count_public=True).cross()[0]
    assert held.tolist() == same.tolist()
    shares = held.astype(float)[:3] / 2**20
    mean = -1.5 + 4.5 * (shares[1] / 2 + shares[2]) / shares.sum()
    assert abs(mean - own["y"][::3].mean()) < 1e-5


def test_passes_over_disjoint_rows_join():
    rows = pd.DataFrame({"y": np.linspace(-9, 30, 40), "g": ["u", "v"] * 20})
    whole, one, two = (
        CellPasses((bound(part),), 2**20, count_public=True)
        for part in (rows, rows[:13], rows[13:])
    )
    both = one + two
    for joint, own in ((both, whole), (both.clipped(0, 2), whole.clipped(0, 2))):
        assert joint.cross()[0].tolist() == own.cross()[0].tolist()
        assert joint.counted(place_counts, ENDS).cross()[1] == 40
    other = CellPasses((bound(rows),), 2**21, count_public=True)
    with pytest.raises(ArgumentError, match="units of a row"):
        one + other


def test_rows_read_once_are_refused():
    rows = pd.DataFrame({"y": [1.0, 2.0], "g": ["u", "v"]})
    bound(rows).require_passes()
    with pytest.raises(FrameError, match="once; write mechanism='geometric'"):
        bound(iter([rows])).require_passes()
