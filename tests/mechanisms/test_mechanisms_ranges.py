"""Two rounds of counts by cell: neighbours by brute force, and what the rounds cost."""

from itertools import product

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError
from dpmodels.formula.sides import parse_sides
from dpmodels.mechanisms import Geometric, Ranges
from dpmodels.mechanisms.protocol import CountFacts
from dpmodels.models.bounds import numbers
from dpmodels.noise import source
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, adjacency, total_eps, total_rho
from tests.private_rows import private_cells

BOOK = dp.codebook(a=(-1, 3), k=dp.Numeric(0, 8, step=1))
# At, between and beyond the ends of cells, and none.
VALUES = (-9.0, -1.0, 0.0, 1e-7, 1.0, 3.0, float("inf"), float("nan"), None, "many")


def bound(rows):
    sides = parse_sides("~ a + k", BOOK)
    return private_cells(sides.text, rows, sides.codebook, numbers(sides))


def planned(guarantee, relation="replace", variables=2):
    return Ranges().plan(CountFacts(variables, variables, False, adjacency(relation)), guarantee)


def test_neighbours_move_one_row_a_variable():
    """Brute force: any row for any other, or for none, in cells of any ends."""
    ends = (np.array([-1.0, -0.5, 0.0, 1e-7, 3.0]), np.array([0.0, 0.5, 4.5, 8.0]))

    def counted(a, k):
        statistic = Ranges().measure(bound({"a": [a], "k": [k]}), planned(PureDP(1.0)))
        return statistic.cut(ends).cross()[0]

    counts = [counted(a, k) for a, k in product(VALUES, (0, 1, 7, 20, None))]
    assert {tuple(np.add.reduceat(table, [0, 5])) for table in counts} == {(1, 1)}
    distances = [np.abs(a - b) for a, b in product(counts, repeat=2)]
    assert max(distance.sum() for distance in distances) == 4
    assert max((distance**2).sum() for distance in distances) == 4


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize(
    "guarantee", [PureDP(0.1), ZCDP(0.01), ApproxDP(0.1, 1e-6), ApproxDP(0.1, 1e-300)]
)
def test_both_rounds_cost_what_was_asked(relation, guarantee):
    for variables in (1, 10):
        plan = planned(guarantee, relation, variables)
        if isinstance(guarantee, ZCDP):
            assert total_rho(plan.events) == pytest.approx(guarantee.rho)
            continue
        spent = total_eps(plan.events, getattr(guarantee, "delta", 0.0))
        assert guarantee.eps * 0.999 < spent <= guarantee.eps * (1 + 1e-9)


def test_a_delta_makes_the_noise_of_many_variables_less():
    pure, normal = (
        planned(guarantee, variables=10) for guarantee in (PureDP(0.1), ApproxDP(0.1, 1e-6))
    )
    assert normal.noise_sd < 0.6 * pure.noise_sd
    assert planned(ApproxDP(0.1, 1e-6), variables=1).noise_sd <= (
        planned(PureDP(0.1), variables=1).noise_sd
    )


def test_the_second_round_sees_what_the_first_released():
    """Cells of the second round are public functions of the first's noisy counts."""
    rng = np.random.default_rng(2)
    rows = {"a": rng.normal(1.0, 0.01, 4000), "k": rng.integers(0, 3, 4000)}
    plan = planned(PureDP(20.0))
    with dp.simulation(seed=1):
        release = Ranges().release(Ranges().measure(bound(rows), plan), plan, source())
    stops = np.cumsum([size + 1 for size in release.sizes])[:-1]
    first, _, second, steps = np.split(release.ends, stops)
    near_one = second[(second > 0.8) & (second < 1.2)]
    assert len(near_one) > 40 > 4 > ((first > 0.8) & (first < 1.2)).sum()
    assert (steps[1:-1] % 1 == 0.5).all()
    assert release.rows == 4000


def test_a_statistic_of_another_mechanism_is_refused():
    plan = planned(PureDP(1.0))
    statistic = Geometric().measure(bound({"a": [1.0], "k": [1]}), plan)
    with pytest.raises(ArgumentError, match="what measure"):
        Ranges().release(statistic, plan, source())
