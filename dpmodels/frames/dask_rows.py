"""Dask data frames: rows stay with Dask's workers, and sums of integers come back.

A pass is one distributed computation, of the sums of one statistic or of several.
"""

from __future__ import annotations

import os
import pickle
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeVar

import numpy as np

from dpmodels.errors import DPModelsError, FrameError
from dpmodels.frames.columns import NativeRows, require
from dpmodels.frames.persons import person_keys
from dpmodels.frames.progress import as_one_of_many, steps
from dpmodels.frames.protocol import Chunk, RowSource, Untyped, before_charge, unfinished
from dpmodels.typing import Array

if TYPE_CHECKING:
    import dask.dataframe as dd
    from distributed import Client


class Sums(NamedTuple):
    """Exact sums of some statistics over a part of the rows, and what the part is compared by."""

    exact: tuple[Array, ...]
    counts: tuple[int, ...]  # How many rows each statistic is of
    n_rows: int  # How many were read
    checksum: int  # Of each partition, added


Result = TypeVar("Result")

Measure = Callable[[RowSource, int], Sums]
"""A function of the rows of a partition and its number."""

# Choices: results that one task adds, and partitions of one sum, for each CPU of the client.
_ADDED_AT_A_TIME: Final = 16
_PARTS_PER_CPU: Final = 8
# A choice: of a partition whose worker is lost.
_RETRIES: Final = 3
# Sums of two are in 64 bits.
_FITS_INT64: Final = 2**62
# A choice, in seconds.
_ANSWERS_WITHIN: Final = 20.0

_LOST: Final = "the connection to the Dask scheduler was lost: make a new distributed.Client"
_FAILED: Final = (
    "a partition of the Dask DataFrame could not be computed: compute them one by one, "
    "data.partitions[0].compute(), to see why"
)
_MESSAGES: Final = {
    "CancelledError": _LOST,
    "CommClosedError": _LOST,
    "KilledWorker": "several Dask workers ended while they had one partition: give them more "
    "memory, or make partitions smaller with data.repartition",
}


@dataclass(frozen=True, slots=True)
class DaskRows(Untyped):
    """The rows of a Dask data frame, measured where they lie, each partition by one thread."""

    frame: Any = field(repr=False)
    person: str | None = None  # Whose rows are brought together; None for rows where they lie
    secret: bytes = field(default=b"", repr=False)
    missing_ids: tuple[str, ...] = ()  # Canonical ids that stand for no person
    rereadable: ClassVar[bool] = True

    @property
    def names(self) -> tuple[str, ...]:
        """The column names; a name that is not text is given as ``""``."""
        return tuple(name if isinstance(name, str) else "" for name in self.frame.columns)

    @property
    def nrows(self) -> int:
        """The number of rows; Dask reads it from the files' metadata, or else computes it.

        To be used only where it is public, and before a charge.
        """
        try:
            return self._computed(lambda: len(self.frame))
        except FrameError as error:
            message = before_charge(error)
        raise FrameError(message)

    def chunks(self, columns: tuple[str, ...], block_rows: int) -> Iterator[Chunk]:
        """Refuse: rows are not brought to the client; the `FrameError` says what to use."""
        require(self, columns)
        raise FrameError(
            "the rows of a Dask DataFrame stay with its workers, and this is not a sum over its "
            'partitions; write the rows with data.to_parquet("rows") and pass the folder "rows"'
        )

    def together(self, person: str, secret: bytes, missing_ids: tuple[str, ...] = ()) -> DaskRows:
        """Return the rows with those of each person in one partition."""
        return replace(self, person=person, secret=secret, missing_ids=missing_ids)

    def summed(self, columns: tuple[str, ...], measure: Measure, *, count_public: bool) -> Sums:
        """Measure every partition on the workers and add the results.

        The scheduler is the one Dask would take: that of the current `distributed.Client`, or of
        ``dask.config``, or threads. A task that fails is tried again where the scheduler can
        (`distributed`), and a result that is lost with its worker is computed anew; a partition
        enters the sum once, with its checksum, since the sum is of results and not of attempts.

        `measure` returns the integers of one part and holds public facts and a salt only, since it
        is sent to the workers; `count_public` says whether progress may show the total. Memory
        holds the results of a few partitions. The `FrameError` of a failed partition gives no
        details.
        """
        require(self, columns)

        def total() -> Sums:
            roots = self._roots(columns, measure)
            total = len(roots) if count_public else None
            return reduce(_added, steps(_computed(roots), total=total, label="reading partitions"))

        return self._computed(total)

    def _computed(self, compute: Callable[[], Result]) -> Result:
        """Compute something; a FrameError says in fixed words why it could not be."""
        from threadpoolctl import threadpool_limits

        try:
            # One task a core: BLAS adds no threads where workers are threads of this process.
            # Warnings may quote a cell or give the size of rows.
            with threadpool_limits(1, "blas"), warnings.catch_warnings(action="ignore"):
                return compute()
        except Exception as error:
            message = _failure_message(error)
        raise FrameError(unfinished(message))

    def _roots(self, columns: tuple[str, ...], measure: Measure) -> list[object]:
        """Put off the measuring: one delayed sum for a number of partitions."""
        import dask
        import pandas as pd

        recipe = dask.delayed(_shipped(measure), pure=False)
        frame = _with_columns(self.frame, columns)
        if self.person is not None:
            frame = frame[list(columns)]
            secret = dask.delayed(self.secret, pure=False)
            # Bring the rows of a person into one partition; drop rows without an id. The name of
            # their keys is longer than that of any column, made of public ones. Shuffle by tasks:
            # Dask's other methods write rows into files.
            key = "".join(map(str, (*frame.columns, " person key")))
            meta = frame._meta.assign(**{key: np.zeros(0, dtype=np.int64)})
            options = {"meta": meta, "enforce_metadata": False}
            keyed = frame.map_partitions(
                _with_person_key, self.person, key, secret, self.missing_ids, **options
            )
            frame = keyed.shuffle(on=key, npartitions=frame.npartitions, shuffle_method="tasks")
            frame = frame[list(columns)]
        meta = pd.Series([], dtype=object)
        measured = frame.map_partitions(_measured, recipe, meta=meta, enforce_metadata=False)
        parts = measured.to_delayed()
        size = _PARTS_PER_CPU * (os.cpu_count() or 1)
        return [_tree(parts[start : start + size]) for start in range(0, len(parts), size)]


def open_dask(frame: object) -> DaskRows:
    """Open a Dask data frame, of which nothing is computed."""
    try:
        client = _client()
        answers = client is None or not client.asynchronous
        if client is not None and answers:
            client.sync(client.scheduler.identity, callback_timeout=_ANSWERS_WITHIN)
    except Exception:
        answers = False
    if answers:
        return DaskRows(frame)
    raise FrameError(
        "the Dask scheduler does not answer, or its client is asynchronous: make a new "
        "distributed.Client. No row was read, and no ledger was charged"
    )


def _with_columns(frame: dd.DataFrame, columns: tuple[str, ...]) -> dd.DataFrame:
    """Select columns if fewer are loaded then; partitions in memory would be copied."""
    selected = frame[list(columns)]
    is_copied = type(selected.optimize(fuse=False).expr).__name__ == "Projection"
    return frame if is_copied else selected


def _failure_message(error: Exception) -> str:
    """Describe a failure without the text of the error, which may quote a cell."""
    # Dask's processes wrap an error, with the text of its traceback.
    error = getattr(error, "exception", error)
    if isinstance(error, DPModelsError):
        return str(error)
    messages = (
        _MESSAGES[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in _MESSAGES
    )
    return next(messages, _FAILED)


def _shipped(measure: Measure) -> bytes:
    """Serialise by value what plain pickle cannot: a formula's compiled functions."""
    import cloudpickle

    return bytes(cloudpickle.dumps(measure))


# Recipes that a process has at hand: its threads read partitions of one pass, or of a few.
_unpacked: Callable[[bytes], Measure] = lru_cache(maxsize=8)(pickle.loads)


def _with_person_key(
    frame: dd.DataFrame, person: str, column: str, secret: bytes, missing_ids: tuple[str, ...]
) -> object:
    """Add the person keys of rows, on a worker, and drop rows without an id."""
    chunks = NativeRows(frame).chunks((person,), max(len(frame), 1))
    cells = next((chunk[person] for chunk in chunks), np.empty(0))
    high, low, has_id = person_keys(cells, secret, missing_ids)
    return frame.assign(**{column: (high ^ low).view(np.int64)})[has_id]


def _tree(parts: Sequence[object]) -> object:
    """Add delayed results, a few at a time."""
    import dask

    while len(parts) > 1:
        groups = [
            parts[start : start + _ADDED_AT_A_TIME]
            for start in range(0, len(parts), _ADDED_AT_A_TIME)
        ]
        parts = [dask.delayed(_total, pure=False)(group) for group in groups]
    return parts[0]


def _measured(frame: object, recipe: bytes, partition_info: Any = None) -> Sums:
    """Measure one partition, on a worker; a failure reveals nothing of its rows."""
    try:
        measure = _unpacked(recipe)
        with as_one_of_many():
            sums = measure(NativeRows(frame), int(partition_info["number"]))
        return sums._replace(exact=tuple(map(_narrowed, sums.exact)))
    except DPModelsError:
        raise
    except Exception as error:
        kind = type(error).__name__
    raise FrameError(
        f"a partition could not be measured on its worker ({kind}): check that the workers run the "
        "client's versions of Python and dpmodels and have memory for a partition"
    )


def _total(parts: Sequence[Sums]) -> Sums:
    return reduce(_added, parts)


def _added(left: Sums, right: Sums) -> Sums:
    """Add without changing either, which may be added again if a worker is lost."""
    exact = (_narrowed(one + two) for one, two in zip(left.exact, right.exact, strict=True))
    counts = (one + two for one, two in zip(left.counts, right.counts, strict=True))
    n_rows, checksum = left.n_rows + right.n_rows, left.checksum + right.checksum
    return Sums(tuple(exact), tuple(counts), n_rows, checksum)


def _narrowed(exact: Array) -> Array:
    """Give integers as int64 where two of them can be added so, else as Python's; no counters."""
    if exact.size and isinstance(exact.flat[0], Counter):
        return exact
    largest = max(abs(int(exact.max(initial=0))), abs(int(exact.min(initial=0))))
    return exact.astype(np.int64 if largest < _FITS_INT64 else object)


def _client() -> Client | None:
    """Return the client of `distributed` that Dask would take, None for other schedulers."""
    import dask

    return getattr(dask.base.get_scheduler(), "__self__", None)


def _computed(roots: Sequence[Any]) -> Iterator[Sums]:
    """Compute on the scheduler that Dask would take."""
    client = _client()
    if client is None:
        for root in roots:
            yield root.compute()
        return
    from distributed import as_completed

    # Only the running sum is kept: a future is dropped once its result has arrived.
    for future in as_completed(client.compute(list(roots), retries=_RETRIES)):
        yield future.result()
