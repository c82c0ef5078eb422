"""What is evaluated: anything that makes an answer of a table and a budget.

A recipe that takes the words ``data`` and ``codebook`` is asked as a verb is: it gets simulated
rows, their codebook, ``eps``, and of ``adjacency`` and ``breaks`` what it takes and does not say
itself. Any other recipe is called with the counts by cell and eps, and ``rng=`` if it takes that
word: a numpy generator of its own, the same in the same study.

Its answer is an array, or has ``released`` (unbiased counts by cell) or else ``counts``. A pair of
a recipe and a name reads that attribute of the answer instead: ``(recipe, "counts")``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from dpmodels.errors import ArgumentError, said
from dpmodels.noise import simulation
from dpmodels.sessions.session import Session

Callee = Callable[..., Any]

# What the evaluation says, and no recipe may.
_SAID: Final = ("data", "sites", "codebook", "eps", "budget", "ledger")
_FILLED: Final = ("adjacency", "breaks")
_VERB: Final = ("data", "codebook", "eps", *_FILLED)


@dataclass(frozen=True)
class Recipe:
    """A function that is evaluated, under its name, and what of its answer is read."""

    name: str
    ask: Callee
    words: frozenset[str]
    read: str | None

    @property
    def is_verb(self) -> bool:
        """Whether it is asked of rows."""
        return {"data", "codebook"} <= self.words

    def of_counts(self, counts: Any, eps: float, seed: int) -> Any:
        """Answer counts by cell."""
        more = {"rng": np.random.default_rng(seed)} if "rng" in self.words else {}
        with simulation(seed=seed):
            return self.ask(counts.copy(), eps, **more)

    def of_rows(self, data: Any, codebook: Any, eps: float, seed: int, **words: Any) -> Any:
        """Answer rows, as a verb."""
        own = self.ask.keywords if isinstance(self.ask, partial) else {}
        more = {name: words[name] for name in _FILLED if name in words and name not in own}
        kept = {name: value for name, value in more.items() if name in self.words}
        with simulation(seed=seed):
            return self.ask(data=data, codebook=codebook, eps=eps, **kept)

    def array(self, answer: Any, among: tuple[str, ...]) -> Any:
        """Read the numbers of an answer: itself, or the first attribute that it has."""
        names = among if self.read is None else (self.read,)
        found = next((getattr(answer, one) for one in names if hasattr(answer, one)), answer)
        if found is answer and self.read is not None:
            raise ArgumentError(
                f"its answer is a {type(answer).__name__} without the attribute {self.read!r}"
            )
        try:
            return np.asarray(found, dtype=np.float64)
        except (TypeError, ValueError):
            listed = " or ".join(names)
            raise ArgumentError(
                f"its answer is a {type(answer).__name__}: expected an array, or something with "
                f"{listed}; name the attribute that is meant, as in (recipe, {names[0]!r})"
            ) from None


def recipes(given: object) -> tuple[Recipe, ...]:
    """Return recipes by name, or say what is wrong with one."""
    if not isinstance(given, Mapping) or not given:
        raise ArgumentError(
            f"recipes={said(given)}: expected names with recipes, such as "
            '{"flat": functools.partial(dp.dp_hist, "~ v")}, one or more'
        )
    return tuple(_recipe(name, one) for name, one in given.items())


def _recipe(name: object, given: object) -> Recipe:
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"recipes: the name {said(name)} is no text; write a short one")
    ask, read = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
    if not callable(ask) or not isinstance(read, str | None):
        raise ArgumentError(
            f"recipes[{name!r}] is of type {type(given).__name__}: expected a verb, a function of "
            "counts and eps, or a pair of one and the name of an attribute of its answer"
        )
    own: Callee = ask
    _refuse_charged(name, own)
    words = _words(own)
    if "codebook" in words and "data" not in words:
        raise ArgumentError(
            f"recipes[{name!r}] has its rows: an evaluation asks for simulated ones; write "
            'functools.partial(dp.dp_hist, "~ v") without data'
        )
    return Recipe(name, own, words, read)


def _words(ask: Callee) -> frozenset[str]:
    """Return the words that a recipe takes; of one that takes any, those of a verb."""
    try:
        taken = inspect.signature(ask).parameters
    except (TypeError, ValueError):
        return frozenset()
    kinds = {one.kind for one in taken.values()}
    return frozenset(_VERB) if kinds == {inspect.Parameter.VAR_KEYWORD} else frozenset(taken)


def _refuse_charged(name: str, ask: Callee) -> None:
    """Refuse a recipe with rows, a budget or a ledger of its own."""
    function = ask.func if isinstance(ask, partial) else ask
    if isinstance(getattr(function, "__self__", None), Session):
        raise ArgumentError(
            f"recipes[{name!r}] asks a session, which has rows and a ledger of its own: an "
            'evaluation spends nothing; write functools.partial(dp.dp_hist, "~ v")'
        )
    for word in _SAID:
        if isinstance(ask, partial) and word in ask.keywords:
            raise ArgumentError(
                f"recipes[{name!r}] says {word}=, which an evaluation says itself: leave it out"
            )
