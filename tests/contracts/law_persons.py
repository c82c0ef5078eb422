"""Persons, brute force: neighbours that differ in all rows of one person, for every mechanism.

Distances are of exact statistics, as shares of what is declared for one row: a
person with so many places may move them so many times as far, and some have to.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from contract_cases import Case, Crossing
from law_neighbours import ROUNDING, TRIED, Tried
from law_sensitivity import FAMILIES, NEARLY, POWER, moments_apart

import dpmodels as dp
from dpmodels.privacy import Adjacency, ApproxDP, group_events, planned_for_group

Row = dict[str, Any]
# Each with one relation, so that both are tried on every mechanism.
AT_MOST: dict[str, Any] = {"replace": "mean", "add-remove": 3}


def persons_are_no_farther_than_declared(case: Case) -> None:
    tried, rows = _tried(case), AT_MOST[case.adjacency]
    places = Adjacency(case.adjacency, rows, "id").places
    crossing = _crossing(case, tried, rows)
    crossings = [crossing(person) for person in _persons(tried.rows)]
    starts = crossings[:6] if case.adjacency == "replace" else [crossing([])]
    shares = [tried.apart(case, *pair) / places for pair in product(starts, crossings)]
    assert max(shares) <= 1 + ROUNDING, f"farther than declared: {max(shares)}"
    assert max(shares) >= NEARLY, f"nowhere near: {max(shares)}"
    _priced(crossings[0], places)


def _tried(case: Case) -> Tried:
    """Return rows and a distance between statistics, as a share of the declared one of a row."""
    if case.mechanism.family == "regression":
        # Squares by person, which are bought besides, have brute force of their own.
        design = TRIED["regression"](case)
        return design._replace(words={**design.words, "vcov": "iid"})
    if case.mechanism.family != "covariance":
        return TRIED[case.mechanism.family](case)
    family = FAMILIES[0]
    rows = (*family.complete[:8], family.incomplete[0])
    return Tried(family.formula, family.codebook, rows, _of_matrices, family.scaling)


def _of_matrices(case: Case, left: Crossing, right: Crossing) -> float:
    power = POWER[case.mechanism.norm]
    pair = (crossing.statistic.cross()[0] for crossing in (left, right))
    distance = float(moments_apart(*pair, left.plan, power)) ** (1 / power)
    (event,) = left.plan.events
    return distance * event.multiplier


def _persons(rows: tuple[Row, ...]) -> list[list[Row]]:
    """Return persons: of one extreme row, of its like, of many more, and of all sorts."""
    alike = [[row] * 3 for row in rows]
    return [*alike[:6], list(rows), list(rows[:2]), [], *alike[6:], [rows[0]] * 7]


def _crossing(case: Case, tried: Tried, rows: Any) -> Callable[[list[Row]], Crossing]:
    """Return what crosses with a person beside others, none of them with rows to choose from.

    Rows of nobody are there too, and rows of the person stand apart. Under ``replace`` the person
    is there with no row that is complete where it has none.
    """
    first, second, third = tried.rows[:3]
    empty = dict.fromkeys(first)

    def crossing(person: list[Row]) -> Crossing:
        records = person or [empty] * (case.adjacency == "replace")
        lines = [("b", first), *(("a", row) for row in records[:2]), (None, third), ("c", second)]
        lines += [*(("a", row) for row in records[2:]), ("c", third)]
        data = {name: [row[name] for _, row in lines] for name in first}
        data["id"] = [name for name, _ in lines]
        words = {"person": "id", "rows": rows, **tried.words}
        return case.crossing(tried.formula, data, tried.codebook, **words)

    return crossing


def _priced(crossing: Crossing, places: int) -> None:
    """A ledger is charged for a person, not for a row."""
    assert crossing.plan.facts.adjacency.places == places
    for event, charged in zip(
        crossing.plan.events, group_events(crossing.plan.events, places), strict=True
    ):
        noise = getattr(event, "multiplier", None)
        if noise is None:
            assert charged.eps >= event.eps * places
        else:
            assert charged.multiplier <= noise / places


def a_persons_release_costs_what_was_asked(case: Case) -> None:
    for facts in case.sizes:
        facts_of_persons = replace(facts, adjacency=Adjacency(case.adjacency, 4, "id"))
        plan = planned_for_group(
            partial(case.planned, facts_of_persons), lambda plan: plan.events, case.guarantee, 4
        )
        spent = group_events(plan.events, 4)
        ledger = dp.Ledger(budget=case.guarantee, adjacency=facts_of_persons.adjacency)
        ledger.charge(spent, adjacency=facts_of_persons.adjacency)
        if case.kind is not ApproxDP and spent:
            alone = dp.Ledger(budget=case.guarantee)
            alone.charge(case.planned(facts).events, adjacency="replace")
            assert ledger.spent.amount >= (1 - 1e-9) * alone.spent.amount, "noise for nothing"
