import subprocess
import sys
from pathlib import Path

import pytest

import dpmodels.errors
from dpmodels.errors import NotAvailable
from dpmodels.plots import scree

# A bare package in place of dpmodels/__init__.py, which imports the whole house.
CHECK = """
import sys
import types
house = types.ModuleType("dpmodels")
house.__path__ = [sys.argv[1]]
sys.modules["dpmodels"] = house
import dpmodels.plots
import dpmodels.report
print(sorted({"matplotlib", "statsmodels"} & set(sys.modules)))
print(sorted(m for m in sys.modules if m.startswith("dpmodels.") and m.count(".") == 1))
"""


def test_importing_the_pictures_does_not_import_matplotlib():
    house = str(Path(dpmodels.errors.__file__).parent)
    command = [sys.executable, "-c", CHECK, house]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [
        "[]",
        str([f"dpmodels.{room}" for room in ("errors", "labels", "plots", "report", "typing")]),
    ]


def test_without_matplotlib_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(NotAvailable, match=r'pip install "dpmodels\[plot\]"'):
        scree([1.0], labels=["PC1"])
