"""One hierarchy of errors, in one file, and nothing else is raised."""

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import dpmodels
from dpmodels import errors

PACKAGE = Path(__file__).parents[2] / "dpmodels"
# What Python's own protocols ask for by name.
# Iterators end by the first two; Starlette answers the third by its status.
PROTOCOL_ERRORS = {"StopIteration", "StopAsyncIteration", "HTTPException"}


def defined_exceptions():
    """Every exception class that a module of the package defines."""
    for info in pkgutil.walk_packages(dpmodels.__path__, "dpmodels."):
        if info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        for value in vars(module).values():
            ours = inspect.isclass(value) and value.__module__.startswith("dpmodels")
            if ours and issubclass(value, BaseException):
                yield value


def test_every_exception_derives_from_the_base():
    assert [
        error for error in defined_exceptions() if not issubclass(error, errors.DPModelsError)
    ] == []


def test_only_the_errors_file_defines_exceptions():
    homes = {error.__module__ for error in defined_exceptions()}
    assert homes == {"dpmodels.errors"}


def raised_name(node):
    """The class that a raise statement names; None for a bare or re-raised one."""
    raised = node.exc.func if isinstance(node.exc, ast.Call) else None
    return raised and ast.unparse(raised).rpartition(".")[2]


@pytest.mark.product
def test_nothing_else_is_raised():
    names = {name for name, value in vars(errors).items() if inspect.isclass(value)}
    foreign = [
        f"{path.relative_to(PACKAGE)}:{node.lineno} {raised_name(node)}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Raise)
        and raised_name(node) is not None
        and raised_name(node) not in names | PROTOCOL_ERRORS
    ]
    assert foreign == []


def test_every_error_says_what_it_is_for():
    classes = [value for value in vars(errors).values() if inspect.isclass(value)]
    classes = [value for value in classes if issubclass(value, BaseException)]
    assert [error for error in classes if not error.__doc__] == []
