"""Every public function and method answers wrong arguments by an error of the package."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.arguments import bound, checked_keywords
from dpmodels.errors import ArgumentError, DPModelsError

WRONG = [None, 3, "x", [], object()]
NAMESPACES = {"errors", "mechanisms", "shapes", "sites"}
# Bases whose methods are Python's.
PYTHONS = {"Mapping", "Generic", "ModuleType"}
BOOK = dp.codebook(x=(0, 1), y=(0, 1), z=(0, 1), g=["a", "b"], b=dp.Boolean(), k=dp.Integer(0, 4))
SHARED = {"codebook": BOOK, "eps": 20.0, "delta": 1e-6}
FITS = {
    "dp_lm": "y ~ x + g",
    "dp_glm": "b ~ x + g",
    "dp_svm": "b ~ x + z",
    "dp_pca": "~ x + y + z",
    "dp_cov": "~ x + y + z",
    "dp_moments": "~ x + y + z",
    "dp_mean": "y ~ g",
    "dp_var": "y ~ g",
    "dp_ttest": "y ~ b",
    "dp_summary": "~ x + g + k",
    "dp_table": "~ g + b",
    "dp_hist": "~ x",
    "dp_quantile": "x ~ g",
    "dp_margins": "~ g + b + k",
    "dp_synth": "~ g + b + x",
    "dp_select": "y ~ x + z + k",
    "dp_survfit": "Surv(k, b) ~ 1",
}


def rows():
    generator = np.random.default_rng(5)
    table = pd.DataFrame(generator.random((2_000, 3)), columns=["x", "y", "z"])
    return table.assign(
        g=generator.choice(["a", "b"], 2_000),
        b=generator.random(2_000) < 0.4,
        k=generator.integers(0, 5, 2_000),
    )


def wrong_calls(function):
    """Arguments by place and by name: none, each wrong value for all and for each, a misspelling.

    The first arguments of calls with one wrong value are texts.
    """
    parameters = list(inspect.signature(function).parameters.values())
    required = [
        parameter
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    texts = ("x",) * len(required)
    yield (), {}
    yield texts, {"misspelled": 1}
    for value in WRONG:
        if required:
            yield (value,) * len(required), {}
        for parameter in parameters:
            if parameter not in required and parameter.kind in (
                parameter.KEYWORD_ONLY,
                parameter.POSITIONAL_OR_KEYWORD,
            ):
                yield texts, {parameter.name: value}


def bare_errors(label, function):
    """The errors of wrong calls that are not the package's."""
    for args, kwargs in wrong_calls(function):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function(*args, **kwargs)
        except DPModelsError:
            pass
        except Exception as error:  # What this test is for
            yield f"{label}{args}{kwargs}: {type(error).__name__}: {error}"
        finally:
            dp.options.reset()


def public_methods(label, value):
    for name in dir(value):
        method = None if name.startswith("_") else getattr(value, name, None)
        owner = getattr(method, "__qualname__", "").split(".")[0]
        if inspect.ismethod(method) and owner not in PYTHONS:
            yield f"{label}.{name}", method


@pytest.mark.product
def test_a_public_function_answers_by_an_error_of_the_package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = set(dp.__all__) - NAMESPACES
    calls = {f"dp.{name}": getattr(dp, name) for name in names if callable(getattr(dp, name))}
    classes = {label: call for label, call in calls.items() if inspect.isclass(call)}
    for label, value in classes.items():
        calls |= dict(public_methods(label, value))
    errors = [text for label, call in calls.items() for text in bare_errors(label, call)]
    assert len(calls) > 70
    assert errors == []


@pytest.mark.product
def test_a_method_answers_by_an_error_of_the_package(tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(tmp_path)
    data = rows()
    with dp.simulation(seed=5):
        values = {name: getattr(dp, name)(text, data, **SHARED) for name, text in FITS.items()}
        values |= {
            "session": dp.session(data, **SHARED),
            "ledger": dp.Ledger(1.0, 1e-6),
            "codebook": BOOK,
            "guarantee": dp.ZCDP(0.1),
            "table": dp.etable([values["dp_lm"], values["dp_lm"]]),
            "reading": dp.reading(values["dp_lm"]),
            "power": dp.power("y ~ g", codebook=BOOK, n=1_000, eps=1.0, effect=0.1),
            "summary": values["dp_lm"].summary(),
        }
        errors, methods = [], set()
        for label, value in values.items():
            for name, method in public_methods(label, value):
                if method.__func__ not in methods:
                    methods.add(method.__func__)
                    errors += bare_errors(name, method)
                    pyplot.close("all")
    assert len(methods) > 120
    assert errors == []


CALLS = {
    "missing": (lambda: dp.load(), r"^dp\.load needs path=: see help\(dp\.load\)$"),
    "none": (lambda: dp.load(None), r"^path=None: expected path; see help\(dp\.load\)$"),
    "too many": (lambda: dp.plan(1, 2), r"^dp\.plan takes calls by position: write all else by"),
    "verb": (lambda: dp.dp_mean(), r"^dp\.dp_mean needs formula=: see help\(dp\.dp_mean\)$"),
    "misspelled": (lambda: dp.Ledger(epz=1), r"^dp\.Ledger has no parameter epz= \(did you mean"),
    "method": (lambda: dp.Ledger(1.0).preview(3), r"^events=3: expected "),
    "class method": (lambda: BOOK.load([]), r"^path=list: expected str \| PathLike\[str\]; see"),
}


@pytest.mark.parametrize("case", CALLS.values(), ids=CALLS)
def test_an_error_names_the_argument_and_what_to_write(case):
    call, message = case
    with pytest.raises(ArgumentError, match=message):
        call()


def test_an_error_of_a_result_names_no_class_of_the_package():
    with dp.simulation(seed=5):
        fits = [getattr(dp, name)(FITS[name], rows(), **SHARED) for name in ("dp_lm", "dp_pca")]
    for fit in fits:
        message = r"^fit\.plot has no parameter x= \(did you mean 'ax'\?\): see help\(fit\.plot\)$"
        with pytest.raises(ArgumentError, match=message):
            fit.plot(x="y")


def test_an_argument_that_is_given_twice_is_named():
    with pytest.raises(ArgumentError, match=r"^f has x by position and by name: write one"):
        bound("f", inspect.signature(lambda x: x), (1,), {"x": 2})


def test_errors_of_arguments_of_the_right_type_are_left_alone():
    @checked_keywords("dp.inverse")
    def inverse(x: float) -> str:
        return {1.0: "one"}[x]

    assert inverse(1) == "one"
    with pytest.raises(KeyError):
        inverse(2.0)
    with pytest.raises(ArgumentError, match=r"^x='1': expected float"):
        inverse("1")


def test_an_annotation_that_cannot_be_evaluated_leaves_the_error_as_it_is():
    @checked_keywords("dp.first")
    def first(values: "list[int]") -> "int[float]":
        raise ValueError(values)

    with pytest.raises(ValueError, match="7"):
        first([7])


def test_what_verbs_take_elsewhere_is_not_advised_of_other_functions():
    with pytest.raises(dp.errors.ArgumentError, match=r"no parameter level=: see help\(dp\.Ledger"):
        dp.Ledger(eps=1.0, level=0.9)
