"""Every fault planted between sites has to turn its law red."""

from collections.abc import Callable
from typing import NamedTuple

import law_ledger as ledger
import law_sites as sites
import law_sites_sent as told
import planted_house as house
import planted_sites as plant
import pytest
from site_cases import BOTH, FIRST, NOISES, SUMS, SiteCase
from test_planted_faults import RED

from dpmodels.errors import LedgerError

SUMMING = ("cape", "secure_sum")
SAME = sites.the_integers_are_those_of_one_table
STATED = sites.the_noise_is_what_is_stated
ENOUGH = sites.the_honest_sites_noise_is_enough
NEAR = sites.neighbours_at_one_site_are_no_farther_than_declared
COST = ledger.the_ledger_records_what_the_plan_costs


class Fault(NamedTuple):
    """What is planted, the law it breaks, and the protocols in which it is there."""

    plant: Callable[[pytest.MonkeyPatch], None]
    law: Callable[[SiteCase], None]
    cases: tuple[SiteCase, ...]
    protocols: tuple[str, ...] = ()

    def tried(self) -> list[SiteCase]:
        """By one verb of moments and one of counts."""
        return [
            case
            for case in self.cases
            if case.verb.name in ("dp_pca", "dp_cov", "dp_hist")
            and case.protocol == type(case.protocol)()
            and (not self.protocols or case.protocol.trust.name in self.protocols)
        ]


def _of_house(law: Callable[[], None]) -> Callable[[SiteCase], None]:
    return lambda case: law()


ONE, EACH = (FIRST["secure_sum"],), tuple(FIRST.values())
HIDDEN = _of_house(told.what_sites_hold_is_not_shown)
EARLY = told.noise_that_sites_cannot_add_is_refused_for_free
FAULTS = (
    Fault(plant.masks_do_not_cancel, SAME, SUMS, SUMMING),
    Fault(plant.a_site_adds_no_noise, STATED, NOISES, (*SUMMING, "full")),
    Fault(plant.all_sites_draw_the_same_noise, STATED, NOISES, (*SUMMING, "full")),
    Fault(plant.the_noise_is_shared_by_those_who_tell, ENOUGH, NOISES, SUMMING),
    Fault(plant.the_planned_noise_is_stated_for_all, STATED, NOISES, SUMMING),
    Fault(plant.a_site_is_counted_twice, SAME, SUMS),
    Fault(plant.a_site_is_counted_twice, NEAR, BOTH),
    Fault(plant.a_sum_is_read_modulo_less, SAME, SUMS, SUMMING),
    Fault(plant.each_site_is_charged, COST, EACH),
    Fault(house.the_ledger_is_not_charged, COST, EACH),
    Fault(
        plant.rows_are_read_where_sites_are_bound,
        EARLY,
        ONE,
    ),
    Fault(plant.parties_show_their_rows, HIDDEN, ONE),
    Fault(plant.integers_of_a_site_can_be_copied, HIDDEN, ONE),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.plant.__name__)
def test_a_planted_fault_turns_its_law_red(fault: Fault, monkeypatch: pytest.MonkeyPatch):
    tried = fault.tried()
    assert tried
    assert {case.protocol.trust.name for case in tried} >= set(fault.protocols)
    fault.plant(monkeypatch)
    for case in tried:
        with pytest.raises((*RED, LedgerError)):
            fault.law(case)
