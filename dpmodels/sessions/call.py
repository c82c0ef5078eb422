"""Verbs as methods of a session, and a verb's call without data: checked, run later or never."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MethodType
from typing import Any, Final, NamedTuple, TypeVar

from dpmodels.arguments import checked_keywords, checked_methods, text
from dpmodels.codebook import Codebook
from dpmodels.errors import (
    ArgumentError,
    LedgerError,
    NotAvailable,
    did_you_mean,
    entry_point,
    quoted,
    shorten,
)
from dpmodels.models.release import all_verbs, verb_of
from dpmodels.models.verb_spec import Planned, VerbSpec
from dpmodels.privacy import Adjacency, Event, Ledger
from dpmodels.sites import Parties, Witness
from dpmodels.typing import Option
from dpmodels.verbs import UNCHARGED, VERBS, verb_names

Verb = Callable[..., object]
# Parameters that describe the data, and others that a session sets for all of its calls.
ROWS: Final = ("data", "sites", "protocol", "csv")
SETTINGS: Final = ("codebook", "person", "rows", "adjacency")
# The method of a session for `dp_summary`.
TABLE_ONE: Final = "table_one"
# Three ways to state a budget.
AMOUNTS: Final = ("eps", "share", "budget")
_FILTERED: Final = (
    'a session has one table; write subset="age >= 25" rather than filter rows before the call, '
    "as their number would be taken as public; for other rows open another dp.session"
)


@dataclass(frozen=True, eq=False, repr=False)
class Call:
    """A verb, a formula and the options of one call; no rows, nothing spent."""

    verb: Verb
    formula: str
    options: Mapping[str, Option]

    @property
    def name(self) -> str:
        """The verb's short name."""
        return name_of(self.verb)

    @property
    def spends_delta(self) -> bool:
        """Whether its releases spend delta, which leaves less for Gaussian noise."""
        return self.name in VERBS and VERBS[self.name].spends_delta

    @property
    def silent(self) -> bool:
        """Whether it sets no budget."""
        return all(self.options.get(word) is None for word in AMOUNTS)

    @property
    def is_free(self) -> bool:
        """Whether it is computed from an earlier release, without rows or a budget."""
        return self.options.get("given") is not None

    def __repr__(self) -> str:
        options = (f"{word}={quoted(value)}" for word, value in self.options.items())
        return f"{method_name(self.name)}({', '.join((repr(self.formula), *options))})"


def name_of(verb: Verb) -> str:
    """Return a verb's short name."""
    return verb.__name__.removeprefix("dp_")


def method_name(verb: str) -> str:
    """Return the name of a verb's method; ``summary()`` is the session's own report."""
    return TABLE_ONE if verb == "summary" else verb


def signature_of(verb: Verb) -> inspect.Signature:
    """Return a verb's signature without the session's parameters, with budget shares."""
    signature, keyword_only = inspect.signature(verb), inspect.Parameter.KEYWORD_ONLY
    excluded = {*ROWS, *SETTINGS, "ledger", *AMOUNTS, "delta"}
    parameters = [value for name, value in signature.parameters.items() if name not in excluded]
    amounts = {"eps": "float | str | None", "share": "float | str | None"}
    amounts |= {"delta": "float | None", "budget": "Guarantee | None"}
    budget_parameters = [
        inspect.Parameter(name, keyword_only, default=None, annotation=annotation)
        for name, annotation in amounts.items()
    ]
    return signature.replace(parameters=[parameters[0], *budget_parameters, *parameters[1:]])


def call_of(verb: Verb, arguments: tuple[Any, ...], options: Mapping[str, Option]) -> Call:
    """Check a call against the verb's parameters; ArgumentError says what to write."""
    name, parameters = name_of(verb), signature_of(verb).parameters
    formula, *rest = arguments or (options.get("formula"),)
    if rest or any(word in ROWS for word in options):
        raise ArgumentError(f"{name}: rows are given in the call, and {_FILTERED}")
    options = {word: value for word, value in options.items() if word != "formula" or arguments}
    expected = [parameter for parameter in parameters if parameter != "formula"]
    for word in options:
        if word in SETTINGS or word == "ledger":
            raise ArgumentError(
                f"{name}: the session sets {word}=: leave it out, or open another one, "
                f"dp.session(..., {word}=...)"
            )
        if word not in expected:
            raise ArgumentError(
                f"{name}: {word}= is not expected{did_you_mean(word, expected)}; expected "
                f"parameters: {', '.join(expected)}"
            )
    if formula is None:
        raise ArgumentError(f'{name}: no formula is given; write {name}("~ age + income", eps=0.2)')
    return Call(verb, formula, options)


# What a session sets for all of its calls, and how a call is run or priced under it.


class Priced(NamedTuple):
    """The mechanism that a call would use, and what it would be charged."""

    mechanism: str
    events: tuple[Event, ...]
    spec: VerbSpec[object]
    choice: Planned
    private: Sequence[object]  # The unread rows of each holder


class _Pricing(Witness):
    """Records the charge of a call and stops the call before it runs."""

    priced: Priced

    def __init__(self, most_columns: int | None) -> None:
        self._most_columns = most_columns

    def requested(self, spec: Any) -> None:
        most, n_columns = self._most_columns, spec.private.n_columns
        if most is not None and n_columns > most:
            raise ArgumentError(
                f"formula {shorten(spec.request.formula)!r} codes to {n_columns:,} columns; here "
                f"calls have at most {most:,}. Name fewer columns, levels or interactions"
            )

    def planned(
        self, spec: Any, choice: Any, private: Sequence[object], events: Sequence[Event]
    ) -> None:
        self.priced = Priced(choice.strategy.info.name, tuple(events), spec, choice, private)
        raise LedgerError("the call is priced, not run")


@dataclass(frozen=True, repr=False)
class Terms:
    """The data of a session and its public facts."""

    parties: Parties
    codebook: Codebook
    adjacency: Adjacency  # With the persons and rows that it protects
    subset: str | None
    most_columns: int | None = None  # Of a call that is priced

    def make(self, call: Call, budget: Mapping[str, object], ledger: Ledger | None) -> Any:
        """Run the verb; its errors pass through."""
        if call.is_free:
            return call.verb(call.formula, **call.options)
        options = {
            word: value for word, value in call.options.items() if word not in (*AMOUNTS, "delta")
        }
        if self.subset is not None:
            if options.get("subset") is not None:
                raise ArgumentError(
                    f"{call.name}: the session sets subset= already: write both conditions in one "
                    "of the two"
                )
            if "subset" not in inspect.signature(call.verb).parameters:
                raise ArgumentError(
                    f"{call.name} takes no subset=, which this session sets: open a session "
                    "without it"
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

    def price(
        self, call: Call, budget: Mapping[str, object], ledger: Ledger | None = None
    ) -> Priced:
        """Return what a call would be charged; no row is read, and nothing is charged.

        ``"auto"`` chooses by the price on `ledger`.
        """
        pricing = _Pricing(self.most_columns)
        watched = replace(self, parties=replace(self.parties, witness=pricing))
        try:
            watched.make(call, budget, ledger and ledger.for_prices())
        except LedgerError:
            return pricing.priced
        raise LedgerError(f"{call.name} makes no plan before it reads the data, so it has no price")


Result = TypeVar("Result")
_SESSION = """
The session sets the data, codebook, neighbours, persons and ledger. A budget that is not written is
a share of what is left: ``eps="1/5"``, ``share=0.2``, ``split(5)`` before.
"""


class Method:
    """A verb of a session by its name; its module is imported when it is looked up."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, session: object, kind: type | None = None) -> Callable[..., object]:
        ask = method(_charging("session", self.name))
        return ask if session is None else MethodType(ask, session)


def _charging(where: str, name: str) -> Callable[..., object]:
    verb = verb_of(name)
    if verb is None or not verb.charges:
        verbs = [method_name(verb) if where == "session" else verb for verb in all_verbs()]
        expected = "" if name.startswith("_") else f", one of {', '.join(verbs)}"
        raise NotAvailable(f"{where}.{name}{did_you_mean(name, verbs)}: expected a verb{expected}")
    return verb.function


@functools.cache
def method(verb: Callable[..., Result]) -> Callable[..., Result]:
    """Return the verb as a method, without the parameters that a session sets."""

    @functools.wraps(verb)
    @entry_point
    def ask(self: VerbMethods, *arguments: object, **options: object) -> Any:
        return self.make(call_of(verb, arguments, options))

    head, _, rest = (verb.__doc__ or "").partition("\n")
    ask.__doc__ = f"{head}\n{_SESSION}{rest}"
    signature = signature_of(verb)
    self_parameter = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    parameters = [self_parameter, *signature.parameters.values()]
    vars(ask)["__signature__"] = signature.replace(parameters=parameters)
    return ask


@checked_methods
class Calls:
    """The verbs as calls that are not run: for plans.

    Each verb is a method, ``call.lm("y ~ x")``; the same is ``call("lm", "y ~ x")``.

    Parameters
    ----------
    verb : str
        Its name, such as ``"lm"``.
    formula : str
        As for the verb.
    **options
        The verb's own options, a budget or none. The session sets the rest.

    Returns
    -------
    Call
        For :meth:`dp.session.plan` and :func:`dp.plan`.

    Raises
    ------
    NotAvailable, ArgumentError
        If there is no such verb, or it lacks a parameter.

    Examples
    --------
    >>> import dpmodels as dp
    >>> dp.call.lm("wage ~ age", eps=0.2)
    lm('wage ~ age', eps=0.2)
    """

    def __getattr__(self, name: str) -> Callable[..., Call]:
        verb = _charging("call", "summary" if name == TABLE_ONE else name.removeprefix("dp_"))
        return lambda *arguments, **options: call_of(verb, arguments, options)

    @checked_keywords("dp.call")
    def __call__(self, verb: str, formula: str, **options: Option) -> Call:
        """Write a call of a verb by its name."""
        text("verb", verb, 'the name of a verb, such as call("lm", "y ~ x")')
        call: Call = self.__getattr__(verb)(formula, **options)
        return call

    def __dir__(self) -> list[str]:
        return list(all_verbs())

    def read(self, written: object) -> Call:
        """Return a call as it is, or of a name, a formula and its words."""
        if isinstance(written, Call):
            return written
        match written:
            case (str(name), str(formula)):
                return self(name, formula)
            case (str(name), str(formula), Mapping() as options):
                return self(name, formula, **options)
        raise ArgumentError(
            f'a call of type {type(written).__name__}: expected call.lm("y ~ x", eps=0.2) or '
            '("lm", "y ~ x", dict(eps=0.2))'
        )


class VerbMethods:
    """The verbs as methods of a session, here or at a gateway."""

    __slots__ = ("_fits",)
    _fits: list[object]
    _made: Callable[[Call], object]

    @property
    def call(self) -> Calls:
        """The verbs as calls for :meth:`plan`, which are not run."""
        return Calls()

    @property
    def results(self) -> tuple[Any, ...]:
        """The results of this session's calls, in order."""
        return tuple(self._fits)

    def make(self, call: Call) -> Any:
        """Run a call: charge for it, read the rows, keep and return the verb's result."""
        result = self._made(call)
        self._fits.append(result)
        return result

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return Method(name).__get__(self)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.call)})


for _name in verb_names():
    if _name not in UNCHARGED:
        setattr(VerbMethods, method_name(_name), Method(_name))
