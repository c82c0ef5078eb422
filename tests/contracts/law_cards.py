"""Every mechanism is in the table, says what it promises, and explains itself."""

import dataclasses
import inspect
import pkgutil
import re
from types import ModuleType

from mechanisms import MECHANISMS, Mechanism

from dpmodels.mechanisms import COVARIANCE, covariance
from dpmodels.privacy import ZCDP, ApproxDP, PureDP

SECTIONS = ("Theorem", "Sensitivity", "Noise", "Numerics", "Source")
NUMERICS = ("exact lattice", "idealised")


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


def the_table_lists_the_folder() -> None:
    modules = {found.name for found in pkgutil.iter_modules(covariance.__path__)}
    assert modules == set(COVARIANCE) == {mechanism.name for mechanism in MECHANISMS}
    for mechanism in MECHANISMS:
        own = COVARIANCE[mechanism.name]
        assert own is type(mechanism.make())
        assert module_of(mechanism).__name__ == f"{covariance.__name__}.{mechanism.name}"
