r"""The budget of a call, an amount or a share of what is left, and prices of planned calls.

A share is taken of what the ledger counts, by `Filter.taken`: of eps, of rho, or, with a delta, of
the ``mu**2`` (or rho) left beside releases without delta, and of eps while all releases are such.
It is the largest budget at which the call's own noise takes no more than that, found on plans,
which read no row. So it is a function of the ledger and of public words, whatever the answers were;
and k calls that take 1/k, 1/(k - 1), ..., 1 of what is left then all fit, and spend it all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Context
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from dpmodels.arguments import real
from dpmodels.design import PrivateDesign
from dpmodels.design.bound_rows import BoundRows
from dpmodels.errors import ArgumentError, BudgetError, DPModelsError, quoted
from dpmodels.models.predictor import identified_share, predict
from dpmodels.privacy import (
    ZCDP,
    ApproxDP,
    Event,
    GaussianEvent,
    Guarantee,
    Ledger,
    Pufferfish,
    PureDP,
    PureEvent,
    gaussian_multiplier,
)
from dpmodels.privacy.spent import capacity
from dpmodels.results.plan import PlannedCall, PlanResult
from dpmodels.sessions.call import AMOUNTS, Call, Priced, Terms
from dpmodels.statistics.moments import is_moments
from dpmodels.typing import Option

if TYPE_CHECKING:
    import pandas as pd


_FRACTION: Final = re.compile(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*", flags=re.ASCII)
_WRITE: Final = 'write a share of what is left, such as "1/5" or 0.2'
# What rounding may add to a share; a ledger allows for as much.
_ULPS: Final = 1 + 1e-12
_DIGITS: Final = Context(prec=10, rounding=ROUND_FLOOR)
_SHOWN: Final = Context(prec=3, rounding=ROUND_FLOOR)
_BACK: Final = 1 - 1e-9
# Smaller fractions of a request are remainders of rounding.
_NOTHING: Final = 1e-5
_LITTLE: Final = (
    "too little is left in the session's ledger for a share of it: register() lists what was spent"
)
_STEPS: Final = 12
_HALVINGS: Final = 40  # To 1e-12 of the budget
_ROUNDING: Final = 1e-9  # Relative; what sums of floats leave of a budget that is spent
_STEP: Final = 16.0


def fraction(name: str, value: object) -> Fraction:
    """Return a share, above 0 and up to 1.

    >>> fraction("eps", "1/5"), fraction("share", 0.25)
    (Fraction(1, 5), Fraction(1, 4))
    """
    match = _FRACTION.fullmatch(value) if isinstance(value, str) else None
    if match is not None and int(match[2]):
        share = Fraction(int(match[1]), int(match[2]))
    else:
        number = real(value)
        share = Fraction(0) if math.isnan(number) else Fraction(number)
    if not 0 < share <= 1:
        raise ArgumentError(f"{name}={quoted(value)}: expected a share above 0, up to 1; {_WRITE}")
    return share


def budget_options(
    options: Mapping[str, Option],
    total: Guarantee,
    share: Fraction | None,
    fraction_used: Callable[[Guarantee], float],
) -> dict[str, object]:
    """Return the budget options of a verb.

    `share` is that of a call that sets none; `fraction_used` maps a budget to what it uses up.
    """
    amounts = {word: options[word] for word in AMOUNTS if options.get(word) is not None}
    delta = options.get("delta")
    if len(amounts) > 1:
        raise BudgetError(f"{' and '.join(amounts)} are both given: keep one of them")
    for word, value in amounts.items():
        if word == "budget":
            _private("budget= is", value)
            return {"budget": value} if delta is None else {"budget": value, "delta": delta}
        if word == "eps" and not isinstance(value, str):
            total_delta = total.delta if isinstance(total, ApproxDP) else 0.0
            return {"eps": value, "delta": total_delta if delta is None else delta}
        share = fraction(word, value)
    if share is None:
        raise BudgetError(
            'neither eps nor a share is given: write eps=0.2, eps="1/5" of what is left, or '
            "split(5) before five calls"
        )
    return {"budget": shared(share, _form(total, delta), capacity(total).amount, fraction_used)}


def _form(total: Guarantee, delta: object) -> Callable[[float], Guarantee]:
    """Return the function from an amount to a guarantee of the total's kind, with that delta."""
    max_delta = total.delta if isinstance(total, ApproxDP) else 0.0
    chosen_delta = max_delta if delta is None else real(delta)
    if not 0 <= chosen_delta <= max_delta:
        raise BudgetError(
            f"delta={quoted(delta)}: a share is one of {total.describe()}; leave delta out, or "
            "write a smaller one, or delta=0 for a release without"
        )
    if isinstance(total, ZCDP):
        return ZCDP
    return (lambda amount: ApproxDP(amount, chosen_delta)) if chosen_delta else PureDP


def shared(
    part: Fraction,
    form: Callable[[float], Guarantee],
    max_amount: float,
    fraction_used: Callable[[Guarantee], float],
) -> Guarantee:
    """Return the largest budget that takes no more than a part of what is left.

    A remainder of rounding does not count as a budget.
    """
    from scipy.optimize import brentq

    target = float(part) * _ULPS

    def fits(amount: float) -> bool:
        return fraction_used(form(amount)) <= target

    def excess(log_amount: float) -> float:
        used = fraction_used(form(math.exp(log_amount)))
        return math.log(min(max(used, 1e-300), 1e6) / target)

    if fits(max_amount):
        return form(max_amount)
    low = _low_enough(max_amount * float(part), fits)
    # Noise changes its kind at some amounts, where the price may jump.
    root = math.exp(brentq(excess, math.log(low), math.log(max_amount), xtol=1e-14, rtol=1e-14))
    if root < max_amount * float(part) * _NOTHING:
        raise BudgetError(_LITTLE)
    for amount in (root, root * _BACK):
        rounded = float(_DIGITS.create_decimal(amount))
        if fits(rounded):
            return form(rounded)
    return form(low)


def _low_enough(amount: float, fits: Callable[[float], bool]) -> float:
    """Return an amount that fits, this one or a smaller one."""
    try:
        for _ in range(_STEPS):
            if fits(amount):
                return amount
            amount /= _STEP
    except BudgetError:  # Raised by the verb: the budget is too small for a release
        pass
    raise BudgetError(_LITTLE)


def whole_of(ledger: Ledger) -> Guarantee:
    """Return the guarantee of a session; BudgetError unless it is differentially private."""
    return _private("the ledger holds", ledger.guarantee)


def _private(who: str, guarantee: Guarantee | Pufferfish) -> Guarantee:
    if isinstance(guarantee, Pufferfish):
        raise BudgetError(
            f"{who} {guarantee.describe()}, and a session's calls are differentially private: "
            "write dp.dp_table(..., time=..., budget=dp.Pufferfish(...), ledger=...), "
            "of a ledger of its own, dp.Ledger(budget=dp.Pufferfish(...))"
        )
    return guarantee


@dataclass(frozen=True, slots=True)
class Left:
    """The largest budget of one more call, by the kind of its noise.

    Parameters
    ----------
    unit : {"eps", "rho"}
        The unit.
    delta : float
        The delta of the call; zero for pure eps and for rho.
    gaussian, other : float
        What a call with Gaussian noise alone may spend, and one without Gaussian noise.

    Examples
    --------
    >>> left_in(Ledger(eps=2.0)).describe()
    'eps = 2'
    """

    unit: str
    delta: float
    gaussian: float
    other: float

    @property
    def amount(self) -> float:
        """The larger of the two."""
        return max(self.gaussian, self.other)

    def describe(self) -> str:
        """Return both, rounded down, as a session prints them."""
        if not self.delta:
            return f"{self.unit} = {_rounded_down(self.amount)}"
        gaussian, other = _rounded_down(self.gaussian), _rounded_down(self.other)
        return f"eps = {gaussian} Gaussian, {other} other noise"


def left_in(ledger: Ledger) -> Left:
    """Return how much one more call may spend."""
    total, left = ledger.guarantee, ledger.remaining.amount
    if left <= _ROUNDING * ledger.spent.amount:
        left = 0.0
    if isinstance(total, ZCDP):
        return Left("rho", 0.0, left, left)
    if not isinstance(total, ApproxDP):
        return Left("eps", 0.0, 0.0, left)
    gaussian = _largest_eps(
        ledger, lambda budget: GaussianEvent(gaussian_multiplier(budget)), total
    )
    laplace = _largest_eps(ledger, lambda budget: PureEvent(budget.eps), total)
    return Left("eps", total.delta, gaussian, laplace)


def _rounded_down(amount: float) -> str:
    return f"{float(_SHOWN.create_decimal(amount)):g}"


def _largest_eps(ledger: Ledger, event: Callable[[ApproxDP], Event], total: ApproxDP) -> float:
    """Return the largest eps of a release that the ledger accepts, rounded down."""

    def fits(eps: float) -> bool:
        return ledger.accepts([event(replace(total, eps=eps))])

    if fits(total.eps):
        return total.eps
    accepted, refused = 0.0, total.eps
    for _ in range(_HALVINGS):
        middle = (accepted + refused) / 2
        accepted, refused = (middle, refused) if fits(middle) else (accepted, middle)
    return float(_DIGITS.create_decimal(accepted))


def budget_of(
    call: Call, terms: Terms, ledger: Ledger, share: Fraction | None
) -> dict[str, object]:
    """Return the budget options of a call, given what the ledger has left."""

    def fraction_used(guarantee: Guarantee) -> float:
        events = terms.price(call, {"budget": guarantee}, ledger).events
        return ledger.forecast([events])[0].taken

    if call.is_free:
        return {}
    total = whole_of(ledger)
    default_delta = call.options.get("delta") is None and call.options.get("budget") is None
    if call.spends_delta and default_delta and isinstance(total, ApproxDP):
        raise BudgetError(
            f"{call.name} spends its delta, and all {total.delta:.3g} of the session would leave "
            f"none for Gaussian noise: write delta={total.delta / 100:.3g}, or another part of it"
        )
    return budget_options(call.options, total, share, fraction_used)


def predicted(priced: Priced, n_rows: int) -> pd.DataFrame | None:
    """Predict the estimates of a call, one a row; None where rows cannot be assumed."""
    request = priced.spec.request
    if request.adjacency.person is not None or request.codebook.design is not None:
        return None
    try:
        return predict(priced.spec, priced.choice, n_rows)
    except DPModelsError:
        return None


def _identified(priced: Priced, n_rows: int) -> float:
    """Return the expected share of identified estimates; nan where rows cannot be assumed."""
    table = predicted(priced, n_rows)
    return math.nan if table is None else identified_share(table)


def _reading(priced: Priced) -> str:
    """Say where the sums of a call are computed; empty if its rows are not in a database."""
    rows = priced.private[0]
    if not isinstance(rows, BoundRows) or rows.is_streamed is None:
        return ""
    in_database = not rows.is_streamed
    if rows.is_streamed and isinstance(rows, PrivateDesign):
        strategy, plan, _ = priced.choice
        one_pass = getattr(strategy, "passes", "many" if priced.spec.passes else "one") == "one"
        unread = rows.among(lambda terms: terms)
        in_database = one_pass and rows.is_summed and is_moments(strategy.measure(unread, plan))
    return "sums computed in the database" if in_database else "rows streamed"


def planned(
    calls: Iterable[Call],
    terms: Terms,
    ledger: Ledger,
    parts: int,
    share: Fraction | None,
    n_rows: int | None = None,
) -> PlanResult:
    """Price calls in order; `parts` of those without a budget share what is left.

    With a number of rows, the share of estimates that will be identified is predicted.
    """
    entered, charges, left = [], list[tuple[Event, ...]](), ledger.for_prices()
    for call in calls:
        call_share = share
        if call.silent and parts:
            call_share, parts = Fraction(1, parts), parts - 1
        priced = terms.price(call, budget_of(call, terms, left, call_share), left)
        charges.append(priced.events)
        left = left.for_prices(priced.events)
        entered.append((call, priced))
    lines = [
        PlannedCall(
            repr(call),
            call.name,
            call.formula,
            priced.mechanism,
            priced.events,
            step.price,
            step.total,
            step.fits,
            math.nan if n_rows is None else _identified(priced, n_rows),
            _reading(priced),
        )
        for (call, priced), step in zip(entered, ledger.forecast(charges), strict=True)
    ]
    return PlanResult(
        guarantee=whole_of(ledger),
        adjacency=ledger.adjacency,
        ledger_state=ledger.describe(),
        calls=tuple(lines),
        announced=ledger.preview(event for events in charges for event in events),
    )
