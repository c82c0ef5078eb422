"""Keys have one number each, whatever blocks they come in."""

import numpy as np
import pytest

from dpmodels.frames import numbering
from dpmodels.frames.numbering import Numbering


@pytest.mark.parametrize("spread", [numbering._SPREAD, np.uint64(0)], ids=["spread", "all meet"])
@pytest.mark.parametrize("block", [1, 7, 200])
def test_numbers_are_those_of_a_dictionary(spread, block, monkeypatch):
    monkeypatch.setattr(numbering, "_SPREAD", spread)
    monkeypatch.setattr(numbering, "_LEAST", 8)
    rng = np.random.default_rng(0)
    high, low = rng.integers(0, 20, (2, 200)).astype(np.uint64)
    table, known = Numbering(5), {}
    for at in range(0, 200, block):
        here = slice(at, at + block)
        for key, number in zip(
            zip(high[here], low[here], strict=True),
            table.numbers(high[here], low[here]).tolist(),
            strict=True,
        ):
            assert known.setdefault(key, number) == number
    assert sorted(known.values()) == list(range(table.size))
    assert table.size <= table.room


def test_whole_numbers_in_a_row_hardly_meet():
    """Else looking them up would take as long as there are of them."""
    for first, step in ((0, 1), (10**8, 1), (0, 100), (2**52, 1)):
        keys = (first + step * np.arange(20_000)).astype(float).view(np.uint64)
        table = Numbering(0)
        table.numbers(keys, 0 * keys)
        assert (table._there(table._first(keys, 0 * keys), keys, 0 * keys) < 0).mean() < 0.4
