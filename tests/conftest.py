"""What every test may use: repeatable examples, optional local data, the reduced run."""

import gc
import os
import shutil
import sys
import zlib
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from changed import tests as tests_of_changes
from hypothesis import settings
from postgres_server import running

# Several processes with several threads each would wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Nothing that is collected is ever garbage, and looking for some takes a third of the time.
gc.disable()
# They have no examples, and as modules of one name would not stand beside each other.
collect_ignore_glob = ["*conftest.py"]
# Examples in docstrings that simulate whole studies.
STUDIES = (
    "dpmodels.planning.plan.plan",
    "dpmodels.planning.power.power",
    "dpmodels.models.compare.compare_mechanisms",
    "dpmodels.models.split.split_budget",
    "dpmodels.evaluation.verb.evaluate",
)
# Tests that are run by these words alone.
ASIDE = ("slow", "audit_full", "product", "site")
# Folders of tests of what is made of a release: the last cases are the product's there.
DERIVED = ("inference", "models", "planning", "plots", "postprocess", "reports", "results", "shell")
# Of a test with more product or slow cases than this, `--share` takes a part.
MANY = 3
BESIDE = Path(__file__).parents[2] / "shared" / "data"
# Ledgers wait for the disk at each line. Temporary folders in memory do not, where a gigabyte of it
# is free and nobody has chosen another place.
IN_MEMORY = Path("/dev/shm")
no_other_place = "TMPDIR" not in os.environ and os.access(IN_MEMORY, os.W_OK)
if no_other_place and shutil.disk_usage(IN_MEMORY).free > 2**30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))

# The table of verbs is imported before the laws that call it.
pytest.register_assert_rewrite("exact")

EXACT = {"derandomize": True, "deadline": None, "database": None}
settings.register_profile("repeatable", max_examples=40, **EXACT)
settings.register_profile("product", max_examples=100, **EXACT)
settings.register_profile("searching", deadline=None)
settings.load_profile("repeatable")


def pytest_addoption(parser):
    reported = "only the tests of what changed since a revision (HEAD), by the imports"
    parser.addoption("--changed", nargs="?", const="HEAD", metavar="REVISION", help=reported)
    shared = "of tests with many product or slow cases one in N, chosen by name"
    parser.addoption("--share", type=int, default=1, metavar="N", help=shared)


def pytest_configure(config):
    """Take the tests of what changed in the place of all; more examples for the product."""
    revision = config.getoption("changed")
    if revision is not None:
        config.args[:] = tests_of_changes(revision) or pytest.exit("nothing changed", returncode=0)
    if config.getoption("markexpr") == "product":
        settings.load_profile("product")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Look for examples in the package alone: the tests have none."""
    return [value for value in (yield) if not isinstance(value, DoctestModule)]


def pytest_itemcollected(item):
    """Run all properties with more examples where the product's tests are run."""
    thorough = item.config.getoption("markexpr") == "product"
    has_examples = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    if thorough and has_examples and not any(map(item.get_closest_marker, ASIDE)):
        item.add_marker("product")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark the cases of tests, and leave out cases by the share that is asked for."""
    mark(items)
    left_out = beyond_share(items, config.getoption("share"))
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=list(left_out))


def mark(items):
    """Mark the first case of each test quick, and all but the first and the last product.

    An invariant has a first and a last case for each of its subjects, mechanism and verb. A test of
    what is made of a release has no last one, unless it is marked guarding.
    """
    cases = {}
    for item in items:
        if any(map(item.get_closest_marker, ASIDE)):
            continue
        if item.nodeid.rpartition("::")[2] in STUDIES:
            item.add_marker("product")
        values = item.callspec.params if hasattr(item, "callspec") else {}
        test = (item.nodeid.partition("[")[0], getattr(values.get("law"), "__name__", ""))
        expensive = item.get_closest_marker("expensive")
        subject = None if expensive else getattr(values.get("case"), "subject", None)
        if test not in cases and not expensive:
            item.add_marker("quick")
        cases.setdefault(test, {}).setdefault(subject, []).append(item)
    for _, *alternatives in (value for test in cases.values() for value in test.values()):
        for item in alternatives:
            is_first_alone = item.get_closest_marker("expensive") or is_derived(item)
            if item is not alternatives[-1] or is_first_alone:
                item.add_marker("product")


def is_derived(item):
    """Whether a test is of estimates, tables, plots or commands, and none that guards rows."""
    is_in_folder = item.nodeid.startswith(tuple(f"tests/{folder}/" for folder in DERIVED))
    return is_in_folder and not item.get_closest_marker("guarding")


def beyond_share(items, share):
    """Return the product and slow cases of tests with many, but those whose names a share takes.

    The last product case is never left out.
    """
    cases = {}
    for item in items:
        if item.get_closest_marker("product") or is_slow(item):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    tests = (test for test in cases.values() if len(test) > MANY)
    many = (item for test in tests for item in test[: None if is_slow(test[-1]) else -1])
    return {item for item in many if zlib.crc32(item.nodeid.encode()) % share}


def is_slow(item):
    return item.get_closest_marker("slow") is not None


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    """Leave what was imported and collected out of every search for garbage; search seldom."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


# What `predictor` said that a budget identifies and what noise it adds, by all that it depends on.
PREDICTED = {}


def predicted_once(key, predict, *asked):
    """Return what was predicted under a key, or predict it."""
    if key not in PREDICTED:
        PREDICTED[key] = predict(*asked)
    return PREDICTED[key]


@pytest.fixture(scope="module", autouse=True)
def predictions_made_once(request):
    """Simulate what other budgets buy once for each request, mechanism and number of rows.

    It is most of the time of many calls. The tests of predictions themselves make each anew. Where
    a module says `PREDICTED_ONCE`, a verb and mechanism are simulated once, whatever the plan.
    """
    from dpmodels.models import predictor

    if "prediction" in request.module.__name__:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(predictor, "REMEMBERED", 0)
            predictor._remembered.clear()
            yield
        return

    identifies, noise = predictor._identifies, predictor._noise
    is_once = hasattr(request.module, "PREDICTED_ONCE")

    def identifies_once(spec, choice, n_rows, share):
        key = f"{spec.request.verb} by {choice.strategy!r}"
        return predicted_once(("identifies", key), identifies, spec, choice, n_rows, share)

    def noise_once(spec, mechanism, n_rows):
        key = repr((spec.request, mechanism, n_rows))
        key = f"{spec.request.verb} {spec.request.formula} by {mechanism!r}" if is_once else key
        return predicted_once(("noise", key), noise, spec, mechanism, n_rows)

    with pytest.MonkeyPatch.context() as patch:
        if is_once:
            patch.setattr(predictor, "_identifies", identifies_once)
        patch.setattr(predictor, "_noise", noise_once)
        yield


def pytest_runtest_teardown():
    """Close what was drawn: pyplot keeps every figure, and warns of the twenty-first."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="session")
def local_data():
    """Directory of optional local data; skips without one."""
    folder = Path(os.environ.get("DPMODELS_DATA", BESIDE))
    if not folder.is_dir():
        pytest.skip("no local data: set DPMODELS_DATA to a directory that holds them")
    return folder


@pytest.fixture(scope="session")
def reduced():
    """True where slow tests should take fewer runs (DPMODELS_REDUCED=1)."""
    return os.environ.get("DPMODELS_REDUCED", "0") != "0"


@pytest.fixture(scope="session")
def postgres():
    """The URL of a server of PostgreSQL, which runs as long as the tests of this process."""
    with running() as url:
        yield url
