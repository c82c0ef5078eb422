"""Which tests go with what changed, by the imports: `pytest --changed`, `pytest --changed=main`.

A test file is chosen if it changed, or if it imports, directly or through one module, what changed.
Further readers are left to the whole suite.
"""

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


def module_of(path):
    """The dotted name of a file of the package or of the tests, as others import it."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[1:] if parts[0] == "tests" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules():
    """Every module of the package and of the tests, with its file."""
    files = (*ROOT.glob("dpmodels/**/*.py"), *ROOT.glob("tests/**/*.py"))
    return {module_of(path): path for path in files}


@cache
def exported(module):
    """Names that a package hands on, with the modules that define them."""
    file = modules()[module]
    stub = file.with_suffix(".pyi")
    tree = ast.parse((stub if stub.exists() else file).read_text("utf-8"))
    results = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            above = ".".join(part for part in (module * bool(node.level), node.module) if part)
            for name in node.names:
                inside = f"{above}.{name.name}"
                results[name.asname or name.name] = inside if inside in modules() else above
    return results


@cache
def imported(path):
    """The modules that a file imports or reaches by `dp.name`."""
    tree = ast.parse(path.read_text("utf-8"))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {name.name for name in node.names if name.name != "dpmodels"}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                inside = f"{node.module}.{name.name}"
                values = exported(node.module) if node.module in modules() else {}
                names.add(inside if inside in modules() else values.get(name.name, node.module))
        elif isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "dp":
            names.add(exported("dpmodels").get(node.attr, ""))
    return names & set(modules())


def changed_files(revision):
    """Files that differ from a revision, and those that version control does not know yet."""
    commands = (
        ("git", "diff", "--name-only", revision),
        ("git", "ls-files", "--others", "--exclude-standard"),
    )
    lines = [
        subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for command in commands
    ]
    return {ROOT / name for name in "".join(lines).splitlines()}


def tests_of(changed):
    """The test files that are among some modules or import them, directly or through one module."""
    imports = {module: imported(path) for module, path in modules().items()}
    close = changed | {module for module, names in imports.items() if names & changed}
    files = {module: path for module, path in modules().items() if path.name.startswith("test_")}
    chosen = {
        path for module, path in files.items() if module in changed or imports[module] & close
    }
    return sorted(str(path.relative_to(ROOT)) for path in chosen)


def tests(revision):
    """The test files that go with what changed since a revision, as pytest takes them."""
    files = changed_files(revision)
    changed = {module for module, path in modules().items() if path in files}
    return tests_of(changed) if changed else []
