"""Privacy events: the noise of a release, independent of any accountant.

An event states the noise of one release in units of its sensitivity; a composition is a tuple of
events; `count` is the number of releases, and every accountant prices `count=k` as k events. Events
do not depend on the neighbouring relation of the sensitivity. A number out of range is refused with
a `BudgetError`.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, TypeGuard, get_args

from dpmodels.arguments import integer
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.privacy.budget import positive_number, unit_number

WRITE_MULTIPLIER: Final = "give the noise scale divided by the sensitivity"
# Prices are multiplied by counts as floats.
_MOST: Final = 2**53
_WRITE_EPS: Final = "give the eps one release satisfies"


class _Counted:
    """The noise of `count` releases, measured by the number in the class's `_measure`."""

    __slots__ = ()
    _measure: ClassVar[str] = "eps"
    _text: ClassVar[str]
    count: int

    def __post_init__(self) -> None:
        name = self._measure
        write = WRITE_MULTIPLIER if name == "multiplier" else _WRITE_EPS
        value = positive_number(name, getattr(self, name), write)
        try:
            count = integer("count", self.count, 1, _MOST, "; write count=1")
        except ArgumentError as refused:
            raise BudgetError(str(refused)) from None
        object.__setattr__(self, name, value)
        object.__setattr__(self, "count", count)

    def describe(self) -> str:
        """Return the event as reports print it."""
        text = self._text.format(event=self)
        return text if self.count == 1 else f"{text} x {self.count}"


@dataclass(frozen=True, slots=True)
class GaussianEvent(_Counted):
    """Gaussian noise, continuous or on a fine lattice.

    Parameters
    ----------
    multiplier : float
        Noise standard deviation divided by the L2 sensitivity, above zero.
    count : int, default 1
        Number of such releases.

    Examples
    --------
    >>> GaussianEvent(4.5, count=3).describe()
    'Gaussian, multiplier 4.5 x 3'
    """

    _measure = "multiplier"
    _text = "Gaussian, multiplier {event.multiplier:g}"
    multiplier: float
    count: int = 1


@dataclass(frozen=True, slots=True)
class LaplaceEvent(_Counted):
    """Laplace noise, continuous or discrete.

    Parameters
    ----------
    multiplier : float
        Noise scale divided by the L1 sensitivity, above zero: the release is
        1/multiplier-differentially private.
    count : int, default 1
        Number of such releases.

    Examples
    --------
    >>> LaplaceEvent(2.0).describe()
    'Laplace, multiplier 2'
    """

    _measure = "multiplier"
    _text = "Laplace, multiplier {event.multiplier:g}"
    multiplier: float
    count: int = 1


@dataclass(frozen=True, slots=True)
class BoundedRangeEvent(_Counted):
    """A draw whose privacy loss lies in an interval of length eps: the exponential mechanism.

    Parameters
    ----------
    eps : float
        Length of the interval, above zero; the draw is eps-differentially private.
    count : int, default 1
        Number of such releases.

    Examples
    --------
    >>> BoundedRangeEvent(0.5).describe()
    'bounded range, eps 0.5'
    """

    _text = "bounded range, eps {event.eps:g}"
    eps: float
    count: int = 1


@dataclass(frozen=True, slots=True)
class PureEvent(_Counted):
    """Any eps-differentially private release.

    Parameters
    ----------
    eps : float
        Bound on its privacy loss, above zero.
    count : int, default 1
        Number of such releases.

    Examples
    --------
    >>> PureEvent(0.5).describe()
    'pure, eps 0.5'
    """

    _text = "pure, eps {event.eps:g}"
    eps: float
    count: int = 1


@dataclass(frozen=True, slots=True)
class ApproxEvent(_Counted):
    """Any (eps, delta)-differentially private release.

    Parameters
    ----------
    eps : float
        Bound on its privacy loss unless it fails, above zero.
    delta : float
        Probability that it fails, above zero and below one.
    count : int, default 1
        Number of such releases.

    Examples
    --------
    >>> ApproxEvent(0.5, 1e-6, count=2).describe()
    'approximate, eps 0.5, delta 1e-06 x 2'
    """

    _text = "approximate, eps {event.eps:g}, delta {event.delta:g}"
    eps: float
    delta: float
    count: int = 1

    def __post_init__(self) -> None:
        _Counted.__post_init__(self)
        write = "give the probability that one release fails"
        delta = positive_number("delta", self.delta, write)
        object.__setattr__(self, "delta", unit_number("delta", delta, write))


@dataclass(frozen=True, slots=True)
class PufferfishEvent(_Counted):
    """A release that hides secrets under a class of models; it has no cost in differential privacy.

    Parameters
    ----------
    eps : float
        Bound on its Pufferfish privacy loss, above zero.
    model : str
        The digest of the class.
    series : str
        The series of the secrets: variable, time, persons, length.
    mechanism : {"quilt", "wasserstein"}
        Quilt releases compose; a release by one number's Wasserstein distance does not.
    count : int, default 1
        Number of such releases.

    Examples
    --------
    >>> PufferfishEvent(0.5, "07ab", "activity by minute").describe()
    'Pufferfish (quilt), eps 0.5'
    """

    _text = "Pufferfish ({event.mechanism}), eps {event.eps:g}"
    eps: float
    model: str
    series: str
    mechanism: str = "quilt"
    count: int = 1

    def __post_init__(self) -> None:
        _Counted.__post_init__(self)
        texts = all(isinstance(text, str) and text for text in (self.model, self.series))
        if not texts or self.mechanism not in ("quilt", "wasserstein"):
            raise BudgetError(
                "model, series and mechanism name what a Pufferfish release hides: write "
                "PufferfishEvent(0.5, model=chain.digest, series='activity by minute')."
            )


Event = GaussianEvent | LaplaceEvent | BoundedRangeEvent | PureEvent | ApproxEvent | PufferfishEvent


def all_gaussian(events: Sequence[Event]) -> TypeGuard[Sequence[GaussianEvent]]:
    """Return whether all noise is Gaussian."""
    return all(isinstance(event, GaussianEvent) for event in events)


def failing(events: Iterable[Event]) -> float:
    """Return the sum of the deltas of `ApproxEvent` releases."""
    return math.fsum(event.delta * event.count for event in events if type(event) is ApproxEvent)


def unfailing(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return the events without their deltas: an `ApproxEvent` becomes pure."""
    return tuple(
        PureEvent(event.eps, event.count) if type(event) is ApproxEvent else event
        for event in events
    )


def checked_events(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return events as a tuple; refuse anything else."""
    checked = tuple(events)
    for event in checked:
        if type(event) not in get_args(Event):
            raise BudgetError(
                f"events contains a {type(event).__name__}, not an event: write "
                "events=(GaussianEvent(multiplier),)."
            )
    return checked
