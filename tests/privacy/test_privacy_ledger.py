import copy
import os
import pickle
import re
import threading
import time

import pytest

from dpmodels.errors import ArgumentError, BudgetError, LedgerError, PrivacyError
from dpmodels.privacy import (
    ZCDP,
    ApproxDP,
    BoundedRangeEvent,
    GaussianEvent,
    LaplaceEvent,
    Ledger,
    PureDP,
    PureEvent,
    Spent,
    gaussian_multiplier,
    split_gaussian,
    total_eps,
)
from dpmodels.privacy.lines import chained

FIT = (GaussianEvent(gaussian_multiplier(ApproxDP(1.0, 1e-6))),)


def charged(ledger, *compositions):
    for events in compositions:
        ledger.charge(events, adjacency=ledger.adjacency)
    return ledger


def test_an_empty_ledger_has_everything_left():
    ledger = Ledger(eps=2.0, delta=1e-6)
    assert ledger.spent == Spent(0.0, "eps", 1e-6)
    assert ledger.remaining == Spent(2.0, "eps", 1e-6)
    assert ledger.entries == ()
    assert ledger.describe() == "0.00 of 2.00 eps spent"


def test_one_fit_spends_its_eps_and_two_compose_to_less_than_the_sum():
    ledger = charged(Ledger(eps=2.0, delta=1e-6), FIT)
    assert ledger.describe() == "1.00 of 2.00 eps spent (GDP)"
    assert ledger.spent.amount == pytest.approx(1.0, rel=1e-9)
    charged(ledger, FIT)
    assert ledger.spent.amount == pytest.approx(1.4547, abs=1e-4)
    assert ledger.remaining.amount == pytest.approx(2 - ledger.spent.amount)


@pytest.mark.parametrize("eps", [1e-9, 1e-3, 0.1, 1.0, 10.0, 1e9])
@pytest.mark.parametrize("delta", [1e-300, 1e-12, 1e-6, 1e-2])
def test_the_whole_budget_can_be_spent_at_once_or_in_parts(eps, delta):
    multiplier = gaussian_multiplier(ApproxDP(eps, delta))
    charged(Ledger(eps, delta), [GaussianEvent(multiplier)])
    parts = split_gaussian(multiplier, (1, 1, 2, 0.01))
    ledger = charged(Ledger(eps, delta), *([GaussianEvent(part)] for part in parts))
    with pytest.raises(LedgerError):
        ledger.charge([GaussianEvent(multiplier * 10)], adjacency="replace")


@pytest.mark.parametrize("rho", [1e-9, 0.1, 1 / 3, 1e6])
def test_the_whole_rho_can_be_spent_at_once_or_in_parts(rho):
    multiplier = gaussian_multiplier(ZCDP(rho))
    charged(Ledger(budget=ZCDP(rho)), [GaussianEvent(multiplier)])
    parts = split_gaussian(multiplier, (1, 1, 1))
    ledger = charged(Ledger(budget=ZCDP(rho)), *([GaussianEvent(part)] for part in parts))
    assert ledger.spent.amount == pytest.approx(rho, rel=1e-12)
    assert ledger.remaining.amount <= 1e-12 * rho


def test_a_pure_budget_can_be_spent_to_the_last():
    ledger = charged(Ledger(eps=1.0), *([PureEvent(0.1)] for _ in range(10)))
    assert ledger.describe() == "1.00 of 1.00 eps spent"
    with pytest.raises(LedgerError, match=r"left: 0; .*: open the ledger with eps="):
        ledger.charge([PureEvent(1e-6)], adjacency="replace")
    # What rounding left is no budget.
    ledger = charged(Ledger(eps=1.0), [PureEvent(1 - 1e-12)])
    with pytest.raises(LedgerError, match=r"left: 0; "):
        ledger.charge([PureEvent(1e-6)], adjacency="replace")


def test_rounding_alone_is_no_reason_to_refuse():
    assert 0.1 + 0.2 > 0.3
    charged(Ledger(eps=0.3), [PureEvent(0.1)], [PureEvent(0.2)])


def test_a_little_more_than_the_budget_is_refused():
    with pytest.raises(LedgerError):
        Ledger(eps=1.0).charge([PureEvent(1 + 1e-8)], adjacency="replace")
    with pytest.raises(LedgerError):
        Ledger(1.0, 1e-6).charge(
            [GaussianEvent(FIT[0].multiplier * (1 - 1e-8))], adjacency="replace"
        )


def test_a_refusal_leaves_the_ledger_as_it_was():
    ledger = charged(Ledger(eps=2.0, delta=1e-6), FIT, FIT)
    before = (ledger.entries, ledger.spent, ledger.remaining, repr(ledger))
    refused = [
        ([GaussianEvent(1.0)], {"adjacency": "replace"}, LedgerError),
        ([PureEvent(0.01)], {"adjacency": "add-remove"}, LedgerError),
        ([PureEvent(0.01)], {"adjacency": "swap"}, ArgumentError),
        ([PureEvent(0.01), 0.5], {"adjacency": "replace"}, BudgetError),
    ]
    for events, words, error in refused:
        with pytest.raises(error):
            ledger.charge(events, **words)
        assert (ledger.entries, ledger.spent, ledger.remaining, repr(ledger)) == before
    ledger.charge([PureEvent(0.1)], adjacency="replace")


def test_a_refusal_says_cost_spent_left_and_what_to_write():
    ledger = charged(Ledger(eps=2.0, delta=1e-6), FIT)
    with pytest.raises(LedgerError) as caught:
        ledger.charge([GaussianEvent(1.0)], adjacency="replace", label="wages")
    message = str(caught.value)
    for words in (
        "'wages' costs eps = 4.88",
        "delta = 1e-06",
        "Spent so far: eps = 1 of 2",
        "left for such noise: 1.673;",
        "the total would be 5.04",
        "open the ledger with eps=5.04",
    ):
        assert words in message


def written_eps(message):
    return float(message.split("write eps=")[1].split(" ")[0].split(",")[0])


@pytest.mark.parametrize("earlier", [FIT, [PureEvent(0.3, 3)], [*FIT, LaplaceEvent(10.0)], []])
def test_what_a_refusal_says_to_write_is_accepted(earlier):
    ledger = charged(Ledger(eps=2.0, delta=1e-6), earlier)
    with pytest.raises(LedgerError) as caught:
        ledger.charge([GaussianEvent(0.5)], adjacency="replace")
    eps = written_eps(str(caught.value))
    assert eps > 0.99 * ledger.remaining.amount
    event = GaussianEvent(gaussian_multiplier(ApproxDP(eps, 1e-6)))
    ledger.charge([event], adjacency="replace")
    larger = float(str(caught.value).split("ledger with eps=")[1].split(",")[0])
    charged(Ledger(larger, 1e-6), earlier, [GaussianEvent(0.5)])


@pytest.mark.parametrize(
    "earlier", [[PureEvent(0.3, 3)], [LaplaceEvent(3.0)], [BoundedRangeEvent(0.02, 90)], []]
)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_what_a_refusal_of_pure_events_says_to_write_is_accepted(earlier, delta):
    ledger = charged(Ledger(eps=2.0, delta=delta), earlier)
    with pytest.raises(LedgerError) as caught:
        ledger.charge([PureEvent(50.0)], adjacency="replace")
    ledger.charge([PureEvent(written_eps(str(caught.value)))], adjacency="replace")


def test_a_concentrated_ledger_speaks_of_rho():
    ledger = charged(Ledger(budget=ZCDP(0.1)), [GaussianEvent(5.0), BoundedRangeEvent(0.4)])
    assert ledger.spent == Spent(pytest.approx(0.04), "rho")
    assert ledger.describe() == "0.0400 of 0.100 rho spent"
    with pytest.raises(LedgerError, match=r"write budget=dp\.ZCDP\(0\.0(6|5999)\) or less"):
        ledger.charge([GaussianEvent(1.0)], adjacency="replace")


def test_a_pure_ledger_refuses_gaussian_noise_with_the_reason():
    ledger = Ledger(eps=1.0)
    with pytest.raises(LedgerError, match="no pure guarantee") as caught:
        ledger.charge([GaussianEvent(1e6)], adjacency="replace", label="pca")
    assert "delta=1e-6" in str(caught.value)
    assert ledger.entries == ()


def test_other_neighbours_are_refused_with_both_named():
    ledger = Ledger(eps=1.0, adjacency="add-remove")
    with pytest.raises(LedgerError) as caught:
        ledger.charge([PureEvent(0.1)], adjacency="replace")
    assert "adjacency='replace'" in str(caught.value)
    assert "adjacency='add-remove'" in str(caught.value)
    charged(ledger, [PureEvent(0.1)])


def test_preview_records_nothing_and_tells_what_a_charge_would_make_it():
    ledger = charged(Ledger(eps=2.0, delta=1e-6), FIT)
    prediction = ledger.preview(FIT)
    assert len(ledger.entries) == 1
    entry = ledger.charge(FIT, adjacency="replace", label="again")
    assert entry.spent_after == prediction == ledger.spent
    assert entry.label == "again"
    assert entry.events == FIT
    assert ledger.preview([GaussianEvent(0.1)]).amount > 2


MIXED = (*FIT, LaplaceEvent(2.0), BoundedRangeEvent(0.5))


def test_a_plan_charged_as_one_costs_what_tight_composition_says():
    ledger = Ledger(eps=1.95, delta=1e-6)
    tight = total_eps(MIXED, 1e-6)
    assert ledger.preview(MIXED).amount == tight < 1.95
    entry = ledger.charge(MIXED, adjacency="replace")
    assert entry.spent_after.amount == tight
    # It fits no filter, so what may follow is pure, and adds up.
    assert ledger.describe().endswith("(plan)")
    with pytest.raises(LedgerError, match="after a plan charged as one"):
        ledger.charge([GaussianEvent(1e6)], adjacency="replace")
    charged(ledger, [PureEvent(1.95 - tight)])
    with pytest.raises(LedgerError):
        ledger.charge([PureEvent(1e-6)], adjacency="replace")


def test_what_is_charged_one_after_another_costs_what_a_filter_says():
    ledger = Ledger(eps=1.95, delta=1e-6)
    with pytest.raises(LedgerError):
        charged(ledger, *([event] for event in MIXED))
    mask = charged(Ledger(eps=1.95, delta=1e-6, pure=0.95), *([event] for event in MIXED[:2]))
    assert mask.spent.amount == pytest.approx(1.5, rel=1e-9)


def test_entries_are_frozen_and_charges_of_an_iterator_are_kept():
    ledger = Ledger(eps=1.0)
    entry = ledger.charge(iter([PureEvent(0.1)]), adjacency="replace")
    assert entry.events == (PureEvent(0.1),)
    with pytest.raises(AttributeError):
        entry.label = "changed"
    assert ledger.entries == (entry,)


def test_the_printed_ledger_is_a_table_of_its_entries():
    ledger = Ledger(eps=2.0, delta=1e-6)
    assert repr(ledger) == (
        "Ledger: 0.00 of 2.00 eps spent at delta = 1e-06 (replace one row, n public)"
    )
    ledger.charge(FIT, adjacency="replace", label="pca of wages")
    ledger.charge([PureEvent(0.1, count=2), LaplaceEvent(20.0)], adjacency="replace")
    head, names, first, second = repr(ledger).splitlines()
    assert head.startswith("Ledger: 1.")
    assert names.split() == ["#", "label", "total", "eps", "events"]
    assert first.split()[:5] == ["1", "pca", "of", "wages", "1.00"]
    assert second.endswith("pure, eps 0.1 x 2; Laplace, multiplier 20")


def test_threads_cannot_overspend_together(monkeypatch):
    def slow(before, body):
        time.sleep(1e-4)  # lets another thread in between the check and the record
        return chained(before, body)

    monkeypatch.setattr("dpmodels.privacy.ledger.chained", slow)
    ledger = Ledger(eps=1.0)
    threads_count, tries = 8, 40
    ready = threading.Barrier(threads_count)
    outcomes = []

    def spend():
        ready.wait()
        for _ in range(tries):
            try:
                ledger.charge([PureEvent(0.01)], adjacency="replace")
                outcomes.append(True)
            except LedgerError:
                outcomes.append(False)

    threads = [threading.Thread(target=spend) for _ in range(threads_count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == threads_count * tries
    assert sum(outcomes) == len(ledger.entries) == 100
    assert ledger.spent.amount == pytest.approx(1.0, rel=1e-12)
    running = [entry.spent_after.amount for entry in ledger.entries]
    assert running == pytest.approx([0.01 * step for step in range(1, 101)], rel=1e-9)


@pytest.mark.parametrize("budget", [PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.1)])
def test_a_ledger_takes_any_guarantee(budget):
    assert Ledger(budget=budget).guarantee is budget


def test_a_senseless_ledger_is_refused():
    with pytest.raises(BudgetError, match="Neither eps nor budget"):
        Ledger()
    with pytest.raises(BudgetError, match=r"^delta="):
        Ledger(1.0, delta=1.0)
    with pytest.raises(ArgumentError, match=r"^adjacency="):
        Ledger(1.0, adjacency="swap")


# --- one ledger, one budget


def test_copies_and_pickles_of_a_ledger_are_refused():
    ledger = Ledger(eps=1.0)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(PrivacyError, match="each copy would spend the whole budget"):
            duplicate(ledger)


def test_a_forked_process_may_not_spend_from_memory():
    ledger = Ledger(eps=1.0)
    child = os.fork()
    if child == 0:
        try:
            ledger.charge([PureEvent(0.5)], adjacency="replace")
        except PrivacyError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.parametrize("name", ["guarantee", "adjacency", "entries", "_filter", "other"])
def test_what_a_ledger_holds_cannot_be_set(name):
    ledger = Ledger(eps=1.0)
    with pytest.raises(AttributeError, match="cannot be set"):
        setattr(ledger, name, PureDP(9.0))
    assert ledger.guarantee == PureDP(1.0)


def test_a_label_with_a_line_break_forges_no_line():
    ledger = Ledger(eps=1.0)
    ledger.charge([PureEvent(0.5)], adjacency="replace", label="a\n  2  b  1.0\x1b[31m")
    assert len(repr(ledger).splitlines()) == 3
    assert "\x1b" not in repr(ledger)


@pytest.mark.product
def test_many_distinct_charges_cost_as_much_last_as_first():
    ledger, times = Ledger(eps=1e6, delta=1e-6), []
    for number in range(4000):
        started = time.perf_counter()
        event = PureEvent(0.1 + number * 1e-5) if number % 2 else GaussianEvent(5 + number * 1e-4)
        ledger.charge([event], adjacency="replace")
        times.append(time.perf_counter() - started)
    assert len(ledger.entries) == 4000
    # A cost that grew with the number of charges would be seven times the first half's.
    assert sorted(times[-500:])[250] < 3 * sorted(times[:500])[250]


def test_a_refusal_names_a_budget_that_suffices_and_hardly_more():
    charges = [GaussianEvent(8.0), PureEvent(0.3), GaussianEvent(9.0)]

    def refused(eps):
        ledger = Ledger(eps=eps, delta=1e-6, rule="steps")
        for event in charges:
            ledger.charge([event], adjacency="replace")
        try:
            ledger.charge([PureEvent(3.0)], adjacency="replace")
        except LedgerError as error:
            return str(error)
        return ""

    words = re.search(
        r"the total would be ([\d.]+): .*open the ledger with eps=([\d.]+)", refused(2)
    )
    total, eps = map(float, words.groups())
    assert refused(eps) == ""
    assert refused(0.99 * total)
    # Adding up eps is enough: what the Gaussian releases cost alone is below 1.
    assert total < 4.5
