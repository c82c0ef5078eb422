"""Every law about a mechanism, on every case."""

from collections.abc import Callable

import law_answer
import law_cards
import law_ledger
import law_noise
import law_plan
import law_repeat
import law_sensitivity
import pytest
from contract_cases import CASES, FEWER, Case
from mechanisms import MECHANISMS, Mechanism

ON_EVERY_CASE = (
    law_answer.a_huge_budget_gives_the_exact_answer,
    law_noise.the_noise_follows_the_plan,
    law_noise.the_noise_is_the_same_for_any_rows,
    law_noise.the_release_states_its_noise,
    law_sensitivity.neighbours_are_within_the_declared_sensitivity,
    law_plan.plan_is_a_pure_function_of_public_facts,
    law_ledger.the_ledger_refuses_before_a_row_is_read,
    law_ledger.the_ledger_is_charged_before_a_row_is_read,
    law_ledger.the_ledger_records_what_the_plan_costs,
    law_ledger.a_whole_budget_may_be_spent_at_once,
    law_repeat.never_the_same_twice,
    law_repeat.a_simulation_repeats_and_is_stamped,
)
ON_FEWER = (
    law_sensitivity.neighbours_are_within_it_on_a_coarse_lattice,
    law_plan.plan_refuses_what_it_cannot_give,
)
ON_MECHANISMS = (
    law_cards.the_card_is_complete,
    law_cards.the_docstring_has_its_sections,
    law_cards.the_mechanism_is_frozen,
)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("law", ON_EVERY_CASE, ids=lambda law: law.__name__)
def test_law(law: Callable[[Case], None], case: Case):
    law(case)


@pytest.mark.parametrize("case", FEWER, ids=str)
@pytest.mark.parametrize("law", ON_FEWER, ids=lambda law: law.__name__)
def test_law_whatever_the_guarantee(law: Callable[[Case], None], case: Case):
    law(case)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
@pytest.mark.parametrize("law", ON_MECHANISMS, ids=lambda law: law.__name__)
def test_law_of_the_card(law: Callable[[Mechanism], None], mechanism: Mechanism):
    law(mechanism)


def test_the_table_lists_the_folder():
    law_cards.the_table_lists_the_folder()


def test_no_verb_has_a_seed():
    law_plan.no_verb_has_a_seed()
