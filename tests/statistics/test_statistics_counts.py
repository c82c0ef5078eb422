"""Counts by cell: the same for any order and division of the rows, against plain loops."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpmodels as dp
from dpmodels.design.parts import Part, by_bounds
from dpmodels.formula.sides import grouping, measured, parse_sides
from dpmodels.formula.tally import Tally
from dpmodels.formula.values import BoundSide
from dpmodels.privacy import adjacency
from dpmodels.statistics.counts import count_sensitivity, counts
from dpmodels.statistics.shares import shares
from tests.private_rows import private_cells

BOOK = dp.codebook(g=["u", "v", "w"], h=[0, 1], y=(-2, 6))
WHOLE = 2**40


def tallies():
    g, h, y = (parse_sides(f"~ {name}", BOOK).described[0] for name in ("g", "h", "y"))
    return (
        Tally((grouping(g), grouping(h))),
        Tally((grouping(g),), measured(y), 2),
        Tally((), measured(y), 4),
    )


def rows(count, seed=0):
    rng = np.random.default_rng(seed)
    table = {
        "g": rng.choice(["u", "v", "w", "elsewhere"], count),
        "h": rng.choice([0.0, 1.0, np.nan, 7.0], count, p=[0.4, 0.4, 0.1, 0.1]),
        "y": rng.uniform(-4, 8, count),
    }
    table["y"][::9] = np.nan
    return table


def counted(data, value=None, whole=WHOLE):
    private = private_cells("~ g + h + y", data, BOOK, value or tallies())
    return counts(private, whole).cross()


def test_counts_are_those_of_pandas():
    data = rows(3000)
    counts, n_rows = counted(data, tallies()[:1], 1)
    frame = pd.DataFrame(data)
    complete = frame[frame["g"].isin(["u", "v", "w"]) & frame["h"].isin([0, 1])]
    expected = pd.crosstab(complete["g"], complete["h"]).to_numpy().ravel()
    assert counts.tolist() == [*expected.tolist(), 3000 - len(complete)]
    assert n_rows == 3000


def test_every_table_has_the_units_of_all_rows():
    counts, n_rows = counted(rows(20_000))
    start = 0
    for tally in tallies():
        assert sum(counts[start : start + tally.size].tolist()) == WHOLE * n_rows
        start += tally.size
    assert start == len(counts)


def test_order_and_chunks_do_not_matter_to_the_last_bit():
    data = rows(20_000)
    together, _ = counted(data)
    order = np.random.default_rng(1).permutation(20_000)
    shuffled, _ = counted({name: column[order] for name, column in data.items()})
    frame = pd.DataFrame(data)
    cuts = [0, 1, 777, 8192, 8193, 16_000, 20_000]
    streamed, n_rows = counted(frame[a:b] for a, b in pairwise(cuts))
    assert together.tolist() == shuffled.tolist() == streamed.tolist()
    assert n_rows == 20_000


def test_sites_add_up_to_the_pooled_counts():
    data = rows(9000)
    pooled, _ = counted(data)
    sites = [counted({name: column[i::3] for name, column in data.items()})[0] for i in range(3)]
    assert sum(sites).tolist() == pooled.tolist()


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=20).map(np.array),
    st.integers(1, 4),
    st.sampled_from([1, 3, 2**16, 2**40]),
)
def test_shares_are_whole_and_add_up_to_the_unit(positions, degree, whole):
    parts = shares(positions, degree, whole)
    assert (parts == np.rint(parts)).all()
    assert (parts >= 0).all()
    assert (parts.sum(axis=0) == whole).all()


@pytest.mark.parametrize(("relation", "changed"), [("replace", 2), ("add-remove", 1)])
def test_brute_force_neighbours_stay_within_the_sensitivity_and_reach_it(relation, changed):
    """Every pair of rows that exists, in three tables at once, some incomplete."""
    ways = [
        {"g": g, "h": h, "y": y}
        for g in ("u", "w", "elsewhere")
        for h in (0.0, 1.0, np.nan)
        for y in (-9.0, -2.0, 0.1, 2.0, 6.0, np.nan)
    ]
    vectors = [
        np.array(counted({name: [value] for name, value in way.items()})[0], dtype=object)
        for way in ways
    ]
    none = np.zeros(len(vectors[0]), dtype=object)
    pairs = [
        vector - second for vector in vectors for second in (vectors if changed == 2 else [none])
    ]
    first = max(sum(map(abs, pair.tolist())) for pair in pairs)
    second = max(sum(value * value for value in pair.tolist()) for pair in pairs)
    norm = count_sensitivity(adjacency(relation), 3, 1)
    squared = count_sensitivity(adjacency(relation), 3, 2) ** 2
    assert first == norm * WHOLE == 3 * changed * WHOLE
    assert second <= squared * (1 + 1e-12) * WHOLE**2
    assert second >= 0.999 * squared * WHOLE**2
    # What rises does so by a row a table at most, and what falls likewise.
    for pair in pairs:
        rising = sum(value for value in pair.tolist() if value > 0)
        falling = -sum(value for value in pair.tolist() if value < 0)
        assert rising <= 3 * WHOLE
        assert falling <= (3 * WHOLE if changed == 2 else 0)


@pytest.mark.parametrize("scale", [0.1, 2.0])
@pytest.mark.parametrize("subset", [False, True])
def test_numbers_beyond_bounds_are_those_of_each_row(scale, subset):
    """Of columns within their bounds, which are counted at once, and of others beside them."""
    rng = np.random.default_rng(2)
    columns = {name: scale * rng.normal(size=500) for name in "abc"}
    columns["c"][:5] = np.nan, np.inf, -np.inf, -0.0, 0.0
    # At a bound a row is within it.
    columns["c"][5:15] = [1.0, -1.0] * 5
    sides = [BoundSide(name, -1.0, 1.0) for name in "abc"]
    part = Part(columns, rng.random(500) < 0.7 if subset else None, None)
    result = by_bounds(sides, part.at(slice(3, None)).of_counted)
    for side, numbers in zip(sides, result, strict=True):
        cells = side(columns)[3:]
        cells[~part.counted[3:] if subset else slice(0)] = np.nan
        expected = [(cells == at).sum() for at in (0, 1, 2)]
        assert numbers.tolist() == [*expected, np.isnan(cells).sum()]
