"""Counts of blocks of a plane: what a row moves, what is paid, the law that is chosen."""

from itertools import product

import numpy as np
import pytest

from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.mechanisms.counts import Grid
from dpmodels.mechanisms.protocol import CountFacts
from dpmodels.postprocess.plane import block_sizes, plane
from dpmodels.privacy import ZCDP, ApproxDP, LaplaceEvent, PureDP, adjacency, total_eps, total_rho
from dpmodels.statistics.counts import count_sensitivity


def facts(sides, groups=1, relation="replace"):
    size = groups * int(np.prod(sides)) + 1
    return CountFacts(1, size, False, adjacency(relation), (groups, *sides))


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize(("sides", "side"), [((4, 2), 2), ((2, 4), 2), ((3, 2), 2), ((2, 3), 4)])
def test_neighbours_move_blocks_by_what_is_declared_and_reach_it(relation, sides, side):
    """Every cell, or none, that a row leaves and enters, in planes of up to eight cells."""
    neighbours, blocks = adjacency(relation), plane(sides, side)
    cells = int(np.prod(sides))
    units = [*np.eye(cells), np.zeros(cells)]
    gone = units if neighbours.n_public else [np.zeros(cells)]
    largest_moves = {1: 0.0, 2: 0.0}
    for unit, second in product(units, gone):
        # The incomplete rows are counted too.
        last = unit.sum() == 0, neighbours.n_public and second.sum() == 0
        nodes = np.concatenate(blocks.hierarchy.sums((unit - second)[blocks.order]))
        sums = np.append(nodes, float(last[0]) - float(last[1]))
        for norm in largest_moves:
            largest_moves[norm] = max(largest_moves[norm], np.linalg.norm(sums, norm))
    levels = len(block_sizes(sides, side))
    for norm, furthest in largest_moves.items():
        assert furthest == pytest.approx(count_sensitivity(neighbours, levels, norm))


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("sides", [(2, 2), (256, 256), (2048, 2048), (30, 4)])
@pytest.mark.parametrize("guarantee", [PureDP(0.7), ZCDP(0.2), ApproxDP(1.0, 1e-6)], ids=str)
def test_the_noise_is_that_of_what_is_paid(guarantee, sides, relation):
    public_facts = facts(sides, relation=relation)
    plan = Grid().plan(public_facts, guarantee)
    spent = {
        PureDP: lambda: total_eps(plan.events, 0.0),
        ZCDP: lambda: total_rho(plan.events),
        ApproxDP: lambda: total_eps(plan.events, 1e-6),
    }[type(guarantee)]()
    granted = guarantee.rho if isinstance(guarantee, ZCDP) else guarantee.eps
    assert granted * (1 - 1e-4) <= spent <= granted * (1 + 1e-9)
    event = plan.events[-1]
    laplace = isinstance(event, LaplaceEvent)
    side = Grid()._side(public_facts, squared=laplace)
    levels = len(block_sizes(sides, side))
    changed = count_sensitivity(public_facts.adjacency, levels, 1 if laplace else 2)
    assert plan.scale / plan.units_per_row >= changed * event.multiplier / (
        event.count if laplace else 1
    )


def test_gaussian_noise_has_smaller_blocks_than_laplace_noise():
    public_facts = facts((256, 256))
    pure, concentrated = (
        Grid().plan(public_facts, guarantee) for guarantee in (PureDP(1.0), ZCDP(0.5))
    )
    assert pure.events[0].count == 4
    assert concentrated.noise_sd < 1.1 * pure.noise_sd


@pytest.mark.parametrize("side", [1, 0, -3, 2.5, "4", True])
def test_a_block_has_two_children_along_an_axis_or_more(side):
    with pytest.raises(ArgumentError, match="side"):
        Grid(side=side)


@pytest.mark.parametrize("guarantee", [PureDP(1e-15), ZCDP(1e-40)], ids=str)
def test_noise_beyond_meaning_is_refused(guarantee):
    with pytest.raises(BudgetError, match="larger eps"):
        Grid().plan(facts((64, 64)), guarantee)
