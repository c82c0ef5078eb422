"""Rows on their way: what is read of them, which count, and whose they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple, NoReturn, Self, cast

import numpy as np
from numpy.typing import NDArray

from dpmodels.codebook import Codebook
from dpmodels.design.columns import converted, read_rows
from dpmodels.errors import FrameError, PrivacyError
from dpmodels.formula.sides import Subset
from dpmodels.frames import RowSource, no_rows, open_rows, progress, require_declared
from dpmodels.frames.convert import level_names
from dpmodels.frames.dask_rows import DaskRows
from dpmodels.frames.persons import SECRET_BYTES, Persons
from dpmodels.frames.protocol import Chunk, Holds
from dpmodels.frames.require import require, require_levels
from dpmodels.noise import Entropy, source
from dpmodels.privacy import Adjacency
from dpmodels.typing import Floats

ONE_ROW: Final = Adjacency("replace")


class Part(NamedTuple):
    """Some rows: their columns as numbers, which count, the places they take, and whose they are.

    `counted` is None where all count, `places` where each takes one, and `persons` where they are
    nobody's; else persons have numbers from 0, and -1 is nobody. A row that does not count is as an
    incomplete one.
    """

    columns: Mapping[str, Floats]
    counted: NDArray[np.bool_] | None
    places: NDArray[Any] | None
    persons: NDArray[Any] | None = None

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(next(iter(self.columns.values())))

    @property
    def taken(self) -> int:
        """How many places they take in all."""
        return self.rows if self.places is None else int(self.places.sum())

    def cut(self, at: int, rows: int) -> Part:
        """Return so many of them from a place on."""
        span = slice(at, at + rows)
        return Part(
            {name: column[span] for name, column in self.columns.items()},
            None if self.counted is None else self.counted[span],
            None if self.places is None else self.places[span],
            None if self.persons is None else self.persons[span],
        )


@dataclass(frozen=True)
class Terms:
    """What is public of the rows of a question."""

    codebook: Codebook  # All that is read but the person
    subset: Subset | None = None
    neighbours: Adjacency = ONE_ROW
    undeclared: tuple[str, ...] = ()  # Columns that are read as names of levels nobody declared
    missing_ids: tuple[str, ...] = ()  # Canonical ids that stand for no person

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns that are read."""
        person = self.neighbours.person
        person_column = () if person is None else (person,)
        return tuple(dict.fromkeys((*self.codebook, *self.undeclared, *person_column)))

    @property
    def facts(self) -> dict[str, str]:
        """What is said of rows beside their formula, as texts that can be compared."""
        facts = {} if self.subset is None else {"subset": self.subset.text}
        neighbours = self.neighbours
        if neighbours.person is None:
            return facts
        missing = {"missing ids": repr(self.missing_ids)} if self.missing_ids else {}
        return {**facts, "person": neighbours.text, **missing}


def levels_of(name: str) -> str:
    """Return under what name a part has the levels that a column names."""
    return f"levels of {name}"


def asked_of(
    terms: Terms, neighbours: Adjacency, subset: Subset | None, missing_ids: tuple[str, ...] = ()
) -> Terms:
    """Return the terms of rows of which those of a subset count, each its person's."""
    subset_variables = {} if subset is None else dict(subset.codebook)
    return replace(
        terms,
        codebook=Codebook({**terms.codebook, **subset_variables}),
        subset=subset,
        neighbours=neighbours,
        missing_ids=missing_ids,
    )


def rows_of(terms: Terms) -> Rows:
    """Return no rows, to whose terms those of any holder are bound."""
    return Rows(no_rows(terms.variables), terms, bytes(SECRET_BYTES))


class Rows:
    """Rows of one holder; shows nothing of them."""

    __slots__ = ("_persons", "_secret", "_side", "_source", "_times", "terms")

    def __init__(self, source: RowSource, terms: Terms, secret: bytes, times: int = 1) -> None:
        self._source = source
        self.terms = terms
        self._secret = secret  # Draws among the rows of a person
        self._times = times  # How often each row stands, where rows are nobody's
        self._persons: Persons | None = None
        self._side: Side | None = None

    def __repr__(self) -> str:
        return "<Rows, not shown>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("rows cannot be pickled or copied")

    @property
    def recipe(self) -> Callable[[RowSource], Rows]:
        """How to ask the same of other rows; nothing of a row is in it."""
        return partial(Rows, terms=self.terms, secret=self._secret)

    def bound(self, data: object) -> Rows:
        """Return a user's rows, of which none is read.

        FrameError from the data and their column names.
        """
        source, neighbours = open_rows(data), self.terms.neighbours
        require_declared(source, self.terms.codebook)
        require_levels(source, self.terms.undeclared)
        if neighbours.person is not None:
            _require_persons(source, neighbours.person)
        secret = bytes(SECRET_BYTES) if neighbours.person is None else _drawn()
        bound = Rows(source, self.terms, secret)
        if neighbours.rows == "mean" and not (bound.rereadable or bound.scattered is not None):
            raise FrameError(
                'rows="mean" reads the data twice, to count the rows of each person, but an '
                "iterable of tables can be read only once; pass one DataFrame or the path of a "
                "Parquet file, or write rows=4 for the first four rows of a person"
            )
        return bound

    def sides(self, heads: int, entropy: Entropy) -> tuple[Rows, Rows]:
        """Part rows that can be read again by fresh coins: ``heads`` of 256 go to the first.

        A row of the other side is there, and does not count. The rows of a person go together.
        """
        coins, persons = Coins(heads, entropy), None
        if self.terms.neighbours.person is not None:
            persons = self._known()
        first, second = (self.standing(self._times) for _ in range(2))
        first._persons = second._persons = persons
        first._side, second._side = Side(coins, first=True), Side(coins, first=False)
        return first, second

    def standing(self, times: int) -> Rows:
        """Return the same rows, each as often as `times`; they are nobody's."""
        return Rows(self._source, self.terms, self._secret, times)

    @property
    def scattered(self) -> DaskRows | None:
        """The rows where they lie with the workers of a cluster, None where they can be read.

        Those of a person lie together.
        """
        if not isinstance(self._source, DaskRows):
            return None
        person = self.terms.neighbours.person
        if person is None:
            return self._source
        return self._source.together(person, self._secret, self.terms.missing_ids)

    @property
    def rereadable(self) -> bool:
        """Whether the rows can be read here several times."""
        return self._source.rereadable

    @property
    def nrows(self) -> int | None:
        """Number of rows, None where only reading them would tell; it may be private.

        Of persons it is the number of places they have, for which their column is read; it is None
        where their number is private.
        """
        neighbours = self.terms.neighbours
        if neighbours.person is None:
            n_rows = self._source.nrows
            return None if n_rows is None else n_rows * self._times
        if not (neighbours.n_public and self.rereadable):
            return None
        return self._known().number * neighbours.places

    def parts(self, *, count_public: bool) -> Iterator[Part]:
        """Read the rows once; `count_public` says whether progress may show how many there are.

        Of persons whose number is public as many rows are told of as they have places: those that
        their rows do not take come last, as rows that do not count.
        """
        at = 0
        for part in self._parts(count_public=count_public):
            if self._side is None:
                yield part
                continue
            counted = self._side.counted(at, part.rows, part.persons, part.counted)
            yield part._replace(counted=counted)
            at += part.rows

    def _parts(self, *, count_public: bool) -> Iterator[Part]:
        if self.terms.neighbours.person is not None:
            yield from self._of_persons()
            return
        for chunk in self._read(self.terms, self._source.nrows if count_public else None):
            columns = _columns(self.terms, chunk)
            counted = None if self.terms.subset is None else self.terms.subset.holds(columns)
            part = Part(columns, counted, None)
            often = None if self._times == 1 else np.full(part.rows, self._times)
            yield part._replace(places=often)

    def _of_persons(self) -> Iterator[Part]:
        """Read rows of persons; those of nobody and those that do not count are left out."""
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
            missing = {name: np.full(1, np.nan) for name in terms.codebook}
            missing |= {levels_of(name): np.full(1, None) for name in terms.undeclared}
            left = persons.number * neighbours.places - n_taken
            yield Part(missing, np.zeros(1, dtype=bool), np.array([left]), np.array([-1]))

    def _read(self, terms: Terms, total: int | None) -> Iterator[Chunk]:
        """Read columns, and whose the rows are where it is asked."""
        chunks = self._source.chunks(terms.variables, read_rows(len(self.terms.variables)))
        return progress(chunks, total=total, label="reading rows")

    def _counted(self, chunk: Chunk) -> NDArray[np.bool_]:
        """Return which rows the subset holds of, all where there is none."""
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
            neighbours.places, self._secret, even=neighbours.rows == "mean", missing=missing
        )


def _columns(terms: Terms, chunk: Chunk) -> dict[str, NDArray[Any]]:
    """Turn cells into numbers, and into names of levels that nobody declared."""
    levels = {levels_of(name): level_names(chunk[name]) for name in terms.undeclared}
    return {**converted(terms.codebook, chunk), **levels}


def _drawn() -> bytes:
    """Draw a secret, the same again in a simulation."""
    return bytes(source().words(SECRET_BYTES // 8).tobytes())


def _require_persons(source: RowSource, person: str) -> None:
    """Refuse a table whose column of persons is missing, or by its type names nobody."""
    require(source, (person,))
    kind = source.kind(person)
    if kind.holds < Holds.WHOLE:
        raise FrameError(
            f"column {person!r} is of type {kind.name}, but person={person!r} needs ids that are "
            "numbers or text; convert it, such as data[name].astype(str)"
        )


# What all holders of rows share: rows bound to a public question.


class BoundRows(ABC):
    """Rows and what is asked of them; a kind of it says what they become."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    @abstractmethod
    def of(self, rows: Rows) -> Self:
        """Return other rows on the same way."""

    def among(self, terms: Callable[[Terms], Terms]) -> Self:
        """Return the same of no rows, with other terms for those that are bound to it."""
        return self.of(rows_of(terms(self._rows.terms)))

    def bind(self, data: object) -> Self:
        """Return a user's rows bound alike, of which none is read.

        Raises
        ------
        FrameError
            From the data, their column names and types.
        """
        return self.of(self._rows.bound(data))

    def sides(self, heads: int, entropy: Entropy) -> tuple[Self, Self]:
        """Part the rows by fresh coins: a share of ``heads/256`` goes to the first side.

        Rows of the other side are there, and do not count.
        """
        first, second = self._rows.sides(heads, entropy)
        return self.of(first), self.of(second)

    def standing(self, times: int) -> Self:
        """Return the same rows, each as often as `times`: a table of as many is not made."""
        return self.of(self._rows.standing(times))

    @property
    def codebook(self) -> Codebook:
        """The declarations that are used."""
        return self._rows.terms.codebook

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns that are read."""
        return self._rows.terms.variables

    @property
    def scattered(self) -> DaskRows | None:
        """The rows where they lie with the workers of a cluster, None where they can be read."""
        return self._rows.scattered

    @property
    def nrows(self) -> int | None:
        """Number of rows, None where only reading them would tell; it may be private."""
        return self._rows.nrows

    @property
    def rereadable(self) -> bool:
        """Whether the rows can be read here several times."""
        return self._rows.rereadable


# Which rows stand on one side and which on the other: a coin for each place, or each person.
#
# A coin belongs to a position in the source, so a row must have the same position in every pass. A
# source that can be read again sees to it: a file that was written or replaced since it was opened
# is an error, and so is a table in memory whose number of rows changed; of persons, whose coins
# follow their ids, a digest is compared. What can be read once is refused before the charge.

# A byte decides: shares are whole numbers of them.
FACES = 256


class Coins:
    """Coins of numbered places, thrown when a place first comes and kept from then on.

    Each falls on its first side with a chance of ``heads/256``, exactly, by itself and whatever the
    rows are.
    """

    __slots__ = ("_entropy", "_heads", "_thrown")

    def __init__(self, heads: int, entropy: Entropy) -> None:
        self._heads = heads
        self._entropy = entropy
        self._thrown = np.zeros(0, dtype=np.uint8)

    def __repr__(self) -> str:
        return "<Coins, not shown>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("coins that split rows cannot be pickled or copied")

    def of(self, places: NDArray[Any]) -> NDArray[np.bool_]:
        """Return how the coins of places, numbers from 0, fell."""
        n_missing = int(places.max(initial=-1)) + 1 - len(self._thrown)
        if n_missing > 0:
            # As many again as there are, so that few throws are of few coins.
            words = self._entropy.words(max(n_missing, len(self._thrown)) // 8 + 1)
            self._thrown = np.concatenate([self._thrown, words.view(np.uint8)])
        return np.asarray(self._thrown[places] < self._heads)


class Side(NamedTuple):
    """One side of rows that coins part; those of a person fall together."""

    coins: Coins
    first: bool  # Which of the two

    def counted(
        self, at: int, rows: int, persons: NDArray[Any] | None, counted: NDArray[np.bool_] | None
    ) -> NDArray[np.bool_]:
        """Return which of so many rows from a place on stand here, of those that count."""
        # Nobody has the number -1, and does not count.
        places = np.arange(at, at + rows) if persons is None else np.maximum(persons, 0)
        on_side = self.coins.of(places) == self.first
        return on_side if counted is None else np.asarray(on_side & counted)
