"""Debuggers and error trackers, which show local variables, see no cell below the caller."""

import law_tracebacks
import pandas as pd
import pytest
from contract_cases import EACH_VERB, Case
from law_canary import TRACES, rare

import dpmodels as dp
from dpmodels import errors

PREDICTED_ONCE = True


@pytest.mark.parametrize("stage", law_tracebacks.STAGES, ids=lambda stage: stage.__name__)
@pytest.mark.parametrize("case", EACH_VERB, ids=str)
def test_an_exception_carries_no_cell(case: Case, stage, monkeypatch):
    law_tracebacks.an_exception_carries_no_cell(case, stage, monkeypatch)


def test_the_handled_exception_is_left_alone():
    law_tracebacks.the_handled_exception_is_left_alone()


@pytest.mark.parametrize("stage", law_tracebacks.STAGES, ids=lambda stage: stage.__name__)
def test_frames_that_are_not_cleared_are_convicted(stage, monkeypatch):
    monkeypatch.setattr(errors, "_clear", lambda error, handled: None)
    with pytest.raises(AssertionError, match="is shown"):
        law_tracebacks.an_exception_carries_no_cell(EACH_VERB[0], stage, monkeypatch)


def test_arguments_that_are_not_deleted_are_convicted(monkeypatch):
    """The frames of a verb hold its data."""
    monkeypatch.setattr(errors.traceback, "clear_frames", lambda frames: None)
    with pytest.raises(AssertionError, match="is shown"):
        law_tracebacks.an_exception_carries_no_cell(
            EACH_VERB[0], law_tracebacks.the_ledger_cannot_record, monkeypatch
        )


CALLS = {
    "session": lambda data, book: dp.session(data, book, eps=1.0, subset="wage >"),
    "a call with rows": lambda data, book: dp.session({"age": [1.0]}, book, eps=1.0).mean(
        "~ age", data=data
    ),
    "site_release": lambda data, book: dp.site_release(
        "~ age", data, "letter.json", site="A", session="1", protocol="none", codebook=book, eps=1.0
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_other_entry_points_carry_no_cell(call):
    book = dp.codebook(age=(0, 100), wage=(0, 1))
    with pytest.raises(dp.errors.DPModelsError) as raised:
        call(pd.DataFrame(rare()), book)
    text = law_tracebacks.captured(raised.value)
    assert not any(trace in text for trace in TRACES)
