"""A verb's call without a table: held against the verb's words, and made later or never."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from dpmodels.codebook import Codebook
from dpmodels.errors import ArgumentError, LedgerError, said
from dpmodels.privacy import Adjacency, Event, Ledger
from dpmodels.sites import Parties, Witness
from dpmodels.verbs import VERBS

Verb = Callable[..., object]
# What the table's rows are, and what else a session says for all of its calls.
ROWS: Final = ("data", "sites", "protocol", "csv")
SAID: Final = ("codebook", "person", "rows", "adjacency")
# Three ways to say a budget.
AMOUNTS: Final = ("eps", "share", "budget")
_FILTERED: Final = (
    'a session has one table; write subset="age >= 25" rather than filter rows before the call, '
    "as their number would be taken as public; for other rows open another dp.session"
)


@dataclass(frozen=True, eq=False, repr=False)
class Call:
    """A verb, a formula and the words that a session leaves to it; no rows, nothing spent."""

    verb: Verb
    formula: str
    words: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The session's method."""
        return name_of(self.verb)

    @property
    def spends_delta(self) -> bool:
        """Whether its releases spend a delta, of which Gaussian noise then has the rest."""
        return self.name in VERBS and VERBS[self.name].spends_delta

    @property
    def silent(self) -> bool:
        """Whether it says no budget."""
        return all(self.words.get(word) is None for word in AMOUNTS)

    def __repr__(self) -> str:
        words = [
            repr(self.formula),
            *(f"{word}={said(value)}" for word, value in self.words.items()),
        ]
        return f"{self.name}({', '.join(words)})"


def name_of(verb: Verb) -> str:
    """Return a verb's name as a method."""
    return verb.__name__.removeprefix("dp_")


def signature_of(verb: Verb) -> inspect.Signature:
    """Return a verb's words less what the session says, with a share of what is left."""
    signature, keyword_only = inspect.signature(verb), inspect.Parameter.KEYWORD_ONLY
    excluded = {*ROWS, *SAID, "ledger", *AMOUNTS, "delta"}
    parameters = [
        parameter for name, parameter in signature.parameters.items() if name not in excluded
    ]
    amounts = {"eps": "float | str | None", "share": "float | str | None"}
    amounts |= {"delta": "float | None", "budget": "Guarantee | None"}
    budget_parameters = [
        inspect.Parameter(name, keyword_only, default=None, annotation=annotation)
        for name, annotation in amounts.items()
    ]
    return signature.replace(parameters=[parameters[0], *budget_parameters, *parameters[1:]])


def call_of(verb: Verb, arguments: tuple[Any, ...], words: Mapping[str, Any]) -> Call:
    """Hold what was written against the verb's words; ArgumentError says what to write instead."""
    name, parameters = name_of(verb), signature_of(verb).parameters
    formula, *rest = arguments or (words.get("formula"),)
    if rest or any(word in ROWS for word in words):
        raise ArgumentError(f"{name}: rows are given in the call, and {_FILTERED}")
    options = {word: value for word, value in words.items() if word != "formula" or arguments}
    for word in options:
        _require_word(name, word, [parameter for parameter in parameters if parameter != "formula"])
    if formula is None:
        raise ArgumentError(f'{name}: no formula is given; write {name}("~ age + income", eps=0.2)')
    return Call(verb, formula, options)


def _require_word(name: str, word: str, expected: Sequence[str]) -> None:
    """Refuse a word that the session says, or that the verb does not expect."""
    if word in SAID or word == "ledger":
        raise ArgumentError(
            f"{name}: {word}= is said once, by the session: leave it out, or open another one, "
            f"dp.session(..., {word}=...)"
        )
    if word not in expected:
        raise ArgumentError(
            f"{name}: {word}= is not expected; expected words: {', '.join(expected)}"
        )


# What a session says for all of its calls, and how a call is made or priced under it.


class Priced(NamedTuple):
    """What a call would take its rows across by, and what it would be charged."""

    mechanism: str
    events: tuple[Event, ...]


class _Pricing(Witness):
    """Keeps the charge of a call, and stops the call before it is made."""

    priced: Priced

    def charging(self, mechanism: str, events: Sequence[Event]) -> None:
        self.priced = Priced(mechanism, tuple(events))
        raise LedgerError("the call is priced and not made")


@dataclass(frozen=True, repr=False)
class Terms:
    """The table and what is public of it."""

    parties: Parties
    codebook: Codebook
    adjacency: Adjacency  # With the persons and rows that it protects
    subset: str | None

    def make(self, call: Call, budget: Mapping[str, object], ledger: Ledger | None) -> Any:
        """Ask the verb; errors are the verb's."""
        options = {
            word: value for word, value in call.words.items() if word not in (*AMOUNTS, "delta")
        }
        if self.subset is not None:
            if options.get("subset") is not None:
                raise ArgumentError(
                    f"{call.name}: subset= is said by the session already: write both conditions "
                    "in one of the two"
                )
            if "subset" not in inspect.signature(call.verb).parameters:
                raise ArgumentError(
                    f"{call.name} takes no subset=, which this session says: open a session "
                    "without it for the call"
                )
            options["subset"] = self.subset
        return call.verb(
            call.formula,
            self.parties,
            codebook=self.codebook,
            adjacency=self.adjacency,
            ledger=ledger,
            **{**options, **budget},
        )

    def price(self, call: Call, budget: Mapping[str, Any]) -> Priced:
        """Return what a call would be charged; no row is read, and nothing is charged."""
        pricing = _Pricing()
        watched = replace(self, parties=replace(self.parties, witness=pricing))
        try:
            watched.make(call, budget, None)
        except LedgerError:
            return pricing.priced
        raise LedgerError(f"{call.name} makes no plan before it reads, so it has no price")
