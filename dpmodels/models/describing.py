"""The way of every description: tables, choice, plan, charge, count, release."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from dpmodels.codebook import Codebook
from dpmodels.design.cells import private_cells
from dpmodels.formula.sides import Sides
from dpmodels.formula.tally import Tally
from dpmodels.mechanisms import COUNTS, MEANS, choose
from dpmodels.mechanisms.auto import auto_counts
from dpmodels.mechanisms.count_plan import CountFacts
from dpmodels.models.asked import about
from dpmodels.privacy import Adjacency, AdjacencyName, Guarantee, Ledger, charge, check_ledger
from dpmodels.privacy import adjacency as neighbours
from dpmodels.released import CountsRelease
from dpmodels.results.call import DescribedCall, TableFacts
from dpmodels.sites.parties import parties


class Wanted(NamedTuple):
    """The words that descriptive verbs share, as given."""

    data: object
    guarantee: Guarantee
    mechanism: object
    adjacency: AdjacencyName | Adjacency
    ledger: Ledger | None


class Described(NamedTuple):
    """A release with the public facts it came from."""

    call: DescribedCall
    release: CountsRelease


def describe(verb: str, both: Sides, tallies: tuple[Tally, ...], wanted: Wanted) -> Described:
    """Take counts across: everything is checked and charged before a row is read.

    Parameters
    ----------
    verb : str
        Its name, for the ledger.
    both : Sides
        The formula.
    tallies : tuple of Tally
        The tables to count rows in.
    wanted : Wanted
        What else the user wrote.
    """
    relation = neighbours(wanted.adjacency)
    check_ledger(wanted.ledger)
    held = parties(wanted.data)
    private = held.bind(lambda own: private_cells(both.text, own, both.codebook, tallies))
    facts = CountFacts(
        tables=len(tallies),
        parts=sum(tally.size for tally in tallies),
        divided=any(tally.degree for tally in tallies),
        adjacency=relation,
    )
    mechanism, why = held.mechanism(wanted.mechanism, "gaussian", wanted.guarantee)
    strategy, reason = choose(
        mechanism, COUNTS | MEANS, partial(auto_counts, facts, wanted.guarantee)
    )
    plan = strategy.plan(facts, wanted.guarantee)
    held.check(strategy, plan)
    charged = charge(
        wanted.ledger,
        plan.events,
        adjacency=relation,
        about=about(verb, both.text, strategy, both.codebook),
        claims=held.claims,
    )
    release = held.release(strategy, private, plan, charged)
    return Described(described_call(both, tallies, charged.told, why or reason), release)


def described_call(
    both: Sides, tallies: tuple[Tally, ...], ledger: str, reason: str
) -> DescribedCall:
    """Return the public facts of a description."""
    return DescribedCall(
        formula=both.text,
        codebook=Codebook(both.codebook),
        tables=tuple(map(table_facts, tallies)),
        ledger=ledger,
        reason=reason,
    )


def table_facts(tally: Tally) -> TableFacts:
    """Return the public facts of a table."""
    number = tally.measured
    return TableFacts(
        factors=tuple(factor.code for factor in tally.factors),
        levels=tuple(factor.levels for factor in tally.factors),
        measured="" if number is None else number.code,
        lower=0.0 if number is None else number.lower,
        upper=1.0 if number is None else number.upper,
        degree=tally.degree,
    )
