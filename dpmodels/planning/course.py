"""What the figures of a call come to at several budgets, and between them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpmodels.errors import BudgetError, FrameError
from dpmodels.planning.figures import figures
from dpmodels.planning.guess import World, priced, released
from dpmodels.privacy import ZCDP, Event, GaussianEvent, Guarantee
from dpmodels.sessions.call import Call, Terms
from dpmodels.typing import Floats

# Budgets of which the noise is next to nothing beside sampling, the first that a call takes.
_PLENTY: Final = (1e3, 1e2, 1e1)
# Tables that are invented where a result has no law of sampling: a choice.
DRAWS: Final = 12
# Releases that are compared where results have no noise of their own, at least: a choice.
_COMPARED: Final = 8
# What stands for sampling where a figure is the same in all tables: this share of its size.
_LEAST: Final = 0.01
_SAME: Final = 1e-6
_FINE: Final = 400
# How often the budget from which a call is identified is looked for more closely: a choice.
_CLOSER: Final = 3
# Times the budget at which half of the releases are identified, most are: a choice.
_SAFER: Final = 1.25
# Standard errors below and above which none is told apart.
_TINY: Final = 1e-300
_HUGE: Final = 690.0  # Its logarithm

Form = Callable[[float], Guarantee]


class Release(NamedTuple):
    """Noise of a call's figures at one budget."""

    mechanism: str
    events: tuple[Event, ...]
    noise: Floats  # Standard errors by figure, infinite where less than half of them identify it
    chance: Floats  # That it is identified, by figure

    @property
    def gaussian(self) -> bool:
        """Whether all noise is Gaussian."""
        return all(isinstance(event, GaussianEvent) for event in self.events)


@dataclass(frozen=True)
class Imagined:
    """A call on guessed rows: its figures without noise, and their sampling errors."""

    call: Call
    form: Form  # From an amount, of eps or rho, to a guarantee
    terms: Terms
    exact: pd.DataFrame  # As of `figures`, with ``sampling``

    @property
    def sampling(self) -> Floats:
        """Standard errors of sampling by figure."""
        return self.exact["sampling"].to_numpy()

    @property
    def compared(self) -> bool:
        """Whether values of releases are compared, as none has a standard error of its own."""
        return bool(self.exact["noise"].isna().all())

    def at(self, amount: float, repeats: int) -> Release:
        """Release so many times at a budget; of each figure the median noise."""
        guarantee = self.form(amount)
        repeats = max(repeats, _COMPARED) if self.compared else repeats
        try:
            own = priced(self.call, self.terms, guarantee)
        except BudgetError:  # The verb's own: nothing meaningful is released for so little
            lost = np.full(len(self.exact), np.inf)
            return Release("", (), lost, np.zeros(len(self.exact)))
        fits = released(self.call, self.terms, guarantee, repeats)
        each = np.stack([self._noise(figures(fit).reindex(self.exact.index)) for fit in fits])
        known = np.isfinite(each)
        if self.compared:
            sum_of_squares = np.where(known, each, 0.0) ** 2
            mean = sum_of_squares.sum(axis=0) / np.maximum(known.sum(axis=0), 1)
            noise = np.where(known.mean(axis=0) >= 0.5, np.sqrt(mean), np.inf)
        else:
            noise = np.quantile(each, 0.5, axis=0, method="inverted_cdf")
        return Release(own.mechanism, own.events, np.asarray(noise), known.mean(axis=0))

    def _noise(self, found: pd.DataFrame) -> Floats:
        """Return a release's own noise; without any, what its values are off by."""
        if not self.compared:
            noise = found["noise"].fillna(np.inf).to_numpy()
            lost = self.exact["total"].notna() & ~np.isfinite(found["total"])
            return np.where(lost, np.inf, noise)
        off = np.abs(found["value"].to_numpy() - self.exact["value"].to_numpy())
        return np.where(np.isnan(off), np.inf, off)


def imagined(call: Call, world: World, form: Form, drawn: Floats | None = None) -> Imagined:
    """Make a call on guessed rows with plenty of budget.

    `drawn` are errors of sampling where the result has no law of it, if they are known.
    """
    terms = world.terms()
    try:
        plenty = _plenty(call, terms, form)
        exact = figures(released(call, terms, plenty, 1)[0])
    except FrameError as error:
        raise FrameError(f"shape= does not go with {call!r}: {error}") from None
    sampling = exact["total"].to_numpy()
    if exact["total"].isna().all() and drawn is not None:
        sampling = drawn
    elif exact["total"].isna().all():
        draws = [figures(released(call, world.terms(draw), plenty, 1)[0]) for draw in range(DRAWS)]
        values = [own["value"].reindex(exact.index) for own in draws]
        sampling = np.std(np.stack(values), axis=0, ddof=1) / world.thinner
    sizes = exact["value"].abs()[lambda own: np.isfinite(own)]
    least = _LEAST * (sizes.max() if sizes.any() else 1.0)
    sound = np.isfinite(sampling) & (sampling > _SAME * least)
    return Imagined(call, form, terms, exact.assign(sampling=np.where(sound, sampling, least)))


def _plenty(call: Call, terms: Terms, form: Form) -> Guarantee:
    """Return a budget at which noise is next to nothing, and which the call takes."""
    for eps in _PLENTY:
        own = form(eps)
        own = ZCDP(eps**2) if isinstance(own, ZCDP) else own
        try:
            priced(call, terms, own)
        except BudgetError:
            continue
        return own
    return form(_PLENTY[-1])


@dataclass(frozen=True)
class Course:
    """A call's noise as a function of its budget: releases at some, power laws between them."""

    name: str
    imagined: Imagined
    over: str  # Which figure stands for the call: "median" or "worst"
    amounts: Floats  # Of eps or rho, rising, shape (budgets,)
    releases: tuple[Release, ...]

    @property
    def gaussian(self) -> bool:
        """Whether all noise is Gaussian at every budget."""
        return all(own.gaussian for own in self.releases)

    @property
    def _told(self) -> NDArray[np.bool_]:
        """Whether the figure that stands for the call is identified, by budget."""
        return np.isfinite([float(self.of_all(own.noise)) for own in self.releases])

    @property
    def identifying(self) -> float:
        """The least budget that identifies it very likely; 0 where all do, infinite where none."""
        told = self._told
        if told.all():
            return 0.0
        return float(self.amounts[np.argmax(told)] * _SAFER) if told.any() else math.inf

    @property
    def edge(self) -> float | None:
        """A budget between the last without it and the first with it, if there are both."""
        told = self._told
        first = int(np.argmax(told))
        return float(np.sqrt(self.amounts[first - 1] * self.amounts[first])) if first else None

    def noise(self, amounts: Floats) -> Floats:
        """Return standard errors, shape (budgets, figures): they fall as the budget rises."""
        found = np.minimum.accumulate(np.stack([own.noise for own in self.releases]), axis=0)
        told, given = np.log(np.maximum(found, _TINY)), np.log(self.amounts)
        columns = [_power_law(np.log(amounts), given, own) for own in told.T]
        logs = np.stack(columns, axis=1)
        return np.exp(np.where(logs > _HUGE, np.inf, logs))

    def totals(self, amounts: Floats) -> Floats:
        """Return standard errors of noise and sampling, shape (budgets, figures)."""
        return np.hypot(self.noise(amounts), self.imagined.sampling)

    def ratios(self, amounts: Floats) -> Floats:
        """Return of the figure that stands for the call the error over that without privacy."""
        return self.of_all(self.totals(amounts) / self.imagined.sampling)

    def of_all(self, each: Floats) -> Floats:
        """Return what stands for all figures, the last axis."""
        return of_all(each, self.over)

    def refined(self, amount: float, repeats: int) -> Course:
        """Return the same with a budget more that is tried."""
        place = int(np.searchsorted(self.amounts, amount))
        if amount in self.amounts:
            return self
        release = self.imagined.at(amount, repeats)
        releases = (*self.releases[:place], release, *self.releases[place:])
        return replace(self, amounts=np.insert(self.amounts, place, amount), releases=releases)

    @property
    def fine(self) -> Floats:
        """Budgets on which needs are looked up."""
        return np.geomspace(self.amounts[0], self.amounts[-1], _FINE)


def place_of(figures: int, over: str) -> int:
    """Return the rank of the figure that stands for all."""
    return (figures - 1) // 2 if over == "median" else figures - 1


def of_all(each: Floats, over: str) -> Floats:
    """Return the median, a figure itself, or the worst of figures, the last axis."""
    return np.asarray(np.sort(each, axis=-1)[..., place_of(each.shape[-1], over)])


def _power_law(asked: Floats, given: Floats, told: Floats) -> Floats:
    """Interpolate where noise is known, and go on beyond as between the last two.

    Below the first budget at which a figure is identified it is not, unless none smaller was tried.
    """
    known = np.isfinite(told)
    if not known.any():
        return np.full(asked.shape, np.inf)
    x, y = given[known], told[known]
    first, last = -1.0, -1.0
    if len(x) > 1:
        first, last = ((y[k + 1] - y[k]) / (x[k + 1] - x[k]) for k in (0, len(x) - 2))
    below = y[0] + first * (asked - x[0]) if known[0] else np.inf
    inside = np.where(asked < x[0], below, np.interp(asked, x, y))
    return np.where(asked > x[-1], y[-1] + last * (asked - x[-1]), inside)


def course(name: str, own: Imagined, over: str, amounts: Floats, repeats: int) -> Course:
    """Release at every budget, and closer where figures begin to be identified."""
    releases = tuple(own.at(float(amount), repeats) for amount in amounts)
    found = Course(name, own, over, amounts, releases)
    for _ in range(_CLOSER):
        edge = found.edge
        if edge is None:
            break
        found = found.refined(edge, repeats)
    return found
