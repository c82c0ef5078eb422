"""The automatic choice: public facts in, a name and a sentence out."""

import math
import re
import time

import numpy as np
import pandas as pd
import pytest
from folded import each

import dpmodels as dp
from dpmodels.mechanisms import COVARIANCE, SUBSPACE, Facts, Rounds, RoundsPure
from dpmodels.mechanisms.choose_moments import (
    auto_moments,
    directions_loss,
    noise_loss,
    noise_of_lengths,
)
from dpmodels.privacy import ZCDP, Adjacency, ApproxDP, PureDP, adjacency

ALL = frozenset(COVARIANCE | SUBSPACE)
MATRICES = frozenset(COVARIANCE)
BASELINES = {"zero", "random", "none"}
GUARANTEES = [PureDP(1.0), PureDP(1e-3), ApproxDP(1.0, 1e-6), ApproxDP(0.1, 1e-6), ZCDP(0.1)]


def facts(columns, components=0, neighbours="replace", *, centred=True, unit=False):
    return Facts(columns, adjacency(neighbours), centred, components, unit)


@each("guarantee", GUARANTEES)
@each("row_count_known", [ALL, MATRICES, frozenset({"gauss", "laplace"})])
@each("columns, components", [(1, 1), (5, 2), (5, 5), (40, 10), (40, 0)])
@each("rows", [None, 0, 1, 300, 10**4, 10**9])
def test_it_is_known_no_baseline_and_takes_the_guarantee(
    guarantee, row_count_known, columns, components, rows
):
    for neighbours in ("replace", "add-remove"):
        case_facts = facts(columns, components, neighbours)
        name, _ = auto_moments(case_facts, guarantee, rows, row_count_known)
        assert name in row_count_known - BASELINES
        plan = (COVARIANCE | SUBSPACE)[name]().plan(case_facts, guarantee)
        assert plan.guarantee == guarantee


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize(
    "row_count_known", [frozenset(), frozenset({"gauss"}), frozenset({"zero", "none"})]
)
def test_gauss_speaks_for_itself_where_nothing_fits(guarantee, row_count_known):
    assert auto_moments(facts(5, 2), guarantee, 1_000, row_count_known)[0] == "gauss"


@pytest.mark.parametrize("guarantee", [ApproxDP(1.0, 1e-6), ZCDP(0.1), PureDP(1.0)])
@pytest.mark.parametrize("centred", [True, False])
def test_rounds_are_for_enough_rows(guarantee, centred):
    several, single = (
        ("rounds_pure", "laplace") if guarantee == PureDP(1.0) else ("rounds", "gauss")
    )
    case_facts = facts(20, 5, centred=centred)
    names = [auto_moments(case_facts, guarantee, 10**k, ALL)[0] for k in range(1, 8)]
    first = names.index(several)
    assert 0 < first < 5
    assert names == [single] * first + [several] * (7 - first)
    assert auto_moments(case_facts, guarantee, None, ALL)[0] == several


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("rows", [None, 10**6])
def test_rows_that_are_read_once_are_released_once(guarantee, rows):
    name, reason = auto_moments(facts(20, 5), guarantee, rows, ALL - {"rounds", "rounds_pure"})
    assert name == ("laplace" if isinstance(guarantee, PureDP) else "gauss")
    assert "reads the rows once" in reason


@pytest.mark.parametrize("guarantee", [ApproxDP(1.0, 1e-6), ZCDP(0.1)])
def test_rows_of_one_length_have_no_radius_to_find(guarantee):
    name, reason = auto_moments(facts(20, 5, unit=True), guarantee, 10**6, ALL)
    assert name == "gauss"
    assert "the same norm" in reason


def test_directions_alone_are_drawn_where_a_matrix_is_much_worse():
    sphere = facts(100, 10, centred=False, unit=True)
    assert auto_moments(sphere, PureDP(1.0), 10_000, ALL)[0] == "ppca"
    assert auto_moments(sphere, PureDP(1.0), 10_000, MATRICES)[0] == "laplace"
    every = facts(100, 100, centred=False, unit=True)
    assert auto_moments(every, PureDP(1.0), 10_000, ALL)[0] == "laplace"
    few = facts(5, 2, centred=False, unit=True)
    assert auto_moments(few, PureDP(1.0), 10_000, ALL)[0] == "laplace"


@pytest.mark.parametrize("strategy", [Rounds(), RoundsPure()])
def test_the_noise_that_is_told_is_the_one_that_is_added(strategy):
    guarantee = ZCDP(0.1)
    plan = strategy.plan(facts(20), guarantee)
    reported = noise_of_lengths(strategy, facts(20), guarantee)
    multiplier = plan.events[5].multiplier
    assert reported == pytest.approx(
        multiplier * (2 * math.sqrt(2) if strategy == RoundsPure() else math.sqrt(2))
    )


@each("guarantee", GUARANTEES)
@each("rows", [None, 300, 10**6])
@each("available", [ALL, frozenset({"gauss", "laplace"})])
@each("unit", [False, True])
def test_a_reason_names_persons_only_where_they_are_protected(guarantee, rows, available, unit):
    for relation in (adjacency("replace"), adjacency("add-remove"), Adjacency("replace", 2, "id")):
        case_facts = Facts(5, relation, True, 2, unit)
        _, reason = auto_moments(case_facts, guarantee, rows, available)
        is_counted = relation.person is not None and "n = " in reason
        assert ("person" in reason) == is_counted, reason
        assert rows is not None or "n = " not in reason


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("rows", [300, 10**4, 10**6])
def test_the_reason_is_a_sentence_of_public_numbers(guarantee, rows):
    for columns, components in ((5, 2), (5, 5), (100, 10)):
        _, reason = auto_moments(facts(columns, components), guarantee, rows, ALL)
        assert f"n = {rows:,}" in reason
        assert reason.endswith(".")
        assert len(reason) < 170
        assert re.search(r"\(sd [\d.,e+]+\)\.", reason)


@pytest.mark.product
def test_it_reads_again_what_can_be_read_again():
    rows = {"a": np.linspace(0, 1, 3_000) ** 3, "b": np.linspace(1, 0, 3_000) ** 2}
    words = {"codebook": dp.codebook(a=(0, 50), b=(0, 50)), "eps": 1.0, "delta": 1e-6}
    again = dp.dp_cov("~ a + b", rows, **words)
    assert again.release.info.name == "rounds"
    assert "estimate the centre and radius" in " ".join(str(again.summary(notes="all")).split())
    once = dp.dp_cov("~ a + b", iter([pd.DataFrame(rows)]), **words)
    assert once.release.info.name == "gauss"
    assert "reads the rows once" in " ".join(str(once.summary(notes="all")).split())


def test_losses_run_from_none_to_that_of_random_directions():
    case_facts = facts(12, 3)
    values = 1 / np.arange(1.0, 13)
    random = 1 - 3 / 12 * values.sum() / values[:3].sum()
    assert noise_loss(case_facts, 1e-9) < 1e-9
    assert noise_loss(case_facts, 1e9) == pytest.approx(random, rel=1e-6)
    assert directions_loss(case_facts, 1e12) < 1e-9
    assert directions_loss(case_facts, 1e-12) == pytest.approx(random, rel=1e-6)
    by_noise = [noise_loss(case_facts, sd) for sd in np.geomspace(1e-6, 1e3, 40)]
    by_draw = [directions_loss(case_facts, c) for c in np.geomspace(1e-3, 1e9, 40)]
    assert (np.diff(by_noise) > 0).all()
    assert (np.diff(by_draw) < 0).all()


@pytest.mark.product
@pytest.mark.parametrize(
    ("columns", "components", "n", "budget"),
    [
        (5, 2, 1_000, {"eps": 1.0, "delta": 1e-6}),
        (20, 5, 10_000, {"eps": 1.0, "delta": 1e-6}),
        (20, 5, 10_000, {"eps": 1.0}),
        (20, 5, 20_000, {"eps": 0.5}),
    ],
)
def test_the_choice_is_near_the_best_of_the_simulated(columns, components, n, budget):
    codebook = dp.codebook.uniform([f"x{i}" for i in range(columns)], (0, 1))
    compared = dp.compare_mechanisms(
        "~ .", codebook=codebook, n=n, ncomp=components, repeats=3, **budget
    ).table.set_index("mechanism")
    guarantee = ApproxDP(**budget) if "delta" in budget else PureDP(**budget)
    name, _ = auto_moments(facts(columns, components), guarantee, n, ALL)
    assert compared.energy[name] >= 0.9 * compared.energy.max()
    assert compared.energy_worst[name] >= 0.9 * compared.energy_worst.max()


def test_it_takes_little_time():
    case_facts, best = facts(100, 10), np.inf
    for _ in range(20):
        start = time.perf_counter()
        auto_moments(case_facts, PureDP(1.0), 10_000, ALL)
        best = min(best, time.perf_counter() - start)
    assert best < 2e-3
