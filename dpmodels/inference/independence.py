"""Chi-square tests of independence that account for the noise of the table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np
from scipy.special import chdtrc

from dpmodels.inference.proportions import DETECTION_SDS, Noise
from dpmodels.privacy import MarkovChain
from dpmodels.typing import Floats

# Most cells: the test solves a system of this many equations.
MOST_CELLS = 2_000
MANY = "the table has too many cells."
# Smallest total of a level, however small the noise.
FEWEST = 1.0
# Fourth cumulant of the noise, in units of its squared variance.
EXCESS = {"laplace": 3.0, "gaussian": 0.0}


@dataclass(frozen=True)
class Independence:
    """A test of mutual independence of the factors of a table.

    nan if noise hides the margins, for the `reason` given; `smallest` is the smallest expected
    count. `pooled` are the indices of the levels of each factor that were pooled; `df` is that of
    the pooled table.
    """

    statistic: float
    pvalue: float
    df: int
    smallest: float
    reason: str = ""
    pooled: tuple[tuple[int, ...], ...] = ()


def independence(table: Floats, noise: Noise) -> Independence:
    """Test whether the factors of a noisy table, shape (levels, levels, ...), are independent.

    The excess of the counts over the products of their margins has, under independence, the
    covariance ``J (N (diag π - π πᵀ) + Σ) Jᵀ``: J the derivative of the excess by the counts, π the
    product of the marginal proportions, Σ the noise covariance. The statistic is the squared length
    of the excess in the metric of the (pseudo-)inverse, chi-square to first order with the degrees
    of freedom of Pearson's test, which it equals without noise [1]_. Laplace noise increases its
    variance by the fourth cumulants: the p-value is that of a multiple of a chi-square variable
    with the same mean and variance [2]_. Pearson's statistic of a noisy table rejects too often.

    Levels with too few rows for the noise are pooled first. The choice depends on noisy margins,
    which are correlated with the noise in the excess if proportions are uneven: the p-value is
    conditional on the choice, so the test keeps its size even when the choice is unlikely.

    .. [1] Kifer, D. and Rogers, R. (2017). "A new class of private chi-square hypothesis tests."
       AISTATS.
    .. [2] Satterthwaite, F. E. (1946). "An approximate distribution of estimates of variance
       components." Biometrics Bulletin 2(6), 110-114.
    """
    if table.size > MOST_CELLS:
        return not_identified(degrees(table.shape), MANY)
    noise_root = noise.sd * noise.weights(np.eye(table.size))
    return independence_within(table[None], noise_root, EXCESS[noise.law])


def independence_within(
    strata: Floats, noise_root: Floats, fourth_cumulants: float | Floats
) -> Independence:
    """Test independence in each of several tables, shape (tables, levels, levels, ...), at once.

    The noise is `noise_root`, shape (cells, variables), times independent variables of variance 1
    and fourth cumulants `fourth_cumulants`. A table with a level that is not distinguishable from
    0, even after pooling, is left out, with its degrees of freedom. For one table `pooled` gives
    the pooled levels. Given their totals, counts of different tables are independent except for
    the noise.
    """
    shape = strata.shape[1:]
    noise_by_table = noise_root.reshape(len(strata), -1, noise_root.shape[-1])
    testable, pooled = [], ()
    selection: list[tuple[Floats, Floats]] = []
    for table, noise in zip(strata, noise_by_table, strict=True):
        by_axis = [_pooled(table, noise, axis) for axis in range(table.ndim)]
        pooled_levels, poolings, choices = zip(*by_axis, strict=True)
        selection += choices
        if min(map(len, poolings)) > 1:
            pooling = reduce(np.kron, poolings)
            pooled_table = (pooling @ table.ravel()).reshape([len(matrix) for matrix in poolings])
            testable.append((pooled_table, pooling @ noise))
            pooled = pooled_levels
    if not testable:
        reason = "the total of a level is not distinguishable from 0 at this budget, even pooled."
        return not_identified(len(strata) * degrees(shape), reason)
    margins, noises = map(np.concatenate, zip(*selection, strict=True))
    return _tested(testable, fourth_cumulants, margins, noises, pooled if len(strata) == 1 else ())


def not_identified(df: int, reason: str) -> Independence:
    """Return a test without a statistic, with the reason."""
    return Independence(math.nan, math.nan, df, math.nan, reason)


def degrees(shape: tuple[int, ...]) -> int:
    """Return the degrees of freedom of mutual independence."""
    return math.prod(shape) - 1 - sum(size - 1 for size in shape)


def _tested(
    tables: Sequence[tuple[Floats, Floats]],
    fourth_cumulants: float | Floats,
    margins: Floats,
    noise: Floats,
    pooled: tuple[tuple[int, ...], ...],
) -> Independence:
    """Test tables, each with the root of its noise covariance, shape (cells, variables).

    They are tested because the `margins`, with the noise root `noise`, are positive.
    """
    from scipy.linalg import block_diag

    df = sum(degrees(table.shape) for table, _ in tables)
    excesses, spreads, noises, smallest = zip(*(_excess(*pair) for pair in tables), strict=True)
    noise_root = np.concatenate(noises)
    metric = whitening(block_diag(*spreads) + noise_root @ noise_root.T, df)
    white, noise_root = metric @ np.concatenate(excesses), metric @ noise_root
    statistic = float(white @ white)
    fourth = float((fourth_cumulants * (noise_root**2).sum(axis=0) ** 2).sum())
    slopes = noise @ (noise_root.T @ white) / max(math.sqrt(statistic), 1e-300)
    pvalue = selected_tail(statistic, df, 1 + fourth / (2 * df), margins, slopes)
    return Independence(statistic, pvalue, df, min(smallest), pooled=pooled)


def _excess(table: Floats, noise_root: Floats) -> tuple[Floats, Floats, Floats, float]:
    """Return the excess over the product of the margins, and its sampling covariance.

    Then the root of its noise covariance, and the smallest expected count.
    """
    total = float(table.sum())
    margins = margins_of(table)
    shares = reduce(np.multiply.outer, [margin / total for margin in margins]).ravel()
    expected = total * shares
    jacobian = np.eye(table.size) - _slope(table.shape, margins, expected, total)
    sampled = total * (np.diag(shares) - np.outer(shares, shares))
    spread = jacobian @ sampled @ jacobian.T
    return table.ravel() - expected, spread, jacobian @ noise_root, float(expected.min())


def margins_of(table: Floats) -> list[Floats]:
    """Return the totals of the levels of each factor."""
    axes = range(table.ndim)
    return [table.sum(axis=tuple(k for k in axes if k != axis)) for axis in axes]


def _pooled(
    table: Floats, noise_root: Floats, axis: int
) -> tuple[tuple[int, ...], Floats, tuple[Floats, Floats]]:
    """Return the levels of a factor to pool, and the matrix that sums levels accordingly.

    Those whose total is not distinguishable from 0, then the smallest of the others, until the
    pooled total is. The matrix has the shape (levels left, levels); one row if too few are left.
    Last come the numbers whose being positive means this choice, and the root of their noise.
    """
    size = table.shape[axis]
    margin = margins_of(table)[axis]
    identity = np.eye(size)
    noisy = np.moveaxis(noise_root.reshape(*table.shape, -1), axis, 0).sum(
        axis=tuple(range(1, table.ndim))
    )
    decisions: list[tuple[float, Floats]] = []

    def is_detected(levels: Floats) -> bool:
        noise = levels @ noisy
        over = float(levels @ margin) - max(DETECTION_SDS * float(np.linalg.norm(noise)), FEWEST)
        decisions.append((abs(over), math.copysign(1.0, over) * noise))
        return over > 0

    order = np.argsort(margin, kind="stable")
    n_undetected = n_pooled = sum(not is_detected(identity[place]) for place in order.tolist())
    while 0 < n_pooled < size and not is_detected(identity[order[:n_pooled]].sum(axis=0)):
        n_pooled += 1
    if n_undetected:
        neighbours = order[n_undetected - 1 : n_pooled + 1]
        decisions += zip(
            np.diff(margin[neighbours]).tolist(), np.diff(noisy[neighbours], axis=0), strict=True
        )
    margins, noises = map(np.array, zip(*decisions, strict=True))
    if not n_pooled:
        return (), identity, (margins, noises)
    pooled, separate = np.sort(order[:n_pooled]), np.sort(order[n_pooled:])
    pooling = np.vstack([identity[separate], identity[pooled].sum(axis=0)])
    return tuple(pooled.tolist()), pooling, (margins, noises)


def _slope(shape: tuple[int, ...], margins: list[Floats], expected: Floats, total: float) -> Floats:
    """Return the derivatives of expected counts by those of the table."""
    positions = np.indices(shape).reshape(len(shape), -1)
    slope = np.full((expected.size, expected.size), (1.0 - len(shape)) / total)
    for position, margin in zip(positions, margins, strict=True):
        slope += (position[:, None] == position[None, :]) / margin[position][:, None]
    return np.asarray(expected[:, None] * slope)


def whitening(spread: Floats, df: int) -> Floats:
    """Return the transform that makes a covariance of rank df the identity, shape (df, cells)."""
    values, vectors = np.linalg.eigh(spread)
    return np.asarray((vectors[:, -df:] / np.sqrt(np.maximum(values[-df:], 1e-300))).T)


# The tail of a chi-square statistic, conditional on the choice of the hypothesis.


def selected_tail(
    statistic: float, df: int, larger: float, margins: Floats, slopes: Floats
) -> float:
    """Return the tail probability of a chi-square statistic, conditional on the choice of the test.

    The choice depends on the signs of `margins`, which are positive; `slopes` are their covariance
    with the length of the whitened excess along its direction. Given that direction and the part
    of the margins that is uncorrelated with the excess, the squared length is `larger` times a
    chi-square variable within the interval in which no margin changes its sign [1]_.

    .. [1] Loftus, J. R. and Taylor, J. E. (2015). "Selective inference in regression models with
       groups of variables." arXiv:1511.01478.
    """
    length = math.sqrt(statistic)
    rising, falling = slopes > 0, slopes < 0
    low = float((length - margins[rising] / slopes[rising]).max(initial=0.0))
    high = float((length - margins[falling] / slopes[falling]).min(initial=math.inf))
    tail_high, tail, tail_low = (
        0.0 if end == math.inf else float(chdtrc(df / larger, end**2 / larger))
        for end in (high, length, low)
    )
    return min((tail - tail_high) / (tail_low - tail_high), 1.0) if tail_low > tail_high else 1.0


# Design effects of the proportions of states of a Markov chain.

# Smallest design effect, since alternating chains leave almost no variance: a choice.
LEAST: Final = 0.01


def share_effects(chain: MarkovChain, steps: int) -> Floats:
    """Return the design effect of the proportion of each state.

    ``1 + 2 sum (1 - h/T) (P^h(j, j) - pi_j)/(1 - pi_j)`` over lags h below T is the variance of
    state j's proportion over T times of a stationary chain, relative to independent times; for a
    class of chains the largest over its `laws`. Raises ArgumentError for a chain with several
    stationary distributions.
    """
    stationary = chain.stationary
    effects = np.max([_effects(law, stationary, steps) for law in chain.laws], axis=0)
    return np.asarray(np.maximum(effects, LEAST))


def _effects(transition: Floats, stationary: Floats, steps: int) -> Floats:
    total, power = np.ones(len(transition)), np.eye(len(transition))
    for lag in range(1, steps):
        power = power @ transition
        total += 2 * (1 - lag / steps) * (np.diag(power) - stationary) / (1 - stationary)
    return np.asarray(total)
