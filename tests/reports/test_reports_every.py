"""Every kind of result prints, and is saved or says that it is not."""

import ast
import importlib
import pkgutil
from pathlib import Path

import numpy as np
import pytest
import verbs_models
from verb_entry import fitted
from verbs import forms

from dpmodels import audit, models, reports, results
from dpmodels.audit.result import AuditResult, AuditTable
from dpmodels.errors import NotAvailable
from dpmodels.models.release import REPORTS
from dpmodels.privacy import ApproxDP, adjacency
from dpmodels.report import Report
from dpmodels.results.base import STAMP, Printed, lay_out, report_of
from dpmodels.results.plan import SplitRequest, SplitResult

for report_module in REPORTS:
    importlib.import_module(f"dpmodels.reports.{report_module}")

FORMS = forms("stored")
OF_MODELS = [name for name, form in FORMS.items() if form.verb in verbs_models.VERBS]


def kinds(base=Printed):
    """The classes that are made, not those that they share."""
    for module in pkgutil.iter_modules(results.__path__, "dpmodels.results."):
        importlib.import_module(module.name)
    ours = [kind for kind in base.__subclasses__() if kind.__module__.startswith("dpmodels.")]
    return [leaf for kind in ours for leaf in (kinds(kind) or [kind])]


def test_every_kind_of_result_has_a_report():
    assert {AuditResult, AuditTable, SplitResult} < set(kinds())
    silent = [kind for kind in kinds() if report_of.dispatch(kind) is report_of.dispatch(object)]
    assert silent == []


def imported(package):
    tree = ast.parse(Path(package.__file__).read_text("utf-8"))
    return {alias.name for node in tree.body for alias in getattr(node, "names", ())}


def test_reports_are_listed_with_the_kinds_that_they_lay_out():
    registered = {name: set() for name in REPORTS}
    for kind, function in report_of.registry.items():
        if function.__module__.startswith("dpmodels.reports."):
            registered[function.__module__.rsplit(".", 1)[1]].add(kind.__name__)
    assert registered == {name: set(kinds.split()) for name, kinds in REPORTS.items()}


def test_reports_come_with_whatever_makes_results():
    right = {module.name for module in pkgutil.iter_modules(reports.__path__)}
    assert right - {"header"} == set(REPORTS)
    assert "release" in imported(models)
    assert "AuditResult" in imported(audit)  # Its module registers the reports of audits


def test_a_result_without_a_report_says_what_to_import():
    class Unknown(Printed):
        pass

    with pytest.raises(NotAvailable, match=r"registered for Unknown: import dpmodels\.models"):
        Unknown().summary()


def test_a_report_of_a_simulation_is_stamped_whatever_lays_it_out():
    class Bare(Printed):
        simulated = False

    class BareSimulated(Bare):
        simulated = True

    report_of.register(Bare, lambda fit: Report("Bare", (), (), (), stamp=None))
    assert "NOT PRIVATE" in str(BareSimulated())
    assert "NOT PRIVATE" not in str(Bare())
    assert lay_out.dispatch(object)(BareSimulated()).stamp == STAMP  # Without ``models`` too


def split():
    shares = np.array([[0.3, 0.7], [0.5, 0.5]])
    request = ("twice", ("one", "two"), ApproxDP(1.0, 1e-6), adjacency("replace"), 2, "largest")
    budgets = tuple(tuple(ApproxDP(value, 1e-6) for value in line) for line in shares.tolist())
    return SplitResult(SplitRequest(*request), shares, budgets, np.array([[1.0, 2.0], [3.0, 5.0]]))


@pytest.mark.parametrize("result", [split(), AuditTable("Audits", 0.95, ())], ids=["split", "roll"])
def test_what_no_release_made_is_not_saved_and_says_so(result, tmp_path):
    with pytest.raises(NotAvailable, match=rf"for {type(result).__name__}; .*tidy\(\)"):
        result.save(tmp_path / "made.nc")
    assert list(tmp_path.iterdir()) == []
    assert result._repr_html_() == result.summary().as_html()


@pytest.mark.guarding
@pytest.mark.parametrize("name", OF_MODELS)
def test_what_single_rows_have_is_refused_with_what_to_write(name):
    fit = fitted(FORMS[name])
    for word in ("scores", "fittedvalues", "resid"):
        assert not hasattr(fit, word)
        with pytest.raises(NotAvailable, match=rf"^{word} of the private rows .*newdata"):
            getattr(fit, word)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("svm sex ~ age", "dp_glm"),
        ("pca subspace", "mechanism"),
        ("moments ~ age + wage", r"\.cov\(formula\)"),
    ],
)
def test_results_without_intervals_say_where_there_are_some(name, instead):
    fit = fitted(FORMS[name])
    for word in ("noise_int", "conf_int"):
        with pytest.raises(NotAvailable, match=rf"{word}\(\) is not available: .*{instead}"):
            getattr(fit, word)()


@pytest.mark.parametrize("name", FORMS)
def test_the_noise_of_a_number_has_one_name(name):
    fit = fitted(FORMS[name])
    heads = {str(head) for head in (*fit.tidy(), *fit.glance())}
    heads |= {word for word in dir(type(fit)) if not word.startswith("_")}
    sds = {head for head in heads if head.endswith("_sd")}
    assert [head for head in sds if not head.endswith("noise_sd")] == []
