"""The import contracts of setup.cfg hold, and each can fail."""

import ast
import configparser
import os
import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
LINT = (
    "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
)
CIRCLE = "from dpmodels.formula import {} as other\n"
FAULTS = {
    "The privacy wall": {"postprocess/planted.py": "from dpmodels.design import PrivateDesign\n"},
    "The package is read top to bottom": {"privacy/planted.py": "import dpmodels.noise\n"},
    "Mechanisms of one family do not know each other": {
        "mechanisms/covariance/planted.py": "from dpmodels.mechanisms.covariance import gauss\n"
    },
    "Answers are read without mechanisms, ledgers or private rows": {
        "surveys/planted.py": "import dpmodels.statistics\n"
    },
    "The floor knows nothing above it": {"noise/planted.py": "import dpmodels.released\n"},
    "Tables and pictures know no model": {"plots/planted.py": "import dpmodels.released\n"},
    "No subpackage imports the entry point of the package": {
        "inference/planted.py": "import dpmodels as dp\n"
    },
    "No circles": {
        "formula/planted.py": CIRCLE.format("planted_too"),
        "formula/planted_too.py": CIRCLE.format("planted"),
    },
}


def settings():
    """The linter's sections of setup.cfg."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return {name: parser[name] for name in parser if name.startswith("importlinter:contract:")}


def lint(tree):
    """Run the linter on a tree: exit status and what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-c", LINT], cwd=tree, env=environment, capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def copy(tmp_path):
    """A temporary copy of the package and its contracts."""
    shutil.copy(ROOT / "setup.cfg", tmp_path)
    hidden = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "dpmodels", tmp_path / "dpmodels", ignore=hidden)
    return tmp_path


@pytest.mark.expensive
def test_the_contracts_hold():
    status, printed = lint(ROOT)
    assert status == 0, printed


def test_every_contract_has_its_fault():
    assert {contract["name"] for contract in settings().values()} == set(FAULTS)


@pytest.mark.product
@pytest.mark.parametrize("contract", FAULTS)
def test_a_planted_fault_is_found(copy, contract):
    for path, source in FAULTS[contract].items():
        (copy / "dpmodels" / path).write_text(source, encoding="utf-8")
    status, printed = lint(copy)
    assert status == 1
    assert f"{contract} BROKEN" in printed


@pytest.mark.product
def test_the_wall_sees_a_detour(copy):
    (copy / "dpmodels/codebook.py").write_text("import dpmodels.frames\n", encoding="utf-8")
    (copy / "dpmodels/results/planted.py").write_text("import dpmodels.codebook\n")
    status, printed = lint(copy)
    assert status == 1
    assert "The privacy wall BROKEN" in printed


@pytest.mark.product
def test_a_room_without_a_place_is_found(copy):
    (copy / "dpmodels/shed.py").write_text('"""A room that no layer names."""\n', encoding="utf-8")
    status, printed = lint(copy)
    assert status == 1
    assert "The package is read top to bottom BROKEN" in printed


def test_allowed_circles_are_annotations_only():
    runtime = grimp.build_graph("dpmodels", cache_dir=None, exclude_type_checking_imports=True)
    allowed = settings()["importlinter:contract:circles"].get("ignore_imports", "").split("\n")
    edges = [line.split(" -> ") for line in allowed if "->" in line]
    assert [
        edge for edge in edges if runtime.direct_import_exists(importer=edge[0], imported=edge[1])
    ] == []


@pytest.mark.product
def test_no_import_hides_from_the_linter():
    """Imports made by name at run time are of other libraries, or of the same subpackage."""
    hidden = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (ROOT / "dpmodels").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2]
        in {"import_module", "__import__", "exec", "eval"}
        and not names_another_library(node)
        and not stays_in_its_room(node, path.parent.name)
    ]
    assert hidden == []


def stays_in_its_room(call, room):
    first = call.args[0].values[0] if isinstance(call.args[0], ast.JoinedStr) else None
    return isinstance(first, ast.Constant) and first.value == f"dpmodels.{room}."


def names_another_library(call):
    return isinstance(call.args[0], ast.Constant) and not str(call.args[0].value).startswith(
        ("dpmodels", ".")
    )
