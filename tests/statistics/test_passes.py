"""Rows read again and again under a transform, against rows one by one."""

import copy
import pickle
import sys

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
import dpmodels.design.private
from dpmodels.design import private_design
from dpmodels.errors import FrameError, PrivacyError
from dpmodels.frames import open_rows
from dpmodels.noise.lattice import MAX_BITS, MIN_BITS, Lattice
from dpmodels.statistics import Passes, Statistic, moments

COLUMNS = 4
NAMES = tuple("abcd")
BOOK = dp.codebook.uniform(NAMES, (-1, 1))
RNG = np.random.default_rng(3)
TRANSFORMS = {
    "identity": np.eye(COLUMNS),
    "mixed": RNG.normal(size=(COLUMNS, COLUMNS)),
    "skewed": np.diag([1e9, 1.0, 1e-3, 1e-12]) @ RNG.normal(size=(COLUMNS, COLUMNS)),
    "enlarging": 1e12 * RNG.normal(size=(COLUMNS, COLUMNS)),
    "vanishing": 1e-12 * RNG.normal(size=(COLUMNS, COLUMNS)),
    "tiny": np.full((COLUMNS, COLUMNS), 1e-300),
    "flat": np.outer(np.ones(COLUMNS), RNG.normal(size=COLUMNS)),
    "nothing": np.zeros((COLUMNS, COLUMNS)),
}


def table(rows, seed=0):
    rng = np.random.default_rng(seed)
    cells = rng.normal(size=(rows, COLUMNS)) * 10.0 ** rng.uniform(-6, 1, (rows, 1))
    cells[::7, 2] = np.nan
    return {name: cells[:, at] for at, name in enumerate(NAMES)}


def bound(data):
    return private_design("~ .", data, BOOK, row_norm=0.5, center=False)


def passes_of(data, bits=MAX_BITS):
    return Passes((bound(data),), Lattice(bits, COLUMNS))


def one_by_one(data):
    length = len(next(iter(data.values())))
    return [{name: values[at : at + 1] for name, values in data.items()} for at in range(length)]


@pytest.mark.parametrize("bits", [MIN_BITS, 13, MAX_BITS])
def test_untransformed_they_are_the_moments(bits):
    data, lattice = table(200), Lattice(bits, COLUMNS)
    exact, rows = moments(bound(data), lattice).cross()
    result, n_rows = passes_of(data, bits).cross()
    assert result.dtype == object
    assert result.tolist() == exact.tolist()
    assert n_rows == rows == 200


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@pytest.mark.parametrize("bits", [MIN_BITS, MAX_BITS])
def test_a_row_is_moved_by_itself_and_stays_in_the_ball(transform, bits):
    data = table(60)
    pooled, _ = passes_of(data, bits).within(transform).cross()
    alone = [passes_of(row, bits).within(transform).cross()[0] for row in one_by_one(data)]
    assert sum(alone).tolist() == pooled.tolist()
    for exact in alone:
        assert np.trace(exact[1:, 1:]) <= 4**bits
        assert exact[0, 0] in (0, 4**bits)
    incomplete = [not exact.any() for exact in alone]
    assert incomplete == np.isnan(data["c"]).tolist()


@pytest.mark.parametrize("name", ["mixed", "skewed", "enlarging", "flat"])
def test_a_row_goes_where_the_transform_takes_it(name):
    data, lattice = table(60), Lattice(MAX_BITS, COLUMNS)
    transform = TRANSFORMS[name]
    for row in one_by_one(data):
        before, _ = moments(bound(row), lattice).cross()
        after, _ = passes_of(row).within(transform).cross()
        change = transform @ (before[0, 1:].astype(float) / lattice.radius)
        length = np.linalg.norm(change)
        clipped = change * min(1.0, lattice.radius / length) if length > 0 else change
        result = after[0, 1:].astype(float) / lattice.radius
        # Half a step of rounding; at the surface a step more, cut off towards zero.
        slack = 0.51 if length <= lattice.radius - COLUMNS else 1.51
        assert np.abs(result - clipped).max() <= slack


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@pytest.mark.parametrize("bits", [MIN_BITS, MAX_BITS])
def test_neighbours_are_within_the_sensitivity(transform, bits):
    data = table(20, seed=5)
    alone = [passes_of(row, bits).within(transform).cross()[0] for row in one_by_one(data)]
    for first in alone:
        assert (first[1:, 1:] ** 2).sum() <= 16**bits
        for second in alone:
            assert ((first - second)[1:, 1:] ** 2).sum() <= 2 * 16**bits


def test_orthogonal_rows_are_as_far_as_the_sensitivity_allows():
    data = {name: np.array([1.0, 0.0]) * (name == "a") for name in NAMES}
    data["b"] = np.array([0.0, 1.0])
    first, second = (passes_of(row).within(1e3 * np.eye(COLUMNS)) for row in one_by_one(data))
    squares = ((first.cross()[0] - second.cross()[0])[1:, 1:] ** 2).sum()
    assert squares >= 2 * 16**MAX_BITS * (1 - 1e-5)


def test_order_blocks_and_threads_are_irrelevant(monkeypatch):
    data, transform = table(97), TRANSFORMS["skewed"]
    pooled = passes_of(data).within(transform).cross()[0].tolist()
    order = np.random.default_rng(1).permutation(97)
    shuffled = {name: values[order] for name, values in data.items()}
    assert passes_of(shuffled).within(transform).cross()[0].tolist() == pooled
    for block, threads in ((1, 1), (3, 2), (7, 5)):
        monkeypatch.setattr(Lattice, "block_rows", block)
        monkeypatch.setattr(dpmodels.design.private.os, "cpu_count", lambda n=threads: n)
        assert passes_of(data).within(transform).cross()[0].tolist() == pooled


def test_sums_beyond_64_bits_are_python_integers(monkeypatch):
    data = table(97)
    pooled = passes_of(data).within(TRANSFORMS["mixed"]).cross()[0].tolist()
    monkeypatch.setattr(Lattice, "block_rows", 5)
    monkeypatch.setattr(sys.modules["dpmodels.statistics.moments"], "BLOCKS_PER_CARRY", 2)
    assert passes_of(data).within(TRANSFORMS["mixed"]).cross()[0].tolist() == pooled


def test_disjoint_rows_add_up():
    data, transform = table(50), TRANSFORMS["mixed"]
    parts = [passes_of({name: values[at::3] for name, values in data.items()}) for at in range(3)]
    joined = parts[0] + parts[1] + parts[2]
    assert isinstance(joined, Passes)
    result, rows = joined.within(transform).cross()
    assert result.tolist() == passes_of(data).within(transform).cross()[0].tolist()
    assert rows == 50
    with pytest.raises(TypeError):
        parts[0] + Statistic("sum", result, 1)


def test_no_rows_give_zeros():
    exact, rows = passes_of(table(0)).within(TRANSFORMS["mixed"]).cross()
    assert not exact.any()
    assert rows == 0


@pytest.mark.parametrize("copier", [pickle.dumps, copy.copy, copy.deepcopy])
def test_they_are_not_copied_and_show_nothing(copier):
    passes = passes_of(table(3))
    assert repr(passes) == "<Statistic passes over the rows, not released>"
    with pytest.raises(PrivacyError, match="cannot be pickled or copied"):
        copier(passes)


def containers(folder):
    frame = pd.DataFrame(table(5))
    frame.to_parquet(folder / "rows.parquet")
    frame.to_csv(folder / "rows.csv", index=False)
    structured = frame.to_records(index=False)
    return [frame, table(5), structured, folder / "rows.parquet", folder / "rows.csv"]


def test_what_can_be_read_again_is_read_again(tmp_path):
    for data in containers(tmp_path):
        assert open_rows(data).rereadable
        bound(data).require_passes()
        passes = passes_of(data)
        assert passes.cross()[0].tolist() == passes.cross()[0].tolist()


def test_an_iterable_is_refused_before_a_row_is_read():
    values = []

    def tables():
        for at in range(3):
            values.append(at)
            yield table(4)

    design = bound(tables())
    with pytest.raises(FrameError, match="pass one DataFrame"):
        design.require_passes()
    # The first table is asked for its names when the design is made.
    assert values == [0]
    assert open_rows([table(4)]).rereadable
    assert not open_rows(iter([table(4)])).rereadable
