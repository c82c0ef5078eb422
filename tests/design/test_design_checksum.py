"""Checksums by which passes over partitions are compared."""

import secrets

import numpy as np
import pytest

from dpmodels.design.parts import Checksum, Readings
from dpmodels.errors import FrameError

N = 700


def checksum(columns, salt=bytes(range(16)), number=0, cut=N):
    """The checksum of columns that are read in parts."""
    value = Checksum(salt, number)
    for at in range(0, N, cut):
        part = [None if column is None else column[at : at + cut] for column in columns]
        value.add(min(cut, N - at), min(cut, N - at), part)
    assert value.n_rows == N
    return value.value


def columns():
    rng = np.random.default_rng(3)
    return [
        rng.uniform(size=N),
        rng.random(N) < 0.5,
        None,
        rng.integers(0, 40, N),
        rng.choice(np.array(["a", "bb", None], object), N),
    ]


def test_the_same_rows_have_the_same_checksum_under_a_salt():
    salts = [secrets.token_bytes(16) for _ in range(50)]
    assert all(checksum(columns(), salt) == checksum(columns(), salt) for salt in salts)
    assert len({checksum(columns(), salt) for salt in salts}) == 50
    assert len({checksum(columns(), number=number) for number in range(9)}) == 9


@pytest.mark.parametrize("bit", range(64))
def test_a_bit_of_a_cell_changes_it(bit):
    """Under a salt that is drawn, one of these 192 cases fails with a chance below 2**-24."""
    first, *rest = columns()
    for at in (0, 1, N - 1):
        words = first.view(np.uint64).copy()
        words[at] ^= np.uint64(1) << np.uint64(bit)
        assert checksum([words.view(float), *rest]) != checksum([first, *rest])


def test_what_is_compared():
    first, *rest = columns()
    expected = checksum([first, *rest])
    changed = [
        [np.where(np.arange(N) == 9, np.nan, first), *rest],
        [first[::-1], *rest],
        [first, ~rest[0], *rest[1:]],
        [first, *rest[:2], rest[2][::-1], rest[3]],
        [first, *rest[:3], rest[3][::-1]],
        [first, None, *rest[1:]],
    ]
    assert expected not in [checksum(table) for table in changed]
    # Parts of other lengths are another reading.
    assert checksum([first, *rest], cut=100) != expected


def test_cells_whose_changes_cancel_in_a_plain_sum_are_noticed():
    first, *_ = columns()
    copied = first.copy()
    copied[[3, 8]] = copied[[8, 3]]
    assert checksum([copied]) != checksum([first])
    # Signs alone: the upper halves of two words differ by the same power of 2.
    negative = first.copy()
    negative[[3, 8]] *= -1
    assert checksum([negative]) != checksum([first])


def test_readings_compare_passes_and_counts():
    readings = Readings()
    assert readings.n_read is None
    readings.require_same(30, 1)
    readings.require_same(30, 1)
    assert readings.n_read == 30
    for n_rows, value in ((31, 1), (30, 2)):
        with pytest.raises(FrameError, match="changed between two passes"):
            readings.require_same(n_rows, value)
    counted = Readings()
    assert counted.n_rows(lambda: 29) == counted.n_rows(lambda: 1) == 29
    with pytest.raises(FrameError, match="changed between two passes"):
        counted.require_same(30, 1)
    assert {repr(readings), repr(counted)} == {"<Readings, not shown>"}
    assert readings.salt != counted.salt
