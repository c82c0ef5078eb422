"""Additive statistics: the same integers however the rows come."""

import law_sums
import pytest
from contract_cases import ANY, FEWER, Case

from dpmodels.noise.lattice import MAX_BITS

LAWS = (
    law_sums.parts_add_up_to_the_pooled_rows,
    law_sums.the_order_of_rows_is_irrelevant,
    law_sums.chunks_and_threads_are_irrelevant,
)


@pytest.mark.parametrize("case", FEWER[::2], ids=str)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_law(law, case: Case):
    law(case)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("kind", [law_sums.Clipped, law_sums.Turned])
@pytest.mark.parametrize("bits", [MAX_BITS, 12])
def test_law_of_other_statistics(law, kind, bits: int):
    law(kind(bits))


@pytest.mark.parametrize("case", ANY[:2], ids=str)
def test_the_container_is_irrelevant(case: Case, tmp_path):
    law_sums.the_container_is_irrelevant(case, tmp_path)
