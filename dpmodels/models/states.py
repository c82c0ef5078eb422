"""Counts of states in series of persons, under a Pufferfish guarantee."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, Final

from dpmodels.codebook import Codebook
from dpmodels.design.cells import unbound_cells
from dpmodels.errors import ArgumentError, BudgetError, FormulaError, FrameError, said, shorten
from dpmodels.formula.periods import Periods, periods
from dpmodels.formula.sides import Sides, grouping, sides
from dpmodels.formula.tally import MAX_CELLS, Tally
from dpmodels.mechanisms import CHAINS, choose
from dpmodels.mechanisms.chains.quilt import SeriesFacts
from dpmodels.models.crossing import Way
from dpmodels.models.describing import described_call
from dpmodels.privacy import Adjacency, Pufferfish
from dpmodels.privacy.budget import MOST_ROWS
from dpmodels.question import Question
from dpmodels.released import CountsRelease
from dpmodels.results.states import StatesResult
from dpmodels.variables import Integer

# A choice: cells of states by times that places are looked up in.
_MOST_CELLS: Final = 32 * MOST_ROWS
_APART: Final = (
    'has it too: write three variables, such as "~ activity" with time="minute" and person="id"'
)
# How far a scale of noise may be off, as it is computed by functions that machines round apart.
_NEAR: Final = 1e-9
_ONE_STATE: Final = Adjacency("replace")
_WRITE: Final = (
    'dp_table("~ activity", df, time="minute", person="id", '
    "budget=dp.Pufferfish(eps=1.0, model=chain))"
)


def asked_states(
    formula: str, book: Codebook, budget: Pufferfish, time: object, **words: object
) -> Question:
    """Return the question; ArgumentError for words that have no sense beside such a guarantee."""
    person = words.pop("person", None)
    person = book.person if person is None else person
    _require_columns(time, person)
    for word, own in words.items():
        if own is not None:
            raise ArgumentError(
                f"{word}={said(own)} has no sense with budget=dp.Pufferfish(...), which hides each "
                f"state of each person's series as a whole: leave it out, {_WRITE}"
            )
    return Question("table", formula, book, budget, _ONE_STATE, {"time": time, "person": person})


def _require_columns(time: object, person: object) -> None:
    """Refuse to count without the names of both columns."""
    for word, own in (("person", person), ("time", time)):
        if not isinstance(own, str):
            raise ArgumentError(
                f"{word}={said(own)}: a Pufferfish guarantee is of each person's state at each "
                f"time, and needs the names of both columns; write {_WRITE}"
            )


def states_way(question: Question) -> Way[StatesResult]:
    """Return the way of the verb's question."""
    budget, time = question.guarantee, question.words["time"]
    _require_columns(time, question.words.get("person"))
    assert isinstance(budget, Pufferfish)
    both, over = series_of(question.formula, question.codebook, time)
    if question.words["person"] in both.codebook:
        raise FormulaError(
            f"person={said(question.words['person'])} is whose states they are and in public "
            f"number, and time={said(time)} or {shorten(both.text)!r} {_APART}"
        )
    tally = states_of(both)
    (state,) = tally.factors
    model = budget.model.ordered(state.levels)
    budget = replace(budget, model=model)
    question = replace(question, guarantee=budget)
    person, steps = question.words["person"], len(over)
    if steps > MOST_ROWS:
        raise ArgumentError(
            f"{shorten(time)!r} has {steps:,} times; at most {MOST_ROWS:,} of a person are "
            "counted: declare narrower bounds"
        )
    # All rows of a person are read, and those at one time are told apart then.
    reads, counts = (Adjacency("replace", rows, person) for rows in (MOST_ROWS, steps))
    series = (
        f"{state.code} by {time} {over.factor.levels[0]} to {over.factor.levels[-1]} of {person}"
    )
    facts = SeriesFacts(len(state.levels), steps, series, counts)

    def check(release: CountsRelease) -> None:
        """Refuse a scale of noise that is not that of the guarantee and so many times."""
        needed, quilt = budget.active(steps).scale, release.quilt
        if quilt is None or not math.isclose(quilt.scale, needed, rel_tol=_NEAR):
            raise FrameError("release.quilt: not that of the guarantee and so many times")

    book = both.codebook | {time: _wider(both.codebook, time)}
    placed = Tally((over.factor, state), most=_MOST_CELLS)
    return Way(
        question,
        described_call(both, (tally,)),
        partial(StatesResult, time=time),
        unbound_cells(both.text, Codebook(book), (placed,)),
        facts,
        lambda mechanism, _: choose(mechanism, CHAINS, partial(_only, facts)),
        lawful=True,
        reads=reads,
        check=check,
    )


def series_of(formula: str, book: Codebook, time: str) -> tuple[Sides, Periods]:
    """Return the sides of a formula, time among its variables, and the times."""
    own, over = sides(formula, book), periods(time, None, book)
    if time in own.codebook:
        raise FormulaError(
            f"time={said(time)} is when states are, and {shorten(own.text)!r} {_APART}"
        )
    used = {*own.codebook, time}
    return replace(own, codebook=book.select(name for name in book if name in used)), over


def states_of(both: Sides) -> Tally:
    """Return the table of the one variable whose levels are states."""
    if len(both.described) != 1 or both.groups:
        raise FormulaError(
            f"formula {shorten(both.text)!r}: a Pufferfish guarantee is of one variable, whose "
            "levels are the states of the chain; write '~ activity'"
        )
    return Tally((grouping(both.described[0]),), most=MAX_CELLS)


def _only(facts: SeriesFacts) -> tuple[str, str]:
    return "quilt", "it is the one of a Pufferfish guarantee."


def _wider(book: Codebook, time: str) -> Any:
    """Return the time with bounds beyond the declared: what lies outside these is then missing."""
    own = book[time]
    if isinstance(own, Integer):
        return replace(own, lower=own.lower - 1, upper=own.upper + 1)
    return own


def refuse_alone(time: object) -> None:
    """Refuse a time beside a guarantee that knows of none."""
    if time is not None:
        raise BudgetError(
            f"time={said(time)} is of series under a Pufferfish guarantee: write {_WRITE}, or "
            "dp_series for counts over time with differential privacy"
        )
