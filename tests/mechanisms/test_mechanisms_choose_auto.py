"""The automatic choice: public facts in, a name and a sentence out."""

import re
import time

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.mechanisms import COVARIANCE, SUBSPACE, Facts
from dpmodels.mechanisms.choose import auto_moments, directions_loss, noise_loss
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, adjacency

ALL = frozenset(COVARIANCE | SUBSPACE)
MATRICES = frozenset(COVARIANCE)
BASELINES = {"zero", "random", "none"}
GUARANTEES = [PureDP(1.0), PureDP(1e-3), ApproxDP(1.0, 1e-6), ApproxDP(0.1, 1e-6), ZCDP(0.1)]


def facts(columns, components=0, neighbours="replace", *, centred=True):
    return Facts(columns, adjacency(neighbours), centred, components)


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("known", [ALL, MATRICES, frozenset({"gauss", "laplace"})])
@pytest.mark.parametrize(("columns", "components"), [(1, 1), (5, 2), (5, 5), (40, 10), (40, 0)])
@pytest.mark.parametrize("rows", [None, 0, 1, 300, 10**4, 10**9])
def test_it_is_known_no_baseline_and_takes_the_guarantee(
    guarantee, known, columns, components, rows
):
    for neighbours in ("replace", "add-remove"):
        asked = facts(columns, components, neighbours)
        name, _ = auto_moments(asked, guarantee, rows, known)
        assert name in known - BASELINES
        plan = (COVARIANCE | SUBSPACE)[name]().plan(asked, guarantee)
        assert plan.guarantee == guarantee


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("known", [frozenset(), frozenset({"gauss"}), frozenset({"zero", "none"})])
def test_gauss_speaks_for_itself_where_nothing_fits(guarantee, known):
    assert auto_moments(facts(5, 2), guarantee, 1_000, known)[0] == "gauss"


@pytest.mark.parametrize("guarantee", [ApproxDP(1.0, 1e-6), ZCDP(0.1)])
def test_shells_are_for_neither_too_few_rows_nor_enough(guarantee):
    names = [auto_moments(facts(20, 5), guarantee, 10**k, ALL)[0] for k in range(1, 8)]
    middle = [place for place, name in enumerate(names) if name == "shells"]
    assert set(names) == {"gauss", "shells"}
    assert middle == list(range(middle[0], middle[-1] + 1))
    assert 0 < middle[0] <= middle[-1] < 6


def test_a_covariance_is_judged_by_its_own_error():
    budget = ApproxDP(1.0, 1e-6)
    assert auto_moments(facts(20, 5), budget, 10_000, ALL)[0] == "gauss"
    assert auto_moments(facts(20, 20), budget, 10_000, ALL)[0] == "shells"
    assert auto_moments(facts(20, 0), budget, 10_000, ALL) == auto_moments(
        facts(20, 20), budget, 10_000, ALL
    )


@pytest.mark.parametrize("known", [ALL, MATRICES, ALL - {"adaptive_pure"}])
def test_laplace_is_for_too_few_rows_or_enough(known):
    names = [auto_moments(facts(100, 10), PureDP(1.0), 10**k, known)[0] for k in range(1, 9)]
    others = [place for place, name in enumerate(names) if name != "laplace"]
    assert {names[place] for place in others} <= known & {"adaptive_pure", "ppca"}
    assert others == list(range(others[0], others[-1] + 1))
    assert 0 < others[0] <= others[-1] < 7


def test_directions_alone_are_drawn_where_a_matrix_is_much_worse():
    origin = facts(100, 10, centred=False)
    assert auto_moments(origin, PureDP(1.0), 10_000, ALL)[0] == "ppca"
    assert auto_moments(origin, PureDP(1.0), 10_000, MATRICES)[0] in MATRICES
    assert auto_moments(facts(100, 100, centred=False), PureDP(1.0), 10_000, ALL)[0] in MATRICES
    assert auto_moments(facts(5, 2, centred=False), PureDP(1.0), 10_000, ALL)[0] == "laplace"


@pytest.mark.skipif("adaptive_pure" not in COVARIANCE, reason="not in the table")
def test_a_pure_covariance_is_laplace_or_clipped():
    assert auto_moments(facts(20, 20), PureDP(1.0), 10_000, MATRICES)[0] == "adaptive_pure"
    assert auto_moments(facts(20, 20), PureDP(1.0), 10**6, MATRICES)[0] == "laplace"


def test_an_unknown_number_of_rows_asks_for_a_known_law():
    budget = ApproxDP(0.01, 1e-6)
    name, reason = auto_moments(facts(100, 10), budget, None, ALL)
    assert name == "gauss"
    assert "not known beforehand" in reason
    assert not re.search(r"\d", reason)
    assert auto_moments(facts(100, 10), PureDP(0.01), None, ALL)[0] == "laplace"


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("rows", [300, 10**4, 10**6])
def test_the_reason_is_a_sentence_of_public_numbers(guarantee, rows):
    for columns, components in ((5, 2), (5, 5), (100, 10)):
        _, reason = auto_moments(facts(columns, components), guarantee, rows, ALL)
        assert f"n = {rows:,}" in reason
        assert reason.endswith(".")
        assert len(reason) < 170
        shares = [float(number) for number in re.findall(r"([\d.e+-]+)%", reason)]
        assert shares
        assert all(0 <= share <= 100 for share in shares)


def test_losses_run_from_none_to_that_of_random_directions():
    asked = facts(12, 3)
    values = 1 / np.arange(1.0, 13)
    random = 1 - 3 / 12 * values.sum() / values[:3].sum()
    assert noise_loss(asked, 1e-9) < 1e-9
    assert noise_loss(asked, 1e9) == pytest.approx(random, rel=1e-6)
    assert directions_loss(asked, 1e12) < 1e-9
    assert directions_loss(asked, 1e-12) == pytest.approx(random, rel=1e-6)
    by_noise = [noise_loss(asked, sd) for sd in np.geomspace(1e-6, 1e3, 40)]
    by_draw = [directions_loss(asked, c) for c in np.geomspace(1e-3, 1e9, 40)]
    assert (np.diff(by_noise) > 0).all()
    assert (np.diff(by_draw) < 0).all()


@pytest.mark.dear
@pytest.mark.parametrize(
    ("columns", "components", "n", "budget"),
    [
        (5, 2, 1_000, {"eps": 1.0, "delta": 1e-6}),
        (20, 5, 10_000, {"eps": 1.0, "delta": 1e-6}),
        (20, 5, 10_000, {"eps": 1.0}),
        (20, 5, 100_000, {"eps": 0.1}),
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


def test_it_takes_less_than_a_millisecond():
    asked, best = facts(100, 10), np.inf
    for _ in range(20):
        start = time.perf_counter()
        auto_moments(asked, PureDP(1.0), 10_000, ALL)
        best = min(best, time.perf_counter() - start)
    assert best < 1e-3
