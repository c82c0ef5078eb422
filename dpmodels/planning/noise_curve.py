"""Calls on assumed rows, and the predicted noise of their figures as a function of the budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_string_dtype

from dpmodels.codebook import Codebook
from dpmodels.errors import BudgetError, FrameError
from dpmodels.models.assumed_rows import AssumedRows
from dpmodels.models.predictor import estimates_of, simulated_fits
from dpmodels.privacy import ZCDP, Adjacency, Event, Guarantee
from dpmodels.privacy.events import all_gaussian
from dpmodels.sessions.call import Call, Terms
from dpmodels.sites import Parties
from dpmodels.typing import Floats

Bound = TypeVar("Bound")
PLAN_SEED: Final = 20_130_325  # Arbitrary: every plan has the same noise
BLOCK: Final = 16_384  # A choice: simulated rows, repeated up to the table's size
MOST_ROWS: Final = 10**8
MOST_PERSONS: Final = 10**6  # Each is simulated


@dataclass(frozen=True, repr=False)
class Standing(Parties):
    """A table in which each row is repeated."""

    times: int = 1

    def bind(self, binding: Callable[[object], Bound]) -> tuple[Bound, ...]:
        """Bind a formula to the repeated rows."""
        bound: tuple[Any, ...] = super().bind(binding)
        return bound if self.times == 1 else tuple(x.of(x.rows.standing(self.times)) for x in bound)


@dataclass(frozen=True)
class World:
    """Assumed rows, and the settings that all calls share."""

    assumed: AssumedRows
    codebook: Codebook
    adjacency: Adjacency
    n_rows: int
    subset: str | None

    @property
    def _times(self) -> int:
        if self.adjacency.person is not None:
            return 1
        n_invented = BLOCK if self.assumed.frame is None else min(BLOCK, len(self.assumed.frame))
        return -(-self.n_rows // n_invented)

    def terms(self, draw: int | None = None) -> Terms:
        """Return a session's terms with evenly spread rows, or with a random draw."""
        times = self._times
        count = -(-self.n_rows // times)
        frame = self.assumed.block(count) if draw is None else self.assumed.rows(count, draw)
        if self.adjacency.person is not None:
            # Of any number of rows whose mean counts, one has the sampling error assumed for all.
            n_each = 1 if self.adjacency.rows == "mean" else self.adjacency.places
            persons = np.arange(count) // n_each
            frame = frame.assign(**{self.adjacency.person: persons})
        # Codes of levels are faster to read.
        texts = [name for name, kind in frame.dtypes.items() if is_string_dtype(kind)]
        frame = frame.astype(dict.fromkeys(texts, "category"))
        parties = Standing(("",), (frame,), times=times)
        return Terms(parties, self.codebook, self.adjacency, self.subset)

    @property
    def thinner(self) -> float:
        """Ratio of the sd over draws of simulated rows to that over tables."""
        return math.sqrt(self._times)


def released(
    call: Call, terms: Terms, guarantee: Guarantee, times: int, *, seed: int = PLAN_SEED
) -> list[object]:
    """Run a call `times` times with independent noise, the same in every plan."""
    planned_call = terms.price(call, {"budget": guarantee})
    (private,) = planned_call.private
    return list(simulated_fits(planned_call.spec, planned_call.choice, private, times, seed))


# Budgets with negligible noise: the first one that a call accepts is used.
_PLENTY: Final = (1e3, 1e2, 1e1)
# Simulated tables if a result has no sampling errors: a choice.
DRAWS: Final = 12
# Fewest releases to compare if results have no noise standard errors: a choice.
_COMPARED: Final = 8
# Substitute for the sampling error of a constant figure, as a fraction of its size.
_SAMPLING_FLOOR: Final = 0.01
_NEGLIGIBLE: Final = 1e-6
_GRID_POINTS: Final = 400
# Refinements of the budget from which a call is identified: a choice.
_REFINEMENTS: Final = 3
# Multiple of the budget that identifies half of the releases which identifies most: a choice.
_SAFETY_FACTOR: Final = 1.25
# Standard errors beyond these limits are not distinguished.
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
        return all_gaussian(self.events)


@dataclass(frozen=True)
class SimulatedCall:
    """A call on assumed rows: its figures without noise, and their sampling errors."""

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
        """Whether noise is measured by comparing releases, for lack of standard errors."""
        return bool(self.exact["noise"].isna().all())

    def at(self, amount: float, repeats: int) -> Release:
        """Release `repeats` times at a budget, and return the median noise of each figure."""
        guarantee = self.form(amount)
        repeats = max(repeats, _COMPARED) if self.compared else repeats
        try:
            pricing = self.terms.price(self.call, {"budget": guarantee})
        except BudgetError:  # The verb refuses so small a budget
            size = len(self.exact)
            return Release("", (), np.full(size, np.inf), np.zeros(size))
        fits = released(self.call, self.terms, guarantee, repeats)
        noises = np.stack([self._noise(figures(fit).reindex(self.exact.index)) for fit in fits])
        identified = np.isfinite(noises)
        chance = identified.mean(axis=0)
        if self.compared:
            squares = np.where(identified, noises, 0.0) ** 2
            mean = squares.sum(axis=0) / np.maximum(identified.sum(axis=0), 1)
            noise = np.where(chance >= 0.5, np.sqrt(mean), np.inf)
        else:
            noise = np.quantile(noises, 0.5, axis=0, method="inverted_cdf")
        return Release(pricing.mechanism, pricing.events, np.asarray(noise), chance)

    def _noise(self, table: pd.DataFrame) -> Floats:
        """Return a release's noise standard errors, or its errors if it has none."""
        if not self.compared:
            noise = table["noise"].fillna(np.inf).to_numpy()
            unidentified = self.exact["total"].notna() & ~np.isfinite(table["total"])
            return np.where(unidentified, np.inf, noise)
        errors = np.abs(table["value"].to_numpy() - self.exact["value"].to_numpy())
        return np.where(np.isnan(errors), np.inf, errors)


def figures(fit: object) -> pd.DataFrame:
    """Return the estimates of a result with standard errors of noise and in total.

    Errors are infinite where an estimate is not identified, and nan if the result has none: then
    releases are compared.
    """
    names = {"estimate": "value", "std_error": "total", "noise_sd": "noise"}
    table = estimates_of(fit).rename(columns=names)
    lost = (table["identified"] == 0) | (table["total"].isna() & hasattr(type(fit), "bse"))
    errors = table[["noise", "total"]].mask(lost, math.inf)
    return pd.concat([table[["value"]], errors], axis=1).rename_axis("figure")


def simulate_call(
    call: Call, world: World, form: Form, sampling_errors: Floats | None = None
) -> SimulatedCall:
    """Run a call on assumed rows with negligible noise.

    `sampling_errors` are used if the result has no sampling errors; by default they are simulated.
    """
    terms = world.terms()
    try:
        plenty = _plenty(call, terms, form)
        exact = figures(released(call, terms, plenty, 1)[0])
    except FrameError as error:
        raise FrameError(f"shape= does not fit {call!r}: {error}") from None
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
    exact = exact.assign(sampling=np.where(usable, sampling, floor))
    return SimulatedCall(call, form, terms, exact)


def _plenty(call: Call, terms: Terms, form: Form) -> Guarantee:
    """Return a budget with negligible noise that the call accepts, whatever budget it states."""
    for eps in _PLENTY:
        kind = form(eps)
        guarantee = ZCDP(eps**2) if isinstance(kind, ZCDP) else replace(kind, eps=eps)
        try:
            terms.price(call, {"budget": guarantee})
        except BudgetError:
            continue
        return guarantee
    return form(_PLENTY[-1])


@dataclass(frozen=True)
class NoiseCurve:
    """A call's noise by budget: simulated at some budgets, power laws between them."""

    name: str
    simulated_call: SimulatedCall
    over: str  # Which figure represents the call: "median" or "worst"
    amounts: Floats  # Of eps or rho, rising, shape (budgets,)
    releases: tuple[Release, ...]

    @property
    def gaussian(self) -> bool:
        """Whether all noise is Gaussian at every budget."""
        return all(release.gaussian for release in self.releases)

    @property
    def _identified(self) -> NDArray[np.bool_]:
        return np.isfinite([float(self.of_all(release.noise)) for release in self.releases])

    @property
    def identifying(self) -> float:
        """Smallest budget that very likely identifies it; 0 if all do, infinite if none does."""
        identified = self._identified
        if identified.all() or not identified.any():
            return 0.0 if identified.all() else math.inf
        return float(self.amounts[np.argmax(identified)] * _SAFETY_FACTOR)

    @property
    def edge(self) -> float | None:
        """A budget between the last that does not identify it and the first that does."""
        identified = self._identified
        first = int(np.argmax(identified))
        return float(np.sqrt(self.amounts[first - 1] * self.amounts[first])) if first else None

    def noise(self, amounts: Floats) -> Floats:
        """Return noise standard errors, decreasing in the budget, shape (budgets, figures)."""
        noises = np.stack([release.noise for release in self.releases])
        falling = np.minimum.accumulate(noises, axis=0)
        log_noise, log_amounts = np.log(np.maximum(falling, _TINY)), np.log(self.amounts)
        columns = [_power_law(np.log(amounts), log_amounts, column) for column in log_noise.T]
        logs = np.stack(columns, axis=1)
        return np.exp(np.where(logs > _HUGE, np.inf, logs))

    def totals(self, amounts: Floats) -> Floats:
        """Return standard errors of noise and sampling, shape (budgets, figures)."""
        return np.hypot(self.noise(amounts), self.simulated_call.sampling)

    def ratios(self, amounts: Floats) -> Floats:
        """Return the error of the representative figure over that without privacy."""
        return self.of_all(self.totals(amounts) / self.simulated_call.sampling)

    def of_all(self, values: Floats) -> Floats:
        """Return the lower median or the worst of all figures, along the last axis."""
        return np.asarray(np.sort(values, axis=-1)[..., place_of(values.shape[-1], self.over)])

    def refined(self, amount: float, repeats: int) -> NoiseCurve:
        """Return a copy with one more simulated budget."""
        if amount in self.amounts:
            return self
        position = int(np.searchsorted(self.amounts, amount))
        release = self.simulated_call.at(amount, repeats)
        releases = (*self.releases[:position], release, *self.releases[position:])
        return replace(self, amounts=np.insert(self.amounts, position, amount), releases=releases)

    @property
    def fine(self) -> Floats:
        """Grid of budgets for interpolation."""
        return np.geomspace(self.amounts[0], self.amounts[-1], _GRID_POINTS)


def place_of(figures: int, over: str) -> int:
    """Return the rank of the representative figure."""
    return (figures - 1) // 2 if over == "median" else figures - 1


def _power_law(points: Floats, log_amounts: Floats, log_noise: Floats) -> Floats:
    """Interpolate log noise, and extrapolate by the outermost slopes.

    Noise is infinite below the first identifying budget, unless no smaller one was tried.
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


def simulate_curve(
    name: str, simulated: SimulatedCall, over: str, amounts: Floats, repeats: int
) -> NoiseCurve:
    """Simulate every budget, and more of them where figures begin to be identified."""
    releases = tuple(simulated.at(float(amount), repeats) for amount in amounts)
    curve = NoiseCurve(name, simulated, over, amounts, releases)
    for _ in range(_REFINEMENTS):
        edge = curve.edge
        curve = curve if edge is None else curve.refined(edge, repeats)
    return curve
