"""A plan is a pure function of public facts that pays for itself; no verb has a seed."""

import inspect
from itertools import product

import pytest
from contract_cases import BOOK, FORMULA, LARGE, TINY, USUAL, Case, minefield
from mechanisms import MECHANISMS

import dpmodels as dp
from dpmodels.errors import BudgetError, DPModelsError
from dpmodels.noise import source
from dpmodels.privacy import ZCDP, total_eps, total_rho

PLAN = ("facts", "guarantee")
MEASURE = (("design", "plan"), ("private", "plan"))
RELEASE = ("statistic", "plan", "entropy")
SEEDS = ("seed", "random_state", "rng", "generator")


def plan_is_a_pure_function_of_public_facts(case: Case) -> None:
    strategy = case.mechanism.make()
    assert tuple(inspect.signature(strategy.plan).parameters) == PLAN
    assert tuple(inspect.signature(strategy.measure).parameters) in MEASURE
    assert tuple(inspect.signature(strategy.release).parameters) == RELEASE
    with dp.simulation(seed=1):
        plans = [case.planned(facts) for facts in (*case.sizes, *case.sizes)]
        after = source().words(4).tolist()
    with dp.simulation(seed=1):
        assert source().words(4).tolist() == after, "a plan draws random words"
    # As text, since nan stands for a part that is not released.
    again = [case.planned(facts) for facts in case.sizes]
    assert repr(plans) == repr([*again, *again])
    free = case.mechanism.baseline or case.mechanism.open
    for facts, plan in zip(case.sizes, again, strict=True):
        assert plan.facts == facts
        assert plan.guarantee == case.guarantee
        assert bool(plan.events) != free


def the_events_cost_what_was_asked(case: Case) -> None:
    """At most what was asked, for any option and size."""
    for strategy, facts in product(case.mechanism.variants(), case.sizes):
        for guarantee in (case.guarantee, LARGE[case.kind], TINY[case.kind]):
            try:
                with case.inside:
                    plan = strategy.plan(facts, guarantee)
            except BudgetError:
                assert guarantee is TINY[case.kind], "a usual budget is refused"
                continue
            assert plan.guarantee == guarantee
            if isinstance(guarantee, ZCDP):
                spent, rho = total_rho(plan.events), guarantee.rho
            else:
                rho = guarantee.eps
                spent = total_eps(plan.events, getattr(guarantee, "delta", 0.0))
            assert spent <= rho * (1 + 1e-9), f"{facts}: {spent} of {rho}"


def plan_refuses_what_it_cannot_give(case: Case) -> None:
    mechanism = case.mechanism
    mechanisms_named = [
        value
        for value in MECHANISMS
        if (value.name, value.family) == (mechanism.name, mechanism.family)
    ]
    options = {kind for value in mechanisms_named for kind in value.takes}
    for kind, guarantee in USUAL.items():
        if kind in options:
            assert case.planned(case.sizes[0], guarantee).guarantee == guarantee
            continue
        with pytest.raises(BudgetError, match="write"):
            case.planned(case.sizes[0], guarantee)
        ledger = dp.Ledger(budget=guarantee, adjacency=case.adjacency)
        with pytest.raises(BudgetError, match="write"):
            case.ask(minefield(), budget=guarantee, ledger=ledger)
        assert ledger.entries == (), "a refusal was charged"


def no_noise_outside_a_simulation_is_refused(case: Case) -> None:
    """A mechanism without noise works inside ``dp.simulation`` only."""
    ledger = dp.Ledger(budget=case.guarantee, adjacency=case.adjacency)
    with pytest.raises(DPModelsError, match="simulation"):
        dp.dp_pca(
            FORMULA,
            minefield(),
            codebook=BOOK,
            budget=case.guarantee,
            adjacency=case.adjacency,
            center=case.centred,
            mechanism=case.mechanism.name,
            ledger=ledger,
        )
    assert ledger.entries == (), "a refusal was charged"


# What they give is stamped, and private of nothing.
SIMULATED = ("simulation", "evaluate")


def no_verb_has_a_seed() -> None:
    verbs = {name: getattr(dp, name) for name in dp.__all__ if callable(getattr(dp, name))}
    assert {"dp_pca", "load", "simulation", "codebook"} <= set(verbs)
    for name, verb in verbs.items():
        seeds = set(inspect.signature(verb).parameters) & set(SEEDS)
        assert seeds == ({"seed"} if name in SIMULATED else set()), f"{name} takes {seeds}"
        for method, function in inspect.getmembers(verb, inspect.isroutine):
            if not method.startswith("_") and inspect.isclass(verb):
                assert not set(inspect.signature(function).parameters) & set(SEEDS)
