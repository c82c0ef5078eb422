"""Every law of sites, under every protocol that the package's table lists."""

import law_canary
import law_ledger
import law_repeat
import law_secrets
import law_sites as sites
import law_sites_sent as told
import pytest
from contract_cases import Law
from site_cases import (
    AGGREGATED,
    BOTH,
    EVERY,
    FIRST,
    LAWFUL,
    NOISES,
    SOME,
    SUMS,
    SiteCase,
    verbs_of_sites,
)

from dpmodels.sites import PROTOCOLS

ON_SOME = (
    sites.the_table_says_who_is_trusted,
    law_ledger.the_ledger_refuses_before_a_row_is_read,
    law_ledger.the_ledger_is_charged_before_a_row_is_read,
    law_ledger.the_ledger_records_what_the_plan_costs,
    law_ledger.a_whole_budget_may_be_spent_at_once,
)
# One for each protocol.
ONE_EACH = (
    law_repeat.a_simulation_repeats_and_is_stamped,
    law_repeat.never_the_same_twice,
    law_secrets.a_result_holds_nothing_of_the_rows,
    told.a_joint_fit_tells_no_cell,
    told.bad_words_of_a_protocol_are_refused_for_free,
)
ADDING = [case for case in FIRST.values() if case.protocol.passes_noise]
MOST = next(iter(FIRST.values()))


def test_every_protocol_and_every_verb_is_tried():
    sites.every_protocol_and_every_verb_is_tried(EVERY, verbs_of_sites())
    sites.every_protocol_and_every_verb_is_tried(SOME, verbs_of_sites())
    assert {case.protocol.trust.name for case in BOTH} == LAWFUL


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_card_is_complete(name: str):
    sites.the_card_is_complete(name)


@pytest.mark.parametrize("case", SUMS, ids=str)
def test_the_integers_are_those_of_one_table(case: SiteCase):
    sites.the_integers_are_those_of_one_table(case)


@pytest.mark.parametrize("case", AGGREGATED, ids=str)
def test_a_trusted_aggregator(case: SiteCase):
    sites.a_trusted_aggregator_releases_what_one_table_would(case)


@pytest.mark.parametrize("case", NOISES, ids=str)
@pytest.mark.parametrize(
    "law",
    [sites.the_noise_is_what_is_stated, sites.the_honest_sites_noise_is_enough],
    ids=lambda law: law.__name__,
)
def test_law_of_the_noise(law: Law, case: SiteCase):
    law(case)


@pytest.mark.parametrize("case", BOTH, ids=str)
def test_neighbours_at_one_site(case: SiteCase):
    sites.neighbours_at_one_site_are_no_farther_than_declared(case)


@pytest.mark.parametrize("case", SOME, ids=str)
@pytest.mark.parametrize("law", ON_SOME, ids=lambda law: law.__name__)
def test_law(law: Law, case: SiteCase):
    law(case)


@pytest.mark.parametrize("case", FIRST.values(), ids=FIRST)
@pytest.mark.parametrize("law", ONE_EACH, ids=lambda law: law.__name__)
def test_law_of_each_protocol(law: Law, case: SiteCase):
    law(case)


@pytest.mark.parametrize("case", ADDING, ids=str)
def test_noise_that_sites_cannot_add(case: SiteCase):
    told.noise_that_sites_cannot_add_is_refused_for_free(case)


@pytest.mark.parametrize("name", sorted(verbs_of_sites()))
def test_bad_calls(name: str):
    case = next(case for case in EVERY if case.verb.name == name)
    for argument, changes, kind in told.BAD:
        told.a_bad_call_on_sites_is_refused_for_free(case, argument, changes, kind)


def test_what_sites_hold_is_not_shown():
    told.what_sites_hold_is_not_shown()


@pytest.mark.parametrize("name", told.LETTERS)
def test_a_letter_tells_no_cell(name: str, tmp_path):
    told.a_letter_tells_no_cell(name, tmp_path)


@pytest.mark.parametrize("give", law_canary.REFUSED_DATA.values(), ids=law_canary.REFUSED_DATA)
def test_no_failure_of_one_site_tells_a_cell(give, tmp_path):
    told.no_failure_of_one_site_tells_a_cell(MOST, give, tmp_path)


@pytest.mark.parametrize("verb", {case.verb: None for case in EVERY}, ids=lambda verb: verb.name)
def test_the_table_of_verbs_says_which_protocols_take_each(verb):
    names = {case.protocol.trust.name for case in EVERY if case.verb is verb}
    in_rounds = {"secure_sum"} if verb.in_rounds else set()
    assert names - {"pooled", "local"} == set(verb.protocols) | in_rounds
