"""The ingestion invariant, brute force on small tables.

For all raw inputs that differ in one record, as its writer means it, the private design differs
in at most one row, or in one person. A table is refused together with all its neighbours, in the
same words; otherwise the public number is the number of records or of persons, and the multisets
of what rows or persons contribute differ by one element.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from ingestion_cases import CELLS, IDS, INFERRED_CELLS, LEVELS, NOTES, TEXT_CELLS, TEXT_OTHERS
from ingestion_sources import Record, Records, Schema, Source

import dpmodels as dp
from dpmodels.errors import DPModelsError
from dpmodels.frames import open_rows
from dpmodels.frames.convert import level_names
from dpmodels.sites import Parties, Witness, gathered

Contribution = Any
COLUMNS = {**CELLS, **INFERRED_CELLS}


class Observed(NamedTuple):
    """What is public of a table, and what its rows or persons contribute."""

    n: int | None = None
    contributions: Mapping[Contribution, int] = MappingProxyType({})
    refusal: str = ""


class Unit(NamedTuple):
    """Between whom nobody can tell, in the words of a call."""

    adjacency: str
    rows: Any = None  # Most rows of a person; None where rows are protected

    @property
    def words(self) -> dict[str, Any]:
        person = {} if self.rows is None else {"person": "id", "rows": self.rows}
        return {"adjacency": self.adjacency, **person}


ROWS = Unit("replace")
ROWS_ADDED = Unit("add-remove")
PERSONS = Unit("replace", 2)
PERSONS_ADDED = Unit("add-remove", 1)


class Reached(Exception):
    """A verb has bound its rows, and is stopped before it charges."""


class Observer(Witness):
    """Reads the private design of a call; of rows with workers, their exact statistic."""

    def __init__(self) -> None:
        self.private: Sequence[Any] = ()
        self.statistics: Sequence[Any] = ()

    def planned(self, spec: Any, choice: Any, private: Sequence[Any], events: Any) -> None:
        if all(design.scattered is None for design in private):
            self.private = private
            raise Reached

    def measured(self, joint: Any, statistics: Sequence[Any]) -> None:
        self.statistics = statistics
        raise Reached


class Table(NamedTuple):
    """How records are read: a source in a folder, a column by a verb, a unit of protection."""

    source: Source
    folder: Path
    column: str
    unit: Unit
    schema: Schema

    def observed(self, records: Records) -> Observed:
        """Return the private design of records, or how they are refused."""
        observer, cells = Observer(), COLUMNS[self.column]
        data = self.source.make(records, self.schema, self.folder)
        parties: Any = Parties(("",), (data,))
        if self.source.sites:
            parties = gathered(None, data, "pooled")
        book = dp.codebook(cell=cells.declared)
        try:
            # The secret by which rows of a person are drawn is the same for neighbours.
            with dp.simulation(seed=1):
                verb = getattr(dp, cells.verb)
                parties = replace(parties, witness=observer)
                verb(cells.formula, parties, codebook=book, eps=1e9, **self.unit.words)
        except DPModelsError as error:
            return Observed(refusal=f"{type(error).__name__}: {error}")
        except Reached:
            pass
        if observer.statistics:
            return _of_statistic(observer.statistics[0], self.unit)
        return _of_design(observer.private, self.unit)


def _of_statistic(statistic: Any, unit: Unit) -> Observed:
    exact, places = statistic.cross()
    cells = Counter(dict(enumerate(np.asarray(exact).ravel().tolist())))
    if unit.adjacency != "replace":
        return Observed(None, cells)
    cells["incomplete"] = places - cells.total()
    return Observed(places // (unit.rows or 1), cells)


def _of_design(private: Sequence[Any], unit: Unit) -> Observed:
    public = unit.adjacency == "replace"
    rows = [
        (site, row)
        for site, design in enumerate(private)
        for part in design.parts()
        for row in _rows(part)
    ]
    if unit.rows is None:
        cells: Counter[Any] = Counter()
        for _, (_, coded, times) in rows:
            cells[coded] += times
        return Observed(cells.total() if public else None, cells)
    persons: dict[Any, Counter[Any]] = {}
    places = 0
    for site, (person, coded, is_taken) in rows:
        places += is_taken
        if person >= 0:
            counter = persons.setdefault((site, person), Counter())
            counter[coded] += 0 if public and coded is None else is_taken
    result = Counter(frozenset((+person).items()) for person in persons.values())
    if public:
        # Whoever has no complete row has places of incomplete ones.
        assert places % unit.rows == 0, "places are not a multiple of persons"
        del result[frozenset()]
    return Observed(places // unit.rows if public else None, result)


def _rows(part: Any) -> Iterator[tuple[int, Contribution, int]]:
    """Give of each row its person, its coded cells, None where incomplete, and its places."""
    cells = np.array(list(part.columns.values()), dtype=float)
    counted = ~np.isnan(cells).any(axis=0)
    if part.counted is not None:
        counted &= part.counted
    for row in range(part.rows):
        coded = tuple(cells[:, row].tolist()) if counted[row] else None
        person = 0 if part.persons is None else int(part.persons[row])
        yield person, coded, 1 if part.places is None else int(part.places[row])


def distance(first: Observed, second: Observed) -> int:
    """Return by how many contributions two designs differ."""
    counter = Counter(first.contributions)
    counter.subtract(second.contributions)
    return sum(map(abs, counter.values()))


# --- The invariant


def require_neighbours(first: Observed, second: Observed, farthest: int, case: object) -> None:
    """Refuse two designs of neighbours that differ in what is public, or in too much else."""
    where = f"for {_shortened(case)}"
    assert first.refusal == second.refusal, f"refused differently {where}"
    assert first.n == second.n, f"the public number is {first.n} and {second.n} {where}"
    distances = distance(first, second)
    assert distances <= farthest, (
        f"neighbours are {distances} apart, and {farthest} is declared, {where}"
    )


def _shortened(case: object) -> str:
    text = ascii(case)
    return text if len(text) <= 300 else f"{text[:300]}..."


def one_cell_changes_one_row(
    source: Source, folder: Path, column: str, context: int, *, person: bool = False
) -> None:
    """A record takes every cell of an alphabet, at any place among others, or is not there."""
    cells = COLUMNS[column]
    first, second = (Record(str(k), k, cell) for k, cell in enumerate(cells.others[context], 2))
    variants = [Record("1", 1, cell) for cell in cells.cells]
    schema = Schema(id="whole", cell=cells.kind)
    units = (PERSONS, PERSONS_ADDED) if person else (ROWS, ROWS_ADDED)
    replaced, added = (Table(source, folder, column, unit, schema) for unit in units)

    def placed(records: list[Record]) -> Records:
        variants_of_two = [first, second]
        return [*variants_of_two[: context % 3], *records, *variants_of_two[context % 3 :]]

    _all_neighbours(replaced, added, placed, [[variant] for variant in variants], second)


def one_text_changes_one_row(source: Source, folder: Path, place: int) -> None:
    """A record takes every free text of an alphabet, first, amid or last, or is not there."""
    records_of_others = [Record("2", 2, "F", "ok"), Record("3", 3, "M", "")]
    variants = [[Record("1", 1, "F", note)] for note in NOTES]
    tables = (Table(source, folder, "levels", unit, Schema("whole")) for unit in (ROWS, ROWS_ADDED))

    def placed(records: list[Record]) -> Records:
        return [*records_of_others[:place], *records, *records_of_others[place:]]

    _all_neighbours(*tables, placed, variants, records_of_others[0])


def _all_neighbours(
    replaced: Table,
    added: Table,
    placed: Callable[[list[Record]], Records],
    variants: list[list[Record]],
    neighbour_call: Record,
) -> None:
    """Compare what every two variants give, and each with a table that lacks the record."""
    observations = [replaced.observed(placed(records)) for records in variants]
    for observation, records in zip(observations, variants, strict=True):
        if not observation.refusal:
            assert observation.n == len(placed(records)), (
                f"{observation.n} is printed for {_shortened(records)}"
            )
    for (observation, first), (two, second) in combinations(
        zip(observations, variants, strict=True), 2
    ):
        require_neighbours(observation, two, 2, (first, second, placed([])))
    without = added.observed(placed([]))
    # What rows are is the same for both relations; here some of them come and go.
    for records in variants[::3]:
        require_neighbours(added.observed(placed(records)), without, 1, (records, placed([])))


def one_id_is_one_person(source: Source, folder: Path, spelling: str) -> None:
    """Persons are those whom the writer means, and each can be replaced, removed or moved."""
    values = IDS[spelling]
    persons = list(values.persons)
    missing = [
        id for id in values.missing if not source.typed or values.kind == "text" or id is None
    ]

    def records(spellings: Sequence[Sequence[Any]]) -> Records:
        written = [
            Record(str(who), id, LEVELS[who % 2]) for who, ids in enumerate(spellings) for id in ids
        ]
        return [*written, *(Record("nobody", id, LEVELS[0]) for id in missing)]

    schema = Schema(values.kind, "text")
    replaced = Table(source, folder, "levels", PERSONS, schema)
    added = Table(source, folder, "levels", PERSONS_ADDED, schema)
    both_persons, all_added = (table.observed(records(persons)) for table in (replaced, added))
    assert not both_persons.refusal, both_persons.refusal
    assert both_persons.n == len(persons), (
        f"{both_persons.n} persons of {len(persons)} for {spelling}"
    )
    for who in range(len(persons)):
        for id in values.fresh:
            replaced_observation = replaced.observed(
                records([*persons[:who], (id,), *persons[who + 1 :]])
            )
            require_neighbours(both_persons, replaced_observation, 2, (persons[who], id, spelling))
        fewer = added.observed(records([*persons[:who], (), *persons[who + 1 :]]))
        require_neighbours(all_added, fewer, 1, (persons[who], spelling))


# --- Readers that infer types


def no_cell_decides_a_refusal(source: Source, folder: Path, column: str, context: int) -> None:
    """Whatever type one cell gives its column, the table is read."""
    for cell in COLUMNS[column].cells:
        others = COLUMNS[column].others[context]
        records = [Record(str(k), k, text) for k, text in enumerate((*others, cell))]
        refusal = Table(source, folder, column, ROWS, Schema()).observed(records).refusal
        assert not refusal, f"refused for {_shortened(records)}: {refusal}"


def no_cell_renames_another(source: Source, folder: Path, context: int) -> None:
    """The undeclared levels of other records are those of their own texts."""
    others = TEXT_OTHERS[context]
    expected = level_names(np.array(others, dtype=object)).tolist()
    for cell in TEXT_CELLS:
        records = [Record(str(k), k, text) for k, text in enumerate((*others, cell))]
        opened = open_rows(source.make(records, Schema(), folder))
        (chunk,) = opened.chunks(("cell",), 10)
        names = level_names(chunk["cell"]).tolist()[:-1]
        assert names == expected, f"{names} instead of {expected} for {_shortened(records)}"


def no_id_moves_another(source: Source, folder: Path) -> None:
    """Persons are the same whatever type one id gives the column of ids."""
    table = Table(source, folder, "levels", PERSONS, Schema())
    first = [Record(id, id, LEVELS[k % 2]) for k, id in enumerate(("1", "2", "2", "30"))]
    observations = [
        (id, table.observed([*first, Record("new", id, "F")]))
        for id in ("4", "x", "2.5", "2020-02-03", "99999999999999999999")
    ]
    for (id, one), (other, two) in combinations(observations, 2):
        assert not one.refusal, one.refusal
        require_neighbours(one, two, 0, (id, other))
