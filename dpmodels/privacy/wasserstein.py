"""How far a number moves between secrets: the Wasserstein mechanism's sensitivity.

*Definition.* ``W(mu, nu)`` is the least w for which numbers drawn from mu and nu can be drawn
together so that they never differ by more than w. On the line it is the largest ``|F^-1(u) -
G^-1(u)|`` over u, of the quantile functions of both.

*Theorem [1]_.* Let a number F have the law ``mu_s`` given each secret s, and W be the largest of
``W(mu_s, mu_t)`` over pairs of secrets and over a class of laws of the data. Then F with noise of
``Lap(W/eps)`` is eps-Pufferfish private. *Proof.* Draw both numbers together: the densities of the
released value about them differ by a factor of at most ``exp(W / (W/eps))``, and so do their means.

*Theorem.* W is at most the most by which F can change altogether: two numbers within an interval of
that length never differ by more.

*Numerics.* Probabilities are taken as the fractions they are and jump points merged in exact
arithmetic: no rounding decides which of two equal levels comes first.

.. [1] Song, S., Wang, Y. and Chaudhuri, K. (2017). "Pufferfish Privacy Mechanisms for Correlated
   Data." SIGMOD. Theorem 3.2.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from fractions import Fraction
from itertools import accumulate, combinations
from numbers import Rational, Real
from typing import Any

import numpy as np

from dpmodels.errors import ArgumentError, said

# A level of a distribution function, and the value that it is reached at.
Jump = tuple[Fraction, Fraction]


def wasserstein_sensitivity(
    laws_given_secrets: Mapping[Any, tuple[Any, Any]],
    pairs: Iterable[tuple[Any, Any]] | None = None,
) -> float:
    """Return how far a number can move between secrets, given its law under each.

    The number with Laplace noise of scale W/eps is eps-Pufferfish private for these laws. Such
    releases do not compose: make one.

    Parameters
    ----------
    laws_given_secrets : dict of secret to (values, probabilities)
        The law of the number given each secret: finite values, and probabilities that are not
        negative and sum to 1. They have to be public. All laws of one class of data, one after
        another, where it has several: then `pairs` says which belong together.
    pairs : iterable of (secret, secret), optional
        Which secrets must not be told apart; all pairs by default.

    Returns
    -------
    float
        W, in units of the number, rounded up; 0 where all laws are the same.

    Raises
    ------
    ArgumentError
        If a secret has no probabilities, or they are none, or a pair has a secret without a law,
        or `pairs` has none.

    Examples
    --------
    >>> laws = {"ill": ([1, 2], [0.5, 0.5]), "well": ([0, 1, 2], [0.25, 0.25, 0.5])}
    >>> wasserstein_sensitivity(laws)
    1.0
    >>> import dpmodels as dp
    >>> chain = dp.markov_chain(["off", "on"], [[0.9, 0.1], [0.1, 0.9]], initial="stationary")
    >>> laws = chain.count_laws(12, "on")
    >>> same_time = [((t, "off"), (t, "on")) for t in range(1, 13)]
    >>> wasserstein_sensitivity(laws, same_time)
    8.0
    """
    if not isinstance(laws_given_secrets, Mapping) or not laws_given_secrets:
        raise ArgumentError(
            "laws_given_secrets=: expected a dict of each secret to (values, probabilities), such "
            'as {"ill": ([0, 1], [0.2, 0.8]), "well": ([0, 1], [0.5, 0.5])}'
        )
    levels = {secret: _levels(secret, law) for secret, law in laws_given_secrets.items()}
    asked = combinations(levels, 2) if pairs is None else _listed(pairs)
    farthest = max((_apart(*_both(levels, pair)) for pair in asked), default=Fraction(0))
    found = float(farthest)
    return found if Fraction(found) >= farthest else math.nextafter(found, math.inf)


def _listed(pairs: Any) -> list[object]:
    """Return pairs, of which there are some: of none any number would be private."""
    found = list(pairs) if isinstance(pairs, Iterable) and not isinstance(pairs, str) else []
    if not found:
        raise ArgumentError(
            f"pairs={said(pairs)} has no pair: expected secrets that must not be told apart, such "
            'as [("ill", "well")], or leave it out for all pairs; an iterator is read once'
        )
    return found


def _both(levels: Mapping[Any, list[Jump]], pair: object) -> tuple[list[Jump], list[Jump]]:
    match pair:
        case (Hashable() as one, Hashable() as other) if one in levels and other in levels:
            return levels[one], levels[other]
    raise ArgumentError(
        f"pairs= has {said(pair)}: expected two secrets that laws_given_secrets has laws of"
    )


def _levels(secret: object, law: Any) -> list[Jump]:
    """Return the levels of a distribution function in their order, the last of them 1."""
    try:
        values, chances = law
        jumps = sorted(zip(map(_exact, values), map(_exact, chances), strict=True))
    except (TypeError, ValueError):
        jumps = []
    total = sum((chance for _, chance in jumps), Fraction(0))
    if not jumps or abs(total - 1) > Fraction(1, 10**9) or min(own for _, own in jumps) < 0:
        raise ArgumentError(
            f"the secret {said(secret)} has no law: expected as many values as probabilities, that "
            "are not negative and sum to 1, ([0, 1, 2], [0.2, 0.3, 0.5]); leave out secrets "
            "without probability, as nothing is to be told apart from them"
        )
    kept = [(value, chance / total) for value, chance in jumps if chance]
    sums = accumulate(chance for _, chance in kept)
    return [(level, value) for level, (value, _) in zip(sums, kept, strict=True)]


def _exact(given: Any) -> Fraction:
    """Return a number as the fraction it is; a ValueError of what is none."""
    plain = given.item() if isinstance(given, np.generic) else given
    if isinstance(plain, bool) or not isinstance(plain, Real):
        raise ValueError
    if isinstance(plain, Rational):
        return Fraction(plain)
    if not math.isfinite(plain):
        raise ValueError
    return Fraction(float(plain))


def _apart(one: list[Jump], other: list[Jump]) -> Fraction:
    """Return the largest distance of two quantile functions, by one merge of their levels."""
    farthest, first, second = Fraction(0), 0, 0
    while first < len(one) and second < len(other):
        farthest = max(farthest, abs(one[first][1] - other[second][1]))
        level = min(one[first][0], other[second][0])
        first += one[first][0] == level
        second += other[second][0] == level
    return farthest
