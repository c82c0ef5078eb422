"""Markov quilts: how much noise hides one state of a series whose states depend on each other.

*Setting.* A series ``X_1..X_T`` has a law of a class of chains; the **secrets** are ``X_i = x`` for
all times i and states x, compared for the same i where both have positive probability. What is
released has **scale** ``sigma``: its law changes by a factor of at most ``exp(m / sigma)`` where m
of the T states are changed to others. (So has noise ``Lap(L sigma)`` in a vector that one state
moves by L in L1 norm.)

*Definition.* A **quilt** of time i is the set of the states at ``i - a`` and ``i + b``, either of
which may be missing. The states between them, ``X_i`` among them, are **near**; there are ``card``:
``a + b - 1``, or ``i + b - 1``, ``T - i + a``, T where the first, the second, both are missing.
Its **influence** e is the largest of ``log P(quilt | X_i = x)/P(quilt | X_i = x')`` over the class,
pairs of secrets and values of the quilt; 0 where both are missing.

*Theorem (quilt).* If each time has a quilt with ``e + card/sigma <= eps``, the released value w
keeps ``P(w | X_i = x) <= exp(eps) P(w | X_i = x')`` for all pairs of secrets, under all of the
class [1]_. *Proof.* Given the quilt's states, near ones are independent of all others. So ``P(w |
X_i = x)`` is the sum over values q of the quilt, r of the others and n of the near ones of ``P(q |
x) P(r | q) P(n | q, x) P(w | n, q, r)``. Replacing n by any n' costs the last factor at most
``exp(card/sigma)``, so the sum over n is at most ``exp(card/sigma)`` times that with ``P(n' | q,
x')``, for each q and r; and ``P(q | x) <= exp(e) P(q | x')``. With independent series beside it all
of them are among r.

*Theorem (influence).* With ``F_b(x, x') = max_y log P^b(x, y)/P^b(x', y)``, ``B_a(x, x') = max_z
log P^a(z, x)/P^a(z, x')`` and ``h_i(x, x')`` the largest of ``log P(X_i = x')/P(X_i = x)`` over
initial laws, e is at most the largest over x other than x' of ``F_b + B_a + h_i``; without the
first state of ``F_b``, without the last of ``B_a + h_i``. *Proof.* By Bayes' rule ``P(X_{i-a} = z |
X_i = x)`` is ``P(X_{i-a} = z) P^a(z, x)/P(X_i = x)``, and the first factor does not depend on x.
``h_i`` of one initial law is a ratio of two numbers, 0 of a uniform law; over all initial laws m
the ratio ``m P^{i-1}(x') / m P^{i-1}(x)`` is between those of single rows of ``P^{i-1}``, so that
``h_i(x, x') = B_{i-1}(x', x)``. It is e itself where every state may be that at ``i - a``.

*Theorem (wider quilts influence less).* F_b does not increase with b, nor ``B_a`` with a, nor, over
all initial laws, ``h_i`` with i. *Proof.* ``P^{b+1}(x, y)`` and ``P^{b+1}(x', y)`` are sums of
``P^b(x, w)`` and ``P^b(x', w)`` with the same weights ``P(w, y)``: their ratio is at most the
largest of the ratios that are summed. Columns alike.

*Theorem (composition).* Releases of scales ``sigma_1, ..., sigma_K`` of the same series, each
chosen knowing those before, are together one of scale ``1/(1/sigma_1 + ... + 1/sigma_K)``. If each
keeps ``eps_j`` by quilts of its own, all together keep the sum of the ``eps_j``. *Proof.* The law
of the whole transcript given all states is the product of theirs, so the factors multiply. Fix a
time; let release j have the quilt ``(e_j, card_j)`` there, and of all these take that with the
least card, number c. For each j, ``1/sigma_j <= (eps_j - e_j)/card_j <= eps_j/card_c``, and
``1/sigma_c <= (eps_c - e_c)/card_c``. The sum of both sides is ``sum 1/sigma_j <= (sum eps_j -
e_c)/card_c``, so the quilt c suffices for the sum. It matters that the class, the secrets and the
series are the same for all. With the same quilts it is known [1]_ [2]_; they may differ.

*Search.* The score ``card/(eps - e)`` of any quilt bounds what its time needs, so that the result
is valid whichever are tried. They are tried best first: the time that needs most is searched over
all quilts whose card can still improve on it, and the winner is offered to all other times; it ends
when the largest need is one that was searched, and is then the exact maximum over times of the
minimum over quilts of at most `MOST_WIDTH` steps on either side.

*Numerics.* Powers are sums of products of numbers that are not negative, so that each entry has a
small relative error: ``b (k + 1)`` units in the last place; six logarithms and their sum add to an
influence at most 30 units in the last place of the largest of them. Influences are raised by more
than both. An entry below 1e-290 that is not a structural zero may have lost more: its lag is not
used.

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
from numpy.typing import NDArray

from dpmodels.errors import ArgumentError, said
from dpmodels.privacy.chain import MarkovChain
from dpmodels.typing import Floats

# A choice: wider quilts are not tried.
MOST_WIDTH: Final = 4096
# Of a score, whose rounding it covers.
_ROUND_UP: Final = 1 + 1e-12
_TINY: Final = 1e-290
# A choice: quilts of so many lags are tried at once.
_BLOCK: Final = 256
# Times that are searched at most; the others keep the best quilt that was offered.
_MOST_TIMES: Final = 200


@dataclass(frozen=True)
class Quilt:
    """The quilt of the time that needs most noise.

    Attributes
    ----------
    scale : float
        Sigma: the noise of a number that one state moves by 1, in units of that number.
    time : int
        Which time it is of, from 1.
    before, after : int
        How many steps away its states are, 0 where there is none.
    near : int
        How many states lie within, that of the time itself among them.
    influence : float
        The most that the logarithm of a ratio of the quilt's probabilities comes to.
    """

    scale: float
    time: int
    before: int
    after: int
    near: int
    influence: float

    @property
    def trivial(self) -> bool:
        """Whether it is empty, so that the noise is that of all states together."""
        return not (self.before or self.after)

    def describe(self) -> str:
        """Return the quilt in a few words, as reports print it."""
        if self.trivial:
            return f"none: all {self.near:,} states are near"
        lags = [f"{self.before} before"] * bool(self.before) + [f"{self.after} after"] * bool(
            self.after
        )
        return f"{' and '.join(lags)}, {self.near:,} near"


@lru_cache(maxsize=128)
def quilt_scale(chain: MarkovChain, steps: int, eps: float) -> Quilt:
    """Return the quilt, and the scale, at which all states of a series are hidden.

    `steps` is the length T of the series, `eps` what is allowed of every pair of secrets.

    >>> from dpmodels.privacy.chain import markov_chain
    >>> chain = markov_chain(["a", "b"], stay=0.8, initial="stationary")
    >>> quilt = quilt_scale(chain, 1000, 1.0)
    >>> round(quilt.scale, 1), quilt.before, quilt.after
    (13.1, 5, 5)
    """
    return _Search(chain, steps, eps).best()


def trivial_quilt(steps: int, eps: float) -> Quilt:
    """Return the empty quilt, which needs nothing of a chain: all states change at once."""
    return Quilt(steps / eps, (steps + 1) // 2, 0, 0, steps, 0.0)


class _Search:
    """Quilts of all times of a series; pairs are those of secrets, under each of the laws."""

    def __init__(self, chain: MarkovChain, steps: int, eps: float) -> None:
        self.steps, self.eps = steps, eps
        self.width = min(max(steps - 1, 1), MOST_WIDTH)
        laws, k = chain.laws, len(chain.states)
        # Of rounding, for each lag.
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
        # Of the logarithms' own, whatever the lag.
        self.logs = -(2.0**-47) * math.log(rarest)
        self.need = np.full(steps, steps / eps)
        self.quilts = np.zeros((steps, 2), dtype=np.int64)

    def best(self) -> Quilt:
        """Return the quilt of the time that needs most."""
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

    def cards(self, times: NDArray[np.intp], before: int, after: int) -> NDArray[np.intp]:
        """Return how many states are near at some times, from 0."""
        first = times - before + 1 if before else np.zeros_like(times)
        last = times + after - 1 if after else np.full_like(times, self.steps - 1)
        card: NDArray[np.intp] = last - first + 1
        return card

    def influence(self, times: NDArray[np.intp], before: int, after: int) -> Floats:
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
        """Give a quilt to all times that need less with it."""
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

    def searched(self, at: int) -> tuple[int, int]:
        """Return the quilt with which one time needs least, of all that can do better."""
        widths = min(at, self.width), min(self.steps - 1 - at, self.width)
        lag = self.slack * (sum(widths) + at) + self.logs
        start = self.start[min(at, len(self.start) - 1)]
        first, last = (np.arange(width + 1) for width in widths)
        empty = np.zeros((1, self.after.shape[1]))
        left = np.concatenate([empty, self.before[1 : widths[0] + 1] + start])
        right = np.concatenate([empty, self.after[1 : widths[1] + 1]])
        cards = np.where(first, 0, at + 1)[:, None] + np.where(last, 0, self.steps - at)
        cards = cards + first[:, None] + last - 1
        # No quilt influences less than the widest, of any kind.
        widest = [left[-1] + right[-1], left[-1], right[-1]]
        smallest = min(
            float(influences.max()) for influences in widest[: 1 + 2 * (min(widths) > 0)]
        )
        before, after = map(int, self.quilts[at])
        best, quilt = float(self.need[at]), (before, after)
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
    """Return by lag and two rows the largest log ratio of their entries, shape (lags, k, k).

    Infinite at lags at which an entry may have underflowed.
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


def _structural(powers: Floats) -> NDArray[np.bool_]:
    """Tell at which lags all that is tiny is exactly 0, as no way of that length is there."""
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
    """Lay out matrices by law as pairs of different states: shape (n, laws * k (k - 1))."""
    off_diagonal = ~np.eye(ratios[0].shape[1], dtype=bool)
    return np.concatenate([ratio[:, off_diagonal] for ratio in ratios], axis=1)


def _odds(start: Floats, matrix: Floats, steps: int) -> Floats:
    """Return by time and two states x, x' the log of P(X_i = x')/P(X_i = x), (steps, k, k).

    Infinite where either is 0: a bound.
    """
    marginals = np.empty((steps, len(start)))
    marginals[0] = start
    for time in range(1, steps):
        marginals[time] = marginals[time - 1] @ matrix
    with np.errstate(divide="ignore"):
        logs = np.where(marginals < _TINY, np.nan, np.log(marginals))
    log_odds = logs[:, None, :] - logs[:, :, None]
    return np.where(np.isnan(log_odds), np.inf, log_odds)


# How far a number moves between secrets: the Wasserstein mechanism's sensitivity.
#
# *Definition.* ``W(mu, nu)`` is the least w for which numbers drawn from mu and nu can be drawn
# together so that they never differ by more than w. On the line it is the largest ``|F^-1(u) -
# G^-1(u)|`` over u, of the quantile functions of both.
#
# *Theorem [1]_.* Let a number F have the law ``mu_s`` given each secret s, and W be the largest of
# ``W(mu_s, mu_t)`` over pairs of secrets and over a class of laws of the data. Then F with noise of
# ``Lap(W/eps)`` is eps-Pufferfish private. *Proof.* Draw both numbers together: the densities of
# the released value about them differ by a factor of at most ``exp(W / (W/eps))``, and so do their
# means.
#
# *Theorem.* W is at most the most by which F can change altogether: two numbers within an interval
# of that length never differ by more.
#
# *Numerics.* Probabilities are taken as the fractions they are and jump points merged in exact
# arithmetic: no rounding decides which of two equal levels comes first.
#
# .. [1] Song, S., Wang, Y. and Chaudhuri, K. (2017). "Pufferfish Privacy Mechanisms for Correlated
#    Data." SIGMOD. Theorem 3.2.

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
    compared = combinations(levels, 2) if pairs is None else _listed(pairs)
    farthest = max(
        (_quantile_distance(*_pair_levels(levels, pair)) for pair in compared), default=Fraction(0)
    )
    sensitivity = float(farthest)
    return (
        sensitivity if Fraction(sensitivity) >= farthest else math.nextafter(sensitivity, math.inf)
    )


def _listed(pairs: Any) -> list[object]:
    """Return pairs, of which there are some: of none any number would be private."""
    listed = list(pairs) if isinstance(pairs, Iterable) and not isinstance(pairs, str) else []
    if not listed:
        raise ArgumentError(
            f"pairs={said(pairs)} has no pair: expected secrets that must not be told apart, such "
            'as [("ill", "well")], or leave it out for all pairs; an iterator is read once'
        )
    return listed


def _pair_levels(levels: Mapping[Any, list[Jump]], pair: object) -> tuple[list[Jump], list[Jump]]:
    match pair:
        case (Hashable() as first, Hashable() as second) if first in levels and second in levels:
            return levels[first], levels[second]
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
    if not jumps or abs(total - 1) > Fraction(1, 10**9) or min(chance for _, chance in jumps) < 0:
        raise ArgumentError(
            f"the secret {said(secret)} has no law: expected as many values as probabilities, that "
            "are not negative and sum to 1, ([0, 1, 2], [0.2, 0.3, 0.5]); leave out secrets "
            "without probability, as nothing is to be told apart from them"
        )
    positive = [(value, chance / total) for value, chance in jumps if chance]
    sums = accumulate(chance for _, chance in positive)
    return [(level, value) for level, (value, _) in zip(sums, positive, strict=True)]


def _exact(value: Any) -> Fraction:
    """Return a number as the fraction it is; a ValueError of what is none."""
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, bool) or not isinstance(number, Real):
        raise ValueError
    if isinstance(number, Rational):
        return Fraction(number)
    if not math.isfinite(number):
        raise ValueError
    return Fraction(float(number))


def _quantile_distance(left: list[Jump], right: list[Jump]) -> Fraction:
    """Return the largest distance of two quantile functions, by one merge of their levels."""
    farthest, first, second = Fraction(0), 0, 0
    while first < len(left) and second < len(right):
        farthest = max(farthest, abs(left[first][1] - right[second][1]))
        level = min(left[first][0], right[second][0])
        first += left[first][0] == level
        second += right[second][0] == level
    return farthest
