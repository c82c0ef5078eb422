"""Cells, heads and panels of printed tables: which branch prints what, of stand-ins for results."""

import math
from types import SimpleNamespace as Fit

import numpy as np
import pandas as pd
import pytest
from folded import each

from dpmodels.reports import coefficients
from dpmodels.results.classifiers import MultinomialResult
from dpmodels.results.derived_table import Estimates
from dpmodels.results.glm import GLMResult
from dpmodels.results.tabulated import CountedGLM, CountedMultinomial, OrdinalResult


def of_class(result, **fields):
    """A stand-in for a result, which is taken for one of its class."""
    stub = type("Stub", (Fit,), {"__class__": property(lambda _: result)})
    return stub(**fields)


def cells(section):
    return {row.label: row.cells for row in section.rows}


# Coefficients


def call(names=("Intercept", "x"), **fields):
    of = {"names": tuple(names), "codebook": {}, "matrix": np.eye(len(names)), "levels": ()}
    return Fit(**{**of, **fields})


@each("is_identified, head", [((True, False), "full"), ((False, False), "least")])
def test_a_fit_without_any_error_has_a_table_of_its_own(is_identified, head):
    fit = Fit(
        call=call(family="poisson", response="y"),
        linear=Fit(identified=np.array(is_identified)),
        why_not="not bought",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coefficients, "inference", lambda _: "full")
        patch.setattr(coefficients, "_unidentified", lambda _: "least")
        patch.setattr(coefficients, "fit_notes", lambda _: ())
        patch.setattr(coefficients, "_report", lambda *words: words)
        _, title, model, table, notes = coefficients.glm_report(fit)
    assert table == ((coefficients.COLUMNS, "full") if head == "full" else "least")
    assert title == "Private generalised linear model"
    assert (model, notes) == ("poisson, log link", ())


def test_a_response_of_two_levels_is_one_against_the_other():
    of = {"family": "binomial", "response": "y"}
    assert coefficients._response(Fit(levels=("no", "yes"), **of)) == "yes against no"
    assert coefficients._response(Fit(levels=(), **of)) == "y"


def test_a_ridge_says_where_it_was_chosen():
    release = Fit(ridge=12.345, adjacency=Fit(counts_persons=False, person=None), tuning=None)
    assert coefficients._ridge(release) == "12.3 rows"
    release.tuning = Fit(ridges=(1.0, 12.3, 100.0))
    assert coefficients._ridge(release) == "12.3 rows, chosen of 3 privately"


def released(**fields):
    of = {"gradient": None, "coefficient_sd": 0.02, "coefficients": np.array([1.2346, -0.5])}
    return Fit(**{**of, **fields})


def test_released_coefficients_have_the_digits_that_their_noise_leaves():
    heads, lines = coefficients._as_released(call(), released())
    assert heads == ("coef", "noise")
    assert lines == [("1.235", "0.020"), ("-0.500", "0.020")]
    assert coefficients._as_released(call(), released(gradient=0.1)) == (
        ("coef",),
        [("1",), ("-0.5",)],
    )


@each("least, columns", [((0.02, 0.1), ("coef", "noise, at least")), ((0.02, math.nan), ("coef",))])
def test_coefficients_without_errors_have_one_digit_and_the_least_noise(least, columns):
    fit = Fit(
        call=call(),
        params=pd.Series([1.2346, -0.5]),
        noise_least=pd.Series(least),
        release=released(coefficient_sd=math.nan),
        linear=Fit(scaled_call=call()),
    )
    heads, lines = coefficients._unidentified(fit)
    assert heads == columns
    if len(columns) == 2:
        assert lines == [("1", "0.020"), ("-0.5", "0.10")]


LEVELS = {"b against a": 2, "c against a": 2}


def weighted(*identified):
    return of_class(
        GLMResult,
        sandwich=Fit(noise_law=Fit(clear=True), robust=1.0),
        identified=pd.Series(identified),
        why_not="hidden by noise; use more rows",
        release=Fit(meat="scores", gradient=0.1, coefficient_sd=0.1, ball=None, clip=2.0),
        call=Fit(clip=1.0),
    )


def test_errors_that_are_all_hidden_are_none(monkeypatch):
    """A model of weighted rows describes its step to all weights, where anything is identified."""
    monkeypatch.setattr(coefficients.header, "step_note", lambda _: ("the step",))
    monkeypatch.setattr(coefficients, "_error_notes", lambda _, lost, __: [f"{lost} lost"])
    monkeypatch.setattr(coefficients, "reference_note", lambda _: ("the reference",))
    assert coefficients.fit_notes(weighted(True, False, False)) == (
        "2 lost",
        "the reference",
        "the step",
    )
    reason, _, advice = coefficients.fit_notes(weighted(False, False))
    assert reason == "Standard errors: hidden by noise."
    assert advice == "For standard errors use more rows."


def bought(person=None):
    return Fit(person=person, meat=np.diag([6.0, 2.0]), bread=np.eye(2), meat_noise=Fit(diagonal=0))


@each(
    "curvature, units, clip, middle, rest",
    [
        (None, None, 2.0, "squared gradients (", "which is the same if the model"),
        (bought(), None, None, "squared gradients (", "which is the same if the model"),
        (bought("id"), None, None, "squares of persons' gradients (id)", "as if all rows of a per"),
        (bought(), "psu", None, "squared gradients of units", "as if all rows of a unit were eq"),
        (None, "psu", None, "squared gradients (", "which is the same if the model"),
        (bought("id"), None, 2.0, "squares of persons' gradients (id)", "times a dispersion of"),
    ],
)
def test_the_middle_of_a_covariance_is_of_rows_persons_or_units(
    curvature, units, clip, middle, rest
):
    release = Fit(curvature=curvature, clip=clip, units=units, meat=None)
    sandwich = Fit(noise_law=Fit(clear=True), robust=0.5)
    note = coefficients._error_notes(sandwich, 0, release)[-1]
    assert note.startswith(f"Covariance: 50% of the sandwich's middle matrix is {middle}")
    assert f"the rest curvature, {rest}" in note


def of_levels(result, family):
    blocks = 2 if family == "multinomial" else 1
    fields = {"names": ("Intercept", "x"), "levels": ("a", "b", "c")}
    called = call(**fields, family=family, blocks=blocks)
    return of_class(result, call=called, slopes=pd.Series([0.5]))


@each(
    "result, family, response, heads",
    [
        (CountedGLM, "binomial", "b against a", {"Coefficients": 2}),
        (CountedMultinomial, "multinomial", "3 levels, against a", LEVELS),
        (MultinomialResult, "multinomial", "3 levels, against a", LEVELS),
        (OrdinalResult, "ordinal", "3 levels, a to c", {"Coefficients": 1, "Thresholds": 1}),
    ],
)
def test_coefficients_of_levels_stand_in_panels(result, family, response, heads):
    fit = of_levels(result, family)
    assert coefficients._response(fit.call) == response
    width = len(coefficients.COLUMNS)
    lines = [(str(number),) * width for number in range(sum(heads.values()))]
    sections = coefficients.panels(fit, coefficients.COLUMNS, lines)
    assert {section.title: len(section.rows) for section in sections} == heads
    assert [row.cells for section in sections for row in section.rows] == lines
    (only,) = coefficients.panels(fit, ("coef",), [("3",)])
    assert (only.title, only.columns) == (next(iter(heads)), ("coef",))
    assert cells(only) == {"Intercept": ("3",)}


def test_coefficients_of_levels_without_errors_are_as_released():
    table = pd.DataFrame({"b": [1.0, 2.0], "c": [3.0, 4.0]})
    fit = of_class(MultinomialResult, params_released=table)
    assert coefficients._unidentified(fit) == (("coef",), [("1",), ("2",), ("3",), ("4",)])


@each("n_lost, subject", [(0, None), (1, "1 coefficient is"), (3, "3 coefficients are")])
def test_coefficients_that_counts_hide_are_counted(n_lost, subject):
    identified = np.arange(5) >= n_lost
    notes = coefficients._count_notes(Fit(linear=Fit(identified=identified)))
    assert len(notes) == 2 + (subject is not None)
    if subject is not None:
        assert notes[0].startswith(f"{subject} not identified: noise hides the counts")


# Derived estimates


def derived(table, **fields):
    fit = Fit(call=Fit(codebook={}, formula="y ~ x"), release=None, stamp=None)
    return Estimates(fit, "Title", pd.DataFrame(table), ("note",), **fields)


LINES = {
    "term": ["x", "x", "z"],
    "level": ["a", "b", "c"],
    "estimate": [1.23456, 2.0, -0.5],
    "std_error": [0.1, 0.2, 0.4],
    "p_value": [0.03, math.nan, 0.2],
    "identified": [True, False, True],
}


def test_estimates_of_one_term_stand_below_its_name(monkeypatch):
    monkeypatch.setattr(coefficients, "release_facts", lambda _: {})
    monkeypatch.setattr(coefficients.header, "about", lambda _, name: ("of", name))
    report = coefficients.estimates_report(derived(LINES))
    (section,) = report.sections
    assert section.title == "Term, level"
    assert section.columns == ("estimate", "std err", "P>|z|")
    texts = [(row.label, row.cells, row.heading, row.indent) for row in section.rows]
    assert texts == [
        ("x", ("", "", ""), True, 0),
        ("a", ("1.23", "0.10", "0.0300"), False, 1),
        ("b", (coefficients.header.UNKNOWN, "", ""), False, 1),
        ("z, c", ("-0.50", "0.40", "0.2000"), False, 0),
    ]
    # A variable is described once, at its first line.
    described = ("of", "x"), None, None, ("of", "z")
    assert tuple(row.about for row in section.rows) == described
    assert report.notes[1:] == (*coefficients.LOST, *coefficients.FREE)
    whole = {name: column[:1] for name, column in LINES.items()}
    report = coefficients.estimates_report(derived(whole))
    assert [row.label for row in report.sections[0].rows] == ["x, a"]
    assert report.notes == ("note", *coefficients.FREE)


def test_tests_without_an_estimate_are_lost_where_their_statistic_is(monkeypatch):
    monkeypatch.setattr(coefficients, "release_facts", lambda _: {})
    table = {"term": ["x", "z"], "statistic": [3.456, math.nan], "df": [2.0, 1.0]}
    report = coefficients.estimates_report(derived(table, test="chi2"))
    (section,) = report.sections
    assert section.columns == ("chi2", "df")
    assert cells(section) == {"x": ("3.46", "2"), "z": (coefficients.header.UNKNOWN, "")}
    assert report.notes[1:] == (*coefficients.LOST, *coefficients.FREE)


@each(
    "fields, heads",
    [
        ({}, ("estimate", "std err", "P>|z|", "95% conf. interval")),
        ({"ratio": True, "level": 0.9}, ("ratio", "std err (log)", "P>|z|", "90% conf. interval")),
        ({"test": "t"}, ("estimate", "std err", "P>|t|", "95% conf. interval")),
        ({"test": "F"}, ("estimate", "std err", "P>F", "95% conf. interval")),
    ],
)
def test_heads_of_derived_estimates_say_their_scale_and_test(fields, heads):
    names = ["term", "estimate", "std_error", "p_value", "conf_low", "conf_high"]
    shown = coefficients._heads(derived({name: [] for name in names}, **fields))
    assert tuple(shown.values()) == heads


LINE = {"estimate": 4.5678, "noise_sd": 1.0, "df": 4.0, "conf_low": 1.0, "conf_high": 3.0}


@each(
    "name, line, ratio, text",
    [
        ("estimate", {"std_error": 0.1}, False, "4.57"),
        # The error of a ratio is one of its logarithm, so that the ratio's is 4.6 times as large.
        ("estimate", {"std_error": 0.1}, True, "4.57"),
        ("estimate", {"std_error": 0.5}, True, "4.6"),
        ("estimate", {"std_error": 0.5}, False, "4.57"),
        ("estimate", {}, False, "4.6"),
        ("std_error", {"std_error": math.nan}, False, ""),
        ("noise_sd", {}, False, "1.0"),
        ("sumsq", {"sumsq": 123.456, "noise_sd": 10.0}, False, "123"),
        ("meansq", {"meansq": 123.456, "noise_sd": 4.0}, False, "123.5"),
        ("meansq", {"meansq": 123.456, "noise_sd": 0.4, "df": 0.5}, False, "123.46"),
        ("df", {}, False, "4"),
        ("df", {"df": 4.25}, False, "4.250"),
        ("df_resid", {"df_resid": 12_345.5}, False, "12,346"),
        ("p_value", {"p_value": math.nan}, False, ""),
        ("p_value", {"p_value": 0.25}, False, "0.2500"),
        ("conf_low", {}, False, "[1.0, 3.0]"),
        ("statistic", {"statistic": math.nan}, False, ""),
        ("statistic", {"statistic": 2.345}, False, "2.35"),
    ],
)
def test_cells_of_derived_estimates(name, line, ratio, text):
    assert coefficients._cell(Fit(ratio=ratio), {**LINE, **line}, name) == text
