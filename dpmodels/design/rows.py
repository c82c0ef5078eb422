"""Rows as they are read: their columns, which of them count, and their persons."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from dpmodels.codebook import Codebook, of_variables
from dpmodels.design.columns import as_often, converted, read_rows
from dpmodels.design.parts import (
    FACES,
    MOST_BYTES,
    SLOTS,
    BoundCounts,
    Checksum,
    Coins,
    KeptParts,
    Part,
    Readings,
    SampledPlaces,
    Side,
    Thinning,
    UnitTotals,
    Unshown,
    sampled_parts,
    unit_strata,
    unit_sums,
)
from dpmodels.design.sql import MANY_GROUPS, grouping
from dpmodels.errors import FrameError
from dpmodels.formula.sides import Subset
from dpmodels.frames import RowSource, no_rows, open_rows, progress, require_declared, to_float
from dpmodels.frames.columns import require, require_levels
from dpmodels.frames.convert import level_names
from dpmodels.frames.dask_rows import DaskRows, Sums
from dpmodels.frames.engine import Engine, GroupedSource, groups_rows
from dpmodels.frames.open import warn_if_synthetic
from dpmodels.frames.persons import SECRET_BYTES, Persons
from dpmodels.frames.protocol import Chunk, Holds, before_charge
from dpmodels.frames.sql_table import DatabaseRows, SelectedRows, in_one_order
from dpmodels.noise import Entropy, source
from dpmodels.privacy import Adjacency
from dpmodels.typing import Array, Integers

ONE_ROW: Final = Adjacency("replace")


@dataclass(frozen=True)
class Terms:
    """Public facts about the rows of a request."""

    codebook: Codebook  # All columns that are read, without the person
    subset: Subset | None = None
    neighbours: Adjacency = ONE_ROW
    undeclared: tuple[str, ...] = ()  # Columns whose levels are undeclared
    missing_ids: tuple[str, ...] = ()  # Canonical ids that mean no person
    sampled: SampledPlaces | None = None  # Of a survey design whose rows take places by weight

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns that are read."""
        person = self.neighbours.person
        person_column = () if person is None else (person,)
        return tuple(dict.fromkeys((*self.codebook, *self.undeclared, *person_column)))

    @property
    def facts(self) -> dict[str, str]:
        """Facts about the rows besides their formula, as comparable texts."""
        facts = {} if self.subset is None else {"subset": self.subset.text}
        facts |= {} if self.sampled is None else self.sampled.facts
        neighbours = self.neighbours
        if neighbours.person is None:
            return facts
        missing = {"missing ids": repr(self.missing_ids)} if self.missing_ids else {}
        return {**facts, "person": neighbours.text, **missing}


def levels_of(name: str) -> str:
    """Return the name under which a part has the undeclared levels of a column."""
    return f"levels of {name}"


def requested_of(
    terms: Terms,
    neighbours: Adjacency,
    subset: Subset | None,
    missing_ids: tuple[str, ...] = (),
    sampled: SampledPlaces | None = None,
) -> Terms:
    """Return the same terms with a subset, persons and places by weight."""
    variables = dict(terms.codebook)
    variables |= {} if subset is None else subset.codebook
    variables |= {} if sampled is None else sampled.sampling.codebook
    return replace(
        terms,
        codebook=of_variables(variables),
        sampled=sampled,
        subset=subset,
        neighbours=neighbours,
        missing_ids=missing_ids,
    )


def rows_of(terms: Terms) -> Rows:
    """Return empty rows with these terms, to which data can be bound."""
    return Rows(no_rows(terms.variables), terms, bytes(SECRET_BYTES))


class Rows(Unshown):
    """Rows of one data source; its repr shows none of them."""

    def __init__(
        self,
        source: RowSource,
        terms: Terms,
        secret: bytes,
        times: int = 1,
        by_partition: Callable[[int], Side | Thinning] | None = None,
    ) -> None:
        self.source, self.terms = source, terms
        self.secret = secret  # Draws among the rows of a person
        self.times = times  # How often each row counts, without persons
        self._by_partition = by_partition
        self._untaken = 0  # Places of persons of other sites, whose number is public
        self._persons: Persons | None = None
        self._side: Side | None = None
        self.thinning: Thinning | None = None  # Where coins choose the rows
        self._checksum: Checksum | None = None  # Of a partition, before it is read
        self._groups: list[Part] | None = None
        self._totals: UnitTotals | None = None  # Of a survey design with sampling units
        self.readings = Readings()  # Of rows on workers
        self.kept: KeptParts | None = None  # Of the last request that reads them several times
        self.counter: BoundCounts | None = None  # That a reading of all rows may add them to

    @property
    def recipe(self) -> Callable[[RowSource], Rows]:
        """A function that binds the rows of a partition in the same way; it holds no row."""
        selection = self._by_partition
        if self._side is not None:
            selection = self._side.coins.by_partition(self._side.first)
        return partial(Rows, terms=self.terms, secret=self.secret, by_partition=selection)

    def bound(self, data: object) -> Rows:
        """Bind a user's data without reading a row.

        FrameError from the data and their column names.
        """
        warn_if_synthetic(data)
        source, neighbours = open_rows(data), self.terms.neighbours
        require_declared(source, self.terms.codebook)
        if self.terms.undeclared:
            require_levels(source, self.terms.undeclared)
        if neighbours.person is not None:
            person = neighbours.person
            require(source, (person,))
            kind = source.kind(person)
            if kind.holds < Holds.WHOLE:
                raise FrameError(
                    f"column {person!r} is of type {kind.name}, but person={person!r} needs ids "
                    "that are numbers or text; convert it, such as data[name].astype(str)"
                )
            source = in_one_order(source, self.terms.variables)
        secret = bytes(SECRET_BYTES) if neighbours.person is None else _new_secret()
        bound = Rows(source, self.terms, secret)
        once = not bound.rereadable or bound.scattered is not None
        if self.terms.sampled is not None and once:
            raise FrameError(
                "a survey design needs rows in one place that can be read several times, first for "
                "their weights: pass one DataFrame or the path of a Parquet file"
            )
        if neighbours.rows == "mean":
            more = ", or write rows=4 for the first four rows of a person"
            bound.require_passes(more, 'rows="mean"')
        return bound

    def require_passes(self, otherwise: str = "", reader: str = "this mechanism") -> None:
        """Refuse rows that can be read only once, before one is read: a FrameError."""
        if not self.rereadable:
            raise FrameError(
                f"{reader} reads the data several times, but an iterable of tables can be read "
                f"only once; pass one DataFrame or the path of a Parquet file{otherwise}"
            )

    def sides(self, heads: int, entropy: Entropy) -> tuple[Rows, Rows]:
        """Split rereadable rows at random: each goes to the first part with chance ``heads/256``.

        Rows of the other part do not count. The rows of a person stay together.
        """
        self.source = in_one_order(self.source, self.terms.variables)
        coins, persons = Coins(heads, entropy), None
        if self.terms.neighbours.person is not None and self.scattered is None:
            persons = self._known()
        first, second = (self.standing(self.times) for _ in range(2))
        first._persons = second._persons = persons
        first._side, second._side = Side(coins, first=True), Side(coins, first=False)
        return first, second

    @property
    def is_plain(self) -> bool:
        """Whether each row counts by itself, in no database; it follows from public facts."""
        terms, source = self.terms, self.source
        is_database = isinstance(source, DatabaseRows) and source.engine is not None
        is_alone = terms.neighbours.person is None and terms.sampled is None and not self._untaken
        return is_alone and not is_database and self.rereadable and self._side is None

    @property
    def can_be_thinned(self) -> bool:
        """Whether rows can be read at random; lazy ones if they do not fit in memory."""
        is_lazy = isinstance(self.source, DatabaseRows)
        n_bytes = 8 * (self.nrows or 0) * len(self.terms.variables) if is_lazy else MOST_BYTES + 1
        return self.is_plain and n_bytes > MOST_BYTES

    def thinned(self, heads: int, entropy: Entropy) -> Rows:
        """Return rows of which each is read with chance ``heads/256``; see :class:`Thinning`.

        Rows that count many times count that many times less instead, as far as whole numbers do.
        """
        if self.times > 1:
            return self.standing(max(round(self.times * heads / FACES), 1))
        rows = self.standing(1)
        rows.thinning = Thinning(heads, entropy)
        if self.scattered is not None:
            rows._by_partition, rows.readings = rows.thinning.by_partition(), Readings()
        return rows

    def standing(self, times: int) -> Rows:
        """Return the same rows, each counted `times` times, without persons."""
        rows = Rows(self.source, self.terms, self.secret, times)
        rows.counter, rows.readings = self.counter, self.readings
        return rows

    @property
    def counting(self) -> BoundCounts | None:
        """What a reading adds the rows to; None where it has them, or where not all rows count."""
        is_whole = self.thinning is None and self._side is None and self.times == 1
        counter = self.counter if is_whole else None
        return None if counter is None or counter.total is not None else counter

    def drawn_by(self, secret: bytes) -> Rows:
        """Return the same rows, of which a secret draws those of a person that count."""
        return Rows(self.source, self.terms, secret, self.times)

    def beside(self, places: int) -> Rows:
        """Return the same rows of persons beside so many places that no row takes."""
        rows = Rows(self.source, self.terms, self.secret)
        rows._untaken = places
        return rows

    def capped(self, cap: float, factors: tuple[float, ...] = ()) -> Rows:
        """Return rows of a survey design with the places that follow from a released cap."""
        assert self.terms.sampled is not None
        sampled = replace(self.terms.sampled, cap=cap, factors=factors)
        capped = Rows(self.source, replace(self.terms, sampled=sampled), self.secret)
        capped._persons = self._persons
        if self._totals is not None:
            capped._totals = UnitTotals(self._totals.totals)
            capped._totals.settle(capped._weighted(), sampled)
        return capped

    def unit_weights(self) -> Iterator[Integers]:
        """Yield the total weights of units of a survey design, in steps, each once."""
        if self.terms.neighbours.person is None:
            for _, weights in self._weighted():
                yield weights
            return
        if self._totals is None:
            self._totals = UnitTotals(unit_sums(self._weighted(), self._known().number))
        yield self._totals.totals

    def unit_strata(self) -> NDArray[np.intp]:
        """Return the strata of the units of a survey design."""
        assert self.terms.sampled is not None
        return unit_strata(self._weighted(), self.terms.sampled)

    def _weighted(self) -> Iterator[tuple[Part, Integers]]:
        """Read rows of a survey design once, with their units and weights."""
        sampled, at = self.terms.sampled, 0
        assert sampled is not None
        is_unit = self.terms.neighbours.person is None  # Whether each row is one
        chunks = map(self._as_part, self._read(self.terms, None))
        for part in chunks if is_unit else self._of_persons():
            if is_unit:
                part = part._replace(persons=np.arange(at, at + part.rows))
                at += part.rows
            weights = sampled.sampling.weights(part.columns, part.rows)
            if part.persons is None or part.rows != 1 or int(part.persons[0]) >= 0:
                yield part, weights if part.counted is None else np.where(part.counted, weights, 0)

    def keep(self, key: object, scaling: object = None) -> KeptParts:
        """Keep what readings give to a request, in memory; `key` stands for what they are.

        And integers of the rows by a scaling.
        """
        if self.kept is None or self.kept.key is not key:
            is_counted = self.terms.neighbours.n_public and self.scattered is None
            n_rows = self.source.nrows if is_counted else None
            if n_rows and self.thinning is not None:
                n_rows = self.thinning.expected(n_rows)
            self.kept = KeptParts(key, n_rows, scaling)
        return self.kept

    @property
    def scattered(self) -> DaskRows | None:
        """The rows of a Dask DataFrame, which stay with the workers; None for local rows.

        The rows of a person are on one worker.
        """
        if not isinstance(self.source, DaskRows):
            return None
        person = self.terms.neighbours.person
        if person is None:
            return self.source
        return self.source.together(person, self.secret, self.terms.missing_ids)

    def in_partition(self, number: int, checksum: Checksum | None) -> None:
        """Say which partition the rows are, and what to add them to when they are read first."""
        self._checksum = checksum
        selection = None if self._by_partition is None else self._by_partition(number)
        if isinstance(selection, Thinning):
            self.thinning = selection
        else:
            self._side = selection

    @property
    def is_reread(self) -> bool:
        """Whether a request reads the rows several times."""
        return self.kept is not None or self._side is not None

    @property
    def rereadable(self) -> bool:
        """Whether the rows can be read several times."""
        return self.source.rereadable

    @property
    def grouped(self) -> GroupedSource | None:
        """The database that groups equal rows; None where rows are read one by one.

        It follows from public facts. Persons and coins need the rows themselves.
        """
        terms, source = self.terms, self.source
        is_alone = terms.neighbours.person is None and terms.sampled is None and not self._side
        if not is_alone or not groups_rows(source):
            return None
        return grouping(source, terms.codebook, terms.undeclared)

    @property
    def database(self) -> Engine | None:
        """PostgreSQL, if each row of a table counts once; it follows from public facts."""
        neighbours, subset, source = self.terms.neighbours, self.terms.subset, self.source
        is_whole = neighbours.person is None and subset is None and self._side is None
        is_whole = is_whole and self.terms.sampled is None
        if not (is_whole and self.times == 1 and isinstance(source, DatabaseRows)):
            return None
        engine = source.engine
        is_exact = engine is not None and engine.dialect == "postgresql" and engine.is_snapshot
        return engine if is_exact else None

    @property
    def is_streamed(self) -> bool | None:
        """Whether a database gives each row; None if the rows are in none."""
        if not isinstance(self.source, DatabaseRows) or self.source.engine is None:
            return None
        return self.grouped is None

    def in_levels(self, query: str, n_factors: int) -> Rows:
        """Return the rows as levels of factors, named by number, that a query counts."""
        assert self.database is not None
        return _LevelRows(self, self.database, query, n_factors)

    def queried(self, sql: str) -> Rows:
        """Return the rows of a query for the columns that are read."""
        assert self.database is not None
        query = SelectedRows(self.database, self.terms.variables, sql)
        return Rows(query, self.terms, self.secret)

    @property
    def nrows(self) -> int | None:
        """Number of rows, None if the rows have to be read for it; it may be private.

        With persons it is the number of their places, for which their column is read, or None if
        the number of persons is private. On workers they are counted where the number is public.
        """
        neighbours = self.terms.neighbours
        if self.terms.sampled is not None and neighbours.person is not None:
            return self._known().number * SLOTS if neighbours.n_public else None
        if self.scattered is not None:
            return self._counted_on_workers() if neighbours.n_public else None
        if neighbours.person is None:
            n_rows = self.source.nrows
            times = self.times if self.terms.sampled is None else SLOTS
            return None if n_rows is None else n_rows * times
        if not (neighbours.n_public and self.rereadable):
            return None
        return self._known().number * neighbours.places + self._untaken

    def _counted_on_workers(self) -> int:
        """Count the rows, or the places of persons, before anything is charged."""
        source, (person, subset) = self.scattered, (self.terms.neighbours.person, self.terms.subset)
        assert source is not None

        def count() -> int:
            if person is None:
                return source.nrows
            columns = () if subset is None else tuple(subset.codebook)
            measure = partial(_places_of_partition, self.recipe)
            return source.summed((*columns, person), measure, count_public=False).n_rows

        try:
            return self.readings.n_rows(count) * self.times
        except FrameError as error:
            message = before_charge(error)
        raise FrameError(message)

    def parts(self) -> Iterator[Part]:
        """Read the rows once; progress shows how many there are where that is public.

        If the number of persons is public, the places that their rows do not take come last, as
        rows that do not count.
        """
        at, checksum = 0, self._checksum
        self._checksum = None
        if checksum is not None:
            checksum.is_read = True
        for part in self._parts():
            if checksum is not None:
                columns = (*part.columns.values(), part.counted, part.places, part.persons)
                checksum.add(part.rows, part.taken, columns)
            if self._side is None:
                yield part
                continue
            counted = self._side.counted(at, part.rows, part.persons, part.counted)
            yield part._replace(counted=counted)
            at += part.rows

    def _parts(self) -> Iterator[Part]:
        if self.terms.sampled is not None:
            # Read rows with their places; where the number of units is public, then what is left.
            terms, n_taken = self.terms, 0
            assert terms.sampled is not None
            for part in sampled_parts(self._weighted, self._totals, terms.sampled):
                n_taken += part.taken
                yield part
            if terms.neighbours.n_public:
                yield self._left_over((self.nrows or 0) - n_taken)
            return
        if self.terms.neighbours.person is not None:
            yield from self._of_persons()
            return
        if (source := self.grouped) is not None:
            yield from self._of_groups(source)
            return
        n_rows = self.source.nrows if self.terms.neighbours.n_public else None
        for chunk in self._read(self.terms, n_rows):
            if self.thinning is not None:
                chunk = self.thinning.of(chunk)
            part = self._as_part(chunk)
            often = None if self.times == 1 else np.full(part.rows, self.times)
            yield part._replace(places=often)

    def _of_groups(self, source: GroupedSource) -> Iterator[Part]:
        """Read each distinct row once; it counts as often as it occurs.

        The groups are kept for later passes if they are few.
        """
        if self._groups is not None:
            yield from self._groups
            return
        first, number = list[Part](), 0
        for number, (chunk, counts) in enumerate(
            source.groups(self.terms.variables, MANY_GROUPS), start=1
        ):
            rows, times = as_often(counts * self.times)
            part = self._as_part(chunk).at(rows)._replace(places=times)
            first = [part] if number == 1 else []
            yield part
        if number <= 1:
            self._groups = first

    def _as_part(self, chunk: Chunk) -> Part:
        """Convert a chunk, and say which of its rows are in the subset."""
        columns, subset = _columns(self.terms, chunk), self.terms.subset
        return Part(columns, None if subset is None else subset.holds(columns), None)

    def _of_persons(self) -> Iterator[Part]:
        """Read rows of persons, without rows that have no person or do not count."""
        terms, neighbours = self.terms, self.terms.neighbours
        known_persons = self._known() if self.rereadable else None
        persons, n_taken = known_persons or self._new(), 0
        for chunk in self._read(terms, None):
            cells = chunk[cast("str", neighbours.person)]
            those = (persons.first if known_persons is None else persons.taken)(
                cells, self._counted(chunk)
            )
            columns = _columns(terms, {name: column[those.rows] for name, column in chunk.items()})
            part = Part(columns, None, those.places, those.persons)
            n_taken += part.taken
            yield part
        if known_persons is not None:
            known_persons.require_same()
        if neighbours.n_public:
            places = persons.number * neighbours.places + self._untaken
            yield self._left_over(places - n_taken)

    def _left_over(self, places: int) -> Part:
        """Return places that no row takes, as a row that does not count."""
        missing: dict[str, Array] = {name: np.full(1, np.nan) for name in self.terms.codebook}
        missing |= {levels_of(name): np.full(1, None) for name in self.terms.undeclared}
        return Part(missing, np.zeros(1, dtype=bool), np.array([places]), np.array([-1]))

    def _read(self, terms: Terms, total: int | None) -> Iterator[Chunk]:
        chunks = self.source.chunks(terms.variables, read_rows(len(self.terms.variables)))
        return progress(chunks, total=total, label="reading rows")

    def _counted(self, chunk: Chunk) -> NDArray[np.bool_]:
        subset = self.terms.subset
        if subset is None:
            return np.ones(len(next(iter(chunk.values()))), dtype=bool)
        return subset.holds(converted(subset.codebook, chunk))

    def _known(self) -> Persons:
        """Return how many rows each person has, counted once."""
        if self._persons is None:
            self._persons, subset = self._new(), self.terms.subset
            book = Codebook() if subset is None else subset.codebook
            for chunk in self._read(replace(self.terms, codebook=book, undeclared=()), None):
                cells = chunk[cast("str", self.terms.neighbours.person)]
                self._persons.count(cells, self._counted(chunk))
        self._persons.again()
        return self._persons

    def _new(self) -> Persons:
        neighbours = self.terms.neighbours
        missing = self.terms.missing_ids
        return Persons(
            neighbours.places, self.secret, even=neighbours.rows == "mean", missing=missing
        )


def _places_of_partition(recipe: Callable[[RowSource], Rows], source: RowSource, _: int) -> Sums:
    """Count the places of the persons in a partition, on a worker."""
    return Sums((), (), recipe(source).nrows or 0, 0)


class _LevelRows(Rows):
    """Rows as levels of factors, counted by a database."""

    def __init__(self, rows: Rows, engine: Engine, query: str, n_factors: int) -> None:
        super().__init__(rows.source, rows.terms, rows.secret)
        self._engine = engine
        self._query = query
        self._names = tuple(map(str, range(n_factors)))

    def _parts(self) -> Iterator[Part]:
        for chunk in self._engine.chunks(self._query, (*self._names, "counts"), MANY_GROUPS):
            levels = {name: to_float(chunk[name]) for name in self._names}
            rows, times = as_often(np.asarray(chunk["counts"], dtype=np.int64))
            yield Part(levels, None, None).at(rows)._replace(places=times)


def _columns(terms: Terms, chunk: Chunk) -> dict[str, Array]:
    levels = {levels_of(name): level_names(chunk[name]) for name in terms.undeclared}
    return {**converted(terms.codebook, chunk), **levels}


def _new_secret() -> bytes:
    """Draw a secret, repeatable inside a simulation."""
    return bytes(source().words(SECRET_BYTES // 8).tobytes())
