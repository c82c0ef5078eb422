"""Pufferfish budgets, and ledgers that keep them apart from differential privacy."""

import pytest

import dpmodels as dp
from dpmodels.errors import BudgetError, LedgerError
from dpmodels.privacy import (
    GaussianEvent,
    PufferfishEvent,
    PureEvent,
    group_events,
    resolve_budget,
    total_eps,
    total_rho,
)

CHAIN = dp.markov_chain(["rest", "walk"], stay=0.9)
OTHER = dp.markov_chain(["rest", "walk"], stay=0.8)
SERIES = "activity of id by minute from 1 to 500"


def event(eps, model=CHAIN, series=SERIES, **words):
    return PufferfishEvent(eps, model.digest, series, **words)


def opened(eps=2.0):
    return dp.Ledger(budget=dp.Pufferfish(eps, CHAIN))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"eps": 0}, "eps=0.0 is not positive"),
        ({"model": [[0.9, 0.1], [0.1, 0.9]]}, "write model=dp.markov_chain"),
        ({"model": dp.markov_chain([0, 1], [[1, 0], [0, 1]])}, "reducible.*quilt='trivial'"),
        ({"model": dp.markov_chain([0, 1], [[0, 1], [1, 0]])}, "periodic.*quilt='trivial'"),
    ],
)
def test_what_makes_no_budget_says_what_to_write(words, message):
    with pytest.raises(BudgetError, match=message):
        dp.Pufferfish(**{"eps": 1.0, "model": CHAIN, **words})


def test_a_chain_that_does_not_forget_is_hidden_by_the_trivial_quilt():
    stuck = dp.markov_chain([0, 1], [[1, 0], [0, 1]])
    active = dp.Pufferfish(0.5, stuck, quilt="trivial").active(30)
    assert active.trivial
    assert active.scale == 60.0
    with pytest.raises(dp.errors.ArgumentError, match="quilt='none'"):
        dp.Pufferfish(1.0, CHAIN, quilt="none")


def test_it_is_no_budget_of_differential_privacy():
    pufferfish, book = dp.Pufferfish(1.0, CHAIN), dp.codebook(a=(0, 1))
    for refused in (
        lambda: resolve_budget(budget=pufferfish),
        lambda: dp.session({"a": [1]}, book, budget=pufferfish),
        lambda: dp.dp_mean("~ a", {"a": [1]}, codebook=book, budget=pufferfish),
    ):
        with pytest.raises(BudgetError, match="Pufferfish, not a guarantee"):
            refused()
    with pytest.raises(BudgetError, match="leave eps and delta out"):
        dp.Ledger(eps=1.0, budget=dp.Pufferfish(1.0, CHAIN))
    assert "not differential privacy" in dp.Pufferfish(1.0, CHAIN).describe()


def test_no_accountant_of_differential_privacy_prices_it():
    assert total_eps([event(0.1)], 1e-6) == float("inf")
    assert total_eps([event(0.1), GaussianEvent(3.0)], 1e-6) == float("inf")
    assert total_rho([event(0.1)]) == float("inf")
    with pytest.raises(BudgetError, match="no cost for a group"):
        group_events([event(0.1)], 2)


def test_releases_by_quilts_of_one_series_add_up():
    ledger = opened()
    assert ledger.preview([event(0.5), event(0.25)]).amount == 0.75
    ledger.charge([event(0.5)], adjacency="replace", label="morning")
    ledger.charge([event(0.5, count=2)], adjacency="replace")
    assert ledger.spent.amount == 1.5
    assert ledger.remaining.amount == 0.5
    with pytest.raises(
        LedgerError, match=r"costs eps = 0\.6\. Spent so far: eps = 1\.5 of 2"
    ) as no:
        ledger.charge([event(0.6)], adjacency="replace")
    words = "write budget=dp.Pufferfish(eps=0.5, model=...) or less, or open the ledger with "
    assert f"{words}budget=dp.Pufferfish(eps=2.101, model=...)." in str(no.value)
    ledger.charge([event(0.5)], adjacency="replace")
    assert ledger.describe() == "2.00 of 2.00 eps spent"
    assert "Pufferfish: the state at each time" in repr(ledger)
    ledger.verify()


REFUSED = [
    (PureEvent(0.1), "differentially private but this ledger has a Pufferfish"),
    (GaussianEvent(9.0), "the two do not compose"),
    (event(0.1, model=OTHER), "another class of chains"),
    (event(0.1, series="zone of id by minute from 1 to 500"), "of another series"),
    (event(0.1, mechanism="wasserstein"), "one Wasserstein release does not compose"),
]


@pytest.mark.parametrize(("second", "message"), REFUSED)
def test_what_does_not_compose_is_refused_and_nothing_is_charged(second, message):
    ledger = opened()
    ledger.charge([event(0.1)], adjacency="replace")
    head = ledger.head
    with pytest.raises(LedgerError, match=message):
        ledger.charge([second], adjacency="replace")
    forecast = ledger.forecast([[second], [event(0.1)]])
    assert [value.fits for value in forecast] == [False, True]
    assert ledger.head == head


@pytest.mark.parametrize(("second", "message"), REFUSED[:-1])
def test_they_do_not_go_together_in_one_charge_either(second, message):
    with pytest.raises(LedgerError, match=message):
        opened().charge([event(0.1), second], adjacency="replace")


def test_one_wasserstein_release_stands_alone():
    ledger = opened()
    ledger.charge([event(0.1, mechanism="wasserstein")], adjacency="replace")
    for extra in (event(0.1, mechanism="wasserstein"), event(0.1)):
        with pytest.raises(LedgerError, match="does not compose"):
            ledger.charge([extra], adjacency="replace")
    with pytest.raises(LedgerError, match="does not compose"):
        opened().charge([event(0.1, mechanism="wasserstein", count=2)], adjacency="replace")


@pytest.mark.parametrize("words", [{"person": "id"}, {"rows": 3}, {"adjacency": "add-remove"}])
def test_a_ledger_of_states_has_no_neighbours_that_every_release_would_miss(words, tmp_path):
    with pytest.raises(BudgetError, match="of each state of each person: leave them out"):
        dp.Ledger(budget=dp.Pufferfish(1.0, CHAIN), **words)
    place = tmp_path / "own.ledger"
    with pytest.raises(BudgetError, match="leave them out"):
        dp.Ledger.open(place, budget=dp.Pufferfish(1.0, CHAIN), **words, new=True)
    assert not place.exists()


@pytest.mark.parametrize("first", [[], [event(0.1)]])
def test_a_release_that_costs_nothing_leaves_all_others_as_they_were(first, tmp_path):
    ledger = dp.Ledger.open(tmp_path / "own.ledger", budget=dp.Pufferfish(2.0, CHAIN), new=True)
    if first:
        ledger.charge(first, adjacency="replace")
    ledger.charge([], adjacency="replace", label="zero")
    ledger.charge([event(0.5)], adjacency="replace")
    with pytest.raises(LedgerError, match="of another series"):
        ledger.charge([event(0.1, series="another")], adjacency="replace")
    with pytest.raises(LedgerError, match="does not compose"):
        ledger.charge([event(0.1, mechanism="wasserstein")], adjacency="replace")
    alone = opened()
    alone.charge([], adjacency="replace")
    alone.charge([event(0.1, mechanism="wasserstein")], adjacency="replace")
    alone.charge([], adjacency="replace")
    with pytest.raises(LedgerError, match="does not compose"):
        alone.charge([event(0.1)], adjacency="replace")


@pytest.mark.parametrize(
    "budget", [dp.PureDP(2.0), dp.ApproxDP(2.0, 1e-6), dp.ZCDP(0.5), dp.ApproxDP(9.0, 0.1)]
)
def test_a_ledger_of_differential_privacy_refuses_it(budget):
    ledger = dp.Ledger(budget=budget)
    for _ in range(2):
        with pytest.raises(LedgerError, match=r"charge dp.Ledger\(budget=dp.Pufferfish"):
            ledger.charge([event(1e-6)], adjacency="replace")
        assert not ledger.forecast([[event(1e-6)]])[0].fits
        ledger.charge([PureEvent(0.01)], adjacency="replace")
    assert len(ledger.entries) == 2


def test_a_file_keeps_the_guarantee_the_series_and_the_chain_of_hashes(tmp_path):
    path = tmp_path / "study.ledger"
    budget = dp.Pufferfish(1.0, dp.markov_chain(["a", "b"], [[0.8, 0.2], [1 / 3, 2 / 3]]))
    first = dp.Ledger.open(path, budget=budget, new=True)
    entry = first.charge([event(0.4, budget.model)], adjacency="replace", label="own")
    first.released(entry, "0" * 64)
    again = dp.Ledger.open(path, budget=budget, new=True)
    assert again.guarantee == budget
    assert again.entries[0].events == (event(0.4, budget.model),)
    again.verify()
    with pytest.raises(LedgerError, match="of another series"):
        again.charge([event(0.1, budget.model, "other")], adjacency="replace")
    with pytest.raises(LedgerError, match="was opened with the guarantee"):
        dp.Ledger.open(path, budget=dp.Pufferfish(1.0, CHAIN), new=True)
    with pytest.raises(LedgerError, match="was opened with the guarantee"):
        dp.Ledger.open(path, eps=1.0, new=True)
    register = again.register()
    assert register["total"].tolist() == [0.4]
    assert "Pufferfish (quilt), eps 0.4" in register["events"].iloc[0]
    assert "Guarantee:  Pufferfish (not" in str(dp.ledger_report(again))


def test_a_void_charge_is_given_back():
    ledger = opened()
    ledger.charge([event(0.5)], adjacency="replace")
    entry = ledger.charge([event(1.0)], adjacency="replace")
    ledger.void(entry, "the file was not there")
    assert ledger.spent.amount == 0.5
    ledger.verify()


def test_a_session_refuses_such_a_ledger_and_says_where_it_goes():
    book = dp.codebook(a=(0, 1))
    with pytest.raises(BudgetError, match=r"the ledger holds .* write dp.dp_table\(..., time"):
        dp.session({"a": [1]}, book, ledger=opened())


def test_events_name_what_they_hide():
    with pytest.raises(BudgetError, match="name what a Pufferfish release hides"):
        PufferfishEvent(0.5, "", SERIES)
    with pytest.raises(BudgetError, match="name what"):
        PufferfishEvent(0.5, CHAIN.digest, SERIES, mechanism="other")
