"""The square-root factorisation: neighbours by brute force, and how near the best it is."""

import math
from itertools import combinations

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.mechanisms import Factorisation
from dpmodels.mechanisms.choose_counts import auto_running
from dpmodels.mechanisms.counts.tree import MOST_CELLS, squared_move
from dpmodels.mechanisms.protocol import CountFacts
from dpmodels.noise import source
from dpmodels.postprocess.hierarchy import line, prefix_variances
from dpmodels.postprocess.square_root import UNIT, SquareRoot, coefficients
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, adjacency
from dpmodels.statistics import Statistic


def facts(groups, cells, relation="add-remove"):
    return CountFacts(1, groups * cells + 1, False, adjacency(relation), (groups, cells))


def rows_released(groups, cells):
    """What each row that there may be adds to the integers, by the definition; last one of none."""
    steps = coefficients(cells).tolist()
    lines = []
    for group in range(groups):
        for cell in range(cells):
            column = [0] * (groups * cells + 1)
            first = group * cells
            column[first + cell : first + cells] = steps[: cells - cell]
            lines.append(column)
    return [*lines, [0] * (groups * cells) + [UNIT]]


def squared(left, right):
    return sum((a - b) ** 2 for a, b in zip(left, right, strict=True))


@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("cells", range(1, 9))
def test_neighbours_are_as_far_as_declared_and_no_farther(groups, cells):
    rows = rows_released(groups, cells)
    none = [0] * len(rows[0])
    removed = max(squared(row, none) for row in rows)
    replaced = max(squared(*pair) for pair in combinations(rows, 2))
    assert squared_move(cells, groups, replaced=False) == removed
    assert squared_move(cells, groups, replaced=True) == replaced


@pytest.mark.parametrize("cells", [365, 1_000])
def test_the_farthest_replacement_of_many_periods_is_declared(cells):
    """All pairs of columns, by their inner products."""
    steps = coefficients(cells).astype(float)
    columns = np.array(
        [[steps[i - j] if i >= j else 0 for i in range(cells)] for j in range(cells)]
    )
    inner = columns @ columns.T
    squares = np.diagonal(inner)
    distances = squares[:, None] + squares - 2 * inner
    declared = squared_move(cells, 1, replaced=True)
    assert declared == max(distances.max(), squares.max() + UNIT**2)
    assert declared < 0.9 * squared_move(cells, 2, replaced=True)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("groups", [1, 2])
def test_the_noise_hides_the_sensitivity_of_what_is_released(relation, groups):
    """Rows cross with the noise taken out: what a changed row moves the release by."""
    cells, budget = 5, ZCDP(0.3)
    mechanism = Factorisation()
    plan = mechanism.plan(facts(groups, cells, relation), budget)

    def released(counts):
        exact = np.array(counts, dtype=object)
        with dp.simulation(seed=7):
            return mechanism.release(Statistic("counts", exact, 3), plan, source()).values

    none = released([0] * (groups * cells + 1))
    rows = [released(row) - none for row in np.eye(groups * cells + 1, dtype=int).tolist()]
    pairs = combinations(rows, 2) if relation == "replace" else ((row, 0.0) for row in rows)
    distance = max(float(np.linalg.norm(left - right)) for left, right in pairs)
    sd = distance / math.sqrt(2 * budget.rho)
    assert plan.noise_sd == pytest.approx(sd, rel=1e-9)
    assert plan.noise_sd >= sd * (1 - 1e-12)


@pytest.mark.parametrize("cells", [64, 365, 4_096, 32_768])
def test_the_mean_square_of_totals_is_near_the_least_there_is(cells):
    """No factorisation has less than the squared nuclear norm over the cells (Li and Miklau)."""
    squares = squared_move(cells, 1, replaced=False) / UNIT**2
    mean_square = squares * SquareRoot(cells).prefix_variances.mean()
    angles = (2 * np.arange(1, cells + 1) - 1) * np.pi / (4 * cells + 2)
    smallest = (0.5 / np.sin(angles)).sum() ** 2 / cells**2
    assert 1 < mean_square / smallest < 1.2
    assert squares < 1.1 + math.log(cells) / math.pi


def test_totals_are_quieter_than_those_of_a_tree():
    budget, cells = ZCDP(0.1), 4_096
    name, reason = auto_running(facts(1, cells), budget)
    assert name == "factorisation"
    noise_sd = Factorisation().plan(facts(1, cells), budget).noise_sd
    total = noise_sd**2 * SquareRoot(cells).prefix_variances.mean()
    for fanout in (2, 4, 8, 16):
        above = line(cells, fanout)
        weight, added = prefix_variances(above)
        tree = len(above.sizes) / (2 * budget.rho) * (weight**2 * above.whole_variance + added)
        assert total < 0.8 * tree.mean()
    assert f"{math.sqrt(total):.3g}" in reason


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("mechanism", ["tree", "factorisation"])
def test_the_predicted_noise_is_that_of_the_result(relation, mechanism):
    book = dp.codebook(t=dp.Integer(0, 79), g=["u", "v"])
    rows = {"t": [5, 60] * 40, "g": ["u", "v"] * 40}
    words = {"codebook": book, "adjacency": relation, "budget": ZCDP(0.2)}
    fit = dp.dp_series("~ g", rows, time="t", mechanism=mechanism, **words)
    root_mean_square = math.sqrt((fit.running()["noise_sd"] ** 2).mean())
    assert f"{root_mean_square:.3g}" in auto_running(facts(2, 80, relation), ZCDP(0.2))[1]


@pytest.mark.parametrize(
    ("cells", "budget", "name"),
    [
        (400, PureDP(1.0), "tree"),
        (MOST_CELLS + 1, ZCDP(1.0), "tree"),
        (MOST_CELLS, ZCDP(1.0), "factorisation"),
        (4_096, ApproxDP(0.2, 1e-6), "factorisation"),
        (365, ApproxDP(1.0, 1e-6), "tree"),
    ],
)
def test_the_choice_is_by_public_facts(cells, budget, name):
    assert auto_running(facts(1, cells), budget)[0] == name


def test_what_it_cannot_count_is_refused():
    with pytest.raises(ArgumentError, match="up to 32,768 cells in one order; write"):
        Factorisation().plan(facts(1, MOST_CELLS + 1), ZCDP(1.0))
    square = CountFacts(1, 17, False, adjacency("replace"), (1, 4, 4))
    with pytest.raises(ArgumentError, match=r"shape \(4, 4\)"):
        Factorisation().plan(square, ZCDP(1.0))
    with pytest.raises(BudgetError, match="write"):
        Factorisation().plan(facts(1, 9), PureDP(1.0))
    with pytest.raises(BudgetError, match="larger"):
        Factorisation().plan(facts(1, 9), ZCDP(1e-22))
