"""``unary_response``: one answer to many levels, as a yes or no to each of them.

Theorem
    The bit of the truth is set with probability 1/2, each other with ``r = 1/(e^ε + 1)``, all by
    coins of their own. Truths j and l differ in two bits, whose answers have the ratio ``(1/2)/r``
    times ``(1 - r)/(1/2)`` at the most, which is e^ε. Whoever has no truth sets all bits with r,
    and differs in one bit from whoever has: ``(e^ε + 1)/2`` and ``2 e^ε/(e^ε + 1)`` are less.
Numerics
    exact: coins of an exact law.
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
    """One question of a unary device: whether the truth is a level, answered 0 or 1.

    `eps` is what the respondent's answers to all levels cost together.
    """

    eps: float
    how: str = "unary"

    @property
    def levels(self) -> tuple[Level, ...]:
        """The answers there are."""
        return (0, 1)

    @property
    def channel(self) -> Channel:
        """The same as plain numbers."""
        rate = 1 / (math.exp(self.eps) + 1)
        truth = 0.5 - rate
        law = (0.5 / (1 - truth), rate / (1 - truth))
        return Channel(truth, law, self.eps, self.how)


@dataclass(frozen=True, repr=False)
class UnaryDevice:
    """How one question of many levels is answered by a bit for each.

    Made by :func:`dpmodels.unary_response`.

    Attributes
    ----------
    levels : tuple
        The answers there are.
    stated : Fraction
        The eps that all bits cost together.
    """

    levels: tuple[Level, ...]
    stated: Fraction

    @property
    def eps(self) -> float:
        """What the bits of one respondent cost together."""
        return float(self.stated)

    @property
    def questions(self) -> dict[str, Device | Bit]:
        """A device for each column of answers, as :func:`dpmodels.dp_survey` takes them."""
        return {str(level): Bit(self.eps) for level in self.levels}

    def randomize(self, values: Iterable[object]) -> pd.DataFrame:
        """Answer by the device, with coins of an exact law; to be run where the truth is known.

        Parameters
        ----------
        values : sequence of levels
            True values. One that is no level, or missing, is as private as any.

        Returns
        -------
        DataFrame
            A column of 0 and 1 for each level, under its name; a row for each value.
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
    """Make a device for a question of many levels: a randomised yes or no to each of them.

    Parameters
    ----------
    levels : sequence
        The answers there are, two or more.
    eps : float
        Privacy loss of all bits of a respondent together, at most 20.

    Returns
    -------
    UnaryDevice
        Its ``randomize(values)`` gives a column for each level; ``device.questions`` are the
        devices of these, for ``dp_survey("~ Ulm", bits, device=device.questions)``.

    Raises
    ------
    ArgumentError, CodebookError
        If the levels are none.
    BudgetError
        If eps is not from 1e-6 to 20.

    Notes
    -----
    Rare levels of many, more than some ``3 exp(eps) + 2``, are told with less noise than by
    :func:`randomized_response`. A survey of one level prints the eps of all, as all bits came;
    one of two levels prints it twice, which is more than is lost.

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
