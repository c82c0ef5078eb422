"""Markov quilts: the noise that hides one state of a series with dependent states.

*Setting.* A series ``X_1..X_T`` has a distribution of a class of chains; the **secrets** are ``X_i
= x`` for all times i and states x, compared for the same i if both have positive probability. A
release has **scale** ``sigma`` if its distribution changes by a factor of at most ``exp(m /
sigma)`` when m of the T states are changed. (So does noise ``Lap(L sigma)`` in a vector that one
state moves by L in L1 norm.)

*Definition.* A **quilt** of time i is the set of the states at ``i - a`` and ``i + b``, either of
which may be missing. The states between them, including ``X_i``, are **near**; their number
``card`` is ``a + b - 1``, or ``i + b - 1``, ``T - i + a``, T if the first, the second, both are
missing. Its **influence** e is the largest of ``log P(quilt | X_i = x)/P(quilt | X_i = x')`` over
the class, pairs of secrets and values of the quilt; 0 if both are missing.

*Theorem (quilt).* If each time has a quilt with ``e + card/sigma <= eps``, the released value w
satisfies ``P(w | X_i = x) <= exp(eps) P(w | X_i = x')`` for all pairs of secrets, under the whole
class [1]_. *Proof.* Given the quilt's states, near ones are independent of all others. So ``P(w |
X_i = x)`` is the sum over values q of the quilt, r of the others and n of the near ones of ``P(q |
x) P(r | q) P(n | q, x) P(w | n, q, r)``. Replacing n by any n' changes the last factor by at most
``exp(card/sigma)``, so the sum over n is at most ``exp(card/sigma)`` times that with ``P(n' | q,
x')``, for each q and r; and ``P(q | x) <= exp(e) P(q | x')``. Other independent series are part of
r.

*Theorem (influence).* With ``F_b(x, x') = max_y log P^b(x, y)/P^b(x', y)``, ``B_a(x, x') = max_z
log P^a(z, x)/P^a(z, x')`` and ``h_i(x, x')`` the largest of ``log P(X_i = x')/P(X_i = x)`` over
initial distributions, e is at most the largest over x other than x' of ``F_b + B_a + h_i``; of
``F_b`` without the first state, of ``B_a + h_i`` without the last. *Proof.* By Bayes' rule
``P(X_{i-a} = z | X_i = x)`` is ``P(X_{i-a} = z) P^a(z, x)/P(X_i = x)``, and the first factor does
not depend on x. For one initial distribution ``h_i`` is a ratio of two numbers, and 0 if it is
uniform; over all initial distributions m the ratio ``m P^{i-1}(x') / m P^{i-1}(x)`` is between
those of single rows of ``P^{i-1}``, so ``h_i(x, x') = B_{i-1}(x', x)``. The bound is e itself if
every state is possible at ``i - a``.

*Theorem (wider quilts influence less).* F_b does not increase with b, nor ``B_a`` with a, nor, over
all initial distributions, ``h_i`` with i. *Proof.* ``P^{b+1}(x, y)`` and ``P^{b+1}(x', y)`` are
sums of ``P^b(x, w)`` and ``P^b(x', w)`` with the same weights ``P(w, y)``: their ratio is at most
the largest ratio of the summands. The same holds for columns.

*Theorem (composition).* Adaptive releases of scales ``sigma_1, ..., sigma_K`` from the same series
are together one of scale ``1/(1/sigma_1 + ... + 1/sigma_K)``. If each satisfies ``eps_j`` with its
own quilts, all together satisfy the sum of the ``eps_j``. *Proof.* The distribution of the whole
transcript given all states is a product, so the factors multiply. Fix a time; let release j have
the quilt ``(e_j, card_j)`` there, and let c be the one with the smallest card. For each j,
``1/sigma_j <= (eps_j - e_j)/card_j <= eps_j/card_c``, and ``1/sigma_c <= (eps_c - e_c)/card_c``.
Summing gives ``sum 1/sigma_j <= (sum eps_j - e_c)/card_c``, so the quilt c suffices for the sum.
The class, the secrets and the series must be the same for all. For equal quilts the theorem is
known [1]_ [2]_; here they may differ.

*Search.* The score ``card/(eps - e)`` of any quilt bounds the scale that its time needs, so the
result is valid whichever quilts are tried. The search takes the time with the largest need, tries
all quilts whose card can still improve on it, and offers the best quilt to all other times; it ends
when the largest need belongs to a searched time, and is then the exact maximum over times of the
minimum over quilts of at most `MOST_WIDTH` steps on either side.

*Numerics.* Powers are sums of products of nonnegative numbers, so each entry has a small relative
error: ``b (k + 1)`` units in the last place; six logarithms and their sum add to an influence at
most 30 units in the last place of the largest of them. Influences are raised by more than both. An
entry below 1e-290 that is not a structural zero may have a larger error: its lag is not used.

.. [1] Song, S., Wang, Y. and Chaudhuri, K. (2017). "Pufferfish Privacy Mechanisms for Correlated
   Data." SIGMOD. Theorems 4.3 and 4.4.
.. [2] Song, S. and Chaudhuri, K. (2017). "Composition Properties of Inferential Privacy for
   Time-Series Data." Allerton.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, combinations
from numbers import Rational, Real
from typing import Any, Final

import numpy as np

from dpmodels.arguments import checked_keywords
from dpmodels.errors import ArgumentError, quoted
from dpmodels.privacy.chain import MarkovChain
from dpmodels.typing import Flags, Floats, Indices

# A choice: wider quilts are not tried.
MOST_WIDTH: Final = 4096
# Covers the rounding of a score.
_ROUND_UP: Final = 1 + 1e-12
_TINY: Final = 1e-290
# A choice: the number of lags tried at once.
_BLOCK: Final = 256
# Largest number of searched times; the others keep the best offered quilt.
_MOST_TIMES: Final = 200


@dataclass(frozen=True)
class Quilt:
    """The quilt of the time that needs most noise.

    Attributes
    ----------
    scale : float
        Sigma: the noise scale for a number that one state moves by 1.
    time : int
        Its time, from 1.
    before, after : int
        Distances of its states in steps, 0 for a missing state.
    near : int
        Number of states between, including that of the time itself.
    influence : float
        Largest log ratio of the quilt's probabilities.
    """

    scale: float
    time: int
    before: int
    after: int
    near: int
    influence: float

    @property
    def trivial(self) -> bool:
        """Whether it is empty, so that the noise hides all states together."""
        return not (self.before or self.after)

    def describe(self) -> str:
        """Return the quilt as reports print it."""
        if self.trivial:
            return f"none: all {self.near:,} states are near"
        lags = [f"{self.before} before"] * bool(self.before) + [f"{self.after} after"] * bool(
            self.after
        )
        return f"{' and '.join(lags)}, {self.near:,} near"


@lru_cache(maxsize=128)
def quilt_scale(chain: MarkovChain, steps: int, eps: float) -> Quilt:
    """Return the quilt with the scale that hides every state of a series.

    `steps` is the length T of the series, `eps` the bound for every pair of secrets.

    >>> from dpmodels.privacy.chain import markov_chain
    >>> chain = markov_chain(["a", "b"], stay=0.8, initial="stationary")
    >>> quilt = quilt_scale(chain, 1000, 1.0)
    >>> round(quilt.scale, 1), quilt.before, quilt.after
    (13.1, 5, 5)
    """
    return _Search(chain, steps, eps).best()


def trivial_quilt(steps: int, eps: float) -> Quilt:
    """Return the empty quilt, valid for any chain: all states may change at once."""
    return Quilt(steps / eps, (steps + 1) // 2, 0, 0, steps, 0.0)


class _Search:
    """Quilts of all times of a series; pairs of secrets under each matrix."""

    def __init__(self, chain: MarkovChain, steps: int, eps: float) -> None:
        self.steps, self.eps = steps, eps
        self.width = min(max(steps - 1, 1), MOST_WIDTH)
        laws, k = chain.laws, len(chain.states)
        # Rounding of each lag.
        self.slack = 2.0**-50 * (k + 2)
        powers = [matrix_powers(matrix, self.width) for matrix in laws]
        rarest = min(float(power[power >= _TINY].min()) for power in powers)
        columns = [power.transpose(0, 2, 1) for power in powers]
        # Shapes (lags, pairs), and (times, pairs), of later times as of the last.
        self.after = _pairs([row_log_ratios(power) for power in powers])
        self.before = _pairs([row_log_ratios(column) for column in columns])
        starts = chain.starting(laws)
        if starts is None:
            self.start = _pairs([row_log_ratios(column).transpose(0, 2, 1) for column in columns])
        else:
            starts_and_laws = zip(starts, laws, strict=True)
            self.start = _pairs([_odds(start, matrix, steps) for start, matrix in starts_and_laws])
            rarest = min(rarest, float(starts[starts >= _TINY].min()) * rarest)
        # Rounding of the logarithms, for any lag.
        self.logs = -(2.0**-47) * math.log(rarest)
        self.need = np.full(steps, steps / eps)
        self.quilts = np.zeros((steps, 2), dtype=np.int64)

    def best(self) -> Quilt:
        """Return the quilt of the time with the largest need."""
        wide = 1
        while wide <= self.width:
            for quilt in ((wide, wide), (wide, 0), (0, wide)):
                self.offer(*quilt)
            wide *= 2
        exact = 0.0
        for _ in range(_MOST_TIMES):
            slowest = int(np.argmax(self.need))
            if self.need[slowest] <= exact:
                break
            self.offer(*self.searched(slowest))
            exact = max(exact, float(self.need[slowest]))
        slowest = int(np.argmax(self.need))
        before, after = map(int, self.quilts[slowest])
        if not (before or after):
            return trivial_quilt(self.steps, self.eps)
        influence = float(self.influence(np.array([slowest]), before, after)[0])
        card = int(self.cards(np.array([slowest]), before, after)[0])
        return Quilt(float(self.need[slowest]), slowest + 1, before, after, card, influence)

    def cards(self, times: Indices, before: int, after: int) -> Indices:
        """Return the numbers of near states at some times, from 0."""
        first = times - before + 1 if before else np.zeros_like(times)
        last = times + after - 1 if after else np.full_like(times, self.steps - 1)
        card: Indices = last - first + 1
        return card

    def influence(self, times: Indices, before: int, after: int) -> Floats:
        """Return the influence of one quilt at some times, from 0."""
        if not (before or after):
            return np.zeros(len(times))
        clipped = np.minimum(times, len(self.start) - 1 if before else 0)
        unique_times, inverse = np.unique(clipped, return_inverse=True)
        log_ratios = np.zeros((len(unique_times), self.after.shape[1]))
        lag = before + after
        if before:
            log_ratios += self.before[before] + self.start[unique_times]
            lag += min(self.steps, int(times.max(initial=0)))
        if after:
            log_ratios += self.after[after]
        largest = np.maximum(log_ratios.max(axis=1), 0.0)[inverse]
        return np.asarray(largest + self.slack * lag + self.logs)

    def offer(self, before: int, after: int) -> None:
        """Assign a quilt to all times that need less with it."""
        times = np.arange(before, self.steps - after)
        if not len(times):
            return
        eps_left = self.eps - self.influence(times, before, after)
        score = np.full(len(times), np.inf)
        np.divide(self.cards(times, before, after), eps_left, out=score, where=eps_left > 0)
        score *= _ROUND_UP
        better = times[score < self.need[times]]
        self.need[better] = score[score < self.need[times]]
        self.quilts[better] = before, after

    def searched(self, time: int) -> tuple[int, int]:
        """Return the best quilt for one time, of all that can improve its need."""
        widths = min(time, self.width), min(self.steps - 1 - time, self.width)
        lag = self.slack * (sum(widths) + time) + self.logs
        start = self.start[min(time, len(self.start) - 1)]
        first, last = (np.arange(width + 1) for width in widths)
        empty = np.zeros((1, self.after.shape[1]))
        left = np.concatenate([empty, self.before[1 : widths[0] + 1] + start])
        right = np.concatenate([empty, self.after[1 : widths[1] + 1]])
        cards = np.where(first, 0, time + 1)[:, None] + np.where(last, 0, self.steps - time)
        cards = cards + first[:, None] + last - 1
        # The widest quilt of each kind has the smallest influence.
        widest = [left[-1] + right[-1], left[-1], right[-1]]
        smallest = min(
            float(influences.max()) for influences in widest[: 1 + 2 * (min(widths) > 0)]
        )
        before, after = map(int, self.quilts[time])
        best, quilt = float(self.need[time]), (before, after)
        largest_card = best * (self.eps - (smallest if np.isfinite(smallest) else 0.0))
        for offset in range(0, len(first), _BLOCK):
            block = slice(offset, offset + _BLOCK)
            within = cards[block] <= largest_card
            if not within.any():
                continue
            columns = np.flatnonzero(within.any(axis=0))
            e = np.full((len(first[block]), len(columns)), 0.0)
            for pair in range(left.shape[1]):
                np.maximum(e, left[block, None, pair] + right[None, columns, pair], out=e)
            eps_left = self.eps - e - lag
            score = np.full(e.shape, np.inf)
            np.divide(cards[block][:, columns], eps_left, out=score, where=eps_left > 0)
            position = np.unravel_index(np.argmin(score), score.shape)
            if score[position] < best:
                best = float(score[position])
                quilt = offset + int(position[0]), int(columns[position[1]])
        return quilt


def matrix_powers(matrix: Floats, exponent: int) -> Floats:
    """Return the powers of a matrix from 0 to `most`, by doubling, shape (most + 1, k, k)."""
    powers = np.stack([np.eye(len(matrix)), matrix])
    while len(powers) <= exponent:
        powers = np.concatenate([powers, powers[1:] @ powers[-1]])[: exponent + 1]
    return powers


def row_log_ratios(powers: Floats) -> Floats:
    """Return the largest log ratio of the entries of two rows, by lag, shape (lags, k, k).

    Infinite at lags where an entry may have underflowed.
    """
    k = powers.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(powers)
        ratios = np.full(powers.shape, -np.inf)
        for y in range(k):
            ratios = np.fmax(ratios, logs[:, :, None, y] - logs[:, None, :, y])
    ratios[np.isneginf(ratios)] = np.inf
    ratios[~_structural(powers)] = np.inf
    return ratios


def _structural(powers: Floats) -> Flags:
    """Return at which lags all tiny entries are exact zeros, since no path has that length."""
    pattern = np.minimum(np.ceil(powers[1]), 1.0)
    reachable, exact = np.eye(len(pattern)), np.zeros(len(powers), dtype=bool)
    for lag, power in enumerate(powers):
        exact[lag] = ((power >= _TINY) == (reachable > 0)).all()
        if (reachable > 0).all() and lag:
            exact[lag:] = (powers[lag:] >= _TINY).all(axis=(1, 2))
            break
        reachable = np.minimum(reachable @ pattern, 1.0)
    return exact


def _pairs(ratios: list[Floats]) -> Floats:
    """Return the entries of pairs of different states: shape (n, laws * k (k - 1))."""
    off_diagonal = ~np.eye(ratios[0].shape[1], dtype=bool)
    return np.concatenate([ratio[:, off_diagonal] for ratio in ratios], axis=1)


def _odds(start: Floats, matrix: Floats, steps: int) -> Floats:
    """Return the log of P(X_i = x')/P(X_i = x) by time and two states x, x', (steps, k, k).

    Infinite if either probability is 0, which is a valid bound.
    """
    marginals = np.empty((steps, len(start)))
    marginals[0] = start
    for time in range(1, steps):
        marginals[time] = marginals[time - 1] @ matrix
    with np.errstate(divide="ignore"):
        logs = np.where(marginals < _TINY, np.nan, np.log(marginals))
    log_odds = logs[:, None, :] - logs[:, :, None]
    return np.where(np.isnan(log_odds), np.inf, log_odds)


# The sensitivity of the Wasserstein mechanism: how far a number moves between secrets.
#
# *Definition.* ``W(mu, nu)`` is the smallest w for which draws from mu and nu can be coupled so
# that they never differ by more than w. On the line it is the largest ``|F^-1(u) - G^-1(u)|`` over
# u, of both quantile functions.
#
# *Theorem [1]_.* Let a number F have the distribution ``mu_s`` given each secret s, and let W be
# the largest of ``W(mu_s, mu_t)`` over pairs of secrets and over a class of distributions of the
# data. Then F with noise ``Lap(W/eps)`` is eps-Pufferfish private. *Proof.* Couple both numbers:
# the densities of the released value given them differ by a factor of at most ``exp(W / (W/eps))``,
# and so do their means.
#
# *Theorem.* W is at most the range of F: two numbers within an interval never differ by more than
# its length.
#
# *Numerics.* Probabilities are exact fractions and jump points are merged in exact arithmetic, so
# rounding cannot reorder equal levels.
#
# .. [1] Song, S., Wang, Y. and Chaudhuri, K. (2017). "Pufferfish Privacy Mechanisms for Correlated
#    Data." SIGMOD. Theorem 3.2.

# A level of a distribution function, and the value at which it is reached.
Jump = tuple[Fraction, Fraction]


@checked_keywords("dp.wasserstein_sensitivity")
def wasserstein_sensitivity(
    laws_given_secrets: Mapping[object, tuple[object, object]],
    pairs: Iterable[tuple[object, object]] | None = None,
) -> float:
    """Return how far a number can move between secrets, given its distribution under each.

    The number with Laplace noise of scale W/eps is eps-Pufferfish private for these distributions.
    Such releases do not compose: make only one.

    Parameters
    ----------
    laws_given_secrets : dict of secret to (values, probabilities)
        The public distribution of the number given each secret: finite values, and nonnegative
        probabilities that sum to 1. For a class of several models give the distributions under
        all of them; then `pairs` states which belong together.
    pairs : iterable of (secret, secret), optional
        Which secrets must be indistinguishable; all pairs by default.

    Returns
    -------
    float
        W, in units of the number, rounded up; 0 if all distributions are equal.

    Raises
    ------
    ArgumentError
        If probabilities are missing or invalid, a pair has a secret without a distribution, or
        `pairs` is empty.

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
    compared = combinations(levels, 2) if pairs is None else _listed(pairs)
    farthest = max(
        (_quantile_distance(*_pair_levels(levels, pair)) for pair in compared), default=Fraction(0)
    )
    sensitivity = float(farthest)
    return (
        sensitivity if Fraction(sensitivity) >= farthest else math.nextafter(sensitivity, math.inf)
    )


def _listed(pairs: object) -> list[object]:
    listed = list(pairs) if isinstance(pairs, Iterable) and not isinstance(pairs, str) else []
    if not listed:
        raise ArgumentError(
            f"pairs={quoted(pairs)} has no pair: expected secrets to make indistinguishable, such "
            "as "
            '[("ill", "well")], or leave it out for all pairs; an iterator is read only once'
        )
    return listed


def _pair_levels(
    levels: Mapping[object, list[Jump]], pair: object
) -> tuple[list[Jump], list[Jump]]:
    match pair:
        case (Hashable() as first, Hashable() as second) if first in levels and second in levels:
            return levels[first], levels[second]
    raise ArgumentError(f"pairs= has {quoted(pair)}: expected two secrets of laws_given_secrets")


def _levels(secret: object, law: Any) -> list[Jump]:
    """Return the levels of a distribution function in order, the last of them 1."""
    try:
        values, chances = law
        jumps = sorted(zip(map(_exact, values), map(_exact, chances), strict=True))
    except (TypeError, ValueError):
        jumps = []
    total = sum((chance for _, chance in jumps), Fraction(0))
    if not jumps or abs(total - 1) > Fraction(1, 10**9) or min(chance for _, chance in jumps) < 0:
        raise ArgumentError(
            f"the secret {quoted(secret)} has no valid distribution: expected values and as many "
            "nonnegative probabilities that sum to 1, ([0, 1, 2], [0.2, 0.3, 0.5]); leave out "
            "secrets of probability 0"
        )
    positive = [(value, chance / total) for value, chance in jumps if chance]
    sums = accumulate(chance for _, chance in positive)
    return [(level, value) for level, (value, _) in zip(sums, positive, strict=True)]


def _exact(value: object) -> Fraction:
    """Return a number as an exact fraction; ValueError for anything else."""
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, bool) or not isinstance(number, Real):
        raise ValueError
    if isinstance(number, Rational):
        return Fraction(number)
    if not math.isfinite(number):
        raise ValueError
    return Fraction(float(number))


def _quantile_distance(left: list[Jump], right: list[Jump]) -> Fraction:
    """Return the largest distance of two quantile functions, by merging their levels."""
    farthest, first, second = Fraction(0), 0, 0
    while first < len(left) and second < len(right):
        farthest = max(farthest, abs(left[first][1] - right[second][1]))
        level = min(left[first][0], right[second][0])
        first += left[first][0] == level
        second += right[second][0] == level
    return farthest
