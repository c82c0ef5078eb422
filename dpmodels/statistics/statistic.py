"""A statistic: an exact answer that has not been released, and to what, in public words.

One that adds over disjoint rows is measured wherever the rows lie.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, update_wrapper
from hashlib import sha256
from itertools import zip_longest
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmodels.design import PrivateDesign
from dpmodels.design.cells import PrivateCells, PrivateLevels, PrivateMargins
from dpmodels.errors import ArgumentError, PrivacyError, shorten
from dpmodels.frames import RowSource, no_rows
from dpmodels.frames.dask_rows import Sums
from dpmodels.privacy import Adjacency

# Characters of a statement that an error shows: a choice.
WIDTH = 200


@dataclass(frozen=True)
class Fingerprint:
    """Public facts that statistics must share if they are to be added.

    They are compared in their order. No fact comes from a row.
    """

    facts: tuple[tuple[str, str], ...] = ()

    @property
    def digest(self) -> str:
        """SHA-256 of the facts, 64 hexadecimal digits."""
        return sha256(json.dumps(self.facts).encode()).hexdigest()

    def also(self, words: Mapping[str, str]) -> Fingerprint:
        """Return the same with further facts at the end."""
        return Fingerprint((*self.facts, *words.items()))

    def difference(self, other: Fingerprint) -> str:
        """Say what the first difference is; nothing where there is none."""
        for (word, own), (others, theirs) in zip_longest(
            self.facts, other.facts, fillvalue=("", "not stated")
        ):
            if word != others:
                return f"one states {word or 'nothing more'}, the other {others or 'nothing more'}"
            if own != theirs:
                one, two = _told_apart(own, theirs)
                return f"{word} is {one} for one and {two} for the other"
        return ""

    def require(self, other: Fingerprint) -> None:
        """Refuse, with an ArgumentError that names it, the first difference of two."""
        found = self.difference(other)
        if found:
            raise ArgumentError(
                f"the statistics do not belong together: {found}; measure both with the same "
                "formula, codebook and words"
            )


def fingerprint(facts: Mapping[str, str], *, count_public: bool) -> Fingerprint:
    """Take down facts in their order, and who is a neighbour."""
    relation = Adjacency("replace" if count_public else "add-remove")
    return Fingerprint(tuple(facts.items())).also({"adjacency": relation.describe()})


def digest_of(numbers: NDArray[np.generic]) -> str:
    """Name an array of released values or public facts by its shape and SHA-256."""
    whole = np.ascontiguousarray(numbers, dtype="<f8")
    return f"{numbers.shape} {sha256(whole.tobytes()).hexdigest()}"


def _told_apart(one: str, two: str) -> tuple[str, str]:
    """Shorten two texts to what shows that they differ."""
    if max(len(one), len(two)) <= WIDTH:
        return one, two
    unlike = next(at for at, (a, b) in enumerate(zip_longest(one, two)) if a != b)
    start = max(0, unlike - WIDTH // 4)
    return shorten(one[start:], WIDTH), shorten(two[start:], WIDTH)


UNSTATED = Fingerprint()


class Statistic:
    """Exact integers computed from rows; only a mechanism may read them.

    `exact` are Python integers, so that no sum can overflow; `rows` were read, complete or not.
    """

    __slots__ = ("_exact", "_rows", "fingerprint", "name")

    def __init__(
        self, name: str, exact: NDArray[Any], rows: int, fingerprint: Fingerprint = UNSTATED
    ) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self._exact = exact
        self._rows = rows

    def __repr__(self) -> str:
        return f"<Statistic {self.name}, not released>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("a statistic is not released and cannot be pickled or copied")

    def __add__(self, other: Statistic) -> Statistic:
        """Add the same statistic of disjoint rows; else an ArgumentError names the difference."""
        self._require(other)
        exact = self._exact + other._exact
        return Statistic(self.name, exact, self._rows + other._rows, self.fingerprint)

    def cross(self) -> tuple[NDArray[Any], int]:
        """Hand the exact integers and the row count to the mechanism that releases them."""
        return self._exact, self._rows

    def _require(self, other: Statistic) -> None:
        if type(self) is not type(other) or self.name != other.name:
            raise ArgumentError(
                f"{self.name} and {other.name} do not add: measure both with the same mechanism"
            )
        self.fingerprint.require(other.fingerprint)
        if self._exact.shape != other._exact.shape:
            raise ArgumentError(
                f"{self.name} of shapes {self._exact.shape} and {other._exact.shape} do not add: "
                "measure both with the same formula and codebook"
            )


Rows = TypeVar("Rows", PrivateDesign, PrivateCells, PrivateLevels, PrivateMargins)
Words = ParamSpec("Words")
Kind = TypeVar("Kind", bound="Statistic")


def additive(
    measure: Callable[Concatenate[Rows, Words], Statistic],
) -> Callable[Concatenate[Rows, Words], Statistic]:
    """Let a statistic be measured on the partitions of rows that lie elsewhere.

    `measure` takes rows and public words and gives integers that add over disjoint rows. For those
    of a Dask DataFrame it is sent to the workers with a recipe made of public facts; they bind it
    to their partitions, and the integers and numbers of rows they give are added.
    """

    def anywhere(private: Rows, /, *words: Words.args, **named: Words.kwargs) -> Statistic:
        if private.scattered is None:
            return measure(private, *words, **named)
        recipe: Callable[[RowSource], Any] = private.recipe
        nothing = measure(recipe(no_rows(private.variables)), *words, **named)
        there = partial(_there, anywhere, recipe, words, named)
        public = bool(named.get("count_public"))
        exact, rows = private.scattered.summed(private.variables, there, count_public=public)
        found = Statistic(nothing.name, exact.astype(object), rows, nothing.fingerprint)
        return nothing + found

    # By the name of what it stands for it can be sent to workers.
    return update_wrapper(anywhere, measure)


def _there(
    measure: Callable[..., Statistic],
    recipe: Callable[[RowSource], object],
    words: tuple[object, ...],
    named: dict[str, object],
    source: RowSource,
) -> Sums:
    """Bind rows where they lie and measure them."""
    return measure(recipe(source), *words, **named).cross()


def measured_as(kind: type[Kind], statistic: Statistic, name: str) -> Kind:
    """Return a statistic that reads rows several times; ArgumentError for any other one."""
    if not isinstance(statistic, kind):
        raise ArgumentError(f"statistic= is one of {name}; expected what measure() returned")
    return statistic
