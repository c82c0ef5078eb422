"""Chi-square tests of independence that count the noise of the table in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np
from scipy.special import chdtrc

from dpmodels.inference.ratios import TOLD, Noise
from dpmodels.privacy import MarkovChain
from dpmodels.typing import Floats

# The test solves a system of this many equations.
MOST_CELLS = 2_000
MANY = "the table has too many cells."
# Rows that a level has to have, however small the noise.
FEWEST = 1.0
# Fourth cumulant of the noise, in units of its squared variance.
EXCESS = {"laplace": 3.0, "gaussian": 0.0}


@dataclass(frozen=True)
class Independence:
    """A test of mutual independence of the factors of a table.

    nan where the margins are lost in noise, for the `reason` given; `smallest` is the least
    expected count. `pooled` are the places of the levels of each factor that were taken as one;
    they are those of the released margins, and `df` is that of the table so made.
    """

    statistic: float
    pvalue: float
    df: int
    smallest: float
    reason: str = ""
    pooled: tuple[tuple[int, ...], ...] = ()


def independence(table: Floats, noise: Noise) -> Independence:
    """Test whether the factors of a noisy table, shape (levels, levels, ...), are independent.

    What the counts exceed the products of their margins by has, if the factors are independent, the
    covariance ``J (N (diag π - π πᵀ) + Σ) Jᵀ``: J the derivative of the excess by the counts, π the
    product of the shares of the margins, Σ that of the noise. The statistic is its squared length
    in the metric of the (pseudo-)inverse, chi-square to first order with the degrees of freedom of
    the plain test, which it becomes without noise [1]_. Laplace noise makes it more variable than
    that by the fourth cumulants: the p-value is that of a multiple of a chi-square variable with
    the same mean and variance [2]_. The plain statistic of a noisy table rejects too often.

    Levels with too few rows for the noise are taken as one before. Noisy margins decide on it,
    which know something of the noise in the excess where shares are uneven: the p-value is that
    among the releases in which the same levels would have been told, so that the test keeps its
    size where it is told seldom, too.

    .. [1] Kifer, D. and Rogers, R. (2017). "A new class of private chi-square hypothesis tests."
       AISTATS.
    .. [2] Satterthwaite, F. E. (1946). "An approximate distribution of estimates of variance
       components." Biometrics Bulletin 2(6), 110-114.
    """
    if table.size > MOST_CELLS:
        return untold(degrees(table.shape), MANY)
    drawn = noise.sd * noise.weights(np.eye(table.size))
    return independence_within(table[None], drawn, EXCESS[noise.law])


def independence_within(strata: Floats, drawn: Floats, heavier: float | Floats) -> Independence:
    """Test independence in each of several tables, shape (tables, levels, levels, ...), at once.

    `drawn`, shape (cells, variables), is what the noise is made of, times independent variables of
    variance 1; `heavier` their fourth cumulants. Tables of which a level cannot be told from 0,
    pooled or not, are left out, and so are their degrees of freedom; of one table, `pooled` says
    which levels were taken as one. The counts of different tables are independent given how many
    rows each has, but for the noise.
    """
    shape = strata.shape[1:]
    own = drawn.reshape(len(strata), -1, drawn.shape[-1])
    kept, pooled = [], ()
    decided: list[tuple[Floats, Floats]] = []
    for table, noise in zip(strata, own, strict=True):
        every = [_pooled(table, noise, axis) for axis in range(table.ndim)]
        places, makers, choices = zip(*every, strict=True)
        decided += choices
        if min(map(len, makers)) > 1:
            maker = reduce(np.kron, makers)
            made = (maker @ table.ravel()).reshape([len(one) for one in makers])
            kept.append((made, maker @ noise))
            pooled = places
    if not kept:
        reason = "the total of a level cannot be told from 0 at this budget, pooled or not."
        return untold(len(strata) * degrees(shape), reason)
    margins = np.concatenate([own for own, _ in decided])
    noises = np.concatenate([own for _, own in decided])
    return _tested(kept, heavier, margins, noises, pooled if len(strata) == 1 else ())


def untold(df: int, reason: str) -> Independence:
    """Return no test, and why."""
    return Independence(math.nan, math.nan, df, math.nan, reason)


def degrees(shape: tuple[int, ...]) -> int:
    """Return the degrees of freedom of mutual independence."""
    return math.prod(shape) - 1 - sum(size - 1 for size in shape)


def _tested(
    tables: Sequence[tuple[Floats, Floats]],
    heavier: float | Floats,
    margins: Floats,
    noise: Floats,
    pooled: tuple[tuple[int, ...], ...],
) -> Independence:
    """Test tables, each with what its noise is made of, shape (cells, variables).

    They are tested because the `margins` are positive, whose own noise follows.
    """
    from scipy.linalg import block_diag

    df = sum(degrees(table.shape) for table, _ in tables)
    excesses, spreads, noises, least = zip(*(_excess(*own) for own in tables), strict=True)
    drawn = np.concatenate(noises)
    metric = whitening(block_diag(*spreads) + drawn @ drawn.T, df)
    white, drawn = metric @ np.concatenate(excesses), metric @ drawn
    statistic = float(white @ white)
    fourth = float((heavier * (drawn**2).sum(axis=0) ** 2).sum())
    slopes = noise @ (drawn.T @ white) / max(math.sqrt(statistic), 1e-300)
    pvalue = selected_tail(statistic, df, 1 + fourth / (2 * df), margins, slopes)
    return Independence(statistic, pvalue, df, min(least), pooled=pooled)


def _excess(table: Floats, drawn: Floats) -> tuple[Floats, Floats, Floats, float]:
    """Return what a table exceeds the product of its margins by, the sampling covariance of that.

    What its noise is made of, and the least expected count, follow.
    """
    total = float(table.sum())
    margins = [_margin(table, axis) for axis in range(table.ndim)]
    shares = reduce(np.multiply.outer, [margin / total for margin in margins]).ravel()
    expected = total * shares
    jacobian = np.eye(table.size) - _slope(table.shape, margins, expected, total)
    sampled = total * (np.diag(shares) - np.outer(shares, shares))
    spread = jacobian @ sampled @ jacobian.T
    return table.ravel() - expected, spread, jacobian @ drawn, float(expected.min())


def _margin(table: Floats, axis: int) -> Floats:
    others = tuple(one for one in range(table.ndim) if one != axis)
    return np.asarray(table.sum(axis=others))


def _pooled(
    table: Floats, drawn: Floats, axis: int
) -> tuple[tuple[int, ...], Floats, tuple[Floats, Floats]]:
    """Return which levels of a factor to take as one, and what sums the levels so.

    Those whose total cannot be told from 0, then the smallest of the others, until what they add up
    to can. The matrix has the shape (levels left, levels); one row where too few are left. Last
    come the numbers that are positive for this choice to be made, and what their noise is made of.
    """
    size = table.shape[axis]
    margin = _margin(table, axis)
    own = np.eye(size)
    noisy = np.moveaxis(drawn.reshape(*table.shape, -1), axis, 0).sum(
        axis=tuple(range(1, table.ndim))
    )
    asked: list[tuple[float, Floats]] = []

    def told(levels: Floats) -> bool:
        noise = levels @ noisy
        over = float(levels @ margin) - max(TOLD * float(np.linalg.norm(noise)), FEWEST)
        asked.append((abs(over), math.copysign(1.0, over) * noise))
        return over > 0

    order = np.argsort(margin, kind="stable")
    first = taken = sum(not told(own[place]) for place in order.tolist())
    while 0 < taken < size and not told(own[order[:taken]].sum(axis=0)):
        taken += 1
    if first:
        chosen = order[first - 1 : taken + 1]
        asked += zip(np.diff(margin[chosen]).tolist(), np.diff(noisy[chosen], axis=0), strict=True)
    decided = np.array([over for over, _ in asked]), np.array([noise for _, noise in asked])
    if not taken:
        return (), own, decided
    pooled, kept = np.sort(order[:taken]), np.sort(order[taken:])
    return tuple(pooled.tolist()), np.vstack([own[kept], own[pooled].sum(axis=0)]), decided


def _slope(shape: tuple[int, ...], margins: list[Floats], expected: Floats, total: float) -> Floats:
    """Return the derivative of the expected counts by the counts."""
    places = np.indices(shape).reshape(len(shape), -1)
    slope = np.full((expected.size, expected.size), (1.0 - len(shape)) / total)
    for place, margin in zip(places, margins, strict=True):
        slope += (place[:, None] == place[None, :]) / margin[place][:, None]
    return np.asarray(expected[:, None] * slope)


def whitening(spread: Floats, df: int) -> Floats:
    """Return what makes a covariance of rank df the identity, shape (df, cells)."""
    values, vectors = np.linalg.eigh(spread)
    return np.asarray((vectors[:, -df:] / np.sqrt(np.maximum(values[-df:], 1e-300))).T)


# The tail of a chi-square statistic among the releases in which the same would be tested.


def selected_tail(
    statistic: float, df: int, larger: float, margins: Floats, slopes: Floats
) -> float:
    """Return how often a chi-square variable exceeds its value, given what was chosen by.

    What was chosen to be tested depends on the signs of `margins`, which are positive; `slopes` are
    their covariance with the length of the whitened excess along its direction. Given that
    direction and what of the margins is uncorrelated with the excess, the squared length is
    `larger` times a chi-square variable within the interval in which no margin changes its sign
    [1]_.

    .. [1] Loftus, J. R. and Taylor, J. E. (2015). "Selective inference in regression models with
       groups of variables." arXiv:1511.01478.
    """
    length = math.sqrt(statistic)
    rising, falling = slopes > 0, slopes < 0
    low = float((length - margins[rising] / slopes[rising]).max(initial=0.0))
    high = float((length - margins[falling] / slopes[falling]).min(initial=math.inf))
    above, here, least = (
        0.0 if end == math.inf else float(chdtrc(df / larger, end**2 / larger))
        for end in (high, length, low)
    )
    return min((here - above) / (least - above), 1.0) if least > above else 1.0


# How much more the share of a state varies where states follow each other in chains.

# A choice: chains that take turns leave next to no variance, and no interval is made of none.
LEAST: Final = 0.01


def share_effects(chain: MarkovChain, steps: int) -> Floats:
    """Return by state how many independent times one time of a series stands for.

    ``1 + 2 sum (1 - h/T) (P^h(j, j) - pi_j)/(1 - pi_j)`` over lags h below T is the variance of
    state j's share of T times of a stationary chain, over that of independent ones; of a class the
    largest of those of its `laws`. ArgumentError of a chain that keeps several laws.
    """
    kept = chain.stationary
    most = np.max([_effects(own, kept, steps) for own in chain.laws], axis=0)
    return np.asarray(np.maximum(most, LEAST))


def _effects(own: Floats, kept: Floats, steps: int) -> Floats:
    total, power = np.ones(len(own)), np.eye(len(own))
    for lag in range(1, steps):
        power = power @ own
        total += 2 * (1 - lag / steps) * (np.diag(power) - kept) / (1 - kept)
    return np.asarray(total)
