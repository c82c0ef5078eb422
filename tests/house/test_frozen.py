"""Data classes of the package cannot be changed once they are made."""

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "dpmodels"
# What has a state: a source of random bits, and options that a block sets and resets.
MUTABLE = {"noise/uniform.py", "options.py"}
DECORATOR = re.compile(r"^ *@(?:dataclasses\.)?dataclass\b(\([^)]*\))?", re.MULTILINE)


def test_data_classes_are_frozen_except_those_with_a_state():
    classes = [
        (str(path.relative_to(PACKAGE)), "frozen=True" in match.group())
        for path in PACKAGE.rglob("*.py")
        for match in DECORATOR.finditer(path.read_text("utf-8"))
    ]
    assert len(classes) > 300
    assert {name for name, is_frozen in classes if not is_frozen} == MUTABLE
