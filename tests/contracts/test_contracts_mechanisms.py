"""Every law about a mechanism, on every case."""

from itertools import groupby
from operator import attrgetter

import law_answer
import law_info
import law_ledger
import law_neighbours
import law_noise
import law_persons
import law_plan
import law_repeat
import law_sensitivity
import pytest
from contract_cases import (
    CASES,
    FEWER,
    OTHER_VERBS,
    OTHERS,
    PLANS,
    SUBJECT,
    Case,
    Law,
    Where,
    everywhere,
    parameters,
)
from folded import each
from mechanisms import MECHANISMS, Mechanism


def matrices(mechanism: Mechanism) -> bool:
    """What releases the second moment of columns."""
    return mechanism.family == "covariance"


def moments(mechanism: Mechanism) -> bool:
    """What releases a second moment that is the rows' own when the budget is huge."""
    return matrices(mechanism) and mechanism.exact


def space(mechanism: Mechanism) -> bool:
    return mechanism.family == "subspace" and mechanism.exact


def answering(mechanism: Mechanism) -> bool:
    """What has the answer of its verb when the budget is huge."""
    return mechanism.family not in ("covariance", "subspace")


def lawful(mechanism: Mechanism) -> bool:
    return bool(mechanism.law)


def counted(mechanism: Mechanism) -> bool:
    """What releases moments and states the noise in their number of rows."""
    return bool(mechanism.counts)


def noisy(mechanism: Mechanism) -> bool:
    """What has noise of known law."""
    return counted(mechanism) or answering(mechanism)


def adding_up(mechanism: Mechanism) -> bool:
    """What adds noise to integers that the rows do not change."""
    return counted(mechanism) or mechanism.family == "counts"


def one_vector(mechanism: Mechanism) -> bool:
    return bool(mechanism.norm) and matrices(mechanism)


def measured(mechanism: Mechanism) -> bool:
    return bool(mechanism.norm) and not matrices(mechanism)


def directions(mechanism: Mechanism) -> bool:
    return mechanism.directions


def priced(mechanism: Mechanism) -> bool:
    return not (mechanism.baseline or mechanism.open)


def drawn(mechanism: Mechanism) -> bool:
    return mechanism.drawn


def rereads(mechanism: Mechanism) -> bool:
    return mechanism.rereads


def in_simulations(mechanism: Mechanism) -> bool:
    return mechanism.open


OF_THE_LEDGER: dict[Law, Where] = {
    law_ledger.the_ledger_refuses_before_a_row_is_read: priced,
    law_ledger.the_ledger_is_charged_before_a_row_is_read: everywhere,
    law_ledger.a_stream_is_refused_before_the_charge: rereads,
    law_ledger.the_ledger_records_what_the_plan_costs: everywhere,
    law_ledger.the_same_release_again_costs_as_much: priced,
    law_ledger.a_whole_budget_may_be_spent_at_once: everywhere,
}
ON_CASES: dict[Law, Where] = {
    law_answer.a_huge_budget_gives_the_exact_answer: moments,
    law_answer.a_huge_budget_gives_the_exact_covariance: moments,
    law_answer.the_unbiased_release_is_exact_too: lambda case: moments(case) and lawful(case),
    law_answer.a_huge_budget_gives_the_exact_space: space,
    law_answer.a_huge_budget_gives_the_verbs_answer: answering,
    law_noise.the_release_states_its_noise: counted,
    law_noise.the_release_carries_its_terms: everywhere,
    law_plan.no_noise_outside_a_simulation_is_refused: in_simulations,
    **OF_THE_LEDGER,
}
ON_PLANS: tuple[Law, ...] = (
    law_plan.plan_is_a_pure_function_of_public_facts,
    law_plan.the_events_cost_what_was_asked,
    law_persons.a_persons_release_costs_what_was_asked,
)
# What takes longest: the ordinary run has a case for each family.
ON_FAMILIES: dict[Law, Where] = {
    law_repeat.a_simulation_repeats_and_is_stamped: everywhere,
    law_repeat.never_the_same_twice: drawn,
    law_noise.the_noise_follows_the_plan: noisy,
    law_noise.a_third_of_the_noise_follows_the_plan: noisy,
    law_persons.persons_are_no_farther_than_declared: lambda case: (
        measured(case) or one_vector(case)
    ),
}
ON_FEWER: dict[Law, Where] = {
    law_noise.the_noise_is_as_large_as_planned: noisy,
    law_noise.the_noise_is_the_same_for_any_rows: adding_up,
    law_sensitivity.neighbours_are_within_the_declared_sensitivity: one_vector,
    law_sensitivity.no_direction_is_drawn_closer_than_paid_for: directions,
    law_neighbours.neighbours_are_no_farther_than_declared: measured,
    law_plan.plan_refuses_what_it_cannot_give: everywhere,
}
ON_OTHERS: dict[Law, Where] = {
    law_sensitivity.neighbours_are_within_it_on_a_coarse_lattice: one_vector,
    law_neighbours.neighbours_are_no_farther_than_declared: measured,
}
ON_VERBS: dict[Law, Where] = {
    law_answer.a_huge_budget_gives_the_verbs_answer: everywhere,
    law_noise.the_noise_follows_the_plan: lambda case: case.family == "counts",
    law_noise.a_third_of_the_noise_follows_the_plan: lambda case: case.family == "counts",
    law_neighbours.neighbours_are_no_farther_than_declared: measured,
    law_repeat.a_simulation_repeats_and_is_stamped: everywhere,
    law_repeat.never_the_same_twice: everywhere,
    law_plan.plan_refuses_what_it_cannot_give: everywhere,
    **OF_THE_LEDGER,
}
# No law is of what a budget will identify: tests/models/test_models_prediction.py has those.
PREDICTED_ONCE = True
FAMILY, VERB = attrgetter("mechanism.family"), attrgetter("verb")
# What the ordinary run has in a reduced form.
REDUCED = {law_noise.the_noise_follows_the_plan: law_noise.a_third_of_the_noise_follows_the_plan}
ON_MECHANISMS = (
    law_info.the_card_is_complete,
    law_info.the_docstring_has_its_sections,
    law_info.the_mechanism_is_frozen,
    law_info.neighbours_are_tried_somewhere,
)


@pytest.mark.parametrize(("law", "case"), parameters(ON_CASES, CASES))
def test_law(law: Law, case: Case):
    law(case)


@pytest.mark.parametrize(
    ("law", "cases"),
    [
        pytest.param(law, list(cases), id=f"{law.__name__}-{mechanism.name}")
        for law in ON_PLANS
        for mechanism, cases in groupby(PLANS, attrgetter("mechanism"))
    ],
)
def test_law_of_the_plan(law: Law, cases: list[Case]):
    for case in cases:
        law(case)


@pytest.mark.parametrize(
    ("law", "case"),
    [
        *parameters(ON_FEWER, FEWER),
        *parameters(ON_FAMILIES, FEWER, REDUCED, FAMILY),
        *parameters(ON_OTHERS, OTHERS),
    ],
)
def test_law_whatever_the_guarantee(law: Law, case: Case):
    law(case)


@pytest.mark.parametrize(("law", "case"), parameters(ON_VERBS, OTHER_VERBS, REDUCED, VERB))
def test_law_by_another_verb(law: Law, case: Case):
    law(case)


@pytest.mark.parametrize("law", ON_MECHANISMS, ids=lambda law: law.__name__)
@each("mechanism", MECHANISMS)
def test_law_of_the_card(law, mechanism: Mechanism):
    law(mechanism)


def test_the_table_lists_the_folders():
    law_info.the_table_lists_the_folder()


def test_no_verb_has_a_seed():
    law_plan.no_verb_has_a_seed()


@pytest.mark.parametrize(
    ("lists", "by"),
    [
        (((ON_CASES, CASES), (ON_FEWER, FEWER), (ON_OTHERS, OTHERS)), SUBJECT),
        (((ON_FAMILIES, FEWER),), FAMILY),
        (((ON_VERBS, OTHER_VERBS),), VERB),
    ],
    ids=["mechanisms", "families", "verbs"],
)
def test_the_ordinary_run_tries_every_law_on_every_mechanism_and_verb(lists, by):
    every = [
        parameter for laws, cases in lists for parameter in parameters(laws, cases, REDUCED, by)
    ]
    ordinary = [parameter.values for parameter in every if not parameter.marks]
    tried, listed = (
        {(REDUCED.get(law, law), by(case)) for law, case in parameters_seen}
        for parameters_seen in (ordinary, [parameter.values for parameter in every])
    )
    assert tried == listed
    assert len(ordinary) < len(every)
    for law in dict.fromkeys(law for law, _ in ordinary):
        cases = [case for parameter, case in ordinary if parameter is law and case.mechanism.norm]
        if len(cases) > 5:
            assert {case.adjacency for case in cases} == {"replace", "add-remove"}, law.__name__
