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
_SAMPLING_FLOOR: Final = 0.01
_NEGLIGIBLE: Final = 1e-6
_GRID_POINTS: Final = 400
# How often the budget from which a call is identified is looked for more closely: a choice.
_REFINEMENTS: Final = 3
# Times the budget at which half of the releases are identified, most are: a choice.
_SAFETY_FACTOR: Final = 1.25
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
            pricing = priced(self.call, self.terms, guarantee)
        except BudgetError:  # The verb's own: nothing meaningful is released for so little
            unidentified = np.full(len(self.exact), np.inf)
            return Release("", (), unidentified, np.zeros(len(self.exact)))
        fits = released(self.call, self.terms, guarantee, repeats)
        noises = np.stack([self._noise(figures(fit).reindex(self.exact.index)) for fit in fits])
        identified = np.isfinite(noises)
        if self.compared:
            sum_of_squares = np.where(identified, noises, 0.0) ** 2
            mean = sum_of_squares.sum(axis=0) / np.maximum(identified.sum(axis=0), 1)
            noise = np.where(identified.mean(axis=0) >= 0.5, np.sqrt(mean), np.inf)
        else:
            noise = np.quantile(noises, 0.5, axis=0, method="inverted_cdf")
        return Release(
            pricing.mechanism, pricing.events, np.asarray(noise), identified.mean(axis=0)
        )

    def _noise(self, table: pd.DataFrame) -> Floats:
        """Return a release's own noise; without any, what its values are off by."""
        if not self.compared:
            noise = table["noise"].fillna(np.inf).to_numpy()
            unidentified = self.exact["total"].notna() & ~np.isfinite(table["total"])
            return np.where(unidentified, np.inf, noise)
        errors = np.abs(table["value"].to_numpy() - self.exact["value"].to_numpy())
        return np.where(np.isnan(errors), np.inf, errors)


def imagined(
    call: Call, world: World, form: Form, sampling_errors: Floats | None = None
) -> Imagined:
    """Make a call on guessed rows with plenty of budget.

    `sampling_errors` are errors of sampling where the result has no law of it, if they are known.
    """
    terms = world.terms()
    try:
        plenty = _plenty(call, terms, form)
        exact = figures(released(call, terms, plenty, 1)[0])
    except FrameError as error:
        raise FrameError(f"shape= does not go with {call!r}: {error}") from None
    sampling = exact["total"].to_numpy()
    if exact["total"].isna().all() and sampling_errors is not None:
        sampling = sampling_errors
    elif exact["total"].isna().all():
        draws = [figures(released(call, world.terms(draw), plenty, 1)[0]) for draw in range(DRAWS)]
        values = [sample["value"].reindex(exact.index) for sample in draws]
        sampling = np.std(np.stack(values), axis=0, ddof=1) / world.thinner
    sizes = exact["value"].abs()[lambda size: np.isfinite(size)]
    floor = _SAMPLING_FLOOR * (sizes.max() if sizes.any() else 1.0)
    usable = np.isfinite(sampling) & (sampling > _NEGLIGIBLE * floor)
    return Imagined(call, form, terms, exact.assign(sampling=np.where(usable, sampling, floor)))


def _plenty(call: Call, terms: Terms, form: Form) -> Guarantee:
    """Return a budget at which noise is next to nothing, and which the call takes."""
    for eps in _PLENTY:
        guarantee = form(eps)
        guarantee = ZCDP(eps**2) if isinstance(guarantee, ZCDP) else guarantee
        try:
            priced(call, terms, guarantee)
        except BudgetError:
            continue
        return guarantee
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
        return all(release.gaussian for release in self.releases)

    @property
    def _identified(self) -> NDArray[np.bool_]:
        """Whether the figure that stands for the call is identified, by budget."""
        return np.isfinite([float(self.of_all(release.noise)) for release in self.releases])

    @property
    def identifying(self) -> float:
        """The least budget that identifies it very likely; 0 where all do, infinite where none."""
        identified = self._identified
        if identified.all():
            return 0.0
        return (
            float(self.amounts[np.argmax(identified)] * _SAFETY_FACTOR)
            if identified.any()
            else math.inf
        )

    @property
    def edge(self) -> float | None:
        """A budget between the last without it and the first with it, if there are both."""
        identified = self._identified
        first = int(np.argmax(identified))
        return float(np.sqrt(self.amounts[first - 1] * self.amounts[first])) if first else None

    def noise(self, amounts: Floats) -> Floats:
        """Return standard errors, shape (budgets, figures): they fall as the budget rises."""
        falling = np.minimum.accumulate(
            np.stack([release.noise for release in self.releases]), axis=0
        )
        log_noise, log_amounts = np.log(np.maximum(falling, _TINY)), np.log(self.amounts)
        columns = [_power_law(np.log(amounts), log_amounts, column) for column in log_noise.T]
        logs = np.stack(columns, axis=1)
        return np.exp(np.where(logs > _HUGE, np.inf, logs))

    def totals(self, amounts: Floats) -> Floats:
        """Return standard errors of noise and sampling, shape (budgets, figures)."""
        return np.hypot(self.noise(amounts), self.imagined.sampling)

    def ratios(self, amounts: Floats) -> Floats:
        """Return of the figure that stands for the call the error over that without privacy."""
        return self.of_all(self.totals(amounts) / self.imagined.sampling)

    def of_all(self, values: Floats) -> Floats:
        """Return what stands for all figures, the last axis."""
        return of_all(values, self.over)

    def refined(self, amount: float, repeats: int) -> Course:
        """Return the same with a budget more that is tried."""
        position = int(np.searchsorted(self.amounts, amount))
        if amount in self.amounts:
            return self
        release = self.imagined.at(amount, repeats)
        releases = (*self.releases[:position], release, *self.releases[position:])
        return replace(self, amounts=np.insert(self.amounts, position, amount), releases=releases)

    @property
    def fine(self) -> Floats:
        """Budgets on which needs are looked up."""
        return np.geomspace(self.amounts[0], self.amounts[-1], _GRID_POINTS)


def place_of(figures: int, over: str) -> int:
    """Return the rank of the figure that stands for all."""
    return (figures - 1) // 2 if over == "median" else figures - 1


def of_all(values: Floats, over: str) -> Floats:
    """Return the median, a figure itself, or the worst of figures, the last axis."""
    return np.asarray(np.sort(values, axis=-1)[..., place_of(values.shape[-1], over)])


def _power_law(points: Floats, log_amounts: Floats, log_noise: Floats) -> Floats:
    """Interpolate where noise is known, and go on beyond as between the last two.

    Below the first budget at which a figure is identified it is not, unless none smaller was tried.
    """
    finite = np.isfinite(log_noise)
    if not finite.any():
        return np.full(points.shape, np.inf)
    x, y = log_amounts[finite], log_noise[finite]
    first, last = -1.0, -1.0
    if len(x) > 1:
        first, last = ((y[k + 1] - y[k]) / (x[k + 1] - x[k]) for k in (0, len(x) - 2))
    below = y[0] + first * (points - x[0]) if finite[0] else np.inf
    inside = np.where(points < x[0], below, np.interp(points, x, y))
    return np.where(points > x[-1], y[-1] + last * (points - x[-1]), inside)


def course(name: str, simulated: Imagined, over: str, amounts: Floats, repeats: int) -> Course:
    """Release at every budget, and closer where figures begin to be identified."""
    releases = tuple(simulated.at(float(amount), repeats) for amount in amounts)
    curve = Course(name, simulated, over, amounts, releases)
    for _ in range(_REFINEMENTS):
        edge = curve.edge
        if edge is None:
            break
        curve = curve.refined(edge, repeats)
    return curve
