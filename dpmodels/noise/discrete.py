"""The discrete Gaussian and the discrete Laplace law on the integers, sampled exactly.

The law of either is that of the rational number its float scale is. It is exact: a candidate is
accepted or refused by comparing uniform bits with a threshold whose error is bounded, and where
the bound leaves it open, by integer arithmetic and further bits (see `dpmodels.noise.blocks`). An
observer who can time a call is outside the statements made here.

Proof of the lemma of Theorem 10 (docs/theory.md; sums over k run from 1):
Round a real number t to the integer y at random with probability ``K(t, y) = exp(-(y -
t)²/(2r²))/R(t)``, ``R(t) = Σ_y exp(-(y - t)²/(2r²))``. Poisson's summation gives ``R(t) = r√(2π) (1
+ 2 Σ exp(-2π²r²k²) cos 2πkt)``, which is within a factor ``1 ± β`` of ``r√(2π)``, ``β = 2 Σ
exp(-2π²r²k²) ≤ 2.01 exp(-2π²r²) < 10⁻⁸``. Let X be normal of variance ``τ² = σ² - r²``, φ_τ its
density and q the law of its rounding. A product of two normal densities integrates to one of the
sum of their variances, ``∫ φ_τ(t) exp(-(y - t)²/(2r²)) dt = r√(2π) φ_σ(y)``, so that ``φ_σ(y)/(1 +
β) ≤ q(y) ≤ φ_σ(y)/(1 - β)`` for every integer y. The discrete Gaussian is ``p(y) = φ_σ(y)/(1 +
β')`` with ``0 ≤ β' ≤ β``, by the same summation at t = 0 and scale σ > r. So ``exp(-θ) ≤ p(y)/q(y)
≤ exp(θ)``, as ``log((1 + β)/(1 - β)) ≤ θ``, for every y: in the tails too. K commutes with integer
shifts, so integers plus noise of law q are K of the integers plus normal noise: post-processing. Of
all N coordinates together, moved on as the answers before decide, it is post-processing of Gaussian
releases of ``Σ s_i²/τ_i² ≤ 1/m'²``, which compose to one of multiplier m' (Theorems 15 and 27). So
with Q, Q' the laws of a pair of transcripts under q, and P, P' under p, ``P(S) ≤ e^(Nθ) Q(S) ≤
e^(Nθ) (e^ε' Q'(S) + δ_m'(ε')) ≤ e^(ε' + 2Nθ) P'(S) + e^(Nθ) δ_m'(ε')`` for every set S, and ``ε' =
ε - 2Nθ``. The second bound: ``-dδ_m'/dε ≤ 1``, and ``e^(Nθ) ≤ 1 + 2Nθ``, ``δ ≤ 1``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from dpmodels.arguments import real
from dpmodels.errors import ArgumentError, PrivacyError, quoted
from dpmodels.noise.blocks import Law, Table, draw, fit_envelope, tabulate
from dpmodels.noise.finite import exp_coins
from dpmodels.noise.uniform import Entropy, uniform_integer
from dpmodels.typing import Exact, Floats, Integers

if TYPE_CHECKING:
    import mpmath

# A choice: here all but 2 exp(-128) of the Laplace draws are 0, and still more of the Gaussian.
_LOWEST = 2.0**-7
# A draw outside int64 has a probability below exp(-500).
_WIDEST_GAUSSIAN = 2.0**58
# A draw outside int64 has probability exp(-128).
_WIDEST_LAPLACE = 2.0**56


def discrete_gaussian(sigma: float, size: int, entropy: Entropy) -> Integers:
    """Draw from P(x) proportional to exp(-x²/(2 sigma²)), x an integer, exactly.

    Adding it to an integer statistic of L2 sensitivity s costs rho = s²/(2 sigma²) of
    zero-concentrated differential privacy, as the continuous Gaussian does. `sigma` is in lattice
    steps, 2^-7 to 2^58; int64 of shape (size,) comes back.

    Source: Canonne, Kamath, Steinke (2020), The Discrete Gaussian for Differential Privacy.

    ArgumentError if `sigma` or `size` is outside its range.

    Examples
    --------
    >>> from dpmodels.noise import seeded
    >>> draws = discrete_gaussian(1000.0, 100_000, seeded(1))
    >>> draws.dtype, bool(abs(draws.std() / 1000 - 1) < 0.02)
    (dtype('int64'), True)
    """
    return draw(_gaussian(_checked("sigma", sigma, _WIDEST_GAUSSIAN)), size, entropy)


def discrete_laplace(scale: float, size: int, entropy: Entropy) -> Integers:
    """Draw from P(x) proportional to exp(-|x|/scale), x an integer, exactly.

    Adding it to an integer statistic of L1 sensitivity s is (s/scale)-differentially private.
    `scale` is in lattice steps, 2^-7 to 2^56; int64 of shape (size,) comes back.

    Source: Ghosh, Roughgarden, Sundararajan (2009), Universally Utility-Maximizing Privacy
    Mechanisms (the geometric mechanism).

    ArgumentError if `scale` or `size` is outside its range.

    Examples
    --------
    >>> from dpmodels.noise import seeded
    >>> draws = discrete_laplace(1000.0, 100_000, seeded(1))
    >>> draws.dtype, bool(abs(draws).mean().round(-2) == 1000)
    (dtype('int64'), True)
    """
    return draw(_laplace(_checked("scale", scale, _WIDEST_LAPLACE)), size, entropy)


def discrete_laplace_variance(scale: float) -> float:
    """Give the variance of `discrete_laplace`: 1/(2 sinh²(1/(2 scale))), just below 2 scale²."""
    half = 0.5 / _checked("scale", scale, _WIDEST_LAPLACE)
    return 0.5 / math.sinh(half) ** 2


@lru_cache(maxsize=64)
def _gaussian(sigma: float) -> Table:
    return tabulate(fit_envelope(Law(Fraction(0), 1 / (2 * Fraction(sigma) ** 2))))


@lru_cache(maxsize=64)
def _laplace(scale: float) -> Table:
    return tabulate(fit_envelope(Law(1 / Fraction(scale), Fraction(0))))


def _checked(name: str, value: object, highest: float) -> float:
    """Give a scale as a float; ArgumentError unless it is from 2^-7 to the highest."""
    number = real(value)
    if not _LOWEST <= number <= highest:
        raise ArgumentError(
            f"{name}={quoted(value)}: expected a number from 2^{math.log2(_LOWEST):.0f} to "
            f"2^{math.log2(highest):.0f} lattice steps; change the lattice step"
        )
    return number


# The discrete Laplace law truncated at a bound, sampled exactly, and its distribution.

# Bits of the mass at the bound, and the factor that rounds it up.
_BITS, _UP = 256, 1 + 2.0**-100


def truncated_laplace(scale: float, bound: int, size: int, entropy: Entropy) -> Integers:
    """Draw from P(x) proportional to exp(-|x|/scale), x an integer within `bound`, exactly.

    Where the bound is not below the scale, Laplace draws beyond it are drawn again; below it, a
    whole number uniform within the bound is accepted with probability ``exp(-|x|/scale)``. Either
    way a draw is accepted with probability 1/3 or more, whatever the budget. `scale` as for
    :func:`discrete_laplace`; int64 of shape (size,) comes back.

    >>> from dpmodels.noise import seeded
    >>> int(abs(truncated_laplace(10.0, 7, 1000, seeded(1))).max())
    7
    """
    if bound < scale:
        return _of_uniform(Fraction(scale), bound, size, entropy)
    draws = discrete_laplace(scale, size, entropy)
    beyond = np.flatnonzero(np.abs(draws) > bound)
    while beyond.size:
        draws[beyond] = discrete_laplace(scale, beyond.size, entropy)
        beyond = beyond[np.abs(draws[beyond]) > bound]
    return draws


def _of_uniform(scale: Fraction, bound: int, size: int, entropy: Entropy) -> Integers:
    draws = np.empty(size, dtype=np.int64)
    waiting = np.arange(size)
    while waiting.size:
        proposed = [uniform_integer(2 * bound + 1, entropy) - bound for _ in range(waiting.size)]
        draws[waiting] = proposed
        accepted = exp_coins(np.abs(draws[waiting]), 1 / scale, entropy)
        waiting = waiting[~accepted]
    return draws


def least_bound(scale: float, chance: float) -> int:
    """Return the least bound that a draw reaches, on one side, with at most this probability.

    With ``q = exp(-1/scale)`` a draw is k, or -k, with probability ``(1 - q) q**k / (1 + q - 2
    q**(k + 1))``, which falls with k: it is at most `chance` from ``log((1 - q + 2 q chance) /
    (chance (1 + q))) * scale`` on. `chance` is in (0, 1); it is met to the last bit.
    """
    import mpmath

    with mpmath.workprec(_BITS):
        q, share = mpmath.exp(-1 / _exactly(scale)), _exactly(chance)
        threshold = mpmath.log((1 - q + 2 * q * share) / (share * (1 + q))) * _exactly(scale)
        bound = max(int(mpmath.ceil(threshold)) - 1, 1)
        while (1 - q) * q**bound / (1 + q - 2 * q ** (bound + 1)) * _UP > share:
            bound += 1
        return bound


def _exactly(number: float) -> mpmath.mpf:
    import mpmath

    fraction = Fraction(number)
    return mpmath.mpf(fraction.numerator) / fraction.denominator


def below(x: Floats, scale: float, bound: int) -> Floats:
    """Return the probability of a draw of at most x, whole numbers.

    >>> import numpy as np
    >>> below(np.array([-3.0, -2.0, 0.0, 2.0]), 1.0, 2).round(3)
    array([0.   , 0.067, 0.749, 1.   ])
    """
    ratio = math.exp(-1 / scale)
    mass = 1 + ratio - 2 * ratio ** (bound + 1)
    clipped = np.clip(x, -bound - 1, bound)
    # Sums of q**k from |x| to the bound, of the smaller side.
    size = np.where(clipped < 0, -clipped, clipped + 1)
    tail = np.maximum(np.exp(-size / scale) - ratio ** (bound + 1), 0.0) / mass
    return np.where(clipped < 0, tail, 1 - tail)


# Noise added to exact integers: by one curator, or by all sites of a joint release.


Part = tuple[Exact, float]
"""Exact integers, shape (size,), and the scale of the noise in each."""
Draw = Callable[[float, int, Entropy], Integers]


class NoiseOfSites(ABC):
    """Stands for a source of entropy where sites add the noise, round by round.

    A mechanism's noise is all its randomness then: what it does between rounds is a function of
    public answers, which every site can compute.
    """

    def words(self, count: int) -> NoReturn:
        """Refuse words: no randomness of a joint release is drawn in one place."""
        raise PrivacyError(
            "sites add Gaussian noise to sums of integers, and this mechanism draws other random "
            "numbers: write mechanism='auto'"
        )

    @abstractmethod
    def answer(self, parts: Sequence[Part]) -> list[Exact]:
        """Return the public answer of one round: the integers of each part with Gaussian noise."""


def noisy_sums(parts: Sequence[Part], draw: Draw, entropy: Entropy | NoiseOfSites) -> list[Exact]:
    """Add noise to the parts of one round, which are released together.

    `draw` gives the noise of a scale, size and source; the sums are Python integers, or fractions
    where sites need finer steps.
    """
    if isinstance(entropy, NoiseOfSites):
        if draw is not discrete_gaussian:
            entropy.words(0)
        return entropy.answer(parts)
    return [
        np.asarray(exact + draw(scale, exact.size, entropy).astype(object).reshape(exact.shape))
        for exact, scale in parts
    ]
