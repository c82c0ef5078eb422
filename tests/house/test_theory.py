"""docs/theory.md agrees with the code: a table made of cards, theorems with proofs and tests.

`python tests/house/test_theory.py` writes the table anew.
"""

import re
import sys
from inspect import cleandoc
from pathlib import Path

import pytest

from dpmodels.mechanisms.tables import TABLES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "theory.md"
HEADING = "## The mechanisms\n"
COLUMNS = ("theorem", "sensitivity", "noise", "numerics", "source")
LABELS = ("Proof", "Tried by", "Numerics")


def registered():
    """Each mechanism once, with its table's name, in the order of the tables."""
    return {kind: name.lower() for name, table in TABLES.items() for kind in table.values()}


def numerics(kind):
    """What the docstring says of numerics, in its first word."""
    message = cleandoc(kind.__doc__) + sys.modules[kind.__module__].__doc__
    return re.search(r"\nNumerics\n\s+(\w+)", message).group(1)


def table():
    """The table of the page, as the code has it."""
    head = ("mechanism", "family", *COLUMNS)
    rows = [
        (
            f"[`{kind.info.name}`](../{kind.__module__.replace('.', '/')}.py)",
            family,
            *(getattr(kind.info, column).replace("|", "\\|") for column in COLUMNS),
        )
        for kind, family in registered().items()
    ]
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def theorems():
    """Number and text of each theorem of the page."""
    parts = re.split(r"^### Theorem (\d+)\. ", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    return {
        int(number): re.split(r"^##", text, flags=re.MULTILINE)[0]
        for number, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def test_the_table_is_that_of_the_cards():
    written = PAGE.read_text("utf-8").split(HEADING)[1].strip()
    assert written == table().strip(), "run python tests/house/test_theory.py"


@pytest.mark.parametrize("kind", registered(), ids=lambda kind: kind.info.name)
def test_a_card_and_its_docstring_agree_on_numerics(kind):
    assert kind.info.numerics.startswith(numerics(kind))


def test_theorems_are_numbered_in_order():
    assert list(theorems()) == list(range(1, len(theorems()) + 1))


def test_the_package_names_theorems_that_exist():
    last = len(theorems())
    for path in sorted((ROOT / "dpmodels").glob("**/*.py")):
        named = re.findall(r"\bTheorems?((?:,? (?:and )?\d+)+)", path.read_text("utf-8"))
        numbers = [int(number) for part in named for number in re.findall(r"\d+", part)]
        assert all(1 <= number <= last for number in numbers), path


@pytest.mark.parametrize("number", theorems())
def test_each_theorem_has_a_proof_a_test_and_its_numerics(number):
    parts = re.split(r"^\*\*(.+?)\*\*", theorems()[number], flags=re.MULTILINE)
    message = dict(zip((part.strip(".") for part in parts[1::2]), parts[2::2], strict=True))
    assert list(message) == list(LABELS)
    assert re.search(r"\b(exact|idealised)\b", message["Numerics"])
    tests = re.findall(r"`(tests/[\w/.]+)`", message["Tried by"])
    assert tests
    assert "dpmodels/" in message["Proof"] or len(message["Proof"]) > 20


def test_named_functions_exist():
    inside = re.findall(r"`(dpmodels/[\w/.]+\.py)` \(`(\w+)`\)", PAGE.read_text("utf-8"))
    assert len(inside) >= 5
    assert [
        value for value in inside if f"def {value[1]}(" not in (ROOT / value[0]).read_text()
    ] == []


if __name__ == "__main__":
    above = PAGE.read_text("utf-8").split(HEADING)[0]
    PAGE.write_text(above + HEADING + "\n" + table(), encoding="utf-8")
