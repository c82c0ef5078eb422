"""ARCHITECTURE.md names what is there, and what it names is there."""

import ast
import inspect
import re
import sys
from pathlib import Path

import pytest

from dpmodels.mechanisms.tables import TABLES
from dpmodels.sites import PROTOCOLS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "ARCHITECTURE.md").read_text("utf-8")


def section(heading):
    """The text under a second-level heading."""
    return TEXT.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def entries(heading):
    """The name that opens each line of a section's list, with the words after it."""
    return re.findall(r"^ *- `([^`]+)`: (.+)$", section(heading), flags=re.MULTILINE)


def rooms():
    """Every package under the roof, and every module that stands alone."""
    house = ROOT / "dpmodels"
    folders = {f"{init.parent.relative_to(house)}/" for init in house.glob("*/**/__init__.py")}
    alone = {path.name for path in house.glob("*.py")} - {"__init__.py"}
    return folders | alone


def registered():
    """Names in the tables of mechanisms."""
    tables = list(TABLES.values())
    assert len(tables) >= 7
    return {name for table in tables for name in table}


@pytest.mark.parametrize(
    ("heading", "right"),
    [
        ("Subpackages and modules", rooms()),
        ("The mechanisms", registered()),
        ("The protocols between sites", set(PROTOCOLS)),
    ],
)
def test_lists_agree_with_the_tree(heading, right):
    names = [name for name, _ in entries(heading)]
    assert sorted(names) == sorted(right)


def test_each_line_says_something():
    for heading in ("Subpackages and modules", "The mechanisms", "The protocols between sites"):
        assert all(len(words.split()) >= 3 for _, words in entries(heading))


@pytest.mark.parametrize(
    "document", ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/theory.md", "docs/decisions.md"]
)
def test_named_files_exist(document):
    text = (ROOT / document).read_text("utf-8")
    paths = set(re.findall(r"`((?:tests|\.ci|dpmodels)/[\w/.]+)`", text))
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_mechanisms_of_one_file_do_not_use_each_other():
    """Import contracts separate the files of a family; inside a file this test does."""
    # It adds counts on both sides of what the other draws.
    extended = {"Bracketed": {"Exponential"}}
    kinds = {kind for table in TABLES.values() for kind in table.values()}
    homes = {kind.__module__ for kind in kinds}
    names = {home: {kind.__name__ for kind in kinds if kind.__module__ == home} for home in homes}
    assert sum(len(group) > 1 for group in names.values()) >= 10
    users = [
        f"{home}: {node.name} uses {name}"
        for home, group in names.items()
        for node in ast.parse(inspect.getsource(sys.modules[home])).body
        if isinstance(node, ast.ClassDef) and node.name in group
        for name in group - {node.name} - extended.get(node.name, set())
        if any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))
    ]
    assert users == []
