"""Coins that show heads with probability exp(-x), exactly, and draws by permute-and-flip."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.noise.protocol import Entropy
from dpmodels.noise.uniform import Uniform, exp_enclosure, uniform_integer

# Probabilities and uniform numbers in float64 are this close to the true ones.
_MARGIN = 2.0**-40
# Bits of a word of the source.
_WORD = 64


def exp_coins(levels: NDArray[Any], unit: Fraction, entropy: Entropy) -> NDArray[np.bool_]:
    """Toss a coin a level, which shows heads with probability ``exp(-unit * level)``.

    Where a uniform number is farther from that in float64 than the two can err, it decides; else
    an exact enclosure and further bits do.

    `levels`, shape (things,), are whole numbers from 0 of any size; `unit` is above 0.
    """
    with np.errstate(over="ignore", under="ignore"):
        chances = np.exp(-(float(unit) * levels.astype(np.float64)))
    words = entropy.words(len(levels))
    uniforms = words * 2.0**-_WORD
    heads = uniforms < chances
    for place in np.flatnonzero(np.abs(uniforms - chances) <= _MARGIN).tolist():
        enclosed = partial(exp_enclosure, unit * int(levels[place]))
        heads[place] = Uniform(int(words[place]), _WORD, entropy).below(enclosed)
    return np.asarray(heads)


def draw_flipped(
    levels: NDArray[Any], unit: Fraction, count: int, entropy: Entropy
) -> NDArray[np.int64]:
    """Draw `count` different indices by permute-and-flip, each among those that are left.

    Things take turns in a random order, and the first whose coin shows heads is drawn; that of the
    lowest level always does. The order is independent of the coins, so the first of those that show
    heads is any of them with equal probability: all coins are tossed at once, and one is drawn.

    `levels` and `unit` are as for `exp_coins`, but that levels may be below 0; `count`, from 1, is
    at most their number.
    """
    left = np.arange(len(levels))
    drawn = np.empty(count, dtype=np.int64)
    for place in range(count):
        own = levels[left]
        heads = np.flatnonzero(exp_coins(own - own.min(), unit, entropy))
        chosen = heads[uniform_integer(len(heads), entropy)]
        drawn[place] = left[chosen]
        left = np.delete(left, chosen)
    return drawn
