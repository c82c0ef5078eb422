"""The best adaptive analyst of a family, by backward induction over what a filter accepts.

Independent of the accounting that it tries: of a filter it uses ``plus`` and ``holds`` alone. The
value of a state is the largest delta, at the filter's eps, that any continuation reaches, for every
privacy loss so far, on a grid. Randomised response and releases of bounded range are moved by whole
steps of the grid; Gaussian noise is a trapezoidal sum, which for its density is exact to rounding;
last releases, whose value has a kink, are in closed form. What leaves the grid counts too little.
"""

from dataclasses import dataclass

import numpy as np
from scipy.signal import fftconvolve
from scipy.special import expit, ndtr

from dpmodels.privacy import BoundedRangeEvent, GaussianEvent, PureEvent, total_eps
from dpmodels.privacy.compose import Totals

POINTS = 6000
# Places of the upper loss in the range of a release of bounded range.
PLACES = (0.05, 0.25, 0.5, 0.75, 0.95)


class Tight:
    """The rule that is not a filter: the tight composition of everything charged so far."""

    def __init__(self, guarantee):
        self.guarantee = guarantee

    def plus(self, totals, events):
        return (*(totals if isinstance(totals, tuple) else ()), *events)

    def holds(self, totals):
        return total_eps(totals, self.guarantee.delta) <= self.guarantee.eps


@dataclass(frozen=True)
class Move:
    """A release: its kind, the share of the largest that is accepted, its place in the range."""

    kind: str
    share: float
    place: float = 0.5


def event(kind, size):
    return {"gaussian": lambda: GaussianEvent(1 / size), "pure": lambda: PureEvent(size)}.get(
        kind, lambda: BoundedRangeEvent(size)
    )()


class Attack:
    """All strategies of some moves against one filter.

    Parameters
    ----------
    own : Filter
        What accepts.
    moves : tuple of Move
        What may be asked before the last release, in any order, each as often as accepted.
    """

    def __init__(self, own, moves):
        self.own, self.moves, self.eps = own, moves, own.guarantee.eps
        reach = 1.5 * self.eps + 4 * self.largest(Totals(), "gaussian")
        self.step = 2 * reach / POINTS
        self.losses = self.step * np.arange(-POINTS // 2, POINTS // 2 + 1)

    def value(self, most, plan=()):
        """The delta of the best strategy of a plan charged as one, and `most` releases more."""
        totals = Totals()
        if plan:
            totals = self.own.plus(totals, [event(kind, size) for kind, size in plan])
            if not self.own.holds(totals):
                return 0.0
        values = self.values(totals, most)
        for kind, size in plan:
            values = self.asked(values, kind, size, 0.5)
        return float(values[POINTS // 2])

    def values(self, totals, most):
        best = self.last(totals)
        for move in self.moves if most > 1 else ():
            size = self.largest(totals, move.kind) * move.share
            if move.kind != "gaussian":
                size = np.floor(size / self.step) * self.step
            if size > 4 * self.step:
                after = self.own.plus(totals, [event(move.kind, size)])
                assert self.own.holds(after)
                values = self.values(after, most - 1)
                best = np.maximum(best, self.asked(values, move.kind, size, move.place))
        return best

    def largest(self, totals, kind):
        """The largest release of a kind that is accepted; zero if none is."""
        fits, too_much = 0.0, 64.0
        for _ in range(44):
            tried = (fits + too_much) / 2
            if self.own.holds(self.own.plus(totals, [event(kind, tried)])):
                fits = tried
            else:
                too_much = tried
        return fits

    def asked(self, values, kind, size, place):
        """What a state is worth where a release is asked, from what it is worth after it."""
        if kind == "gaussian":
            reach = int(9 * size / self.step) + 1
            steps = np.arange(-reach, reach + 1) * self.step
            mass = np.exp(-(((steps - size * size / 2) / size) ** 2) / 2)
            ends = np.pad(values, (reach, reach), constant_values=(0, values[-1]))
            return fftconvolve(ends, (mass / mass.sum())[::-1], mode="valid")
        up, down, chance = self.two_points(kind, size, place)
        return chance * self.moved(values, up) + (1 - chance) * self.moved(values, down)

    def two_points(self, kind, size, place):
        """The losses of a release, in whole steps, and the chance of the first."""
        total = round(size / self.step)
        if kind == "pure":
            return total, -total, expit(size)
        up = min(max(round(total * place), 1), total - 1)
        return up, up - total, -np.expm1(up * self.step - size) / -np.expm1(-size)

    def moved(self, values, steps):
        if steps >= 0:
            return np.concatenate([values[steps:], np.full(steps, values[-1])])
        return np.concatenate([np.zeros(-steps), values[:steps]])

    def last(self, totals):
        """What the best last release makes of each loss so far."""
        left = self.eps - self.losses
        best = shortfall(left)
        pure, mu, ranged = (self.largest(totals, k) for k in ("pure", "gaussian", "ranged"))
        chance = expit(pure)
        reported = chance * shortfall(left - pure) + (1 - chance) * shortfall(left + pure)
        best = np.maximum(best, reported)
        if mu > 1e-9:
            best = np.maximum(
                best, ndtr(mu / 2 - left / mu) - exp(left) * ndtr(-mu / 2 - left / mu)
            )
        for place in PLACES if ranged else ():
            up = ranged * place
            chance = -np.expm1(up - ranged) / -np.expm1(-ranged)
            reported = chance * shortfall(left - up) + (1 - chance) * shortfall(left - up + ranged)
            best = np.maximum(best, reported)
        return best


def exp(left):
    return np.exp(np.minimum(left, 700.0))


def shortfall(left):
    return -np.expm1(np.minimum(left, 0.0))
