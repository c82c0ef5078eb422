"""Data classes of the package cannot be changed once they are made."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "dpmodels"
# What has a state: a source of random bits, and options that a block sets and resets.
MUTABLE = {"noise/uniform.py", "options.py"}


def is_frozen(decorator):
    """Whether a decorator makes a frozen data class, None if it makes none."""
    name = decorator.func if isinstance(decorator, ast.Call) else decorator
    if getattr(name, "id", getattr(name, "attr", "")) != "dataclass":
        return None
    keywords = getattr(decorator, "keywords", ())
    return any(word.arg == "frozen" and ast.literal_eval(word.value) for word in keywords)


@pytest.mark.product
def test_data_classes_are_frozen_except_those_with_a_state():
    mutable = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
        if False in map(is_frozen, node.decorator_list)
    }
    assert mutable == MUTABLE
