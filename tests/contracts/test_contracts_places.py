"""Statistics of each row alone, wherever it stands."""

import law_places
import pytest
from contract_cases import EACH_VERB, FEWER, Case

# The guarantee plays no part; weights and the constant before the terms do.
ASKED_APART = ("regression", "coefficients")
EVERY = {
    (case.mechanism.name, case.verb, case.way if case.mechanism.family in ASKED_APART else ""): case
    for case in (*FEWER, *EACH_VERB)
}


@pytest.mark.parametrize("name", law_places.CODINGS)
def test_a_row_is_coded_alike_everywhere(name: str):
    law_places.a_row_is_coded_alike_everywhere(name)


@pytest.mark.expensive
@pytest.mark.parametrize("case", EVERY.values(), ids=str)
def test_a_row_adds_the_same_everywhere(case: Case):
    law_places.a_row_adds_the_same_everywhere(case)
