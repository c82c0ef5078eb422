"""What a ledger says to a release that it cannot afford, and what would fit."""

import math
from collections.abc import Mapping
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Final

from dpmodels.errors import LedgerError
from dpmodels.privacy.budget import Adjacency, ApproxDP
from dpmodels.privacy.calibrate import gaussian_multiplier
from dpmodels.privacy.compose import pure_eps
from dpmodels.privacy.events import Event, GaussianEvent, PufferfishEvent, PureEvent, failing
from dpmodels.privacy.filters import TOLERANCE, Filter
from dpmodels.privacy.pufferfish import Pufferfish, refused
from dpmodels.privacy.spent import Spent, capacity, price
from dpmodels.privacy.totals import Totals

# A choice: what would fit is said to four digits, which so many halvings find.
_HALVINGS: Final = 16
_UP: Final = Context(prec=4, rounding=ROUND_CEILING)
_DOWN: Final = Context(prec=4, rounding=ROUND_FLOOR)


def refusal(own: Filter, label: str, added: tuple[Event, ...], before: Totals) -> str:
    """Return the message that refuses a charge."""
    whole, spent = capacity(own.guarantee), own.spent(before)
    total = own.spent(own.plus(before, added))
    name = f"The release {label!r}" if label else "The release"
    why = _kind(own, added, before)
    if why:
        return f"{name} is refused: {why}."
    if failing(added) and math.isinf(total.amount):
        return f"{name} has a delta of its own, {failing(added):g}: {_of_its_own(whole, before)}."
    if math.isinf(total.amount) and whole.unit == "eps" and not whole.delta:
        return (
            f"{name} adds Gaussian noise, which has no pure guarantee, and this ledger holds "
            f"eps = {whole.amount:g}, delta = 0: choose a mechanism with Laplace noise, or "
            f"open dp.Ledger(eps={whole.amount:g}, delta=1e-6)."
        )
    left, fitting = spent.left_of(whole), _fitting(own, added, before)
    if isinstance(own.guarantee, Pufferfish):
        remedy = _of_chains(total, fitting)
    else:
        remedy = f"{_remedy(whole, total, fitting, before)}{_kept(whole, added, before)}"
    return (
        f"{name} costs {price(added, own.guarantee).describe()}. Spent so far: "
        f"{spent.unit} = {spent.amount:g} of {whole.amount:g}; left: {left.amount:g}; "
        f"{remedy}."
    )


def _of_chains(total: Spent, fitting: Spent) -> str:
    """Say what the total would be under a Pufferfish guarantee, and what to write instead."""
    chains = "budget=dp.Pufferfish({}, model=...)"
    fits = f"write {chains.format(_as_argument(fitting, _DOWN))} or less, or "
    opened = chains.format(_as_argument(total, _UP))
    return (
        f"the total would be {total.amount:g}: {fits if fitting.amount else ''}open the ledger "
        f"with {opened}"
    )


def _kind(own: Filter, added: tuple[Event, ...], before: Totals) -> str:
    """Say why a release of another kind than the ledger's is refused; nothing where it is of it."""
    if isinstance(own.guarantee, Pufferfish):
        return refused(own.guarantee, before, added)
    if any(isinstance(event, PufferfishEvent) for event in added):
        return (
            "it keeps a Pufferfish guarantee, and this ledger a differentially private one: the "
            "two do not add up; charge dp.Ledger(budget=dp.Pufferfish(eps=..., model=...))"
        )
    return ""


def _of_its_own(whole: Spent, before: Totals) -> str:
    """Say why a release with a delta of its own is refused, and what to write instead."""
    if not whole.delta:
        return (
            f"this ledger holds {whole.describe()} and no delta; open dp.Ledger(eps=1.0, "
            "delta=1e-6) for it"
        )
    if before.mu2 or before.rho:
        return (
            "such releases come before any with Gaussian noise, since what is left of delta has to "
            "be known then; charge it first, or keep it apart in a ledger of its own"
        )
    left = max(whole.delta - before.failing, 0.0)
    return f"left are {left:g} of {whole.delta:g}; write a smaller delta"


def refuse_other_neighbours(own: Adjacency, asked: Adjacency) -> None:
    """Refuse a release that assumes other neighbours than the ledger."""
    if asked.protects(own):
        return
    if asked.name != own.name:
        raise LedgerError(
            f"The release assumes adjacency={asked.name!r} ({asked.describe()}), this ledger "
            f"adjacency={own.name!r} ({own.describe()}): write adjacency={own.name!r} in the "
            f"call, or charge a ledger opened with adjacency={asked.name!r}."
        )
    raise LedgerError(
        f"The release protects {asked.unit}, this ledger {own.unit}: write {_words(own)} in the "
        f"call, or charge a ledger opened with {_words(asked)}."
    )


def _words(relation: Adjacency) -> str:
    """Return what to write for a relation."""
    said = {"person": relation.person, "rows": relation.rows}
    words = ", ".join(f"{word}={own!r}" for word, own in said.items() if own is not None)
    return words or "person=False and no rows="


def require_same(place: str, words: Mapping[str, tuple[object, object]]) -> None:
    """Refuse words that are not those a file was opened with.

    `words` maps each to what the file has and what is asked for, None where nothing is.
    """
    for word, (own, given) in words.items():
        if given is not None and given != own:
            there, here = (
                one.describe() if hasattr(one, "describe") else one for one in (own, given)
            )
            raise LedgerError(
                f"{place} was opened with {word} {there}, and {here} is asked for here: leave it "
                "out, or open another file. Nothing was charged"
            )


def _remedy(whole: Spent, total: Spent, fitting: Spent, before: Totals) -> str:
    """Say what the total would be, and what to write instead."""
    if math.isinf(total.amount):
        own = f"eps={whole.amount:g}, delta={whole.delta:g}"
        told = "after a plan charged as one only releases without delta are added"
        if math.isfinite(before.mu2):
            told = "releases with a delta of their own have spent all of delta"
        remedy = f"keep it apart, in a ledger opened with dp.Ledger({own}, rule='zcdp')"
    else:
        told = f"the total would be {total.amount:g}"
        remedy = f"open the ledger with {_as_argument(total, _UP)}"
    if fitting.amount > TOLERANCE * whole.amount:
        remedy = f"write {_as_argument(fitting, _DOWN)} or less, or {remedy}"
    return f"{told}: {remedy}"


def _kept(whole: Spent, added: tuple[Event, ...], before: Totals) -> str:
    """Say how a ledger of eps and delta holds more releases without delta."""
    pure = [event for event in added if not isinstance(event, GaussianEvent)]
    if not whole.delta or len(pure) < len(added):
        return ""
    asked = before.pure + math.fsum(pure_eps(event) * event.count for event in pure)
    if not asked < whole.amount:
        return ""
    return (
        f"; opened with pure={_UP.create_decimal(asked):f} a ledger keeps so much for releases "
        "without delta, and they add up"
    )


def _fitting(own: Filter, added: tuple[Event, ...], before: Totals) -> Spent:
    """Return the largest release of the kind refused that would not be refused."""
    whole = capacity(own.guarantee)
    if not whole.delta:
        return own.spent(before).left_of(whole)
    noise = _gaussian_at if all(isinstance(e, GaussianEvent) for e in added) else _pure_at
    fits, too_much = 0.0, whole.amount
    for _ in range(_HALVINGS):
        tried = (fits + too_much) / 2
        if own.holds(own.plus(before, (noise(tried, whole.delta),))):
            fits = tried
        else:
            too_much = tried
    return replace(whole, amount=fits)


def _gaussian_at(eps: float, delta: float) -> Event:
    return GaussianEvent(gaussian_multiplier(ApproxDP(eps, delta)))


def _pure_at(eps: float, delta: float) -> Event:
    return PureEvent(eps)


def _as_argument(amount: Spent, rounding: Context) -> str:
    number = f"{float(rounding.create_decimal(amount.amount)):g}"
    if amount.unit == "rho":
        return f"budget=dp.ZCDP({number})"
    return f"eps={number}" + (f", delta={amount.delta:g}" if amount.delta else "")
