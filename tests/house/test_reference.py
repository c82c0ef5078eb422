"""The site's reference has everything public, in one place each."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import dpmodels
from dpmodels import errors
from dpmodels.models.release import verb_of
from dpmodels.verbs import verb_names

DOCS = Path(__file__).parents[2] / "docs"
# Subpackages have pages of their own, `session` and `design` are their classes; the version stands
# on every page.
ELSEWHERE = {"errors", "mechanisms", "shapes", "audit", "session", "design", "__version__"}


def listed(page):
    """Names in the lists of a page."""
    return re.findall(r"^   (\w[\w.]*)$", (DOCS / page).read_text("utf-8"), flags=re.MULTILINE)


@pytest.mark.parametrize("page", ["api.md", "errors.md"])
def test_no_name_is_listed_twice(page):
    assert len(listed(page)) == len(set(listed(page))) > 10


def test_every_public_name_has_its_place():
    names = set(dpmodels.__all__) - ELSEWHERE - set(listed("api.md"))
    assert {name for name in names if not name.startswith("dp_")} == set(), (
        "add the name under its task in docs/api.md"
    )


def test_names_within_modules_are_where_the_reference_says():
    within = [name for name in listed("api.md") if "." in name]
    assert within
    for name in within:
        module, _, attribute = name.rpartition(".")
        assert hasattr(import_module(f"dpmodels.{module}"), attribute), name


def test_a_verb_under_no_task_stands_at_the_end(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    import reference

    page = (DOCS / "api.md").read_text("utf-8")
    assert reference.further_verbs(page) == page
    further_verbs = reference.further_verbs(page.replace("   dp_var\n", ""))
    assert "   dp_var\n" in further_verbs.partition("## Further verbs")[2]


def test_every_kind_of_result_has_its_place(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    import reference

    page = reference.results()
    kinds = {verb_of(name).result.__name__ for name in verb_names()} | {"OrdinalResult"}
    assert len(kinds) > 20
    assert {kind for kind in kinds if f".{kind}\n" not in page} == set()


def test_every_error_has_its_place():
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]
    names = {kind.__name__ for kind in kinds if kind.__module__ == errors.__name__}
    assert names == set(listed("errors.md"))
