"""Seeded releases and plans of every mechanism, to compare them with stored ones."""

from contract_cases import LARGE, USUAL, Case, table
from released_numbers import numbers_of

import dpmodels as dp


def release_numbers(case: Case) -> list[float]:
    """List the numbers of a release under a seed."""
    with dp.simulation(seed=1):
        return list(numbers_of(case.ask(table(300)).release))


def plan_numbers(case: Case) -> list[float]:
    """List the numbers of plans for public facts of several sizes, with more and less noise."""
    return [
        number
        for facts in case.sizes
        for guarantees in (USUAL, LARGE)
        for number in numbers_of(case.planned(facts, guarantees[case.kind]))
    ]


def key_of(kind: str, case: Case) -> str:
    """The name of stored numbers: a mechanism's name may stand in two families."""
    return f"{kind} {case.mechanism.family} {case}"
