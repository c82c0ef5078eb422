"""The way of every verb's rows: bind, choose, plan, check, charge, measure, release, record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from dpmodels.design.rows import asked_of
from dpmodels.digest import digest
from dpmodels.errors import FrameError
from dpmodels.formula.subset import subset
from dpmodels.frames.protocol import before_charge
from dpmodels.models.foreseen import Foresight, nothing, warn
from dpmodels.noise import simulating
from dpmodels.options import ledger_of
from dpmodels.postprocess.units import in_persons
from dpmodels.privacy import Adjacency, Charge, Ledger, charge, group_events, planned_for_group
from dpmodels.question import Question
from dpmodels.results.spec import Spec
from dpmodels.sites import Parties, parties, together
from dpmodels.verbs import VERBS

Made = TypeVar("Made")


@dataclass(frozen=True, repr=False)
class Way(Spec[Made]):
    """How one verb asks: what the crossing has to know of it, made before there are any rows."""

    question: Question
    private: Any  # A design or cells of no rows; its `bind` binds those of each holder
    facts: Any  # Public ones, from which a plan is made
    # From the word mechanism= and the holders' bound rows, none of them read, to a strategy, and
    # why it.
    choose: Callable[[object, Sequence[Any]], tuple[Any, str]]
    lawful: bool = False  # Whether the result needs noise of a known law
    passes: bool = False  # Whether all strategies of the verb read the rows more than once
    # Of whose rows they are and how many count, where that is not what the guarantee is of.
    reads: Adjacency | None = None
    foresee: Foresight = nothing  # What a plan will very likely not tell of a public number of rows

    def __post_init__(self) -> None:
        own = self.question
        neighbours = self.reads or own.adjacency
        terms = partial(
            asked_of,
            neighbours=neighbours,
            subset=subset(own.subset, own.codebook | self.private.codebook),
            missing_ids=own.codebook.missing_ids(neighbours.person),
        )
        object.__setattr__(self, "private", self.private.among(terms))


class Planned(NamedTuple):
    """A strategy, the plan it made of public facts, and why it."""

    strategy: Any
    plan: Any
    reason: str


class Measured(NamedTuple):
    """Exact statistics, one a holder, that were paid for and not released."""

    planned: Planned
    statistics: tuple[Any, ...]
    charged: Charge


def cross(way: Way[Made], data: object, mechanism: object, ledger: Ledger | None) -> Made:
    """Take the rows of all holders across, and record what came out."""
    held = parties(data)
    (strategy, plan, reason), statistics, charged = measured(way, held, mechanism, ledger)
    release = of_question(held.release(strategy, statistics, plan), way.question, held)
    charged.released(lambda: digest(release))
    return way.of(release, charged.told, reason)


def of_question(release: Any, question: Question, holders: Parties | None = None) -> Any:
    """Return a release in its unit, with what is guaranteed to whom, and what that costs."""
    facts = [("Records", text) for text in holders.records] if holders else []
    facts += [("Codebook", "attached to the table")] if question.attached else []
    table = tuple(facts) or None
    neighbours = question.adjacency
    events = group_events(release.events, neighbours.places)
    own = in_persons(release, neighbours.places) if neighbours.counts_persons else release
    return replace(
        own,
        guarantee=question.guarantee,
        events=events,
        subset=question.subset,
        table=table,
    )


def measured(
    way: Way[Any],
    held: Parties,
    mechanism: object,
    ledger: Ledger | None,
    claims: tuple[tuple[str, str], ...] = (),
) -> Measured:
    """Check everything and charge for it; only then read the rows."""
    ledger = ledger_of(ledger)
    question, witness = way.question, held.witness
    private = held.bind(way.private.bind)
    try:
        own = planned(way, held, mechanism, private)
    except FrameError as error:  # The number of persons is public: they are counted first
        raise FrameError(before_charge(error)) from None
    witness.planned(own.strategy, private, own.plan)
    events = group_events(own.plan.events, question.adjacency.places)
    witness.charging(own.strategy.card.name, events)
    _foretell(way, held, own.plan, private)
    charged = charge(
        ledger,
        events,
        adjacency=question.adjacency,
        about=question.about(own.strategy.card.name, way.private.codebook),
        claims=claims,
    )
    statistics = tuple(own.strategy.measure(one, own.plan) for one in private)
    witness.measured(own.strategy, statistics, held.names, own.plan)
    return Measured(own, statistics, charged)


def _foretell(way: Way[Any], held: Parties, plan: Any, private: Sequence[Any]) -> None:
    """Warn of what a release will very likely not tell; nothing of private numbers of rows.

    Nor of persons, whom only reading their column counts, nor in a simulation, where nothing is
    spent, nor where other sites have other rows.
    """
    relation = way.reads or way.question.adjacency
    if simulating() or not relation.n_public or relation.person is not None or held.others:
        return
    rows = together(one.nrows for one in private)
    if rows is not None:
        warn(way.foresee(plan, rows), way.question, plan, rows)


def planned(way: Way[Any], held: Parties, mechanism: object, private: Sequence[Any]) -> Planned:
    """Choose a strategy and make its plan, of public facts; refuse what cannot be released."""
    question = way.question
    named, why = held.mechanism(
        mechanism, VERBS[question.verb].gaussian, question, lawful=way.lawful
    )
    strategy, reason = way.choose(named, private)
    if way.passes or getattr(strategy, "passes", "one") == "many":
        for own in private:
            own.require_passes()
    plan: Any = planned_for_group(
        partial(strategy.plan, way.facts),
        lambda one: one.events,
        question.guarantee,
        question.adjacency.places,
    )
    held.check(strategy, plan)
    return Planned(strategy, plan, why or reason)
