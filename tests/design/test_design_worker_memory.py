"""Rows that a process of Dask keeps between passes: where they fit, for a while, and unshown."""

import threading
import time

import numpy as np
import pytest

from dpmodels.design import worker_memory
from dpmodels.design.parts import MOST_BYTES, KeptParts, Part
from dpmodels.design.worker_memory import Remembered, put, take

SIZE = 8_000


@pytest.fixture(autouse=True)
def memory(monkeypatch):
    """An empty memory of 25,000 bytes."""
    monkeypatch.setattr(worker_memory, "_entries", {})
    monkeypatch.setattr(worker_memory, "_watched", threading.Event())
    monkeypatch.setattr(worker_memory, "_most_bytes", lambda: 3 * SIZE + 1_000)


def remembered():
    rows = KeptParts("canary")
    list(rows.through([Part({"x": np.zeros(SIZE // 8)}, None, None)]))
    return Remembered(rows, SIZE // 8, 17)


def numbers(token, up_to=9):
    return [number for number in range(up_to) if take(token, number) is not None]


def test_rows_are_taken_out_and_put_back():
    first = remembered()
    put(b"a", 0, first)
    assert take(b"a", 0) is first
    assert take(b"a", 0) is None


def test_partitions_of_a_fit_stay_as_far_as_they_fit():
    for number in range(5):
        put(b"a", number, remembered())
    assert numbers(b"a") == [0, 1, 2]


def test_rows_of_another_fit_make_room_oldest_first():
    for number in range(3):
        put(b"a", number, remembered())
    put(b"b", 0, remembered())
    assert numbers(b"a") == [1, 2]
    assert numbers(b"b") == [0]


def test_rows_that_no_pass_reads_are_dropped(monkeypatch):
    monkeypatch.setattr(worker_memory, "IDLE_SECONDS", 0.02)
    put(b"a", 0, remembered())
    deadline = time.monotonic() + 20
    while worker_memory._entries and time.monotonic() < deadline:
        time.sleep(0.01)
    assert numbers(b"a") == []
    assert not worker_memory._watched.is_set()


def test_one_timer_watches_all_rows(monkeypatch):
    timers = []
    monkeypatch.setattr(worker_memory.threading.Timer, "start", lambda self: timers.append(self))
    for _ in range(3):
        put(b"a", 0, remembered())
        assert take(b"a", 0) is not None
    assert len(timers) == 1


def test_the_limit_of_a_process_without_a_worker(monkeypatch):
    monkeypatch.undo()
    assert worker_memory._most_bytes() == MOST_BYTES
    assert "canary" not in repr(remembered().rows)
