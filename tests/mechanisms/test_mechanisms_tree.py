"""The tree of counts: neighbours by brute force, and the law it chooses."""

import pytest
from ordered_neighbours import SHAPES, declared, facts_of, farthest

import dpmodels as dp
from dpmodels.errors import ArgumentError
from dpmodels.mechanisms import Tree
from dpmodels.postprocess.hierarchy import best_fanout, levels_of, range_counts
from dpmodels.privacy import ZCDP, ApproxDP, GaussianEvent, LaplaceEvent, PureDP


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("fanout", [2, 3, 9])
@pytest.mark.parametrize("shape", SHAPES)
def test_neighbours_are_as_far_apart_as_is_paid_for(shape, fanout, relation):
    mechanism, facts = Tree(fanout), facts_of(shape, relation)
    plan = mechanism.plan(facts, PureDP(1.0))
    pair_distance, two, single = farthest(mechanism, plan)
    assert pair_distance == pytest.approx(declared(plan.events, 1))
    # Each of the releases that Laplace noise is charged as changes one count by 1.
    assert single == 1
    assert plan.events[-1].count == levels_of(shape[1], fanout) * (
        2 if relation == "replace" else 1
    )
    plan = mechanism.plan(facts, ZCDP(0.1))
    if isinstance(plan.events[-1], GaussianEvent):
        _, two, _ = farthest(mechanism, plan)
        assert two == pytest.approx(declared(plan.events, 2))


@pytest.mark.parametrize("guarantee", [PureDP(0.1), ApproxDP(0.1, 1e-6), ZCDP(0.01)])
def test_the_law_and_the_fan_out_are_those_of_least_noise_in_ranges(guarantee):
    facts = facts_of((1, 4096), "add-remove")
    tree_plan = Tree().plan(facts, guarantee)
    _, fanout = Tree().above(tree_plan)
    laplace = isinstance(tree_plan.events[-1], LaplaceEvent)
    assert fanout == best_fanout(4096, squared=laplace)
    smallest = tree_plan.noise_sd**2 * range_counts(4096, fanout)
    for larger_fanout in (2, 4, 8, 64, 4096):
        plan = Tree(larger_fanout).plan(facts, guarantee)
        # Up to the tenth that fewer levels may cost.
        assert smallest <= 1.1 * plan.noise_sd**2 * range_counts(4096, larger_fanout) * (1 + 1e-9)


@pytest.mark.parametrize("fanout", [1, 0, -2, 2.0, True, "2"])
def test_a_node_has_two_children_or_more(fanout):
    with pytest.raises(ArgumentError, match=r"fanout=.*expected a whole number from 2"):
        dp.mechanisms.Tree(fanout)
