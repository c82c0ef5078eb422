"""Words that have no place in the files of the project."""

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IGNORED = [".git", *(line.strip("/") for line in (ROOT / ".gitignore").read_text().split())]
# Bracketed so that this file does not find itself.
MACHINE_PATH = re.compile(r"(?<![\w.:/)])/(?:root|tmp|work|home|Users|mnt)/")
UNFINISHED = re.compile(r"\b(?:TO[D]O|FIX[M]E|XX[X])\b")


def kept_files():
    """Every file of the tree that version control would keep."""
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        if path.is_file() and not any(fnmatch(p, pattern) for p in parts for pattern in IGNORED):
            yield path


def lines_with(pattern):
    for path in kept_files():
        try:
            lines = path.read_text("utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(lines, 1):
            if pattern.search(line):
                yield f"{path.relative_to(ROOT)}:{number}"


@pytest.mark.parametrize("text", ["see /wo" + "rk/notes", '"/tm' + 'p/rows.csv"', "(/ro" + "ot/x)"])
def test_the_pattern_finds_machine_paths(text):
    assert MACHINE_PATH.search(text)


@pytest.mark.parametrize("text", ["https://example.org/work/", "../shared/data", "a/tmp/b"])
def test_the_pattern_leaves_other_paths(text):
    assert not MACHINE_PATH.search(text)


@pytest.mark.product
def test_no_machine_paths():
    assert list(lines_with(MACHINE_PATH)) == []


@pytest.mark.product
def test_nothing_is_left_unfinished():
    assert list(lines_with(UNFINISHED)) == []
