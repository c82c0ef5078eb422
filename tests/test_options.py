"""Options: said once, for a block or from there on, in the thread that says them."""

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, LedgerError
from dpmodels.options import Chosen, chosen

ROWS = {"age": [41, 35, 62] * 100}


@pytest.fixture(autouse=True)
def nothing_chosen():
    """Each test begins and ends without choices."""
    dp.options.reset()
    yield
    dp.options.reset()


def test_a_call_without_words_takes_all_of_them():
    ledger = dp.Ledger(eps=1, adjacency="add-remove")
    with dp.options(codebook={"age": (0, 100)}, adjacency="add-remove", ledger=ledger):
        fit = dp.dp_mean("~ age", ROWS, eps=0.75)
        assert "add or remove one row" in str(fit.summary())
        with pytest.raises(LedgerError):
            dp.dp_mean("~ age", ROWS, eps=0.75)
        assert len(ledger.entries) == 1
    assert chosen() == Chosen()


def test_an_audit_charges_no_ledger_for_tables_that_are_made_up():
    ledger = dp.Ledger(eps=1)
    pair = dp.audit.Pair(ROWS, {"age": [0, *ROWS["age"][1:]]})
    with dp.options(ledger=ledger, codebook={"age": (0, 100)}):
        found = dp.audit(
            lambda rows: float(dp.dp_mean("~ age", rows, eps=1).params.iloc[0]), pair, eps=1, runs=4
        )
    assert found.runs == 4
    assert ledger.entries == ()


def test_what_a_call_says_itself_goes_before():
    other = dp.Ledger(eps=1)
    with dp.options(codebook="none.json", adjacency="add-remove", ledger=dp.Ledger(eps=1e-3)):
        words = {"codebook": {"age": (0, 90)}, "adjacency": "replace", "ledger": other}
        fit = dp.dp_mean("~ age", ROWS, eps=1, **words)
    assert fit.call.codebook["age"].upper == 90
    assert len(other.entries) == 1


def test_choices_are_added_and_taken_back_one_by_one():
    dp.options(codebook={"age": (0, 100)}, adjacency="add-remove")
    with dp.options(codebook=None):
        assert chosen() == Chosen(adjacency=dp.options()._before.adjacency)
        assert chosen().adjacency.name == "add-remove"
    assert chosen().codebook == {"age": (0, 100)}
    dp.options.reset()
    assert repr(dp.options()).split() == ["codebook", "none", "adjacency", "none", "ledger", "none"]


def test_an_error_ends_a_block_too():
    with pytest.raises(ZeroDivisionError), dp.options(codebook={}):
        raise ZeroDivisionError
    assert chosen() == Chosen()


def test_another_thread_knows_nothing_of_them():
    with dp.options(codebook={"age": (0, 100)}), ThreadPoolExecutor(1) as pool:
        assert pool.submit(chosen).result() == Chosen()
        assert pool.submit(copy_context().run, chosen).result() == chosen()


@pytest.mark.parametrize(
    "words", [{"codebook": 42}, {"adjacency": "replaced"}, {"ledger": 1.0}, {"ledger": "a.ledger"}]
)
def test_what_no_verb_takes_is_refused_and_changes_nothing(words):
    with pytest.raises(ArgumentError, match=next(iter(words))):
        dp.options(**words)
    assert chosen() == Chosen()
