"""Options: set for the process, or for a block and the threads that it starts."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import Barrier, Event

import joblib
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, LedgerError
from dpmodels.options import Settings, current_settings

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
    assert current_settings() == Settings()


def test_an_audit_charges_no_ledger_for_tables_that_are_made_up():
    ledger = dp.Ledger(eps=1)
    pair = dp.audit.Pair(ROWS, {"age": [0, *ROWS["age"][1:]]})
    with dp.options(ledger=ledger, codebook={"age": (0, 100)}):
        result = dp.audit(
            lambda rows: float(dp.dp_mean("~ age", rows, eps=1).params.iloc[0]), pair, eps=1, runs=4
        )
    assert result.runs == 4
    assert ledger.entries == ()


def test_what_a_call_says_itself_goes_before():
    ledger = dp.Ledger(eps=1)
    with dp.options(codebook="none.json", adjacency="add-remove", ledger=dp.Ledger(eps=1e-3)):
        words = {"codebook": {"age": (0, 90)}, "adjacency": "replace", "ledger": ledger}
        fit = dp.dp_mean("~ age", ROWS, eps=1, **words)
    assert fit.call.codebook["age"].upper == 90
    assert len(ledger.entries) == 1


def test_choices_are_added_and_taken_back_one_by_one():
    dp.options(codebook={"age": (0, 100)}, adjacency="add-remove")
    with dp.options(codebook=None):
        assert current_settings().adjacency.name == "add-remove"
    assert current_settings().codebook == {"age": (0, 100)}
    dp.options.reset()
    assert repr(dp.options()).split() == ["codebook", "none", "adjacency", "none", "ledger", "none"]


def test_an_error_ends_a_block_too():
    with pytest.raises(ZeroDivisionError), dp.options(codebook={}):
        raise ZeroDivisionError
    assert current_settings() == Settings()


def in_threads():
    with ThreadPoolExecutor(2) as pool:
        return [pool.submit(current_settings).result() for _ in range(4)]


def test_threads_take_what_the_process_has_set():
    """Set in one context only, a ledger was lost in pools: five answers, "0.00 spent"."""
    ledger = dp.Ledger(eps=9)
    dp.options(ledger=ledger, codebook={"age": (0, 100)})
    assert in_threads() == [current_settings()] * 4
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: dp.dp_mean("~ age", ROWS, eps=1), range(5)))
    jobs = joblib.delayed(dp.dp_mean)("~ age", ROWS, eps=1)
    joblib.Parallel(n_jobs=2, prefer="threads")([jobs] * 4)
    assert len(ledger.entries) == 9
    with pytest.raises(LedgerError):
        dp.dp_mean("~ age", ROWS, eps=1)


def test_threads_inside_a_block_take_its_settings():
    ledger = dp.Ledger(eps=9)
    dp.options(adjacency="add-remove")
    with dp.options(ledger=ledger):
        assert {in_thread.ledger for in_thread in in_threads()} == {ledger}
        with dp.options(ledger=None, adjacency=None):
            assert in_threads() == [Settings()] * 4
        assert current_settings().ledger is ledger
    assert in_threads() == [current_settings()] * 4
    assert current_settings().ledger is None


def test_a_cell_that_awaits_loses_nothing():
    """IPython runs such a cell as a task, whose context is gone when it ends."""
    ledger = dp.Ledger(eps=9)

    async def cell():
        dp.options(ledger=ledger)
        await asyncio.sleep(0)

    asyncio.run(cell())
    assert current_settings().ledger is ledger
    assert copy_context().run(current_settings) == current_settings()


def test_a_thread_that_cannot_know_whose_settings_it_has_is_refused():
    barrier, release = Barrier(3), Event()

    def block(eps):
        ledger = dp.Ledger(eps=eps)
        with dp.options(ledger=ledger):
            barrier.wait()
            release.wait()
            return current_settings().ledger is ledger

    with ThreadPoolExecutor(2) as pool:
        blocks = [pool.submit(block, eps) for eps in (1, 2)]
        barrier.wait()
        with pytest.raises(ArgumentError, match="several threads or tasks"):
            dp.dp_mean("~ age", ROWS, codebook={"age": (0, 100)}, eps=1)
        release.set()
        assert all(block.result() for block in blocks)
    assert current_settings() == Settings()


@pytest.mark.parametrize(
    "words",
    [
        {"csv": "rows"},
        {"codebook": 42},
        {"adjacency": "replaced"},
        {"ledger": 1.0},
        {"ledger": "a.ledger"},
    ],
)
def test_what_no_verb_takes_is_refused_and_changes_nothing(words):
    with pytest.raises(ArgumentError, match=next(iter(words))):
        dp.options(**words)
    assert current_settings() == Settings()
