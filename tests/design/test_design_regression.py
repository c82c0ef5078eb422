"""The private design of rows (x, y): scaling of both sides, and weights on the lattice."""

import math
import pickle

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, CodebookError, FrameError, PrivacyError
from dpmodels.noise.lattice import Lattice
from dpmodels.statistics import moments
from tests.private_rows import private_regression

BOOK = dp.codebook(y=(0, 10), x=(-1, 1), g=["a", "b"], w=(0, 4))
LATTICE = Lattice(20, 3)


def table(rows=500):
    rng = np.random.default_rng(3)
    return {
        "y": rng.uniform(0, 10, rows),
        "x": rng.uniform(-1, 1, rows),
        "g": rng.choice(["a", "b"], rows),
        "w": rng.uniform(0, 4, rows),
    }


def exact(design, lattice=LATTICE):
    return moments(design, lattice).cross()[0].astype(float)


def by_hand(data, design):
    """Rows in the unit ball, written out."""
    columns = np.vstack([data["g"] == "b", data["x"], data["y"]]).astype(float)
    scaling = design.scaling
    return (columns - scaling.centre[:, None]) / scaling.scale[:, None] / scaling.row_norm


def test_each_side_is_scaled_for_itself():
    design = private_regression("y ~ x + g", table(), BOOK, emphasis=2.0)
    assert design.public.names == ("g[T.b]", "x", "y")
    assert design.scaling.centre.tolist() == [0.5, 0, 5]
    assert design.scaling.scale.tolist() == [0.5, 1, 2.5]
    assert design.scaling.row_norm == pytest.approx(math.sqrt(2 + 4))
    assert design.scaling.row_norm == design.scaling.worst_case


def test_a_row_norm_is_that_of_the_terms():
    design = private_regression("y ~ x + g", table(), BOOK, row_norm=0.6)
    assert design.scaling.row_norm == pytest.approx(math.hypot(0.6, 1))
    assert design.scaling.worst_case == pytest.approx(math.sqrt(3))


def test_moments_without_weights():
    data = table()
    design = private_regression("y ~ x + g", data, BOOK)
    result, z = exact(design), by_hand(data, design)
    assert result[0, 0] == len(data["y"]) * LATTICE.radius**2
    assert result[1:, 1:] / LATTICE.steps**2 == pytest.approx(z @ z.T, abs=1e-3)


def test_weights_count_rows_in_proportion():
    data = table()
    design = private_regression("y ~ x + g", data, BOOK, weights="w")
    result, z = exact(design), by_hand(data, design)
    share = data["w"] / 4
    assert design.public.names == ("g[T.b]", "x", "y")
    assert result[0, 0] / LATTICE.radius**2 == pytest.approx(share.sum(), abs=1e-3)
    assert result[0, 1:] / LATTICE.radius / LATTICE.steps == pytest.approx(z @ share, abs=1e-3)
    assert result[1:, 1:] / LATTICE.steps**2 == pytest.approx((z * share) @ z.T, abs=1e-3)


def test_weights_beyond_their_bounds_and_missing_ones():
    data = {
        "y": [10.0, 10, 10, 10],
        "x": [1.0, 1, 1, 1],
        "g": list("bbbb"),
        "w": [9.0, -1, math.nan, None],
    }
    result = exact(private_regression("y ~ x + g", data, BOOK, weights="w"))
    assert result[0, 0] == LATTICE.radius**2


@pytest.mark.parametrize("bits", [8, 20])
def test_a_weighted_row_is_never_longer_than_its_constant(bits):
    """The lattice's own inequality, that the sensitivity of weighted moments rests on."""
    lattice, data = Lattice(bits, 3), table(4_000)
    data["w"] **= 4
    design = private_regression("y ~ x + g", data, BOOK, weights="w", row_norm=0.2)
    blocks = []
    for _ in design.blocks(lambda block: blocks.append(block.copy()), lattice):
        pass
    rows = np.concatenate(blocks, axis=1)
    assert np.array_equal(rows, np.rint(rows))
    assert (rows[0] <= lattice.radius).all()
    assert ((rows[1:] ** 2).sum(axis=0) <= rows[0] ** 2).all()


def test_full_weights_change_nothing():
    data = table() | {"w": np.full(500, 4.0)}
    plain = exact(private_regression("y ~ x + g", data, BOOK))
    weighted = exact(private_regression("y ~ x + g", data, BOOK, weights="w"))
    assert weighted == pytest.approx(plain, abs=1e-4 * LATTICE.radius**2)


def test_what_is_refused_before_a_row():
    with pytest.raises(CodebookError, match="weights must not be negative"):
        private_regression("y ~ g", table(), BOOK, weights="x")
    with pytest.raises(CodebookError, match="'v' is not in the codebook"):
        private_regression("y ~ g", table(), BOOK, weights="v")
    with pytest.raises(ArgumentError, match="name of a variable"):
        private_regression("y ~ g", table(), BOOK, weights=3)
    with pytest.raises(ArgumentError, match="changes the coefficients"):
        private_regression("y ~ g", table(), BOOK, row_norm="unit")
    with pytest.raises(ArgumentError, match='expected "range" or None'):
        private_regression("y ~ g", table(), BOOK, scale="sd")
    without = {name: cells for name, cells in table().items() if name != "w"}
    with pytest.raises(FrameError, match="'w'"):
        private_regression("y ~ g", without, BOOK, weights="w")


def test_a_weighted_design_shows_nothing():
    design = private_regression("y ~ x", table(), BOOK, weights="w")
    assert repr(design) == "<WeightedDesign 'y ~ x', rows not shown>"
    with pytest.raises(PrivacyError):
        pickle.dumps(design)
