"""Rows in memory between passes: the same integers, fewer readings, nothing shown."""

import gc
import pickle
import weakref
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.design import PrivateDesign, parts, private_design, rows
from dpmodels.design.parts import MOST_BYTES, KeptParts, Part
from dpmodels.design.regression import WeightedDesign
from dpmodels.errors import PrivacyError
from dpmodels.noise.lattice import Lattice
from dpmodels.statistics import moments
from dpmodels.statistics.moments import norm_counts

BOOK = dp.codebook(x=(0, 1), y=(0, 1), g=["a", "b", "c"], w=(0, 2))
FORMULA = "~ x * g + y"


def table(n_rows=5_000):
    rng = np.random.default_rng(3)
    numbers = pd.DataFrame(rng.normal(0.5, 0.4, (n_rows, 2)), columns=["x", "y"])
    numbers.loc[::97, "x"] = np.nan
    return numbers.assign(g=rng.choice(["a", "b", "c", "d"], n_rows), w=rng.random(n_rows))


@pytest.fixture
def readings(monkeypatch):
    """Counts the readings of rows."""
    calls = []
    read = rows.Rows._read
    monkeypatch.setattr(rows.Rows, "_read", lambda self, *a: calls.append(1) or read(self, *a))
    return calls


def two_passes(design):
    lattice = Lattice(20, len(design.public.names))
    return [moments(design, lattice).cross() for _ in range(2)]


@pytest.mark.parametrize(("limit", "n_read"), [(2**30, 1), (10_000, 2)])
def test_passes_give_the_same_integers_whatever_fits(limit, n_read, readings, monkeypatch):
    monkeypatch.setattr(parts, "MOST_BYTES", limit)
    ((expected, n_rows), _) = two_passes(private_design(FORMULA, table(), BOOK))
    readings.clear()
    design = private_design(FORMULA, table(), BOOK)
    design.require_passes()
    for got, n in two_passes(design):
        assert (got == expected).all()
        assert n == n_rows
    assert len(readings) == n_read


def test_rows_stay_on_the_first_lattice_of_their_scaling(monkeypatch):
    """With their norms; on another lattice, by another scaling and with weights they do not."""
    calls = []
    place = PrivateDesign._place
    monkeypatch.setattr(
        PrivateDesign, "_place", lambda self, *a: calls.append(1) or place(self, *a)
    )
    size, limits = len(private_design(FORMULA, table(), BOOK).public.names), (2**36, 2**38)

    def measured(design, lattice):
        counts = norm_counts(design, lattice, limits).cross()[0]
        return [*counts, *moments(design, lattice).cross()[0].ravel()]

    expected = measured(private_design(FORMULA, table(), BOOK), Lattice(20, size))
    design = private_design(FORMULA, table(), BOOK)
    design.require_passes()
    calls.clear()
    assert measured(design, Lattice(20, size)) == expected
    assert measured(design, Lattice(20, size)) == expected
    assert len(calls) == 1
    coarse = measured(private_design(FORMULA, table(), BOOK), Lattice(12, size))
    smaller_ball = replace(design, scaling=replace(design.scaling, row_norm=0.4))
    assert measured(design, Lattice(12, size)) == coarse
    assert measured(smaller_ball, Lattice(20, size)) != expected
    assert len(calls) == 7
    weighted = WeightedDesign(design.rows, design.public, design.scaling, "w", BOOK["w"])
    assert not weighted._keeps_integers


@pytest.mark.parametrize("limit", [5_000 * 12 * 5 - 1, 5_000 * 12 * 5])
def test_integers_stay_where_they_fit_beside_the_rows(limit, monkeypatch):
    monkeypatch.setattr(parts, "MOST_BYTES", limit)
    assert bool(KeptParts(None, 5_000).integers(5)) == (limit % 2 == 0)
    assert KeptParts(None).integers(5) is None
    assert "2" not in repr(parts.KeptIntegers())


def test_other_columns_of_the_same_rows_replace_those_in_memory():
    design = private_design(FORMULA, table(), BOOK)
    second = private_design("~ y", table(), BOOK)
    design.require_passes()
    two_passes(design)
    recoded = two_passes(design.recoded(second.public, second.scaling))
    assert (recoded[1][0] == two_passes(second)[0][0]).all()
    assert (two_passes(design)[1][0] == two_passes(design.of(design.rows))[0][0]).all()


def test_rows_that_were_not_read_to_the_end_are_not_kept(readings):
    design = private_design(FORMULA, table(200_000), BOOK)
    design.require_passes()
    next(design.blocks(len, Lattice(20, len(design.public.names))))
    gc.collect()
    ((first, _), (second, _)) = two_passes(design)
    assert (first == second).all()
    assert len(readings) == 2


def test_no_part_stays_of_rows_that_will_not_fit():
    part = Part({"x": np.zeros(1_000)}, None, None)
    for n_rows, n_parts in ((None, 1), (1_000, 1), (MOST_BYTES // 8, 1), (MOST_BYTES // 8 + 1, 0)):
        kept_parts = KeptParts(None, n_rows)
        assert list(kept_parts.through([part])) == [part]
        assert len(kept_parts.parts or ()) == n_parts


def test_kept_rows_show_nothing_stay_and_are_freed():
    kept_parts = KeptParts("canary")
    assert "canary" not in repr(kept_parts)
    with pytest.raises(PrivacyError):
        pickle.dumps(kept_parts)
    design = private_design(FORMULA, table(), BOOK)
    design.require_passes()
    two_passes(design)
    part = design.rows.kept.parts[0].coded[0]
    watched = weakref.ref(part)
    del design, part
    gc.collect()
    assert watched() is None


def test_a_fit_reads_its_rows_once_its_counts_beyond_bounds_too(readings):
    dp.dp_pca("~ x + y", table(), codebook=BOOK, eps=5.0, delta=1e-6, mechanism="rounds")
    assert len(readings) == 1


def test_columns_of_numbers_are_those_of_the_table_until_they_are_clipped():
    columns = {"x": np.array([0.0, 0.5, 1.0]), "y": np.array([0.2, 1.5, np.nan])}
    public = private_design("~ x + y", columns, BOOK).public
    read = public.coded(columns, clip_numbers=False)
    assert read[0] is columns["x"]
    assert read[1] is columns["y"]
    np.testing.assert_array_equal(public.coded(columns)[1], [0.2, 1.0, np.nan])
    assert columns["y"][1] == 1.5


def test_columns_that_stay_in_memory_are_contiguous():
    strided = {name: np.full((300, 2), 0.5)[:, 0] for name in "xy"}
    design = private_design("~ x + y", strided, BOOK)
    design.require_passes()
    two_passes(design)
    kept = design.rows.kept.parts[0].coded
    assert all(column.flags.c_contiguous for column in kept)


def test_a_table_is_not_written_to():
    data = table()
    before = data.copy()
    design = private_design("~ x + y", data, BOOK)
    design.require_passes()
    two_passes(design)
    pd.testing.assert_frame_equal(data, before)


@pytest.mark.parametrize("row_norm", [None, 0.4, "unit"])
def test_squared_norms_are_those_of_the_rows_on_the_lattice(row_norm):
    design = private_design(FORMULA, table(), BOOK, row_norm=row_norm)
    lattice = Lattice(12, len(design.public.names))

    def both(block, squares):
        is_complete = block[0] > 0
        assert not squares[~is_complete].any()
        expected = np.einsum("ij,ij->j", block[1:], block[1:])
        return np.stack([expected, squares])[:, is_complete]

    parts = design.blocks(both, lattice, with_norms=True)
    expected, norms = np.concatenate([part for part, _ in parts], axis=1)
    assert (norms == expected).all()
    assert 3_000 < norms.size < 4_500
    assert norms.max() <= lattice.radius**2
