"""What importing the package costs, measured in a fresh interpreter."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dpmodels as dp
from dpmodels import bindings
from dpmodels.errors import NotAvailable

ROOT = Path(__file__).parents[2]
HEAVY = {"matplotlib", "pyarrow", "dask", "flwr", "polars", "pandas", "scipy", "statsmodels"}
SECONDS = 1.2
TRIES = 8


def python(*arguments):
    """Run a fresh interpreter on the tree."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)


def test_import_takes_nothing_heavy_along():
    loaded = python("-c", "import sys, dpmodels; print(*sys.modules)").stdout.split()
    assert "dpmodels" in loaded
    assert HEAVY & set(loaded) == set()


@pytest.mark.product
def test_the_first_verb_takes_no_fits_of_others_along():
    code = "import sys, dpmodels; dpmodels.dp_mean; print(*sys.modules)"
    loaded = set(python("-c", code).stdout.split())
    assert "dpmodels.models.mean" in loaded
    heavy = {"matplotlib", "dask", "flwr", "statsmodels", "scipy.stats", "scipy.interpolate"}
    assert heavy & loaded == set()
    first_used = {"xarray", "mpmath", "narwhals", "cryptography", "scipy.sparse", "scipy.linalg"}
    assert first_used & loaded == set()
    assert {"dpmodels.reports", "dpmodels.plots"} & loaded == set()


@pytest.mark.parametrize("is_collecting", [True, False])
def test_loading_leaves_the_search_for_garbage_as_it_was(is_collecting):
    get, _, _ = bindings.attach(dp.__name__, dp.__file__)
    before = gc.isenabled()
    (gc.enable if is_collecting else gc.disable)()
    try:
        assert get("dp_mean") is dp.dp_mean
        with pytest.raises(NotAvailable, match="dp_mean"):
            get("dp_maen")
        assert gc.isenabled() is is_collecting
    finally:
        (gc.enable if before else gc.disable)()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no forks")
def test_a_fork_while_a_thread_loads_a_verb_searches_for_garbage():
    code = """
import gc, os, threading, dpmodels.bindings as bindings, lazy_loader
started, ended = threading.Event(), threading.Event()
def get(attribute):
    started.set()
    ended.wait()
lazy_loader.attach_stub = lambda name, file: (get, list, [])
loader = threading.Thread(target=bindings.attach("name", "file")[0], args=("verb",))
loader.start()
started.wait()
was_paused = not gc.isenabled()
child = os.fork()
if not child:
    os._exit(gc.isenabled())
status = os.waitpid(child, 0)[1]
ended.set()
loader.join()
print(was_paused, os.waitstatus_to_exitcode(status), gc.isenabled())
"""
    assert python("-W", "ignore", "-c", code).stdout.split() == ["True", "1", "True"]


def test_import_is_quick():
    clock = "import time; start = time.perf_counter(); import dpmodels"
    best = SECONDS
    for _ in range(TRIES):
        best = min(best, float(python("-c", f"{clock}; print(time.perf_counter() - start)").stdout))
        if best < SECONDS:
            break
    assert best < SECONDS


@pytest.mark.product
def test_help_takes_nothing_heavy_and_no_verb_along():
    done = python("-X", "importtime", "-m", "dpmodels", "--help")
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "argparse" in loaded
    assert HEAVY & loaded == set()
    assert not any(name.startswith("dpmodels.models") for name in loaded)
    assert "usage" in done.stdout.lower()
