"""``unary_response``: one answer to a question of many levels, as a yes or no to each level.

Theorem
    The bit of the truth is set with probability 1/2, each other with ``r = 1/(e^ε + 1)``,
    independently. Truths j and l differ in two bits, whose answers have the ratio ``(1/2)/r``
    times ``(1 - r)/(1/2)`` at most, which is e^ε. A respondent without a truth sets all bits with
    probability r, and differs in one bit from one with a truth: the ratios ``(e^ε + 1)/2`` and
    ``2 e^ε/(e^ε + 1)`` are smaller.
Numerics
    exact: coins with exact probabilities.
Source
    Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency
    estimation", USENIX Security: the least variance of rare levels, ``4 e^ε/(n (e^ε - 1)²)``, below
    that of one answer of k levels where ``k > 3 e^ε + 2``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd

from dpmodels.devices.device import Device, places_of
from dpmodels.devices.randomized_response import checked_eps, checked_levels
from dpmodels.levels import Level
from dpmodels.noise import source
from dpmodels.noise.finite import coins, lying, rational
from dpmodels.released import Channel

HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Bit:
    """One question of a unary device: whether the truth is a given level, answered 0 or 1.

    `eps` is the privacy loss of the respondent's answers to all levels together.
    """

    eps: float
    how: str = "unary"

    @property
    def levels(self) -> tuple[Level, ...]:
        """The possible answers."""
        return (0, 1)

    @property
    def channel(self) -> Channel:
        """The device as plain numbers."""
        rate = 1 / (math.exp(self.eps) + 1)
        truth = 0.5 - rate
        law = (0.5 / (1 - truth), rate / (1 - truth))
        return Channel(truth, law, self.eps, self.how)


@dataclass(frozen=True, repr=False)
class UnaryDevice:
    """How one question of many levels is answered with one bit for each level.

    Made by :func:`dpmodels.unary_response`.

    Attributes
    ----------
    levels : tuple
        The possible answers.
    stated : Fraction
        The eps of all bits together.
    """

    levels: tuple[Level, ...]
    stated: Fraction

    @property
    def eps(self) -> float:
        """Privacy loss of all bits of one respondent together."""
        return float(self.stated)

    @property
    def questions(self) -> dict[str, Device | Bit]:
        """A device for each column of answers, as :func:`dpmodels.dp_survey` takes them."""
        return {str(level): Bit(self.eps) for level in self.levels}

    def randomize(self, values: Iterable[object]) -> pd.DataFrame:
        """Randomise true answers with exact coins; run it where the truth is known.

        Parameters
        ----------
        values : sequence of levels
            True values. A value that is missing or not a level is as private as any level.

        Returns
        -------
        DataFrame
            A column of 0 and 1 for each level; a row for each value.
        """
        truths, index = places_of(self.levels, values)
        size, entropy = len(truths) * len(self.levels), source()
        fair = coins(partial(rational, HALF), size, entropy)
        rare = coins(partial(lying, self.stated), size, entropy)
        true = (truths[:, None] == np.arange(len(self.levels))).ravel()
        bits = np.where(true, fair, rare).astype(np.int64).reshape(len(truths), -1)
        return pd.DataFrame(bits, index, [str(level) for level in self.levels])

    def __repr__(self) -> str:
        return f"<UnaryDevice: {len(self.levels)} levels, eps = {self.eps:g} for all bits, local>"


def unary_response(levels: Iterable[Level], *, eps: float) -> UnaryDevice:
    """Construct a device for a question of many levels: a randomised yes or no to each level.

    Parameters
    ----------
    levels : sequence
        The possible answers, two or more.
    eps : float
        Privacy loss of all bits of a respondent together, at most 20.

    Returns
    -------
    UnaryDevice
        Its ``randomize(values)`` gives a column for each level. The table of all levels is
        ``dp_survey("~ town", bits, device={"town": device})``; ``device.questions`` are the devices
        of single columns, for ``dp_survey("Ulm ~ age", bits, device=device.questions)``.

    Raises
    ------
    ArgumentError, CodebookError
        If the levels are invalid.
    BudgetError
        If eps is not from 1e-6 to 20.

    Notes
    -----
    With more than about ``3 exp(eps) + 2`` levels, rare levels have less noise than under
    :func:`randomized_response`. A survey of one level prints the eps of all bits, since all were
    collected; a survey of two levels counts it twice, which overstates the loss.

    References
    ----------
    .. [1] Wang, T., Blocki, J., Li, N. and Jha, S. (2017). "Locally differentially private
       protocols for frequency estimation." USENIX Security.

    Examples
    --------
    >>> device = unary_response(["Ulm", "Bonn", "Rust"], eps=1.0)
    >>> bits = device.randomize(["Ulm", "Rust"])
    >>> list(bits), bits.shape
    (['Ulm', 'Bonn', 'Rust'], (2, 3))
    """
    return UnaryDevice(checked_levels(levels), checked_eps(eps))
