"""The shape of the source: short files, short functions, one place for everything."""

import ast
import inspect
import re
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

import dpmodels

ROOT = Path(__file__).parents[2]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LITERALS = (
    ast.Constant,
    ast.Name,
    ast.Attribute,
    ast.Dict,
    ast.List,
    ast.Tuple,
    ast.Set,
    ast.expr_context,
)
LAZY = (
    "__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)",
    "__getattr__, __dir__, __all__ = bindings.attach(__name__, __file__)",
)
EXPORTS = sorted(
    name
    for name in dpmodels.__all__
    if not inspect.ismodule(getattr(dpmodels, name)) and name != "__version__"
)


@cache
def trees(folder):
    """What is in the files under a folder, by path."""
    return {path: ast.parse(path.read_text("utf-8")) for path in (ROOT / folder).rglob("*.py")}


def where(path, line=1):
    return f"{path.relative_to(ROOT)}:{line}"


def length(path):
    return len(path.read_text("utf-8").splitlines())


def body_lines(function):
    """Lines of a function's body without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_no_file_is_longer_than_600_lines():
    files = [path for folder in ("dpmodels", "tests") for path in (ROOT / folder).rglob("*.py")]
    assert len(files) > 100
    assert [where(path) for path in files if length(path) > 600] == []


@pytest.mark.product
def test_no_function_body_is_longer_than_60_lines():
    long = [
        where(path, node.lineno)
        for path, tree in chain(trees("dpmodels").items(), trees("tests").items())
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS) and body_lines(node) > 60
    ]
    assert long == []


MOST_BRANCHES = 15


def parts_of(node):
    """The node and all below it, without the bodies of functions inside."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, FUNCTIONS):
            yield from parts_of(child)


def is_default(pattern):
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None


def branches(node):
    """How many branches a node adds to McCabe's measure, with those of conditions."""
    match node:
        case ast.If() | ast.IfExp() | ast.Assert():
            return 1
        case ast.For() | ast.AsyncFor() | ast.While():
            return 1 + bool(node.orelse)
        case ast.comprehension(ifs=conditions):
            return 1 + len(conditions)
        case ast.BoolOp(values=values):
            return len(values) - 1
        case ast.Try(handlers=handlers, orelse=orelse):
            return len(handlers) + bool(orelse)
        case ast.Match(cases=cases):
            return len([case for case in cases if not is_default(case.pattern)])
    return 0


def complexity(function):
    return 1 + sum(map(branches, parts_of(function)))


@pytest.mark.product
def test_no_function_has_more_than_15_branches():
    planted = ast.parse("def f(x):\n    return [y for y in x if y and x] or (1 if x else 2)")
    assert complexity(planted.body[0]) == 6
    functions = [
        (where(path, node.lineno), complexity(node))
        for path, tree in trees("dpmodels").items()
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS)
    ]
    assert [(place, n) for place, n in functions if n > MOST_BRANCHES] == []


def is_table(node):
    return (
        isinstance(node, ast.Assign | ast.AnnAssign)
        and node.value is not None
        and all(isinstance(part, LITERALS) for part in ast.walk(node.value))
    )


def test_init_files_hold_no_code():
    code = [
        where(path, node.lineno)
        for path, tree in trees("dpmodels").items()
        if path.name == "__init__.py"
        for node in tree.body
        if not isinstance(node, ast.Import | ast.ImportFrom)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        and not is_table(node)
        and not (path.with_suffix(".pyi").exists() and ast.unparse(node) in LAZY)
    ]
    assert code == []


def test_every_folder_is_a_package():
    folders = {path.parent for path in trees("dpmodels")}
    assert [
        where(folder) for folder in folders if folder / "__init__.py" not in trees("dpmodels")
    ] == []


def test_no_file_is_called_after_nothing():
    vague = {"utils.py", "util.py", "helpers.py", "misc.py", "common.py"}
    assert [where(path) for path in trees("dpmodels") if path.name in vague] == []


def is_protocol(node):
    return isinstance(node, ast.ClassDef) and any(
        re.match(r"(typing\.)?Protocol\b", ast.unparse(base)) for base in node.bases
    )


def test_a_protocol_file_holds_a_protocol():
    files = {path: tree for path, tree in trees("dpmodels").items() if path.name == "protocol.py"}
    assert [where(path) for path in files if not any(map(is_protocol, files[path].body))] == []


@pytest.mark.product
def test_no_wildcard_imports():
    wild = [
        where(path, node.lineno)
        for path, tree in trees("dpmodels").items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)
    ]
    assert wild == []


def public_definitions(node):
    """A module or class, and the public classes and functions in it."""
    yield node
    for child in node.body:
        if isinstance(child, ast.ClassDef) and not child.name.startswith("_"):
            yield from public_definitions(child)
        elif isinstance(child, FUNCTIONS) and not child.name.startswith("_"):
            yield child


def test_everything_public_has_a_docstring():
    silent = [
        where(path, getattr(node, "lineno", 1))
        for path, tree in trees("dpmodels").items()
        for node in public_definitions(tree)
        if not ast.get_docstring(node)
        and not any("overload" in ast.unparse(mark) for mark in getattr(node, "decorator_list", []))
    ]
    assert silent == []


def sections(docstring):
    """Split a numpydoc docstring into its headed sections."""
    parts = re.split(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", docstring, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def described(section):
    """Names that open the entries of a Parameters or Attributes section."""
    heads = [line for line in section.splitlines() if line and not line[0].isspace()]
    return {name.strip(" *") for head in heads for name in head.split(":")[0].split(",")}


@pytest.mark.parametrize("name", EXPORTS)
def test_public_verbs_and_values_are_documented(name):
    exported = getattr(dpmodels, name)
    result = sections(inspect.getdoc(exported))
    assert "Examples" in result
    parameters = set(inspect.signature(exported).parameters)
    assert parameters <= described(result.get("Parameters", "") + result.get("Attributes", ""))
    assert inspect.isclass(exported) or {"Returns", "Yields"} & set(result)


UNTYPED_LINES = 575
# `Any` and its aliases, which would hide it from a search for its name.
UNTYPED = {
    *("Any", "Numbers", "Exact", "Array", "Plain", "Option"),
    *("TableColumns", "TableLine", "PlanOfStrategy", "Keywords"),
}


def untyped_lines(tree):
    """The lines that use `Any`, by its name or by an alias; a line that imports it uses nothing."""
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {node.lineno for node in names if node.id in UNTYPED}


def test_lines_that_use_any_become_fewer():
    assert untyped_lines(ast.parse("from typing import Any\n\nx: Any\ny: list[Plain]\n")) == {3, 4}
    assert sum(len(untyped_lines(tree)) for tree in trees("dpmodels").values()) <= UNTYPED_LINES
