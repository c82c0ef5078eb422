"""Every mechanism is in the table, says what it promises, and explains itself."""

import ast
import dataclasses
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType

from mechanisms import FAMILIES, MECHANISMS, Mechanism

from dpmodels.privacy import ZCDP, ApproxDP, PureDP

SECTIONS = ("Theorem", "Sensitivity", "Noise", "Numerics", "Source")
NUMERICS = ("exact lattice", "idealised")
# Modules of families that hold no mechanism of their own.
HELPERS = {"column_location", "protocol", "product_moments", "row_location", "tabulated"}
OWN_TESTS = Path(__file__).parents[1] / "mechanisms"


def module_of(mechanism: Mechanism) -> ModuleType:
    module = inspect.getmodule(mechanism.strategy)
    assert module is not None
    return module


def the_card_is_complete(mechanism: Mechanism) -> None:
    strategy = mechanism.make()
    assert strategy.info.name == mechanism.name
    for field in dataclasses.fields(strategy.info):
        text = getattr(strategy.info, field.name)
        assert isinstance(text, str), f"card: {field.name} is no text"
        assert text.strip(), f"card: {field.name} is empty"
    assert strategy.info.numerics in NUMERICS
    # Persons and sampling units enter by the relation of neighbours, whatever the mechanism.
    assert not re.search("person|sampling unit", f"{strategy.info.theorem} {strategy.info.noise}")
    assert not re.search("person", strategy.info.sensitivity)
    assert mechanism.takes
    assert set(mechanism.takes) <= {PureDP, ApproxDP, ZCDP}


def the_docstring_has_its_sections(mechanism: Mechanism) -> None:
    # In the class where a file has several mechanisms, else in the file.
    texts = inspect.getdoc(mechanism.strategy) or "", inspect.getdoc(module_of(mechanism)) or ""
    found = [re.findall(rf"^({'|'.join(SECTIONS)})\n    \S", text, re.MULTILINE) for text in texts]
    headings = found[0] or found[1]
    assert tuple(headings) == SECTIONS, f"{mechanism.name}: sections {headings}"


def the_mechanism_is_frozen(mechanism: Mechanism) -> None:
    strategy = mechanism.make()
    assert dataclasses.is_dataclass(strategy)
    assert type(strategy).__dataclass_params__.frozen


def neighbours_are_tried_somewhere(mechanism: Mechanism) -> None:
    """What is not one vector with the plan's noise has brute force in tests of its own."""
    if mechanism.norm or mechanism.baseline or mechanism.open:
        return
    path = OWN_TESTS / f"test_mechanisms_{mechanism.tried or mechanism.name}.py"
    assert path.is_file(), f"tests of {mechanism.name} are missing"
    tests = [
        node.name
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    assert any("neighbours" in name or "sensitivity" in name for name in tests), (
        f"{mechanism.name}: no neighbours are tried: {tests}"
    )


def the_table_lists_the_folder() -> None:
    """The families of a folder list its modules, each named after one of its mechanisms.

    A family in one file has no folder.
    """
    for folder in {family.folder for family in FAMILIES.values()}:
        tables = [family.table for family in FAMILIES.values() if family.folder is folder]
        entries = [entry for table in tables for entry in table.items()]
        homes: dict[str, set[str]] = {}
        # A word that two tables have stands for two modules, one of them named as its class is.
        for name, strategy in entries:
            homes.setdefault(strategy.__module__, set()).update({name, strategy.__name__.lower()})
        listed = {mechanism.name for mechanism in MECHANISMS if mechanism.kin.folder is folder}
        assert {name for name, _ in entries} == listed
        if not hasattr(folder, "__path__"):
            assert set(homes) == {folder.__name__}
            continue
        modules = {module.name for module in pkgutil.iter_modules(folder.__path__)} - HELPERS
        assert {f"{folder.__name__}.{name}" for name in modules} == set(homes)
        for home, names in homes.items():
            module = home.rpartition(".")[-1]
            assert {module, module.replace("_", "")} & names
    documented = [
        (mechanism.name, mechanism.family, kind)
        for mechanism in MECHANISMS
        for kind in mechanism.takes
    ]
    assert len(documented) == len(set(documented))
