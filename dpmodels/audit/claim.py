"""A claim as lines that bound the error rates of every event from below.

A guarantee is a privacy profile ``delta(eps)``: error rates ``(a, b)`` of any
event satisfy ``b + e^eps a >= 1 - delta(eps)`` for every eps, and the same
with a and b exchanged, which is the line of slope ``e^-eps``.

* (eps, delta), the pure guarantee with it: ``delta`` at eps.
* mu-Gaussian: ``Phi(mu/2 - e/mu) - e^e Phi(-mu/2 - e/mu)`` at every e, the exact
  curve of Gaussian noise of multiplier ``1/mu``; (eps, delta) is one point of it.
* rho-zCDP: the implication of all orders together for one event,
  :func:`dpmodels.privacy.concentrated.zcdp_profile`.

The curves are computed in :mod:`dpmodels.privacy.trade_off`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from scipy.special import bdtr, bdtrc, betaincinv, ndtr, ndtri

from dpmodels.errors import ArgumentError, quoted
from dpmodels.privacy import ApproxDP, Guarantee, PureDP, gaussian_eps, gaussian_multiplier
from dpmodels.privacy.calibrate import hockey_stick
from dpmodels.privacy.compose import zcdp_to_approx
from dpmodels.privacy.concentrated import least_rho, zcdp_misses, zcdp_profile
from dpmodels.privacy.trade_off import approx_misses, gaussian_misses
from dpmodels.typing import Floats

Unit = Literal["eps", "mu", "rho"]

# The delta at which eps is stated for zCDP, which has none.
DELTA: Final = 1e-5
_STEEPEST: Final = 30.0  # in logarithms; rarer events than e^-30 are not counted
_SLOPES: Final = np.linspace(-14, 14, 141)  # a choice: logarithms


@dataclass(frozen=True)
class Claim:
    """One number of one family of trade-off curves.

    In the family "eps" delta is part of the claim; otherwise eps is stated at this delta.
    """

    unit: Unit
    value: float
    delta: float

    def of(self, value: float) -> Claim:
        """Return the claim of the same family with another number."""
        return replace(self, value=value)

    def boundary(self, alarms: float, misses: float) -> Boundary:
        """Return the line to test, from a guess of the rates in (0, 1)."""
        log_slope = float(self.log_slopes(np.asarray(alarms), np.asarray(misses)))
        return Boundary(math.exp(log_slope), float(self.levels(np.asarray(log_slope))))

    def log_slopes(self, alarms: Floats, misses: Floats) -> Floats:
        """Return the logarithms of the slopes of the lines to test."""
        if self.unit == "eps":
            return np.where(alarms <= misses, self.value, -self.value)
        if self.unit == "mu":  # the tangent at the false-positive rate
            tangents = self.value * (-ndtri(alarms) - self.value / 2)
            return np.asarray(np.clip(tangents, -_STEEPEST, _STEEPEST))
        steep = np.exp(_SLOPES)
        alarms, misses = alarms[..., None], misses[..., None]
        noise = misses * (1 - misses) + steep**2 * alarms * (1 - alarms)
        gaps = self.levels(_SLOPES) - steep * alarms - misses
        return np.asarray(_SLOPES[(gaps / np.sqrt(noise)).argmax(axis=-1)])

    def smallest(self, alarms: Floats, misses: Floats) -> Floats:
        """Return the smallest number of the family that allows events of these rates."""
        if self.unit == "mu":
            return np.asarray(-ndtri(alarms) - ndtri(misses))
        if self.unit == "rho":
            return np.where(alarms + misses < 1, least_rho(1 - misses, alarms), 0.0)
        ratios = [(1 - self.delta - misses) / alarms, (1 - self.delta - alarms) / misses]
        return np.asarray(np.log(np.maximum(*ratios).clip(1e-12)))

    def levels(self, log_slopes: Floats) -> Floats:
        """Return the levels of the supporting lines of the curve with these slopes."""
        level = 1 - self.profile(np.abs(log_slopes))
        return np.where(log_slopes >= 0, level, np.exp(log_slopes) * level)

    def profile(self, eps: Floats) -> Floats:
        """Return the claimed delta at each nonnegative eps."""
        if self.unit == "mu":
            return np.asarray(hockey_stick(eps, 1 / self.value))
        if self.unit == "rho":
            return zcdp_profile(eps, self.value)
        smaller_eps = 1 - (1 - self.delta) * (1 + np.exp(eps)) / (1 + math.exp(self.value))
        return np.where(eps >= self.value, self.delta, smaller_eps)

    def misses(self, alarms: Floats) -> Floats:
        """Return the trade-off curve: the smallest miss rate at each false alarm rate."""
        if self.unit == "mu":
            return gaussian_misses(alarms, self.value)
        if self.unit == "rho":
            return zcdp_misses(alarms, self.value)
        return approx_misses(alarms, self.value, self.delta)

    @property
    def eps(self) -> float:
        """The claimed eps at `delta`; infinite if the number is."""
        if math.isinf(self.value):
            return math.inf
        if self.unit == "mu":
            return gaussian_eps(self.delta, 1 / self.value)
        if self.unit == "rho":
            return zcdp_to_approx(self.value, self.delta)
        return self.value

    def describe(self) -> str:
        """Return the claim as reports print it."""
        delta = f", delta = {self.delta:g}" if self.delta else ""
        descriptions = {
            "eps": f"eps = {self.value:g}{delta}",
            "mu": f"eps = {self.eps:.6g}{delta} by Gaussian noise, mu = {self.value:.3g}",
            "rho": f"rho = {self.value:g} (zCDP)",
        }
        return descriptions[self.unit]


def claim(guarantee: Guarantee, law: str | None) -> Claim:
    """Return the curve of a guarantee, for noise of a given distribution or any.

    ``law="gaussian"``: exactly calibrated Gaussian noise, which claims the whole curve.
    ArgumentError for another law, BudgetError for a Gaussian claim of a pure guarantee.
    """
    delta = guarantee.delta if isinstance(guarantee, ApproxDP) else DELTA
    if law == "gaussian":
        return Claim("mu", 1 / gaussian_multiplier(guarantee), delta)
    if law is not None:
        raise ArgumentError(f'law={quoted(law)}: expected "gaussian", or None for any noise')
    if isinstance(guarantee, PureDP):
        return Claim("eps", guarantee.eps, 0.0)
    if isinstance(guarantee, ApproxDP):
        return Claim("eps", guarantee.eps, guarantee.delta)
    return Claim("rho", guarantee.rho, delta)


# A lower bound of the claimed number from one counted event, and the reach of an audit.
#
# *Theorem.* A number that is at most the smallest value not rejected at level
# ``error`` is above the truth with probability at most ``error``: the true value's
# hypothesis is rejected no more often, and every larger one is true as well.
#
# The reach of an audit with a given number of runs is reported with its result. For
# (eps, delta) the most detectable violations are randomised response, with error
# rates ``(1 - delta)/(1 + e^eps)`` on both sides. For Gaussian noise and zCDP the
# reach is that of Gaussian noise, with the threshold at which rates move fastest
# relative to their standard error. Both use the normal approximation and the most
# powerful test, so that no audit detects a smaller violation.

# Here the best event errs once in 1e9 runs or less, and an audit has at most 1e8.
_LARGEST: Final = {"eps": 40.0, "mu": 12.0, "rho": 72.0}
_NEAR: Final = 4e-4  # a choice: bounds are printed to three digits
_RAREST: Final = 1e-15  # of rates in logarithms: near the resolution of doubles
_POWER: Final = 0.8  # a choice: four audits of five
_MOST: Final = 64.0  # a choice: the largest multiple of the claim considered
_HALVINGS: Final = 8  # of a step of a ninth: a relative precision of 1/2000


@dataclass(frozen=True)
class Guess:
    """Rates of an event among the choosing runs, which select the line to test."""

    alarms: float
    misses: float


def beats(claim: Claim, counts: Counts, guess: Guess, error: float) -> float:
    """Return the p-value of a claim, from runs that did not choose the event.

    A fiftieth of the level is spent on the nuisance parameter.
    """
    return p_value(counts, claim.boundary(guess.alarms, guess.misses), error / 50)


def lower_bound(claim: Claim, counts: Counts, guess: Guess, error: float) -> float:
    """Return the largest number of the claim's family that the counts rule out, else 0.

    It exceeds the truth with probability at most `error`, whatever number is claimed.

    >>> counts = Counts(alarms=100, rows_runs=10_000, misses=9_000, neighbour_runs=10_000)
    >>> bool(1.8 < lower_bound(Claim("eps", 1.0, 0.0), counts, Guess(0.01, 0.9), 0.05) < 2.3)
    True
    """
    alarms, misses = counts.rates
    if alarms + misses >= 1:
        return 0.0
    # Numbers that allow the observed rates are not ruled out.
    rates = [np.clip(np.asarray(rate), _RAREST, 1.0) for rate in (alarms, misses)]
    low, high = 0.0, min(_LARGEST[claim.unit], float(claim.smallest(*rates)))
    while high - low > _NEAR * (1 + low):
        middle = (low + high) / 2
        if beats(claim.of(middle), counts, guess, error) <= error:
            low = middle
        else:
            high = middle
    return low


def ceiling(claim: Claim, runs: int, error: float) -> float:
    """Return the largest possible bound from `runs` counted runs per table: if no run errs.

    >>> 3.4 < ceiling(Claim("eps", 1.0, 0.0), 100, 0.05) < 3.6
    True
    """
    never = Counts(0, runs, 0, runs)
    tiny = 0.5 / (runs + 1)
    return lower_bound(claim, never, Guess(tiny, tiny), error)


def detectable(claim: Claim, runs: int, error: float) -> float:
    """Return the smallest true number detected with power 0.8, else infinity.

    >>> 1.0 < detectable(Claim("eps", 1.0, 1e-5), 10_000, 0.05) < 1.1
    True
    """
    if ceiling(claim, runs, error) <= claim.value:
        return math.inf
    factors = np.geomspace(1.0, _MOST, 40)
    detected = [bool(_is_detected(claim, factor, runs, error)) for factor in factors]
    if not any(detected):
        return math.inf
    first = detected.index(True)
    low, high = factors[max(first - 1, 0)], factors[first]
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if _is_detected(claim, middle, runs, error) else (middle, high)
    return float(high) * claim.value


def _is_detected(claim: Claim, factor: float, runs: int, error: float) -> bool:
    """Whether some event is expected to lie far enough below its line."""
    alarms, misses = _rates(claim.of(claim.value * factor))
    slopes = claim.log_slopes(alarms, misses)
    steep = np.exp(slopes)
    noise = misses * (1 - misses) + steep**2 * alarms * (1 - alarms)
    standing = (claim.levels(slopes) - misses - steep * alarms) / np.sqrt(noise / runs)
    return bool(standing.max() >= -float(ndtri(error)) - float(ndtri(1 - _POWER)))


def _rates(true: Claim) -> tuple[Floats, Floats]:
    """Return error rates of events under the least private release within a claim."""
    if true.unit == "eps":
        rate = np.array([(1 - true.delta) / (1 + math.exp(true.value))])
        return rate, rate
    mu = true.value if true.unit == "mu" else math.sqrt(2 * true.value)
    cuts = np.linspace(0, 3, 13) + mu / 2
    return ndtr(-cuts).clip(1e-12), ndtr(cuts - mu).clip(1e-12)


# The test of one event against one line that bounds the error rates of private releases from below.
#
# Every trade-off function is convex: the error rates ``(a, b)`` of an event,
# false positives and false negatives, lie on or above each of its supporting
# lines ``b + s a = c``. For (eps, delta) these are ``b + e^eps a = 1 - delta`` and
# its mirror image.
#
# *Theorem.* Let ``A`` of ``n`` runs and ``B`` of ``m`` runs be independent
# binomial counts of rates ``a`` and ``b`` with ``b + s a >= c``. The p-value
# below is at most ``t`` with probability at most ``t``, for any t.
#
# *Proof.* Let ``T = B/m + s A/n``. For known rates ``F(T) = P(T' <= T)`` has that
# property. F decreases in a and in b, so on the part of the null hypothesis
# where ``a`` is in a cell ``[l, r]`` it is at most its value at ``(l, c - s r)``;
# the largest of these values over the cells of an interval that contains ``a``
# except with probability g, plus g, is a p-value (Berger and Boos 1994). In a
# sum over A the terms of a run of values are bounded by its first one. All
# rounding is upward.
#
# The line is chosen before the counts are seen. The test needs half the runs of
# two separate bounds for the rates, which err in both directions at once.
#
# References
# ----------
# .. [1] Berger, R. L. and Boos, D. D. (1994). "P values maximized over a
#    confidence set for the nuisance parameter." JASA 89, 1012-1016.
# .. [2] Dong, J., Roth, A. and Su, W. (2022). "Gaussian Differential Privacy."
#    Journal of the Royal Statistical Society B 84(1), 3-37. Section 2.

_CELLS: Final = 48  # a choice: of the interval for the false alarm rate; fewer only raise p
_BINS: Final = 100  # a choice: terms of the sum; fewer only raise p
_OUTSIDE: Final = 1e-15  # mass of a count beyond the range that is summed
_ROUNDING: Final = 1e-9  # far above that of doubles


@dataclass(frozen=True)
class Boundary:
    """Rates on or above ``misses + slope * alarms = level`` are within the claim.

    The slope is positive; the level is at most 1 and at most the slope, so that coin flipping is on
    or above the line.
    """

    slope: float
    level: float


def p_value(counts: Counts, boundary: Boundary, nuisance: float = 1e-5) -> float:
    """Return the p-value of the hypothesis that an event's rates are on or above a line.

    In (0, 1], and never below `nuisance`, the error of the interval for the false alarm rate.
    The runs must be independent of the choice of the event and the line.

    >>> fair = Counts(alarms=500, rows_runs=1000, misses=500, neighbour_runs=1000)
    >>> p_value(fair, Boundary(slope=1.0, level=0.9)) > 0.9
    True
    >>> p_value(Counts(400, 1000, 400, 1000), Boundary(slope=1.0, level=0.9)) < 1e-4
    True
    """
    alarms, misses = counts.rates
    if misses + boundary.slope * alarms >= boundary.level:
        return 1.0
    low = lower_rate(counts.alarms, counts.rows_runs, nuisance / 2)
    high = upper_rate(counts.alarms, counts.rows_runs, nuisance / 2)
    low = max(low, (boundary.level - 1) / boundary.slope)
    if low > high:
        return nuisance
    edges = np.linspace(low, high, _CELLS + 1)
    below = np.clip(boundary.level - boundary.slope * edges[1:], 0.0, 1.0)
    return float(min(1.0, nuisance + _tail(counts, boundary, edges[:-1], below).max()))


def _tail(counts: Counts, boundary: Boundary, alarm: Floats, miss: Floats) -> Floats:
    """Bound ``P(B/m + s A/n <= observed)`` for pairs of rates."""
    n, m = counts.rows_runs, counts.neighbour_runs
    alarms, misses = counts.rates
    reached = (misses + boundary.slope * alarms) * (1 + _ROUNDING)
    largest = min(n, int(n * reached / boundary.slope))
    spread = 8 * np.sqrt(n * np.array([alarm[0], alarm[-1]])) + 40
    first = int(max(0, n * alarm[0] - spread[0]))
    last = int(min(largest, n * alarm[-1] + spread[1]))
    if last < first:  # every sufficiently small count is far below its mean
        return np.full(len(alarm), _OUTSIDE) + bdtr(largest, n, alarm)
    starts = np.unique(np.linspace(first, last + 1, _BINS + 1).astype(np.int64))
    last_counts = starts[1:] - 1
    mass = np.diff(bdtr(np.append(starts[0] - 1, last_counts).clip(-1), n, alarm[:, None]), axis=1)
    if first == 0:
        mass[:, 0] = bdtr(last_counts[0], n, alarm)
    miss_limit = np.floor(m * (reached - boundary.slope * starts[:-1] / n) + _ROUNDING).clip(0, m)
    miss_mass = np.where(
        miss_limit >= m, 1.0, bdtr(np.minimum(miss_limit, m - 1), m, miss[:, None])
    )
    beyond = (bdtr(first - 1, n, alarm) if first else 0.0) + (
        bdtrc(last, n, alarm) if last < largest else 0.0
    )
    return np.asarray((mass.clip(0) * miss_mass).sum(axis=1) + beyond + _OUTSIDE)


# Counts of an event on both tables, and confidence intervals for its rates.
#
# *Theorem* (Clopper and Pearson). Of ``n`` independent runs ``k`` show an event
# of probability ``p``. With ``U(k)`` the solution of ``P(Binomial(n, U) <= k) =
# a``, ``P(p > U(k)) <= a``: if ``p > U(k)`` then, as the binomial distribution
# function falls in p, ``P(Binomial(n, p) <= k) < a``, which happens for at most
# the first few k, of total probability below a. The lower bound is the same for
# ``n - k``.
#
# References
# ----------
# .. [1] Clopper, C. J. and Pearson, E. S. (1934). "The use of confidence or
#    fiducial limits illustrated in the case of the binomial." Biometrika 26,
#    404-413.


def upper_rate(events: int, runs: int, error: float) -> float:
    """Return an upper confidence bound for a rate, from `events` in `runs`."""
    return 1.0 if events >= runs else float(betaincinv(events + 1, runs - events, 1 - error))


def lower_rate(events: int, runs: int, error: float) -> float:
    """Return a lower confidence bound for a rate, from `events` in `runs`."""
    return 0.0 if events <= 0 else float(betaincinv(events, runs - events + 1, error))


@dataclass(frozen=True)
class Counts:
    """Counts of errors about the event "the release came from the neighbour"."""

    alarms: int
    rows_runs: int
    misses: int
    neighbour_runs: int

    @property
    def rates(self) -> tuple[float, float]:
        """False alarm rate and miss rate."""
        return self.alarms / self.rows_runs, self.misses / self.neighbour_runs

    def box(self, error: float) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return simultaneous confidence intervals for both rates, with error ``error``."""
        pairs = (self.alarms, self.rows_runs), (self.misses, self.neighbour_runs)
        alarms, misses = (
            (lower_rate(*pair, error / 4), upper_rate(*pair, error / 4)) for pair in pairs
        )
        return alarms, misses
