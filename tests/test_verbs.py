"""The table of verbs is complete, and what it says of them is so."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest
from verb_entry import LISTS, fitted
from verbs import FORMS, VERBS, forms

import dpmodels as dp
from dpmodels import results
from dpmodels.errors import ArgumentError
from dpmodels.models.release import all_verbs
from dpmodels.results.base import Result

STUB = Path(dp.__file__).with_suffix(".pyi").read_text("utf-8")
EXPORTED = set(re.findall(r"^from \S+ import (dp_\w+) as \1$", STUB, flags=re.MULTILINE))


def named(test):
    return [form.verb.name for form in forms(test).values()]


def test_every_verb_of_the_package_is_in_the_table():
    assert len(EXPORTED) > 20
    assert {entry.name for entry in VERBS} == EXPORTED


def test_every_verb_stands_in_the_lists_of_all_verbs():
    assert set(named("stored")) == set(named("forged")) == EXPORTED
    # What charges nothing is planned by nobody.
    assert sorted(named("planned")) == sorted(f"dp_{name}" for name in all_verbs())
    assert sorted(named("sites")) == sorted({entry.name for entry in VERBS if entry.protocols})


def test_every_list_has_forms_of_names_of_their_own():
    listed = [(test, form.id) for form in FORMS for test in form.tests.split()]
    assert {test for test, _ in listed} == set(LISTS)
    assert len(set(listed)) == len(listed)


# Classes of results that others extend.
EXTENDED = {"GLMResult", "MultinomialResult", "CountedGLM"} | {
    f"{name}Result" for name in ("Table", "Hist", "Quantile")
}


def kinds(base=Result):
    """Every class of results of a release that the package has, but for what several share."""
    for module in pkgutil.iter_modules(results.__path__, "dpmodels.results."):
        importlib.import_module(module.name)
    ours = [kind for kind in base.__subclasses__() if kind.__module__.startswith("dpmodels.")]
    return [leaf for kind in ours for leaf in (kinds(kind) or [kind])]


@pytest.mark.product
def test_every_kind_of_result_is_in_the_table():
    stored = {type(fitted(form)).__name__ for form in forms("stored").values()}
    assert stored == {kind.__name__ for kind in kinds()} | EXTENDED
    assert stored == {kind for entry in VERBS for kind in entry.results}


@pytest.mark.parametrize("name", forms("stored"))
def test_a_fit_has_the_plot_and_the_column_that_the_table_says(name):
    form = forms("stored")[name]
    fit = fitted(form)
    abilities = form.verb.results[type(fit).__name__].split()
    assert hasattr(fit, "plot") == ("plot" in abilities)
    if "column" in abilities:
        assert type(fit).__name__ not in dp.etable(fit).as_text()
    else:
        with pytest.raises(ArgumentError, match=f"{type(fit).__name__} cannot be a column"):
            dp.etable(fit)
