"""Every kind of result prints, and is saved or says that it is not."""

import ast
import importlib
import pkgutil
from pathlib import Path

import numpy as np
import pytest

import dpmodels as dp
from dpmodels import audit, models, reports, results
from dpmodels.audit.outcome import AuditTable
from dpmodels.audit.result import AuditResult
from dpmodels.errors import NotAvailable
from dpmodels.privacy import ApproxDP, adjacency
from dpmodels.results.base import Printed, report_of
from dpmodels.results.split import SplitQuestion, SplitResult

ROWS = {"a": np.linspace(0, 10, 60), "b": np.linspace(-1, 1, 60) ** 2, "h": [0, 1] * 30}
BOOK = dp.codebook(a=(0, 10), b=(-1, 1), h=[0, 1])
WORDS = {"codebook": BOOK, "eps": 2.0}
APPROX = {**WORDS, "delta": 1e-6}


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


def test_reports_come_with_whatever_makes_results():
    there = {module.name for module in pkgutil.iter_modules(reports.__path__)}
    assert there - {"header", "counted", "etable_privacy"} == imported(reports)
    assert "reports" in imported(models)
    assert "report" in imported(audit)


def test_a_result_without_a_report_says_what_to_import():
    class Unknown(Printed):
        pass

    with pytest.raises(NotAvailable, match=r"Unknown is known: import dpmodels\.models"):
        Unknown().summary()


def split():
    shares = np.array([[0.3, 0.7], [0.5, 0.5]])
    asked = ("twice", ("one", "two"), ApproxDP(1.0, 1e-6), adjacency("replace"), 2, "largest")
    budgets = tuple(tuple(ApproxDP(own, 1e-6) for own in line) for line in shares.tolist())
    return SplitResult(SplitQuestion(*asked), shares, budgets, np.array([[1.0, 2.0], [3.0, 5.0]]))


@pytest.mark.parametrize("made", [split(), AuditTable("Audits", 0.95, ())], ids=["split", "roll"])
def test_what_no_release_made_is_not_saved_and_says_so(made, tmp_path):
    with pytest.raises(NotAvailable, match=rf"{type(made).__name__} has no file .* tidy\(\)"):
        made.save(tmp_path / "made.nc")
    assert list(tmp_path.iterdir()) == []
    assert made._repr_html_() == made.summary().as_html()


FITS = {
    "pca": lambda: dp.dp_pca("~ a + b", ROWS, **APPROX),
    "cov": lambda: dp.dp_cov("~ a + b", ROWS, **APPROX),
    "moments": lambda: dp.dp_moments("~ a + b", ROWS, **APPROX),
    "subspace": lambda: dp.dp_pca("~ a + b", ROWS, **WORDS, mechanism="ppca", ncomp=1),
    "lm": lambda: dp.dp_lm("a ~ b", ROWS, **APPROX),
    "glm": lambda: dp.dp_glm("h ~ a", ROWS, **WORDS),
    "svm": lambda: dp.dp_svm("h ~ a", ROWS, **WORDS),
    "mean": lambda: dp.dp_mean("a ~ h", ROWS, **WORDS),
    "var": lambda: dp.dp_var("a ~ h", ROWS, **WORDS),
    "ttest": lambda: dp.dp_ttest("a ~ h", ROWS, **WORDS),
    "quantile": lambda: dp.dp_quantile("~ a", ROWS, **WORDS),
    "hist": lambda: dp.dp_hist("~ a", ROWS, **WORDS, breaks=3),
    "plane": lambda: dp.dp_hist("~ a + b", ROWS, **WORDS, breaks=3),
    "table": lambda: dp.dp_table("~ h", ROWS, **WORDS),
    "overview": lambda: dp.dp_summary("~ a + h", ROWS, **WORDS),
}


@pytest.mark.parametrize("name", ["pca", "cov", "moments", "subspace", "lm", "glm", "svm"])
def test_what_single_rows_have_is_refused_with_what_to_write(name):
    fit = FITS[name]()
    for word in ("scores", "fittedvalues", "resid"):
        assert not hasattr(fit, word)
        with pytest.raises(NotAvailable, match=rf"^{word} of the private rows .*newdata"):
            getattr(fit, word)


@pytest.mark.parametrize(
    ("name", "instead"),
    [("svm", "dp_glm"), ("subspace", "mechanism"), ("moments", r"\.cov\(formula\)")],
)
def test_results_without_intervals_say_where_there_are_some(name, instead):
    fit = FITS[name]()
    for word in ("noise_int", "conf_int"):
        with pytest.raises(NotAvailable, match=rf"{word}\(\) is not available: .*{instead}"):
            getattr(fit, word)()


@pytest.mark.parametrize("name", FITS)
def test_the_noise_of_a_number_has_one_name(name):
    fit = FITS[name]()
    heads = {str(head) for head in (*fit.tidy(), *fit.glance())}
    heads |= {word for word in dir(type(fit)) if not word.startswith("_")}
    sds = {head for head in heads if head.endswith("_sd")}
    assert [head for head in sds if not head.endswith("noise_sd")] == []
