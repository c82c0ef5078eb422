"""Statistics: exact answers that are not released, with public facts that identify them.

Of rows on the workers of a cluster several are measured in one pass: only integers that add over
disjoint rows. Statistics that are requested before one of them is needed do not depend on its
release, so that one distributed computation measures them all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce, update_wrapper
from hashlib import sha256
from itertools import zip_longest
from operator import add
from types import MappingProxyType
from typing import Any, Concatenate, Generic, NoReturn, ParamSpec, TypeVar

import numpy as np

from dpmodels.design import PrivateDesign
from dpmodels.design.cells import PrivateCells, PrivateLevels, PrivateMargins
from dpmodels.design.parts import Checksum
from dpmodels.errors import ArgumentError, PrivacyError, shorten
from dpmodels.frames import RowSource, no_rows
from dpmodels.frames.dask_rows import Sums
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import Adjacency
from dpmodels.typing import Exact, Integers, Numbers, Scalars

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

    def difference(self, second: Fingerprint) -> str:
        """Describe the first difference; empty for equal facts."""
        for (name, value), (other_name, other_value) in zip_longest(
            self.facts, second.facts, fillvalue=("", "not stated")
        ):
            if name != other_name:
                left, right = name or "nothing more", other_name or "nothing more"
                return f"one states {left}, the other {right}"
            if value != other_value:
                left, right = _around_difference(value, other_value)
                return f"{name} is {left} for one and {right} for the other"
        return ""

    def require(self, second: Fingerprint) -> None:
        """Raise an ArgumentError that names the first difference of two."""
        difference = self.difference(second)
        if difference:
            raise ArgumentError(
                f"the statistics do not belong together: {difference}; measure both with the same "
                "formula, codebook and options"
            )


def fingerprint(
    private: Private, words: Mapping[str, str] = MappingProxyType({}), *, count_public: bool
) -> Fingerprint:
    """Return the facts of rows, then those of `words`, in their order, and the adjacency."""
    relation = Adjacency("replace" if count_public else "add-remove")
    facts = {**private.facts, **words, "adjacency": relation.describe()}
    return Fingerprint(tuple(facts.items()))


def digest_of(numbers: Scalars) -> str:
    """Name an array of released values or public facts by its shape and SHA-256."""
    contiguous = np.ascontiguousarray(numbers, dtype="<f8")
    return f"{numbers.shape} {sha256(contiguous.tobytes()).hexdigest()}"


def _around_difference(left: str, right: str) -> tuple[str, str]:
    """Shorten two texts to what shows that they differ."""
    if max(len(left), len(right)) <= WIDTH:
        return left, right
    unlike = next(at for at, (a, b) in enumerate(zip_longest(left, right)) if a != b)
    start = max(0, unlike - WIDTH // 4)
    return shorten(left[start:], WIDTH), shorten(right[start:], WIDTH)


UNSTATED = Fingerprint()


class Statistic:
    """Exact integers computed from rows; only a mechanism may read them.

    `exact` are Python integers, so that no sum can overflow; `n_rows` were read, complete or not.
    `basis` is its fingerprint, or a function that makes it.
    """

    __slots__ = ("_basis", "_exact", "_rows", "name")

    def __init__(
        self,
        name: str,
        exact: Numbers,
        n_rows: int,
        basis: Fingerprint | Callable[[], Fingerprint] = UNSTATED,
    ) -> None:
        self.name = name
        self._basis = basis
        self._exact = exact
        self._rows = n_rows

    def __repr__(self) -> str:
        return f"<Statistic {self.name}, not released>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("a statistic is not released and cannot be pickled or copied")

    def __add__(self, other: Statistic) -> Statistic:
        """Add the same statistic of disjoint rows; else an ArgumentError names the difference."""
        self._require(other)
        (exact, n_rows), (more, n_more) = self.cross(), other.cross()
        return Statistic(self.name, exact + more, n_rows + n_more, self._basis)

    @property
    def fingerprint(self) -> Fingerprint:
        """What a statistic must share to be added to this one."""
        if not isinstance(self._basis, Fingerprint):
            self._basis = self._basis()
        return self._basis

    def cross(self) -> tuple[Numbers, int]:
        """Hand the exact integers and the row count to the mechanism that releases them."""
        return self._exact, self._rows

    @property
    def _kind(self) -> type[Statistic]:
        """The class that both have to be of if they are to be added."""
        return type(self)

    def _require(self, second: Statistic) -> None:
        if self._kind is not second._kind or self.name != second.name:
            raise ArgumentError(
                f"{self.name} and {second.name} do not add; measure both with the same mechanism"
            )
        self.fingerprint.require(second.fingerprint)
        if self._exact.shape != second._exact.shape:
            raise ArgumentError(
                f"{self.name} of shapes {self._exact.shape} and {second._exact.shape} do not add; "
                "measure both with the same formula and codebook"
            )


def summed(
    name: str,
    counted: Callable[..., Integers],
    design: PrivateDesign,
    lattice: Lattice,
    words: Mapping[str, str],
    count_public: bool,
    *,
    with_norms: bool = False,
) -> Statistic:
    """Add up what a function makes of each block of rows on the lattice; integers of one shape.

    `words` are the public facts that it depends on, besides those of the design and the lattice.
    The function takes blocks, `with_norms` the squared norms of their rows too.
    """
    empty = np.zeros((lattice.columns + 1, 0))
    total: Numbers = counted(empty, *[empty[0]] * with_norms).astype(object)
    parts = design.blocks(counted, lattice, count_public=count_public, with_norms=with_norms)
    words = {"lattice": repr(lattice), **words}
    basis = partial(fingerprint, design, words, count_public=count_public)
    return total_of(name, parts, total, basis)


def total_of(
    name: str,
    parts: Iterable[tuple[Numbers, int]],
    total: Numbers,
    basis: Fingerprint | Callable[[], Fingerprint],
) -> Statistic:
    """Add parts of the rows, each with its number of rows, to `total`, in place."""
    n_rows = 0
    for part, count in parts:
        total += part
        n_rows += count
    return Statistic(name, total.astype(object), n_rows, basis)


Kind = TypeVar("Kind", bound="Statistic")


def measured_as(kind: type[Kind], statistic: Statistic, name: str) -> Kind:
    """Return a statistic that reads rows several times; ArgumentError for any other one."""
    if not isinstance(statistic, kind):
        raise ArgumentError(f"statistic= holds {name}; expected what measure() returned")
    return statistic


Private = PrivateDesign | PrivateCells | PrivateLevels | PrivateMargins
Rows = TypeVar("Rows", PrivateDesign, PrivateCells, PrivateLevels, PrivateMargins)
Words = ParamSpec("Words")

Task = tuple[Callable[[RowSource], Private], Callable[[Any], Statistic], bool]
"""How rows are bound, what is measured of them, and whether their number is public."""


class Scattered(Statistic):
    """A statistic of rows on workers, measured when it is first needed, with all that wait."""

    __slots__ = ("_private", "task")

    def __init__(self, nothing: Statistic, private: Private, task: Task) -> None:
        super().__init__(nothing.name, *nothing.cross(), nothing.fingerprint)
        self._private = private
        self.task: Task | None = task
        private.rows.readings.waiting.append(self)

    @property
    def _kind(self) -> type[Statistic]:
        return Statistic

    def cross(self) -> tuple[Exact, int]:
        """Return the exact integers and the row count, after a pass where it has to be made.

        A FrameError if the rows are not those of the first pass.
        """
        if self.task is not None:
            _measure(self._private)
        return super().cross()

    def settle(self, exact: Exact, n_rows: int) -> None:
        """Take what was measured, in addition to the answer for no rows."""
        self._exact, self._rows, self.task = self._exact + exact, n_rows, None


def _measure(private: Private) -> None:
    source, readings = private.scattered, private.rows.readings
    assert source is not None
    waiting: list[Scattered] = readings.waiting
    tasks = [statistic.task for statistic in waiting if statistic.task is not None]
    sums = source.summed(
        private.variables,
        partial(_on_worker, tasks, readings.salt),
        count_public=all(public for *_, public in tasks),
    )
    readings.require_same(sums.n_rows, sums.checksum)
    for statistic, exact, n_rows in zip(waiting, sums.exact, sums.counts, strict=True):
        statistic.settle(exact.astype(object), n_rows)
    waiting.clear()


def _on_worker(tasks: Sequence[Task], salt: bytes, source: RowSource, number: int) -> Sums:
    """Measure the rows of a partition; the first statistic's reading is the one compared."""
    checksum = Checksum(salt, number)
    measured: list[tuple[object, int]] = []
    for bind, measure, _ in tasks:
        rows = bind(source)
        rows.rows.in_partition(number, None if measured else checksum)
        measured.append(measure(rows).cross())
    exact, counts = zip(*measured, strict=True)
    return Sums(exact, counts, checksum.n_rows, checksum.value)


def additive(
    measure: Callable[Concatenate[Rows, Words], Statistic],
) -> Callable[Concatenate[Rows, Words], Statistic]:
    """Let a statistic be measured on the partitions of a Dask DataFrame.

    `measure` takes rows and public or released options and returns integers that add over disjoint
    rows. It is sent to the workers with a recipe made of public facts. Each worker binds its
    partition, and the integers and numbers of rows are added.
    """

    def anywhere(private: Rows, /, *args: Words.args, **kwargs: Words.kwargs) -> Statistic:
        if private.scattered is None:
            return measure(private, *args, **kwargs)
        bind: Callable[[RowSource], Rows] = private.recipe
        nothing = measure(bind(no_rows(private.variables)), *args, **kwargs)
        on_worker = partial(_with_options, anywhere, args, kwargs)
        return Scattered(nothing, private, (bind, on_worker, bool(kwargs.get("count_public"))))

    # Under the name of `measure` it can be pickled for workers.
    return update_wrapper(anywhere, measure)


def _with_options(
    measure: Callable[..., Statistic],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    private: Private,
) -> Statistic:
    return measure(private, *args, **kwargs)


class OverDesigns(Statistic, Generic[Rows]):
    """A statistic of disjoint rows that can be read again and again, by methods."""

    __slots__ = ("count_public", "designs")

    def __init__(
        self, name: str, designs: tuple[Rows, ...], words: Mapping[str, str], *, count_public: bool
    ) -> None:
        basis = partial(fingerprint, designs[0], words, count_public=count_public)
        super().__init__(name, np.zeros(0, dtype=object), 0, basis)
        self.designs: tuple[Rows, ...] = designs
        self.count_public = count_public

    def __add__(self, other: Statistic) -> Statistic:
        """Join statistics of disjoint rows; an ArgumentError names the first difference."""
        if not isinstance(other, OverDesigns):
            return NotImplemented
        self._require(other)
        return self.recipe(self.designs + other.designs)

    @property
    def recipe(self) -> Callable[[tuple[Rows, ...]], Statistic]:
        """A function, made of public facts and released values, that binds other rows."""
        raise NotImplementedError

    def over_rows(self, measure: Callable[..., Statistic], *words: object) -> Statistic:
        """Measure an additive statistic on all the rows."""
        public = self.count_public
        return reduce(add, (measure(x, *words, count_public=public) for x in self.designs))


Own = TypeVar("Own", bound=OverDesigns[PrivateDesign])


def one_pass(
    method: Callable[Concatenate[Own, Words], Statistic],
) -> Callable[Concatenate[Own, Words], Statistic]:
    """Let a method that reads the rows of one design be asked of all of them, anywhere."""

    def over_designs(self: Own, /, *args: Words.args, **kwargs: Words.kwargs) -> Statistic:
        if len(self.designs) == 1 and self.designs[0].scattered is None:
            return method(self, *args, **kwargs)
        words, public = (over_designs, self.recipe, args, kwargs), self.count_public
        sums = (_by_method(design, *words, count_public=public) for design in self.designs)
        return reduce(add, sums)

    return update_wrapper(over_designs, method)


@additive
def _by_method(
    design: PrivateDesign,
    method: Callable[..., Statistic],
    recipe: Callable[[tuple[PrivateDesign, ...]], object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    *,
    count_public: bool,
) -> Statistic:
    """Measure the rows of one design by a method of their statistic."""
    return method(recipe((design,)), *args, **kwargs)
