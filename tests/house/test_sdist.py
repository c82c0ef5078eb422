"""The source distribution holds what the folder does: whoever has it can run all checks."""

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MADE = ("__pycache__", "*.py[cod]", "*.egg-info", "*.ipynb", "build", "dist", "venv")
CODE = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"


@pytest.mark.slow
def test_the_source_distribution_holds_tests_docs_and_vignettes(tmp_path):
    tree = tmp_path / "tree"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", *MADE))
    right = {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()}
    command = [sys.executable, "-c", CODE, str(tmp_path)]
    subprocess.run(command, cwd=tree, check=True, capture_output=True)
    (result,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(result) as clipped:
        names = {name.partition("/")[2] for name in clipped.getnames()}
    assert len(right) > 1000
    assert right - names == set()
