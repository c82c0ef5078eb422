"""Statistics of rows that may lie on the workers of a cluster, several in one pass.

Only integers that add over disjoint rows are measured there. Statistics that are requested before
one of them is needed do not depend on its release, so that one distributed computation measures
them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce, update_wrapper
from operator import add
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from dpmodels.design import PrivateDesign
from dpmodels.design.cells import PrivateCells, PrivateLevels, PrivateMargins
from dpmodels.design.checksum import Checksum
from dpmodels.frames import RowSource, no_rows
from dpmodels.frames.dask_rows import Sums
from dpmodels.statistics.statistic import Statistic
from dpmodels.typing import Exact

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
        private.readings.waiting.append(self)

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
    """Measure all statistics that wait for the same rows."""
    source, readings = private.scattered, private.readings
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
        rows.in_partition(number, None if measured else checksum)
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


class OverRows(Protocol):
    """A statistic that reads rows again and again, by methods."""

    @property
    def designs(self) -> tuple[PrivateDesign, ...]:
        """Disjoint rows."""
        ...

    @property
    def count_public(self) -> bool:
        """Whether progress may show how many rows there are."""
        ...

    @property
    def recipe(self) -> Callable[[tuple[PrivateDesign, ...]], object]:
        """A function, made of public facts and released values, that binds other rows."""
        ...


Own = TypeVar("Own", bound=OverRows)


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
