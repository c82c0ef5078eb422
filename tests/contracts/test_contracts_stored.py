"""Seeded releases and plans of every mechanism are those of the stored list.

`python tests/golden/record.py` records them again, in a commit that says why.
"""

from pathlib import Path

import numpy as np
import pytest
from contract_cases import CASES, in_turn
from folded import each
from released_numbers import like_the_recorded
from stored_cases import key_of, plan_numbers, release_numbers

STORED = np.load(Path(__file__).with_name("mechanisms.npz"))
LISTED = {
    *("adaptive", "adassp", "bracketed", "capped", "coinpress", "exponential", "gauss", "graph"),
    *("factorisation", "geometric", "gradients", "grid", "marginals", "moments", "objective"),
    *("paired", "partition", "peeling", "permute_and_flip", "ppca", "quilt", "ranges", "refined"),
    *("residual", "rounds", "rounds_pure", "scores", "separate", "tree"),
}
# Of few rows its axes follow from noise, and are those of the kernel of the linear algebra.
DELICATE = ("scores", "scores_pure")
ORDINARY = [
    case
    for case in in_turn(CASES, by=lambda case: (case.mechanism, case.kind))
    if case.mechanism.name not in {*LISTED, *DELICATE}
]
# An optimisation of its scales takes 50 ms a plan.
SLOW_PLANS = ("adaptive", "adaptive_pure")


def require_stored(key: str, numbers: list[float]) -> None:
    np.testing.assert_allclose(numbers, STORED[key], rtol=1e-9, atol=1e-12)


def test_every_case_is_stored():
    kinds = ("release", "plan")
    assert set(STORED.files) == {key_of(kind, case) for kind in kinds for case in CASES}


@like_the_recorded
@pytest.mark.kernels
@pytest.mark.expensive
@each("case", [case for case in CASES if case.mechanism.name not in SLOW_PLANS])
def test_a_plan_is_the_stored_one(case):
    require_stored(key_of("plan", case), plan_numbers(case))


@like_the_recorded
@pytest.mark.kernels
@pytest.mark.expensive
@each("case", ORDINARY)
def test_mechanisms_that_no_verb_of_the_list_names_have_their_stored_release(case):
    require_stored(key_of("release", case), release_numbers(case))


@pytest.mark.product
@each("case", CASES)
def test_a_release_and_a_plan_are_the_stored_ones(case):
    key, numbers = key_of("release", case), release_numbers(case)
    if case.mechanism.name in DELICATE:
        assert len(numbers) == len(STORED[key])
    else:
        require_stored(key, numbers)
    require_stored(key_of("plan", case), plan_numbers(case))
