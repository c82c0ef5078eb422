"""The suite is itself tested: every planted fault has to turn its law red."""

from collections.abc import Callable
from typing import NamedTuple

import law_answer as answer
import law_canary as canary
import law_info as cards
import law_ledger as ledger
import law_neighbours as neighbours
import law_noise as noise
import law_places as places
import law_plan as plan
import law_repeat as repeat
import law_rows as rows
import law_secrets as secrets
import law_sensitivity as sensitivity
import law_sums as sums
import planted_families as family
import planted_house as house
import planted_more as more
import planted_noise as noisy
import planted_rows as row
import pytest
from contract_cases import ANY, FEWER, OTHER_VERBS, OTHERS, Case, TouchedError

RED = (AssertionError, pytest.fail.Exception, TouchedError)
Law = Callable[[Case], None]
FOLLOWS = noise.the_noise_follows_the_plan
BOUND = sensitivity.neighbours_are_within_the_declared_sensitivity
NEAR = neighbours.neighbours_are_no_farther_than_declared
EXACT = answer.a_huge_budget_gives_the_verbs_answer
EARLY = ledger.the_ledger_is_charged_before_a_row_is_read


# Faults in matrices are tried centred and not, with both neighbours; others in fewer cases.
TRIED = (*FEWER, *(case for case in OTHERS if case.mechanism.family == "covariance"))


class Fault(NamedTuple):
    """What is planted, the law it breaks, and the cases in which it is there."""

    plant: Callable[[pytest.MonkeyPatch], None]
    law: Law
    adjacency: str = ""
    centred: bool | None = None
    mechanism: str = "gauss"
    verb: str = ""
    family: str = ""
    noise: str = ""
    more: str = ""

    def cases(self) -> list[Case]:
        return [
            case
            for case in (OTHER_VERBS if self.verb else TRIED)
            if case.mechanism.name == self.mechanism
            and self.adjacency in ("", case.adjacency)
            and self.centred in (None, case.centred)
            and self.verb in ("", case.verb.name)
            and self.more in ("", case.verb.suffix)
            and self.family in ("", case.mechanism.family)
            and self.noise in ("", case.mechanism.law)
        ]


def _of_mechanism(law: Callable[[cards.Mechanism], None]) -> Law:
    return lambda case: law(case.mechanism)


def _of_house(law: Callable[[], None]) -> Law:
    return lambda case: law()


def _one_odd_row(case: Case) -> None:
    rows.odd_rows_pass_in_silence(case, {"a": [None] * 4})


def _of_clipped_rows(case: Case) -> None:
    sums.chunks_and_threads_are_irrelevant(sums.Clipped(12))


def _of_unit_rows(case: Case) -> None:
    places.a_row_is_coded_alike_everywhere("unit")


def _quoted(case: Case) -> None:
    def fit() -> list[str]:
        return [repr(case.fit(canary.FORMULA, canary.rare(), canary.BOOK))]

    canary.tells_nothing(canary.heard(fit))


FAULTS = (
    Fault(row.rows_are_not_held_in_the_ball, BOUND),
    Fault(row.rows_are_rounded_after_the_norm_is_held, BOUND),
    Fault(more.cells_are_rounded_up, BOUND),
    Fault(row.incomplete_rows_are_counted, BOUND, "add-remove"),
    Fault(row.incomplete_rows_are_counted, answer.a_huge_budget_gives_the_exact_answer),
    Fault(row.missing_numbers_become_zero, answer.a_huge_budget_gives_the_exact_answer),
    Fault(row.rows_are_summed_in_single_precision, sums.chunks_and_threads_are_irrelevant),
    Fault(row.sums_are_dropped_at_the_carry, sums.chunks_and_threads_are_irrelevant),
    Fault(row.an_empty_sum_is_warned_of, _one_odd_row),
    Fault(noisy.replacing_a_row_is_taken_for_adding_one, BOUND, "replace"),
    Fault(noisy.the_weights_are_left_out_of_the_sensitivity, BOUND, centred=True),
    Fault(noisy.the_count_weighs_twice_what_is_paid, BOUND),
    Fault(noisy.the_mean_is_planned_with_too_little_noise, BOUND, centred=True),
    Fault(noisy.the_sensitivity_is_twice_too_large, BOUND),
    Fault(noisy.the_noise_is_halved, FOLLOWS, centred=True),
    Fault(noisy.the_noise_is_ten_percent_too_small, FOLLOWS, centred=True),
    Fault(noisy.the_noise_is_uniform, FOLLOWS, centred=True),
    Fault(noisy.no_noise_off_the_diagonal, FOLLOWS, centred=True),
    Fault(noisy.the_diagonal_has_the_noise_of_the_rest, FOLLOWS, centred=True),
    Fault(noisy.both_triangles_have_noise_of_their_own, FOLLOWS, centred=True),
    Fault(noisy.one_draw_serves_the_whole_matrix, FOLLOWS, centred=True),
    Fault(noisy.the_noise_is_used_again, FOLLOWS, centred=True),
    Fault(noisy.the_noise_is_used_again, repeat.never_the_same_twice),
    Fault(noisy.the_noise_is_larger_for_more_rows, noise.the_noise_is_the_same_for_any_rows),
    Fault(noisy.the_release_states_half_its_noise, noise.the_release_states_its_noise),
    Fault(noisy.the_laplace_sensitivity_is_halved, BOUND, mechanism="laplace"),
    Fault(noisy.the_laplace_noise_is_gaussian, FOLLOWS, mechanism="laplace"),
    Fault(noisy.the_noise_is_halved, FOLLOWS, mechanism="iterative"),
    Fault(noisy.the_noise_is_used_again, FOLLOWS, mechanism="separate"),
    Fault(noisy.an_increment_has_no_noise, FOLLOWS, "replace", mechanism="shells"),
    Fault(noisy.delta_is_spent_twice, plan.the_events_cost_what_was_asked, mechanism="separate"),
    Fault(noisy.eps_is_spent_twice, plan.the_events_cost_what_was_asked, mechanism="separate_pure"),
    Fault(
        noisy.the_trace_is_capped_at_a_tenth,
        answer.a_huge_budget_gives_the_exact_answer,
        mechanism="projection",
    ),
    Fault(
        noisy.no_noise_is_no_matter,
        plan.no_noise_outside_a_simulation_is_refused,
        mechanism="none",
    ),
    Fault(
        noisy.directions_are_drawn_twice_as_close,
        sensitivity.no_direction_is_drawn_closer_than_paid_for,
        mechanism="ppca",
    ),
    Fault(row.a_level_of_clipped_rows_forgets_a_band, _of_clipped_rows),
    Fault(more.lengths_are_added_in_any_order, _of_unit_rows),
    Fault(house.the_ledger_is_not_charged, ledger.the_ledger_records_what_the_plan_costs),
    Fault(house.the_ledger_is_not_charged, ledger.the_ledger_is_charged_before_a_row_is_read),
    Fault(
        house.the_ledger_is_charged_after_reading, ledger.the_ledger_is_charged_before_a_row_is_read
    ),
    Fault(
        house.the_rows_are_measured_before_the_charge,
        ledger.the_ledger_is_charged_before_a_row_is_read,
    ),
    Fault(
        house.a_stream_is_taken_for_a_table,
        ledger.a_stream_is_refused_before_the_charge,
        mechanism="coinpress",
    ),
    Fault(
        house.the_ledger_forgets_an_event,
        ledger.the_ledger_records_what_the_plan_costs,
        mechanism="separate",
    ),
    Fault(house.the_ledger_charges_what_it_refuses, ledger.the_ledger_refuses_before_a_row_is_read),
    Fault(house.the_plan_draws_random_words, plan.plan_is_a_pure_function_of_public_facts),
    Fault(house.the_verb_takes_a_seed, _of_house(plan.no_verb_has_a_seed)),
    Fault(house.a_simulation_is_not_repeated, repeat.a_simulation_repeats_and_is_stamped),
    Fault(house.a_simulation_is_not_stamped, repeat.a_simulation_repeats_and_is_stamped),
    Fault(house.the_card_has_no_source, _of_mechanism(cards.the_card_is_complete)),
    Fault(house.the_docstring_has_no_numerics, _of_mechanism(cards.the_docstring_has_its_sections)),
    Fault(house.a_statistic_can_be_copied, _of_house(secrets.private_values_show_nothing_and_stay)),
    Fault(house.a_design_shows_its_rows, _of_house(secrets.private_values_show_nothing_and_stay)),
    Fault(house.a_result_holds_the_rows, secrets.a_result_holds_nothing_of_the_rows),
    Fault(house.a_cell_is_quoted_in_an_error, _quoted),
)
CLIPPED = family.values_are_not_clipped_to_their_bounds
WITHOUT_TWO = family.replacing_a_counted_row_is_taken_for_adding_one
FAULTS_OF_FAMILIES = (
    Fault(CLIPPED, EXACT, mechanism="adassp"),
    Fault(
        noisy.replacing_a_row_is_taken_for_adding_one,
        NEAR,
        "replace",
        mechanism="moments",
        noise="gaussian",
    ),
    Fault(noisy.the_noise_is_halved, FOLLOWS, mechanism="moments"),
    Fault(
        family.a_residual_is_not_clipped,
        NEAR,
        mechanism="gradients",
        verb="dp_glm",
        more="-poisson",
    ),
    Fault(more.the_norm_of_the_constant_is_forgotten, NEAR, "replace", mechanism="gradients"),
    Fault(
        *(more.a_predictor_is_a_product_of_floats, places.a_row_adds_the_same_everywhere),
        *("replace", None, "gradients"),
    ),
    Fault(family.a_gradient_has_no_noise, FOLLOWS, "replace", mechanism="gradients"),
    Fault(family.the_noise_of_gradients_is_halved, FOLLOWS, "replace", mechanism="gradients"),
    Fault(family.the_minimum_is_not_masked, FOLLOWS, "replace", mechanism="objective"),
    Fault(family.the_objective_is_tilted_by_half, FOLLOWS, "replace", mechanism="objective"),
    Fault(family.the_noise_of_the_minimum_is_halved, FOLLOWS, "replace", mechanism="output"),
    Fault(WITHOUT_TWO, NEAR, "replace", mechanism="geometric"),
    Fault(WITHOUT_TWO, NEAR, "replace", mechanism="gaussian"),
    Fault(
        *(family.the_sensitivity_of_counts_forgets_the_tables, NEAR),
        mechanism="gaussian",
        verb="dp_summary",
    ),
    Fault(family.the_noise_of_counts_is_halved, FOLLOWS, mechanism="geometric"),
    Fault(family.the_noise_of_counts_is_halved, FOLLOWS, mechanism="gaussian"),
    Fault(family.the_noise_of_counts_is_halved, FOLLOWS, mechanism="geometric", verb="dp_table"),
    Fault(family.the_noise_of_counts_is_halved, FOLLOWS, mechanism="rounds", verb="dp_var"),
    Fault(
        family.each_round_takes_the_whole_budget,
        plan.the_events_cost_what_was_asked,
        mechanism="rounds",
        verb="dp_var",
    ),
    Fault(family.quantiles_are_planned_twice_as_close, NEAR, mechanism="exponential"),
    Fault(
        *(family.replacing_a_row_of_rounds_is_taken_for_adding_one, NEAR, "replace"),
        mechanism="refined",
    ),
    Fault(family.the_noise_of_rounds_is_halved, FOLLOWS, mechanism="refined"),
    Fault(family.a_tree_is_taken_for_its_cells, NEAR, mechanism="tree", family="quantiles"),
    Fault(family.the_noise_of_rounds_is_halved, FOLLOWS, mechanism="tree", family="quantiles"),
    Fault(family.blocks_are_taken_for_cells, NEAR, mechanism="grid"),
    Fault(family.groups_are_no_reason_to_pay_more, NEAR, "replace", mechanism="exponential"),
    Fault(family.quantiles_are_drawn_twice_as_close, FOLLOWS, mechanism="exponential"),
    Fault(
        family.a_histogram_forgets_the_ledger,
        ledger.the_ledger_records_what_the_plan_costs,
        mechanism="geometric",
        verb="dp_hist",
    ),
    Fault(
        family.a_quantile_forgets_the_ledger,
        ledger.the_ledger_refuses_before_a_row_is_read,
        mechanism="exponential",
    ),
    Fault(house.the_ledger_is_not_charged, EARLY, mechanism="geometric", verb="dp_ttest"),
    Fault(family.coefficients_are_measured_before_the_charge, EARLY, mechanism="objective"),
    Fault(family.joint_rows_are_read_before_the_charge, EARLY, mechanism="adassp"),
)


ALL = [*FAULTS, *FAULTS_OF_FAMILIES]


@pytest.mark.expensive
@pytest.mark.parametrize("fault", ALL, ids=lambda fault: fault.plant.__name__)
def test_a_planted_fault_turns_its_law_red(fault: Fault, monkeypatch: pytest.MonkeyPatch):
    fault.plant(monkeypatch)
    for case in fault.cases():
        with pytest.raises(RED):
            fault.law(case)


@pytest.mark.expensive
def test_the_laws_called_here_are_green_without_a_fault():
    for law in (_one_odd_row, _quoted):
        for case in ANY:
            law(case)


def test_every_fault_has_a_case():
    assert [fault.plant.__name__ for fault in ALL if not fault.cases()] == []
