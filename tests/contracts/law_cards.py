"""Every mechanism is in the table, says what it promises, and explains itself."""

import ast
import dataclasses
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType

from mechanisms import FAMILIES, MECHANISMS, Mechanism

from dpmodels.mechanisms import covariance, subspace
from dpmodels.privacy import ZCDP, ApproxDP, PureDP

SECTIONS = ("Theorem", "Sensitivity", "Noise", "Numerics", "Source")
NUMERICS = ("exact lattice", "idealised")
FOLDERS = {"covariance": covariance, "subspace": subspace}
OWN_TESTS = Path(__file__).parents[1] / "mechanisms"


def module_of(mechanism: Mechanism) -> ModuleType:
    found = inspect.getmodule(type(mechanism.make()))
    assert found is not None
    return found


def the_card_is_complete(mechanism: Mechanism) -> None:
    strategy = mechanism.make()
    assert strategy.card.name == mechanism.name
    for field in dataclasses.fields(strategy.card):
        text = getattr(strategy.card, field.name)
        assert isinstance(text, str), f"card: {field.name} is no text"
        assert text.strip(), f"card: {field.name} is empty"
    assert strategy.card.numerics in NUMERICS
    assert mechanism.takes
    assert set(mechanism.takes) <= {PureDP, ApproxDP, ZCDP}


def the_docstring_has_its_sections(mechanism: Mechanism) -> None:
    text = inspect.getdoc(module_of(mechanism)) or ""
    found = re.findall(rf"^({'|'.join(SECTIONS)})\n    \S", text, flags=re.MULTILINE)
    assert tuple(found) == SECTIONS, f"{mechanism.name}: sections {found}"


def the_mechanism_is_frozen(mechanism: Mechanism) -> None:
    strategy = mechanism.make()
    assert dataclasses.is_dataclass(strategy)
    assert type(strategy).__dataclass_params__.frozen


def neighbours_are_tried_somewhere(mechanism: Mechanism) -> None:
    """What is not one vector with the plan's noise has brute force in tests of its own."""
    if mechanism.norm or mechanism.baseline or mechanism.open:
        return
    names = {mechanism.name, mechanism.name.removesuffix("_pure")}
    paths = [OWN_TESTS / f"test_mechanisms_{name}.py" for name in names]
    tests = [
        node.name
        for path in paths
        if path.is_file()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    assert tests, f"tests of {mechanism.name} are missing"
    assert any("neighbours" in name or "sensitivity" in name for name in tests), (
        f"{mechanism.name}: no neighbours are tried: {tests}"
    )


def the_table_lists_the_folder() -> None:
    for family, folder in FOLDERS.items():
        listed = {mechanism.name for mechanism in MECHANISMS if mechanism.family == family}
        modules = {found.name for found in pkgutil.iter_modules(folder.__path__)}
        assert modules == set(FAMILIES[family]) == listed
    for mechanism in MECHANISMS:
        home = f"{FOLDERS[mechanism.family].__name__}.{mechanism.name}"
        assert module_of(mechanism).__name__ == home
    assert len(MECHANISMS) == len({mechanism.name for mechanism in MECHANISMS})
