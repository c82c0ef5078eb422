"""What every test may use: repeatable examples, optional local data, the reduced run."""

import gc
import os
import sys
from pathlib import Path

import pytest
from changed import tests as tests_of_changes
from hypothesis import settings

# Nothing that is collected is ever garbage, and looking for some takes a third of the time.
gc.disable()
# They have no examples, and as modules of one name would not stand beside each other.
collect_ignore_glob = ["*conftest.py"]
# Tests that are run by these words alone.
ASIDE = ("slow", "audit_full", "product", "site")
BESIDE = Path(__file__).parents[2] / "shared" / "data"

# The table of verbs is imported before the laws that call it.
pytest.register_assert_rewrite("exact")

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("searching", deadline=None)
settings.load_profile("repeatable")


def pytest_addoption(parser):
    told = "only the tests of what changed since a revision (HEAD), by the imports"
    parser.addoption("--changed", nargs="?", const="HEAD", metavar="REVISION", help=told)


def pytest_configure(config):
    """Take the tests of what changed in the place of all."""
    revision = config.getoption("changed")
    if revision is not None:
        config.args[:] = tests_of_changes(revision) or pytest.exit("nothing changed", returncode=0)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark each first case quick, unless it is expensive: then its other cases are product."""
    seen = set()
    for item in items:
        if any(map(item.get_closest_marker, ASIDE)):
            continue
        case = item.callspec.params if hasattr(item, "callspec") else {}
        test = (item.nodeid.partition("[")[0], getattr(case.get("law"), "__name__", ""))
        first, expensive = test not in seen, item.get_closest_marker("expensive")
        seen.add(test)
        if first and not expensive:
            item.add_marker("quick")
        if expensive and not first:
            item.add_marker("product")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    """Leave what was imported and collected out of every search for garbage; search seldom."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_runtest_teardown():
    """Close what was drawn: pyplot keeps every figure, and warns of the twenty-first."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="session")
def local_data():
    """Directory of optional local data; skips where there is none."""
    folder = Path(os.environ.get("DPMODELS_DATA", BESIDE))
    if not folder.is_dir():
        pytest.skip("no local data: set DPMODELS_DATA to a directory that holds them")
    return folder


@pytest.fixture(scope="session")
def reduced():
    """True where slow tests should take fewer runs (DPMODELS_REDUCED=1)."""
    return os.environ.get("DPMODELS_REDUCED", "0") != "0"
