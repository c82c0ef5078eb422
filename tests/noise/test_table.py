import numpy as np
import pytest

from dpmodels.noise import seeded
from dpmodels.noise.blocks import UNDECIDED, Envelope, fit_envelope, tabulate, thresholds

BITS = 160


def _exact_blocks(envelope, words):
    """Blocks of words from thresholds far finer than the words; UNDECIDED on a tie."""
    lows = [low for low, _ in thresholds(envelope, BITS)]
    blocks = []
    for word in words:
        first = sum(low < int(word) << BITS - 32 for low in lows)
        last = sum(low < int(word) + 1 << BITS - 32 for low in lows)
        blocks.append(first if first == last < envelope.blocks else UNDECIDED)
    return np.array(blocks)


@pytest.mark.parametrize("scale", [0.3, 10.0, 2.0**30])
@pytest.mark.parametrize("family", ["gaussian_law", "laplace_law"])
def test_blocks_of_random_words(request, family, scale):
    envelope = fit_envelope(request.getfixturevalue(family)(scale))
    words = seeded(1).words(1000).view(np.uint32)
    assert (tabulate(envelope).find(words) == _exact_blocks(envelope, words)).all()


@pytest.mark.parametrize("scale", [0.3, 10.0, 2.0**30])
@pytest.mark.parametrize("family", ["gaussian_law", "laplace_law"])
def test_blocks_of_words_next_to_thresholds(request, family, scale):
    envelope = fit_envelope(request.getfixturevalue(family)(scale))
    table = tabulate(envelope)
    values = np.concatenate([table.floors + step for step in (-1, 0, 1)])
    words = np.append(values[(values >= 0) & (values < 2**32)], [0, 2**32 - 1]).astype(np.uint32)
    result = table.find(words)
    assert (result == _exact_blocks(envelope, words)).all()
    ties = np.isin(words, table.floors)
    assert (result[ties] == UNDECIDED).all()


def test_the_tail_is_left_to_the_exact_routine(gaussian_law):
    table = tabulate(Envelope(gaussian_law(10.0), 0, 5))
    tail = np.arange(int(table.ceilings[-1]), 2**32, 2**20, dtype=np.uint32)
    assert tail.size > 1000
    assert (table.find(tail) == UNDECIDED).all()
