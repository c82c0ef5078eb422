"""Parts of rows: kept in memory, drawn at random or by weight, compared by checksums.

*Random splits* take a coin for each position in the source, or for each person. A coin belongs to a
position in the source, so a row must have the same position in every pass. A source that can be
read again sees to it: a file that was written or replaced since it was opened is an error, and so
is a table in memory whose number of rows changed; of persons, whose coins follow their ids, and of
partitions, a digest is compared. What can be read once is refused before the charge.

*Checksums* of two sequences of parts that differ are equal with a chance below ``2**-90``: they are
authentication codes under a salt (docs/theory.md, "Passes over partitions"). It is drawn once for
all passes over some rows, goes to the workers with the public recipe, and is never released.

*Sampling by weight.* A unit is a row, or all rows of a sampling unit, and has :data:`SLOTS` places,
which its rows take by their weights under a cap (docs/theory.md, Theorem 73).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import FrameError, PrivacyError
from dpmodels.formula.tally import STEPS, Sampling
from dpmodels.formula.values import BoundSide
from dpmodels.frames.persons import cell_bytes
from dpmodels.frames.protocol import Chunk, unfinished
from dpmodels.noise import Entropy, derived
from dpmodels.noise.lattice import MAX_BITS, Lattice
from dpmodels.typing import Array, Floats, Integers

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM


class Unshown:
    """Rows, or what follows from them: shows nothing and stays where it is."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lstrip('_')}, not shown>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError(f"{type(self).__name__}: rows cannot be pickled or copied")


class Part(NamedTuple):
    """A chunk of rows: numeric columns, which rows count, the places they take, and their persons.

    `counted` is None if all count, `places` if each takes one, and `persons` without persons; else
    persons are numbered from 0, and -1 means no person. A row that does not count is treated as
    incomplete. `coded` has the columns of a coded formula, each of shape (rows,), where they are in
    memory; then `columns` has only those that are used beside them. `counter` are counts by bounds
    that the rows are to be added to, `integers` the rows on a lattice, if they are to be kept.
    """

    columns: Mapping[str, Floats]
    counted: NDArray[np.bool_] | None
    places: Array | None
    persons: Array | None = None
    coded: Sequence[Floats] | None = None
    counter: BoundCounts | None = None
    integers: KeptIntegers | None = None

    @property
    def rows(self) -> int:
        """Number of rows."""
        if self.coded is not None:
            return len(self.coded[0])
        return len(next(iter(self.columns.values())))

    @property
    def of_counted(self) -> Mapping[str, Floats]:
        """The columns, nan in rows that do not count."""
        if self.counted is None:
            return self.columns
        return {name: np.where(self.counted, x, np.nan) for name, x in self.columns.items()}

    @property
    def nbytes(self) -> int:
        """Memory of the rows."""
        beside = (self.counted, self.places, self.persons)
        arrays = (*self.columns.values(), *beside, *(self.coded or ()))
        return sum(int(array.nbytes) for array in arrays if array is not None)

    @property
    def taken(self) -> int:
        """Number of places that the rows take."""
        return self.rows if self.places is None else int(self.places.sum())

    def at(self, rows: slice | NDArray[np.intp]) -> Part:
        """Return the rows at positions, each as often as it is named."""
        return Part(
            {name: column[rows] for name, column in self.columns.items()},
            None if self.counted is None else self.counted[rows],
            None if self.places is None else self.places[rows],
            None if self.persons is None else self.persons[rows],
            None if self.coded is None else [column[rows] for column in self.coded],
            self.counter,
        )


# Rows in memory between the passes of one fit, where they fit a limit. Whether they are there
# changes the time of a pass and nothing else: the parts are those that reading gave, in the same
# order. They are never written to disk, and go with the rows they are of.

MOST_BYTES: Final = 400 * 2**20
"""A choice: 10^6 rows of 50 numbers fit, and a process stays below 700 MB beside them."""


class KeptIntegers(Unshown):
    """The integers of a part of rows on the first lattice that they are brought to."""

    def __init__(self) -> None:
        self._lattice: Lattice | None = None
        self._rows: NDArray[np.float32] | None = None

    @property
    def nbytes(self) -> int:
        """Memory of the integers."""
        return 0 if self._rows is None else self._rows.nbytes

    def on(self, lattice: Lattice) -> NDArray[np.float32] | None:
        """Return the rows on a lattice, None where they are not kept."""
        return self._rows if lattice == self._lattice else None

    def keep(self, lattice: Lattice, rows: Floats) -> None:
        """Keep rows of a first lattice of at most 20 bits, which floats of 32 bits hold."""
        if self._lattice is None and lattice.bits <= MAX_BITS:
            self._lattice, self._rows = lattice, rows.astype(np.float32)


class KeptParts(Unshown):
    """Parts of rows as the first complete reading gave them.

    `key` is what they are for: a coded formula, or None for rows as they are read, and `scaling`
    that of which integers stay too. Where the number of rows is given, none stay if the first part
    says that they will not fit.
    """

    def __init__(self, key: object, n_rows: int | None = None, scaling: object = None) -> None:
        self.key = key
        self.scaling = scaling
        self.token = secrets.token_bytes(_SALT_BYTES)  # What workers know it by
        self._n_rows = n_rows
        self.parts: list[Part] | None = None  # None before a complete reading
        self.all_fit = True

    def integers(self, n_lines: int) -> KeptIntegers | None:
        """Return what keeps integers of a part, of so many lines; None if all would not fit."""
        return KeptIntegers() if 0 < 12 * n_lines * (self._n_rows or 0) <= MOST_BYTES else None

    @property
    def nbytes(self) -> int:
        """Memory of the parts and of their integers."""
        parts = self.parts or ()
        return sum(part.nbytes + getattr(part.integers, "nbytes", 0) for part in parts)

    def start(self) -> None:
        """Start a reading."""
        self._pending: list[Part] = []
        self._size = 0

    def add(self, part: Part) -> None:
        """Keep a part that was read, if all fit."""
        self._size += part.nbytes
        expected = part.nbytes / max(part.rows, 1) * (self._n_rows or 0)
        self.all_fit = self.all_fit and max(self._size, expected) <= MOST_BYTES
        if self.all_fit:
            self._pending.append(part)
        else:
            self._pending.clear()

    def complete(self) -> None:
        """Let later passes have the parts, since all were read."""
        if self.all_fit:
            self.parts = self._pending

    def through(self, parts: Iterable[Part]) -> Iterator[Part]:
        """Yield the parts that are in memory; else those that are read, to be kept if all fit."""
        if self.parts is not None:
            yield from self.parts
            return
        self.start()
        for part in parts:
            self.add(part)
            yield part
        self.complete()


Beyond = Mapping[str, tuple[bool, bool]]
_UNKNOWN: Final[Beyond] = {}


class BoundCounts(Unshown):
    """Numbers of rows below, between and above bounds, and incomplete ones, by column.

    They are counted while another statistic reads all rows, or else in a reading of their own.
    """

    def __init__(self, sides: Sequence[BoundSide]) -> None:
        self._sides = sides
        self._ends = {side.name: (side.lower, side.upper) for side in sides}
        self.total: Integers | None = None  # Shape (columns, 4); None before a complete reading

    def ends(self, names: Sequence[str]) -> Floats:
        """Return lower and upper bounds of columns, shape (2, columns); nan where none count."""
        return np.array([self._ends.get(name, (np.nan, np.nan)) for name in names]).T

    def start(self) -> None:
        """Start a reading."""
        self._pending: list[Integers] = []

    def add(self, columns: Mapping[str, Floats], beyond: Beyond = _UNKNOWN, times: int = 1) -> None:
        """Count rows some times; see :func:`by_bounds` for `beyond`."""
        self._pending.append(times * by_bounds(self._sides, columns, beyond))

    def complete(self) -> None:
        """Let the counts be those of the rows that were read."""
        self.total = sum(self._pending, np.zeros((len(self._sides), 4), dtype=np.int64))


def by_bounds(
    sides: Sequence[BoundSide], columns: Mapping[str, Floats], beyond: Beyond = _UNKNOWN
) -> Integers:
    """Count rows below, between and above bounds, and incomplete ones, shape (sides, 4).

    `beyond` says of complete columns whether numbers may be below their bounds, and above.
    """
    counts = np.zeros((len(sides), 4), dtype=np.int64)
    for line, side in zip(counts, sides, strict=True):
        values, is_missing = columns[side.name], False
        if side.name in beyond:
            is_below, is_above = beyond[side.name]
        else:
            # A nan is smallest and largest, and neither within bounds nor beyond them.
            smallest = float(np.minimum.reduce(values, initial=np.inf))
            largest = float(np.maximum.reduce(values, initial=-np.inf))
            is_below, is_above = not smallest >= side.lower, not largest <= side.upper
            is_missing = smallest != smallest
        line[0] = np.count_nonzero(values < side.lower) if is_below else 0
        line[2] = np.count_nonzero(values > side.upper) if is_above else 0
        line[3] = np.count_nonzero(np.isnan(values)) if is_missing else 0
        line[1] = len(values) - line[[0, 2, 3]].sum()
    return counts


# A coin is one byte, so chances are multiples of 1/256.
FACES = 256
# Of the key from which the coins of partitions follow.
_KEY_WORDS: Final = 4


class Coins(Unshown):
    """Coins of numbered positions, thrown when a position first occurs and then kept.

    Each shows its first side with a chance of exactly ``heads/256``, independently of the other
    coins and of the rows.
    """

    def __init__(self, heads: int, entropy: Entropy) -> None:
        self._heads = heads
        self._key = b""
        self._entropy = entropy
        self._thrown = np.zeros(0, dtype=np.uint8)

    def by_partition(self, first: bool) -> Callable[[int], Side]:
        """Return a function that gives one side of a partition, on any worker the same."""
        self._key = self._key or _key_of(self._entropy)
        return partial(_side_of_partition, self._heads, self._key, first)

    def of(self, places: Array) -> NDArray[np.bool_]:
        """Return whether the coins at positions, from 0, show their first side."""
        n_missing = int(places.max(initial=-1)) + 1 - len(self._thrown)
        if n_missing > 0:
            # As many again as there are, so that few throws are of few coins.
            words = self._entropy.words(max(n_missing, len(self._thrown)) // 8 + 1)
            self._thrown = np.concatenate([self._thrown, words.view(np.uint8)])
        return np.asarray(self._thrown[places] < self._heads)


class Thinning(NamedTuple):
    """Coins that decide which rows are read, thrown anew in each reading, of partitions once.

    A row is read with a chance of exactly ``heads/256``, independently of the other rows and of
    all cells. Nothing of the other rows is converted.
    """

    heads: int
    entropy: Entropy

    def by_partition(self) -> Callable[[int], Thinning]:
        """Return a function that gives the coins of a partition, on any worker the same."""
        return partial(_thinning_of_partition, self.heads, _key_of(self.entropy))

    def expected(self, n_rows: int) -> int:
        """Return how many of so many rows are read, on average."""
        return n_rows * self.heads // FACES

    def of(self, chunk: Chunk) -> Chunk:
        """Return the rows of a chunk whose coins say so."""
        n_rows = len(next(iter(chunk.values())))
        coins = self.entropy.words(n_rows // 8 + 1).view(np.uint8)
        chosen = np.flatnonzero(coins[:n_rows] < self.heads)
        return {name: column[chosen] for name, column in chunk.items()}


class Side(NamedTuple):
    """One part of rows that coins split; the rows of a person stay together."""

    coins: Coins
    first: bool  # Which of the two

    def counted(
        self, at: int, n_rows: int, persons: Array | None, counted: NDArray[np.bool_] | None
    ) -> NDArray[np.bool_]:
        """Return a mask of the counted rows of this part, from a position on."""
        # Rows without a person have the number -1 and do not count.
        places = np.arange(at, at + n_rows) if persons is None else np.maximum(persons, 0)
        on_side = self.coins.of(places) == self.first
        return on_side if counted is None else np.asarray(on_side & counted)


def _key_of(entropy: Entropy) -> bytes:
    return entropy.words(_KEY_WORDS).tobytes()


def _thinning_of_partition(heads: int, key: bytes, number: int) -> Thinning:
    return Thinning(heads, derived(key, number))


def _side_of_partition(heads: int, key: bytes, first: bool, number: int) -> Side:
    return Side(Coins(heads, derived(key, number)), first)


_SALT_BYTES: Final = 16
_NONCE: Final = bytes(12)


class Checksum(Unshown):
    """A checksum of a partition: its number, and the parts of its rows in their order.

    Without a salt the places that the rows take are counted, and nothing else.
    """

    def __init__(self, salt: bytes, number: int) -> None:
        self._salt = salt
        self._digest = blake2b(number.to_bytes(8, "little"), key=salt, digest_size=_SALT_BYTES)
        self.n_rows = 0  # The places that the rows take
        self.is_read = False

    def add(self, n_rows: int, taken: int, columns: Iterable[Array | None]) -> None:
        """Add a part: its number of rows, the places they take, and what is used of them."""
        self.n_rows += taken
        if not self._salt:
            return
        self._digest.update(n_rows.to_bytes(8, "little"))
        for column in columns:
            self._digest.update(b"" if column is None else self._of_column(column))

    @property
    def value(self) -> int:
        """A number from 0 to 2**128 - 1, of what was read so far; 0 without a salt."""
        if not self._salt:
            return 0
        return int.from_bytes(self._digest.digest(), "little")

    def _of_column(self, column: Array) -> bytes:
        if column.dtype.itemsize != 8 or column.dtype == object:
            return cell_bytes(column)
        words = np.ascontiguousarray(column).view(np.uint8)
        return _tagger(self._salt).encrypt(_NONCE, b"", words.data)


@lru_cache(maxsize=4)
def _tagger(salt: bytes) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(salt)


class Readings(Unshown):
    """What the passes over rows of a cluster have in common.

    The statistics that wait are measured in the next pass, together.
    """

    def __init__(self) -> None:
        self.salt = secrets.token_bytes(_SALT_BYTES)
        self.waiting: list[Any] = []
        self._n_rows: int | None = None
        self._first: tuple[int, int] | None = None

    @property
    def n_read(self) -> int | None:
        """How many places the rows take, None before the first pass."""
        return None if self._first is None else self._first[0]

    def n_rows(self, count: Callable[[], int]) -> int:
        """Return how many places the rows take, counted once."""
        if self._n_rows is None:
            self._n_rows = count()
        return self._n_rows

    def require_same(self, n_rows: int, checksum: int) -> None:
        """Refuse rows that are not those of the first pass: a FrameError after the charge.

        A checksum of 0 stands for none.
        """
        first_rows, first = self._first or (n_rows, checksum)
        self._first = n_rows, first or checksum
        is_same = first_rows == n_rows and (checksum in (0, self._first[1]))
        if not is_same or self._n_rows not in (None, n_rows):
            raise FrameError(
                unfinished(
                    "the rows of the Dask DataFrame changed between two passes: pass rows that are "
                    "the same whenever they are computed, such as files or data.persist()"
                )
            )


# A choice: divisible by whole numbers up to 10 and by 60 in all.
SLOTS: Final = 5_040
# Steps of a weight are rounded, by less than this in places where it is whole.
_NEARLY: Final = 1e-4
_ROUND_DOWN: Final = 1 - 1e-9


@dataclass(frozen=True)
class SampledPlaces:
    """Public facts, and the released cap from which places follow; no row counts without one."""

    sampling: Sampling
    cap: float | None = None
    factors: tuple[float, ...] = ()  # of squares by stratum, where strata are used

    @property
    def facts(self) -> dict[str, str]:
        """Facts about the rows, as comparable texts."""
        cap = {} if self.cap is None else {"largest weight of a unit": repr(self.cap)}
        return {**self.sampling.facts, **cap}

    def shares(self, weights: Integers, totals: Integers) -> Floats:
        """Return places before they are rounded, shape (rows,)."""
        assert self.cap is not None
        cap = self.cap / self.sampling.upper * STEPS
        return np.asarray(weights * (SLOTS / np.maximum(totals, cap)))


def unit_strata(parts: Iterator[tuple[Part, Integers]], sampled: SampledPlaces) -> NDArray[np.intp]:
    """Return the stratum of each numbered unit, or -1; rows outside a subset have one too."""
    largest, n_units = np.iinfo(np.intp).max, 0
    strata = np.zeros(0, dtype=np.intp)
    for part, _ in parts:
        assert part.persons is not None
        n_units = max(n_units, int(part.persons.max(initial=-1)) + 1)
        room = max(n_units, 2 * len(strata)) - len(strata) if n_units > len(strata) else 0
        strata = np.pad(strata, (0, room), constant_values=largest)
        stratum = sampled.sampling.stratum(part.columns, part.rows)
        counted = sampled.sampling.weights(part.columns, part.rows) > 0
        np.minimum.at(strata, part.persons[counted], stratum[counted])
    strata = strata[:n_units]
    return np.where(strata < largest, strata, -1)


class UnitTotals(Unshown):
    """Sums of the weights of units, by number, and which of them have too many places."""

    def __init__(self, totals: Integers) -> None:
        self.totals = totals
        self._is_over = np.zeros(len(totals), dtype=np.bool_)

    def places(self, part: Part, weights: Integers, sampled: SampledPlaces) -> Integers:
        """Return the places that rows of sampling units take."""
        assert part.persons is not None
        shares = sampled.shares(weights, self.totals[part.persons])
        is_over = self._is_over[part.persons]
        rounded = np.floor(np.where(is_over, shares * _ROUND_DOWN, shares + _NEARLY))
        return np.asarray(rounded.astype(np.int64))

    def settle(self, parts: Iterator[tuple[Part, Integers]], sampled: SampledPlaces) -> None:
        """Find the units whose places, rounded up where they are nearly whole, are too many."""
        self._is_over[:] = False
        placed = ((part, self.places(part, weights, sampled)) for part, weights in parts)
        self._is_over = unit_sums(placed, len(self.totals)) > SLOTS


def unit_sums(parts: Iterator[tuple[Part, Integers]], n_units: int) -> Integers:
    """Add up numbers of rows, such as weights, by sampling unit."""
    totals = np.zeros(n_units, dtype=np.int64)
    for part, numbers in parts:
        assert part.persons is not None
        np.add.at(totals, part.persons, numbers)
    return totals


Weighted = Callable[[], Iterator[tuple[Part, Integers]]]


def sampled_parts(
    weighted: Weighted, totals: UnitTotals | None, sampled: SampledPlaces
) -> Iterator[Part]:
    """Yield the rows that take places under a released cap, sorted by how many they take."""
    for part, weights in weighted():
        if totals is None:
            shares = np.floor(sampled.shares(weights, weights) + _NEARLY)
            places = np.minimum(shares, SLOTS).astype(np.int64)
        else:
            places = totals.places(part, weights, sampled)
        order = np.argsort(places, kind="stable")[np.count_nonzero(places == 0) :]
        yield part._replace(counted=None, places=places).at(order)
