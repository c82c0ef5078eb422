"""CONTRIBUTING.md names tests for every room, and tests run where it says."""

import re
from pathlib import Path

import pytest
from examples import examples
from folded import each
from hypothesis import settings
from test_architecture import rooms

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
LINES = re.findall(r"^\| (`.+`) \| (`tests/.+`) \|$", TEXT, flags=re.MULTILINE)


def named(column):
    """What stands in a column of the table, in quotes."""
    return [name for line in LINES for name in re.findall(r"`([^`]+)`", line[column])]


def test_every_room_has_one_line():
    right = {room for room in rooms() if "/" not in room[:-1]}
    assert len(named(0)) == len(set(named(0)))
    assert set(named(0)) - right == set(), "named, and not there"
    assert right - set(named(0)) == set(), "there, and not named"


def test_every_test_is_named():
    """Folders and files of tests, and the files of contracts one by one."""
    tests = ROOT / "tests"
    folders = {path.parent for path in tests.glob("*/test_*.py")}
    right = {*folders, *tests.glob("test_*.py"), *tests.glob("contracts/test_*.py")}
    names = {ROOT / path for path in named(1)}
    assert names - right == set(), "named, and not there"
    assert right - names == set(), "there, and not named"


def test_folders_can_be_run_together(request):
    """Of the fixtures' modules, all of one name, none is imported once more for its examples."""
    ignored = request.config.hook.pytest_ignore_collect
    beside = Path(__file__).with_name("conftest.py")
    assert ignored(collection_path=beside, config=request.config)
    assert not ignored(collection_path=Path(__file__), config=request.config)


class Item:
    """A test as pytest collects it."""

    def __init__(self, name, *marks, law=None):
        self.nodeid, self.marks = name, list(marks)
        self.callspec = type("Spec", (), {"params": {"law": law} if law else {}})

    def get_closest_marker(self, name):
        return getattr(pytest.mark, name)(2).mark if name in self.marks else None

    def add_marker(self, name):
        self.marks.append(name)


@pytest.fixture
def conftest(request):
    text = str(ROOT / "tests" / "conftest.py")
    plugins = request.config.pluginmanager.get_plugins()
    (module,) = (plugin for plugin in plugins if getattr(plugin, "__file__", None) == text)
    return module


@pytest.fixture
def marked(conftest):
    """Mark items as the suite's own are."""

    def mark(*items):
        conftest.mark(items)
        return [" ".join(item.marks) for item in items]

    return mark


def test_a_share_takes_a_part_of_the_product_cases_of_tests_with_many(conftest):
    few = [Item(f"f::few[{case}]", "product") for case in range(conftest.MANY)]
    many = [Item(f"f::many[{case}]", "product") for case in range(300)]
    ordinary = [Item(f"f::many[first {case}]") for case in range(300)]
    items = few + many + ordinary
    assert conftest.beyond_share(items, 1) == set()
    left_out = conftest.beyond_share(items, 3)
    assert left_out < set(many)
    assert 160 < len(left_out) < 240
    assert many[-1] not in conftest.beyond_share(items, 10**9)
    slow = [Item(f"f::slow[{case}]", "slow") for case in range(5)]
    assert conftest.beyond_share(slow, 10**9) == set(slow)


def test_the_first_case_of_every_test_and_law_is_quick(marked):
    result = marked(Item("f::a"), Item("f::b[1]"), Item("f::b[2]"), Item("g::b[2]"))
    assert result == ["quick", "quick", "", "quick"]
    laws = [Item("f::law[x-1]", law=min), Item("f::law[x-2]", law=min), Item("f::law[y]", law=max)]
    assert marked(*laws) == ["quick", "", "quick"]


def test_of_several_cases_all_but_the_first_and_the_last_are_the_products(marked):
    cases = [Item(f"f::b[{number}]") for number in range(4)]
    assert marked(*cases) == ["quick", "product", "product", ""]


def test_of_what_is_made_of_a_release_the_last_case_is_the_products_too(marked):
    cases = [Item(f"tests/plots/test_a.py::b[{number}]") for number in range(3)]
    assert marked(*cases) == ["quick", "product", "product"]
    guards = [Item(f"tests/plots/test_a.py::c[{number}]", "guarding") for number in range(3)]
    assert marked(*guards) == ["guarding quick", "guarding product", "guarding"]


def test_the_first_case_of_an_expensive_test_is_not_quick_and_the_others_are_the_products(marked):
    result = marked(
        Item("f::a", "expensive"), Item("f::b[1]", "expensive"), Item("f::b[2]", "expensive")
    )
    assert result == ["expensive", "expensive", "expensive product"]


@pytest.mark.parametrize("mark", ["slow", "audit_full", "product"])
def test_what_runs_apart_is_the_first_of_nothing(marked, mark):
    assert marked(Item("f::b[1]", mark), Item("f::b[2]")) == [mark, "quick"]


def test_a_loop_over_cases_runs_each_and_names_the_one_that_fails():
    recorded = []

    @each("first", [1, 2])
    @each("second, third", [(3, 4), (5, 6)])
    def loop(first, second, third):
        recorded.append((first, second, third))
        assert third < 6 or first < 2

    with pytest.raises(AssertionError) as raised:
        loop()
    assert recorded == [(1, 3, 4), (1, 5, 6), (2, 3, 4), (2, 5, 6)]
    assert raised.value.__notes__ == [
        "in the case second, third = (5, 6)",
        "in the case first = 2",
    ]
    with pytest.raises(AssertionError, match="no case"):
        each("first", [])


@pytest.mark.parametrize(("profile", "number"), [("repeatable", 16), ("product", 40)])
def test_the_product_tries_properties_on_more_examples(profile, number):
    loaded = settings.get_current_profile_name()
    settings.load_profile(profile)
    try:
        assert examples(40) == number
    finally:
        settings.load_profile(loaded)
