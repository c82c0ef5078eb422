"""Statistics of each row alone, wherever it stands."""

import law_places
import pytest
from contract_cases import EACH_VERB, FEWER, Case

# Neighbours play no part; weights and the constant before the terms do.
WAYS = ("regression", "coefficients")
EVERY = dict.fromkeys(
    (*FEWER[::2], *(one for one in FEWER if one.mechanism.family in WAYS), *EACH_VERB)
)


@pytest.mark.parametrize("name", law_places.CODINGS)
def test_a_row_is_coded_alike_everywhere(name: str):
    law_places.a_row_is_coded_alike_everywhere(name)


@pytest.mark.parametrize("case", EVERY, ids=str)
def test_a_row_adds_the_same_everywhere(case: Case):
    law_places.a_row_adds_the_same_everywhere(case)
