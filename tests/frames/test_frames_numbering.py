"""Keys have one number each, whatever blocks they come in."""

import numpy as np
import pytest

from dpmodels.frames import persons
from dpmodels.frames.persons import Numbering


@pytest.mark.expensive
@pytest.mark.parametrize("block", [1, 7, 200])
def test_numbers_are_those_of_a_dictionary(block, monkeypatch):
    """Of keys that all look for the first slot: their leading bits are zero."""
    monkeypatch.setattr(persons, "_LEAST", 8)
    rng = np.random.default_rng(0)
    high, low = rng.integers(0, 20, (2, 200)).astype(np.uint64)
    table, numbers = Numbering(5), {}
    for at in range(0, 200, block):
        part = slice(at, at + block)
        for key, number in zip(
            zip(high[part], low[part], strict=True),
            table.numbers(high[part], low[part]).tolist(),
            strict=True,
        ):
            assert numbers.setdefault(key, number) == number
    assert sorted(numbers.values()) == list(range(table.size))
    assert table.size <= table.room
