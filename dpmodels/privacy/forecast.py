"""What charges would come to, one after another, before any of them is made."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from dpmodels.privacy.events import Event
from dpmodels.privacy.filters import Filter
from dpmodels.privacy.spent import Spent, price
from dpmodels.privacy.totals import Totals

# More than the whole of what is left.
_REFUSED: Final = 1 + 1e-6


class Forecast(NamedTuple):
    """A charge that has not been made.

    What was charged and forecast before it counts; what does not fit counts for none after it.

    >>> from dpmodels.privacy.budget import PureDP
    >>> from dpmodels.privacy.events import PureEvent
    >>> halves = [[PureEvent(0.5)]] * 2
    >>> [(one.total.amount, one.taken) for one in forecast(Filter(PureDP(1.0)), Totals(), halves)]
    [(0.5, 0.5), (1.0, 1.0)]
    """

    price: Spent  # Of the charge by itself
    total: Spent  # After it
    fits: bool
    taken: float  # Share of what was left before it; above 1 where it does not fit


def forecast(
    own: Filter, totals: Totals, charges: Iterable[Iterable[Event]]
) -> tuple[Forecast, ...]:
    """Return what each of several charges would come to."""
    found = []
    for events in charges:
        charged = tuple(events)
        after = own.plus(totals, charged)
        fits, taken = own.holds(after), own.taken(totals, after)
        taken = taken if fits else max(taken, _REFUSED)
        found.append(Forecast(price(charged, own.guarantee), own.spent(after), fits, taken))
        totals = after if fits else totals
    return tuple(found)
