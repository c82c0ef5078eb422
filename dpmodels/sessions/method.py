"""A verb as a method of a session."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import MethodType
from typing import Any, TypeVar

from dpmodels.entry_point import entry_point
from dpmodels.errors import ArgumentError, NotAvailable
from dpmodels.models.replay import all_verbs, verb_of
from dpmodels.sessions.call import Call, call_of, signature_of

Made = TypeVar("Made")
_SESSION = """
The session sets the data, codebook, neighbours, persons and ledger. A budget that is not written is
a share of what is left: ``eps="1/5"``, ``share=0.2``, ``split(5)`` before.
"""


class Method:
    """A verb of a session by its name; its module is imported when it is looked up."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, session: Any, kind: type | None = None) -> Callable[..., Any]:
        ask = method(_charging("session", self.name))
        return ask if session is None else MethodType(ask, session)


def _charging(where: str, name: str) -> Callable[..., Any]:
    """Return the function of a verb that charges a ledger."""
    verb = verb_of(name)
    if verb is None or not verb.charges:
        known = "" if name.startswith("_") else f", one of {', '.join(all_verbs())}"
        raise NotAvailable(f"{where}.{name}: expected a verb{known}")
    return verb.function


@functools.cache
def method(verb: Callable[..., Made]) -> Callable[..., Made]:
    """Return the verb as a method: its words less those a session says, its docstring."""

    @functools.wraps(verb)
    @entry_point
    def ask(self: Any, *given: Any, **words: Any) -> Any:
        return self.make(call_of(verb, given, words))

    head, _, rest = (verb.__doc__ or "").partition("\n")
    ask.__doc__ = f"{head}\n{_SESSION}{rest}"
    own = signature_of(verb)
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    asked = own.replace(parameters=[first, *own.parameters.values()])
    vars(ask)["__signature__"] = asked
    return ask


class Calls:
    """The verbs, which write a call and do not make it: for plans.

    Each verb is a method, ``call.lm("y ~ x")``; the same is ``call("lm", "y ~ x")``.

    Parameters
    ----------
    verb : str
        Its name, such as ``"lm"``.
    formula : str
        As for the verb.
    **words
        The verb's own words, less those that are said once of a table; a budget or none.

    Returns
    -------
    Call
        For :meth:`dp.session.plan` and :func:`dp.plan`.

    Raises
    ------
    NotAvailable, ArgumentError
        If there is no such verb, or it does not know a word.

    Examples
    --------
    >>> import dpmodels as dp
    >>> dp.call.lm("wage ~ age", eps=0.2)
    lm('wage ~ age', eps=0.2)
    """

    def __getattr__(self, name: str) -> Callable[..., Call]:
        verb = _charging("call", name.removeprefix("dp_"))
        return lambda *given, **words: call_of(verb, given, words)

    def __call__(self, verb: str, formula: str, **words: Any) -> Call:
        """Write a call of a verb by its name."""
        written: Call = self.__getattr__(verb)(formula, **words)
        return written

    def __dir__(self) -> list[str]:
        return list(all_verbs())

    def read(self, written: object) -> Call:
        """Return a call as it is, or of a name, a formula and its words."""
        if isinstance(written, Call):
            return written
        match written:
            case (str(name), str(formula)):
                return self(name, formula)
            case (str(name), str(formula), Mapping() as words):
                return self(name, formula, **words)
        raise ArgumentError(
            f'a call of type {type(written).__name__}: expected call.lm("y ~ x", eps=0.2) or '
            '("lm", "y ~ x", dict(eps=0.2))'
        )
