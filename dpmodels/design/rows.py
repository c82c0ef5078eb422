"""Rows on their way: what is read of them, which count, and whose they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpmodels.codebook import Codebook
from dpmodels.design.columns import converted, read_rows
from dpmodels.errors import FrameError, PrivacyError
from dpmodels.formula.subset import Subset
from dpmodels.frames import RowSource, no_rows, open_rows, progress, require_declared
from dpmodels.frames.dask_rows import DaskRows
from dpmodels.frames.level_names import level_names
from dpmodels.frames.persons import Persons
from dpmodels.frames.require import require, require_levels
from dpmodels.privacy import Adjacency
from dpmodels.typing import Floats, Integers

ONE_ROW: Final = Adjacency("replace")


class Part(NamedTuple):
    """Some rows: their columns as numbers, which count, the places they take, and whose they are.

    `counted` is None where all count, `places` where each takes one, and `persons` where they are
    nobody's; else persons have numbers from 0, and -1 is nobody. A row that does not count is as an
    incomplete one.
    """

    columns: Mapping[str, Floats]
    counted: NDArray[np.bool_] | None
    places: Integers | None
    persons: Integers | None = None

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
        here = slice(at, at + rows)
        return Part(
            {name: own[here] for name, own in self.columns.items()},
            None if self.counted is None else self.counted[here],
            None if self.places is None else self.places[here],
            None if self.persons is None else self.persons[here],
        )


@dataclass(frozen=True)
class Terms:
    """What is public of the rows of a question."""

    codebook: Codebook  # All that is read but the person
    subset: Subset | None = None
    neighbours: Adjacency = ONE_ROW
    named: tuple[str, ...] = ()  # Columns that are read as names of levels nobody declared

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns that are read."""
        person = self.neighbours.person
        more = () if person is None else (person,)
        return tuple(dict.fromkeys((*self.codebook, *self.named, *more)))

    @property
    def facts(self) -> dict[str, str]:
        """What is said of rows beside their formula, as texts that can be compared."""
        said = {} if self.subset is None else {"subset": self.subset.text}
        own = self.neighbours
        return said if own.person is None else {**said, "person": own.text}


def levels_of(name: str) -> str:
    """Return under what name a part has the levels that a column names."""
    return f"levels of {name}"


def asked_of(terms: Terms, neighbours: Adjacency, subset: Subset | None) -> Terms:
    """Return the terms of rows of which those of a subset count, each its person's."""
    more = {} if subset is None else dict(subset.codebook)
    book = Codebook({**terms.codebook, **more})
    return replace(terms, codebook=book, subset=subset, neighbours=neighbours)


def rows_of(terms: Terms) -> Rows:
    """Return no rows, to whose terms those of any holder are bound."""
    return Rows(no_rows(terms.variables), terms)


class Rows:
    """Rows of one holder; shows nothing of them."""

    __slots__ = ("_persons", "_source", "terms")

    def __init__(self, source: RowSource, terms: Terms) -> None:
        self._source = source
        self.terms = terms
        self._persons: Persons | None = None

    def __repr__(self) -> str:
        return "<Rows, not shown>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("rows cannot be pickled or copied")

    def of(self, source: RowSource) -> Rows:
        """Return other rows, of which the same is asked."""
        return Rows(source, self.terms)

    def bound(self, data: object) -> Rows:
        """Return a user's rows, of which none is read.

        FrameError from the data and their column names.
        """
        source, own = open_rows(data), self.terms.neighbours
        require_declared(source, self.terms.codebook)
        require_levels(source, self.terms.named)
        if own.person is not None:
            require(source, (own.person,))
        found = self.of(source)
        if own.rows == "mean" and not (found.rereadable or found.scattered):
            raise FrameError(
                'rows="mean" reads the rows twice, as it has to know how many a person has, and '
                "an iterable of tables can be read once: give one DataFrame, write the tables to "
                "one Parquet file and give its path, or write rows=4 for a person's first four"
            )
        return found

    @property
    def scattered(self) -> DaskRows | None:
        """The rows where they lie with the workers of a cluster, None where they can be read."""
        return self._source if isinstance(self._source, DaskRows) else None

    @property
    def rereadable(self) -> bool:
        """Whether the rows can be read here several times."""
        return self.scattered is None and self._source.rereadable

    @property
    def nrows(self) -> int | None:
        """Number of rows, None where only reading them would tell; it may be private.

        Of persons it is the number of places they have, for which their column is read; it is None
        where their number is private.
        """
        own = self.terms.neighbours
        if own.person is None:
            return self._source.nrows
        if not (own.n_public and self.rereadable):
            return None
        return self._known().number * own.places

    def parts(self, *, count_public: bool) -> Iterator[Part]:
        """Read the rows once; `count_public` says whether progress may show how many there are.

        Of persons whose number is public as many rows are told of as they have places: those that
        their rows do not take come last, as rows that do not count.
        """
        terms, own = self.terms, self.terms.neighbours
        shown = self._source.nrows if count_public and own.person is None else None
        known = self._known() if own.person is not None and self.rereadable else None
        persons, taken = known or self._new(), 0
        for columns, cells in self._read(terms, "reading rows", shown):
            counted = None if terms.subset is None else terms.subset.holds(columns)
            if own.person is None:
                yield Part(columns, counted, None)
                continue
            rows = np.ones(len(cells), dtype=bool) if counted is None else counted
            places = persons.first(cells, rows) if known is None else persons.taken(cells, rows)
            part = Part(columns, counted, places, persons.numbers(cells))
            taken += part.taken
            yield part
        if own.person is not None and own.n_public:
            missing = {name: np.full(1, np.nan) for name in terms.codebook}
            missing |= {levels_of(name): np.full(1, None) for name in terms.named}
            left = persons.number * own.places - taken
            yield Part(missing, np.zeros(1, dtype=bool), np.array([left]), np.array([-1]))

    def _read(
        self, terms: Terms, label: str, shown: int | None
    ) -> Iterator[tuple[Mapping[str, Floats], NDArray[Any]]]:
        """Read columns as numbers, and whose the rows are where it is asked."""
        person, wanted = terms.neighbours.person, terms.variables
        chunks = self._source.chunks(wanted, read_rows(len(wanted)))
        for chunk in progress(chunks, total=shown, label=label):
            cells = np.zeros(0) if person is None else np.asarray(chunk[person])
            named = {levels_of(name): level_names(chunk[name]) for name in terms.named}
            yield {**converted(terms.codebook, chunk), **named}, cells

    def _known(self) -> Persons:
        """Return how many rows each person has, counted once."""
        if self._persons is None:
            self._persons, own = self._new(), self.terms.subset
            book = Codebook() if own is None else own.codebook
            terms = replace(self.terms, codebook=book, named=())
            for columns, cells in self._read(terms, "counting rows of persons", None):
                rows = np.ones(len(cells), dtype=bool) if own is None else own.holds(columns)
                self._persons.count(cells, rows)
        self._persons.again()
        return self._persons

    def _new(self) -> Persons:
        own = self.terms.neighbours
        return Persons(own.places, even=own.rows == "mean")
