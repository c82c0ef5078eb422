"""A plan is a pure function of public facts; no verb has a seed."""

import inspect

import pytest
from contract_cases import USUAL, Case

import dpmodels as dp
from dpmodels.errors import BudgetError
from dpmodels.mechanisms import Facts
from dpmodels.noise import source
from dpmodels.privacy import adjacency

PLAN = ("facts", "guarantee")
RELEASE = ("statistic", "plan", "entropy")
SEEDS = ("seed", "random_state", "rng", "generator")


def plan_is_a_pure_function_of_public_facts(case: Case) -> None:
    strategy = case.mechanism.make()
    assert tuple(inspect.signature(strategy.plan).parameters) == PLAN
    assert tuple(inspect.signature(strategy.release).parameters) == RELEASE
    with dp.simulation(seed=1):
        plans = [case.plan(4), case.plan(4)]
        after = source().words(4).tolist()
    with dp.simulation(seed=1):
        assert source().words(4).tolist() == after, "a plan draws random words"
    # As text, since nan stands for a part that is not released.
    assert repr(plans[0]) == repr(plans[1]) == repr(case.plan(4))
    facts = Facts(4, adjacency(case.adjacency), centred=case.centred)
    assert plans[0].facts == facts
    assert plans[0].guarantee == case.guarantee
    assert plans[0].lattice.columns == 4
    assert plans[0].events


def plan_refuses_what_it_cannot_give(case: Case) -> None:
    for kind, guarantee in USUAL.items():
        if kind in case.mechanism.takes:
            assert case.plan(3, guarantee).guarantee == guarantee
            continue
        with pytest.raises(BudgetError, match="write"):
            case.plan(3, guarantee)


def no_verb_has_a_seed() -> None:
    verbs = {name: getattr(dp, name) for name in dp.__all__ if callable(getattr(dp, name))}
    assert {"dp_pca", "load", "simulation", "codebook"} <= set(verbs)
    for name, verb in verbs.items():
        found = set(inspect.signature(verb).parameters) & set(SEEDS)
        assert found == ({"seed"} if name == "simulation" else set()), f"{name} takes {found}"
        for method, function in inspect.getmembers(verb, inspect.isroutine):
            if not method.startswith("_") and inspect.isclass(verb):
                assert not set(inspect.signature(function).parameters) & set(SEEDS)
