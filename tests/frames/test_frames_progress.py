"""A bar where one looks at it, and no private count in it."""

import io
import re
import threading
from importlib import import_module

import numpy as np
import pytest
from tqdm import tqdm

from dpmodels.frames import progress


class _Terminal(io.StringIO):
    def isatty(self):
        return True


def _chunks(sizes=(701, 701, 43)):
    for size in sizes:
        yield {"x": np.zeros(size), "y": np.zeros(size)}


def _shown(monkeypatch, *, total, delay=0.0, stream=None):
    stream = _Terminal() if stream is None else stream
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(import_module("dpmodels.frames.progress"), "_DELAY", delay)
    monkeypatch.setenv("TQDM_MININTERVAL", "0")
    sizes = [len(chunk["x"]) for chunk in progress(_chunks(), total=total, label="moments")]
    assert sizes == [701, 701, 43]
    return stream.getvalue()


def test_silent_when_stderr_is_no_terminal(monkeypatch):
    assert _shown(monkeypatch, total=1445, stream=io.StringIO()) == ""


def test_silent_in_the_first_second(monkeypatch):
    assert _shown(monkeypatch, total=1445, delay=60.0).strip() == ""


def test_rows_are_shown_where_their_number_is_public(monkeypatch):
    text = _shown(monkeypatch, total=1445)
    assert "moments" in text
    assert "1.44k" in text or "1.45k" in text


def test_no_count_where_the_number_of_rows_is_private(monkeypatch):
    text = _shown(monkeypatch, total=None)
    assert "moments ..." in text
    assert re.search(r"\d", text.replace("\x1b[A", "")) is None


def test_chunks_without_columns_pass(monkeypatch):
    assert list(progress(iter([{}, {}]), total=None, label="nothing")) == [{}, {}]


def test_errors_of_the_source_pass_through():
    def broken():
        yield {"x": np.zeros(1)}
        raise RuntimeError("the user's own")

    with pytest.raises(RuntimeError, match="the user's own"):
        list(progress(broken(), total=None, label="moments"))


def test_a_lock_that_a_killed_process_never_gave_back_keeps_nobody_waiting():
    def read():
        event.wait()
        passes_seen.extend(progress(iter([{"x": [1, 2]}]), total=2, label="moments"))

    event, passes_seen = threading.Event(), []
    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    with tqdm.get_lock():
        event.set()
        reader.join(10)
    assert len(passes_seen) == 1
