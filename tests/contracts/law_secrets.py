"""What is private shows nothing and stays; what is released holds nothing of the rows."""

import copy
import gc
import pickle
import pkgutil
import re
import weakref
from collections.abc import Callable, Iterator
from importlib import import_module
from inspect import isabstract
from types import BuiltinFunctionType, FunctionType, ModuleType

import law_canary
import numpy as np
import pandas as pd
from contract_cases import BOOK, FORMULA, Case, table

from dpmodels.design import PrivateDesign, private_design
from dpmodels.design.cells import PrivateCells
from dpmodels.design.parts import Unshown
from dpmodels.errors import PrivacyError
from dpmodels.statistics import Statistic

ROWS = 1237
ANSWER = 90_210_042
COPIERS: tuple[Callable[[object], object], ...] = (
    *(lambda value, p=p: pickle.dumps(value, p) for p in range(pickle.HIGHEST_PROTOCOL + 1)),
    copy.copy,
    copy.deepcopy,
)


def private_values_show_nothing_and_stay() -> None:
    data = pd.DataFrame({"age": [ANSWER] * 3, "wage": 1.0, "sex": "F", "region": "n"})
    design = private_design(FORMULA, data, BOOK)
    cells = np.full((6, 6), ANSWER, dtype=object)
    for value in (design, Statistic("moments", cells, ANSWER)):
        for text in (repr(value), str(value), f"{value}", repr([value]), repr({1: value})):
            assert str(ANSWER) not in text
            assert "not" in text
        refuses_to_be_copied(value)
        refuses_to_be_copied([value])


def classes_with(*methods: str) -> set[type]:
    """The classes that define one of these methods, where rows and secrets are."""
    classes: set[type] = set()
    for package in ("design", "statistics", "sites", "sessions", "frames", "mechanisms", "models"):
        root = import_module(f"dpmodels.{package}")
        for _, name, _ in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            module = import_module(name)
            classes |= {
                value
                for value in vars(module).values()
                if isinstance(value, type) and value.__module__ == name
                if {*methods} & {*vars(value)}
            }
    return classes


def private_types() -> set[type]:
    """The classes that define how they are copied, or inherit that they refuse."""
    kinds, pending = classes_with("__reduce__", "__reduce_ex__") - {Unshown}, [Unshown]
    while pending:
        kinds |= {*pending[0].__subclasses__()}
        pending += pending.pop(0).__subclasses__()
    return {kind for kind in kinds if kind.__module__.startswith("dpmodels.")}


def private_types_refuse_to_be_copied() -> None:
    """Even without their values, so that the refusal cannot depend on these."""
    for kind in {kind for kind in private_types() if not isabstract(kind)}:
        value = object.__new__(kind)
        refuses_to_be_copied(value)
        refuses_to_be_copied([value])


def what_is_not_shown_is_not_read() -> None:
    """A text that is the same without any value shows none."""
    inherit = {kind for kind in private_types() if kind.__repr__ is Unshown.__repr__}
    hide = {kind for kind in classes_with("__repr__") if _hides(kind)}
    values = [object.__new__(kind) for kind in hide | inherit]
    assert len(values) >= 12
    for value in values:
        assert repr(value) == f"<{type(value).__name__.lstrip('_')}, not shown>"


def _hides(kind: type) -> bool:
    texts = map(str, kind.__repr__.__code__.co_consts)
    return any(re.fullmatch("<.*, not shown>", text) for text in texts)


def private_types_are_listed(text: str) -> None:
    """The page that says which types are private names all of them and no other."""
    rule = text.split("\n2. **Types that hold rows")[1].split("\n3. ")[0]
    names = {kind.__name__ for kind in private_types()}
    assert set(re.findall(r"`([A-Z]\w+)`", rule)) == {name for name in names if name[0] != "_"}


def what_is_about_to_cross_shows_nothing(case: Case) -> None:
    """Nor does anything reachable from it, other than the caller's own table."""
    data = pd.DataFrame(law_canary.rare())
    crossing = case.crossing(case.formula, data, BOOK)
    visited = set()
    for part in _inside((crossing.rows, crossing.statistic)):
        kind = type(part)
        if kind.__module__.startswith("dpmodels") and not isinstance(part, np.ndarray | dict):
            law_canary.tells_nothing(repr(part))
            visited.add(kind.__name__)
    assert {"Rows", "NativeRows"} <= visited


def refuses_to_be_copied(value: object) -> None:
    """Fail unless pickle, copy and deepcopy raise; copying a list copies no item."""
    copiers = [c for c in COPIERS if c is not copy.copy or not isinstance(value, list)]
    for copier in copiers:
        try:
            copier(value)
        except PrivacyError:
            continue
        except TypeError as error:
            raise AssertionError("the refusal is not the package's own") from error
        raise AssertionError("a copy was made")


def _inside(root: object) -> Iterator[object]:
    """Walk everything reachable from an object, but for modules and types."""
    recorded: set[int] = set()
    pending = [root]
    while pending:
        item = pending.pop()
        if id(item) in recorded or isinstance(item, ModuleType | type | BuiltinFunctionType):
            continue
        recorded.add(id(item))
        yield item
        if isinstance(item, FunctionType):
            # Not the globals of its module, which hold the whole package.
            pending += [item.__closure__, item.__defaults__, item.__kwdefaults__, item.__dict__]
        elif isinstance(item, np.ndarray):
            pending += [item.base, *(item.ravel().tolist() if item.dtype == object else ())]
        else:
            pending += gc.get_referents(item)


def a_result_holds_nothing_of_the_rows(case: Case) -> None:
    gc.freeze()  # what other tests left is not searched below
    data = table(ROWS)
    frame = pd.DataFrame(data)
    watched = [weakref.ref(column) for column in (frame, *data.values())]
    case.ask(frame)
    fit = case.ask(data)
    fit.summary().as_text()
    parts = list(_inside(fit))
    released = getattr(fit.release, case.family.released[-1])
    assert any(part is released for part in parts), "the walk did not reach the release"
    assert any(part is fit.call.codebook for part in parts)
    for part in parts:
        assert not isinstance(part, PrivateDesign | PrivateCells | Statistic), (
            f"a result holds a {type(part)}"
        )
        assert not hasattr(type(part), "chunks"), f"a result holds a source: {type(part)}"
        assert ROWS not in getattr(part, "shape", ()), "a result holds an array of the rows' length"
        if isinstance(part, list | tuple | str | bytes):
            assert len(part) != ROWS
    del parts, part, data, frame
    if any(watched_object() is not None for watched_object in watched):
        gc.collect()
    assert all(watched_object() is None for watched_object in watched), (
        "rows are still held somewhere"
    )
    assert str(pickle.loads(pickle.dumps(fit)).summary()) == str(fit.summary())
