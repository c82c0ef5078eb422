"""Verbs as methods of a session, and as calls that are not run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import MethodType
from typing import Any, TypeVar

from dpmodels.arguments import text
from dpmodels.entry_point import entry_point
from dpmodels.errors import ArgumentError, NotAvailable, did_you_mean
from dpmodels.models.replay import all_verbs, verb_of
from dpmodels.sessions.call import Call, call_of, signature_of
from dpmodels.typing import Option
from dpmodels.verbs import UNCHARGED, verb_names

Result = TypeVar("Result")
_SESSION = """
The session sets the data, codebook, neighbours, persons and ledger. A budget that is not written is
a share of what is left: ``eps="1/5"``, ``share=0.2``, ``split(5)`` before.
"""


class Method:
    """A verb of a session by its name; its module is imported when it is looked up."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, session: object, kind: type | None = None) -> Callable[..., Any]:
        ask = method(_charging("session", self.name))
        return ask if session is None else MethodType(ask, session)


def _charging(where: str, name: str) -> Callable[..., Any]:
    """Return the function of a verb that charges a ledger."""
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
    def ask(self: Any, *arguments: Any, **options: Option) -> Any:
        return self.make(call_of(verb, arguments, options))

    head, _, rest = (verb.__doc__ or "").partition("\n")
    ask.__doc__ = f"{head}\n{_SESSION}{rest}"
    signature = signature_of(verb)
    self_parameter = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method_signature = signature.replace(
        parameters=[self_parameter, *signature.parameters.values()]
    )
    vars(ask)["__signature__"] = method_signature
    return ask


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
        verb = _charging("call", name.removeprefix("dp_"))
        return lambda *arguments, **options: call_of(verb, arguments, options)

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
    _fits: list[Any]
    _made: Callable[[Call], Any]

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


def method_name(verb: str) -> str:
    """Return the name of a verb's method; ``summary()`` is the session's own report."""
    return "table_one" if verb == "summary" else verb


for _name in verb_names():
    if _name not in UNCHARGED:
        setattr(VerbMethods, method_name(_name), Method(_name))
