"""Plain values from files have their declared shape, or the first difference is named."""

import json
import time
import tracemalloc
from dataclasses import dataclass
from typing import Literal

import pytest

from dpmodels.errors import ArgumentError, FrameError
from dpmodels.external_files import conform, parse, read_bytes, require_text


@dataclass(frozen=True)
class Inner:
    name: str
    size: float | None = None


def picky(plain):
    if plain != 3:
        raise ArgumentError("not three")
    return "three"


SHAPE = {
    "card": Inner,
    "kind": Literal["a", "b"],
    "pair": tuple[str, int],
    "many": tuple[float, ...],
    "keys": dict[str, bool],
    "level": str | int | bool,
    "own": picky,
    "nothing": None,
}
GOOD = {
    "card": {"name": "x", "size": 2},
    "kind": "a",
    "pair": ["p", 1],
    "many": [1, 2.5, float("nan")],
    "keys": {"k": True},
    "level": True,
    "own": 3,
    "nothing": None,
}


def test_what_is_as_declared_comes_back_as_that():
    result = conform(SHAPE, GOOD, "it")
    assert result["card"] == Inner("x", 2)
    assert result["pair"] == ("p", 1)
    assert result["own"] == "three"
    assert result["level"] is True


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (("card", "name"), 3, "it.card.name: expected a text, found a whole number"),
        (("card", "name"), "\x1b[31m", r"it.card.name: '\x1b[31m' has control characters"),
        (("card", "name"), "\ud800", r"it.card.name: '\ud800' has control"),
        (("card", "size"), True, "it.card.size: expected a number, found true or false"),
        (("card", "size"), 10**500, "it.card.size: expected a number of at most 1.79769e+308"),
        (("pair", 1), 2**63, "it.pair[1]: expected a whole number of at most 9.22337e+18"),
        (("card", "size"), float("inf"), "it.card.size: expected a number of at most"),
        (("card", "more"), 1, "it.card has 'more', which is not known"),
        (("card",), [1], "it.card: expected an object, found a list"),
        (("kind",), "c", "it.kind: expected one of 'a', 'b', found 'c'"),
        (("pair",), ["p"], "it.pair: expected a list of 2, found one of 1"),
        (("pair", 1), 1.0, "it.pair[1]: expected a whole number, found a number"),
        (("many", 0), None, "it.many[0]: expected a number, found null"),
        (("many",), {}, "it.many: expected a list, found an object"),
        (("keys", "k"), 1, "it.keys.k: expected true or false, found a whole number"),
        (("keys", "\x9b"), True, r"a name in it.keys: '\x9b' has control"),
        (("level",), 1.5, "it.level: expected true or false, found a number"),
        (("own",), 4, "it.own: not three"),
        (("nothing",), 0, "it.nothing: expected null, found a whole number"),
    ],
)
def test_the_first_difference_is_named(place, value, says):
    changed = json.loads(json.dumps(GOOD))
    *way, last = place
    at = changed
    for step in way:
        at = at[step]
    at[last] = value
    with pytest.raises(FrameError) as refused:
        conform(SHAPE, changed, "it")
    assert str(refused.value).startswith(says)


def test_what_is_missing_is_named():
    with pytest.raises(FrameError, match="it lacks 'card'"):
        conform(SHAPE, {}, "it")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"a": 1, "a": 2}', "'a' occurs twice"),
        (b'{"\\u001b": 1, "\\u001b": 2}', r"'\\x1b' occurs twice"),
        (b"[" * 51 + b"]" * 51, "nested more than 50 deep"),
        (b'{"a":' * 10**6, "nested more than 50 deep"),
        (b'["' + b'\\"' * 10**6, "truncated or is not JSON"),
        (b"1" * 5000, "more than 1000 digits"),
        (b"[" + b"0," * 5_000_001, "more than 5,000,000 parts"),
        (b"\xff", "truncated or is not JSON"),
        (b"", "truncated or is not JSON"),
    ],
    ids=range(9),
)
def test_files_without_end_are_refused_at_once(content, says):
    begun = time.perf_counter()
    with pytest.raises(FrameError, match=says):
        parse(content)
    # Quadratic work on a megabyte would take minutes.
    assert time.perf_counter() - begun < 5


def test_brackets_in_texts_are_no_nesting():
    assert parse(json.dumps(["[" * 200, '"' * 99, "\\"]).encode()) == ["[" * 200, '"' * 99, "\\"]


def test_only_files_of_a_size_are_read(tmp_path):
    (tmp_path / "a").write_bytes(b"12345")
    assert read_bytes(tmp_path / "a", 5) == b"12345"
    with pytest.raises(FrameError, match="longer than 4 bytes"):
        read_bytes(tmp_path / "a", 4)
    with pytest.raises(FrameError, match="it is missing; check the path and the working folder"):
        read_bytes(tmp_path / "gone", 4)
    for path in (tmp_path, tmp_path / "gone", "/dev/zero", "a\0b"):
        with pytest.raises(FrameError, match="it is"):
            read_bytes(path, 5)


def test_a_small_file_takes_little_memory_whatever_the_limit(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 1000)
    tracemalloc.start()
    assert len(read_bytes(tmp_path / "a", 2**32)) == 1000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


@pytest.mark.parametrize("text", ["two\nlines", "tab\t", "日本", "no\u00a0break", ""])
def test_texts_that_act_on_nothing_pass(text):
    assert require_text(text, "it") == text


def test_a_file_of_an_earlier_version_may_lack_what_is_none_by_default():
    @dataclass(frozen=True)
    class Release:
        rows: int
        shared: str | None = None
        paired: bool = False

    assert conform(Release, {"rows": 3, "paired": True}, "release") == Release(3, None, True)
    for missing in ({"paired": True}, {"rows": 3}):
        with pytest.raises(FrameError, match="release lacks"):
            conform(Release, missing, "release")
