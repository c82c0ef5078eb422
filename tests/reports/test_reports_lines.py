"""Lines that stand where a number is lost, or say which rows and weights it is of: as read."""

import math
from types import SimpleNamespace as Fit

import numpy as np
import pandas as pd
import pytest

from dpmodels.report.notes import Rank
from dpmodels.reports import coefficients, counts, groups, header, survey

# Regressions


def tuned(rows=1000):
    tuning = Fit(ridges=(0.1, 1.0), told_apart=30.0, held_out=0.3, share=0.2, score="deviance")
    return Fit(tuning=tuning, rows=rows)


@pytest.mark.parametrize(
    ("rows", "gap"), [(1000, "one worse by about 0.10 is"), (None, "one worse by a total of 30 is")]
)
def test_a_chosen_ridge_is_printed_with_its_price_and_resolution(rows, gap):
    price, resolution = coefficients._tuning_notes(tuned(rows))
    assert price.startswith("20% of the budget was spent on choosing among ridges 0.100, 1.00,")
    assert "fitted to a random 70% of the rows" in resolution
    assert "drawn by the deviance of others" in resolution
    assert f"{gap} 20 times less likely." in resolution
    assert coefficients._tuning_notes(Fit(tuning=None)) == ()


def test_a_coefficient_is_printed_to_the_digits_of_its_error():
    cells = coefficients.coefficient_cells(1.23456, 0.0321, 0.02, 38.46, 0.2, 1.17, 1.30)
    assert cells == ("1.235", "0.032", "0.020", "38.46", "0.2000", "[1.17, 1.30]")
    for bse in (math.nan, math.inf):
        unknown = coefficients.coefficient_cells(1.2, bse, 0.02, 38.0, 0.2, 1.0, 1.3)
        assert unknown == (coefficients.header.UNKNOWN, "", "", "", "", "")


@pytest.mark.parametrize("lost", [1, 2])
def test_coefficients_without_an_error_are_counted_with_what_would_help(lost):
    law = Fit(clear=True, equations=Fit(strength=9.0))
    release = Fit(curvature=None, meat=None, units=None, clip=None)
    notes = coefficients._error_notes(Fit(noise_law=law, robust=1.0, lost_sizes=()), lost, release)
    subject = {1: "1 coefficient is", 2: "2 coefficients are"}[lost]
    assert notes[0].startswith(f"{subject} not identified at this budget")
    assert notes[0].endswith("Use a larger eps, more rows or fewer terms.")
    assert notes[0].rank == Rank.IDENTIFIED


# Counts


def cell(**fields):
    row = {
        "count": 1234.0,
        "noise_low": 1200.0,
        "noise_high": 1268.0,
        "proportion": 0.12345,
        "conf_low": 0.1034,
        "conf_high": 0.1434,
    }
    return row | fields


@pytest.mark.parametrize(
    ("fields", "cells"),
    [
        ({}, ("1,234", "[1,200, 1,268]", "12.3", "[10.3, 14.3]")),
        (
            {"conf_low": math.nan, "conf_high": math.nan},
            ("1,234", header.LOST, "12.3", header.LOST),
        ),
        (
            {"conf_low": math.nan, "conf_high": math.nan, "proportion": math.nan},
            ("1,234", header.LOST, header.LOST, header.LOST),
        ),
        # An interval that excludes every share has no ends to print.
        ({"conf_low": 0.2, "conf_high": 0.1}, ("1,234", header.LOST, "12.3", header.LOST)),
    ],
)
def test_a_share_is_a_percentage_or_lost(fields, cells):
    assert counts._cells(cell(**fields)) == cells


@pytest.mark.parametrize(
    ("factors", "reason", "smallest", "notes"),
    [
        (1, "", 9.0, []),
        (2, "", 5.0, []),
        (2, "", 4.9, ["Some expected counts are below 5: the test is approximate."]),
        (2, "fewer than two levels are clear of noise.", 9.0, ["No test: fewer than two levels"]),
    ],
)
def test_a_test_of_independence_is_approximate_or_impossible(factors, reason, smallest, notes):
    test = Fit(reason=reason, smallest=smallest, pooled=((),) * factors)
    facts = Fit(factors=("g", "h")[:factors], levels=(("a", "b"),) * factors)
    fit = Fit(call=Fit(tables=(facts,)), chi2_test=lambda: test)
    printed = counts._test_notes(fit)
    assert len(printed) == len(notes)
    assert all(note.startswith(start) for note, start in zip(printed, notes, strict=True))


@pytest.mark.parametrize(
    ("quilt", "why"), [("trivial", "requested"), ("any", "no other has less noise")]
)
def test_a_series_protected_as_a_group_says_why(quilt, why):
    fit = Fit(
        quilt=Fit(trivial=True, describe=lambda: "all times"), budget=Fit(quilt=quilt, eps=2.0)
    )
    assert counts._quilt(fit) == (
        f"Active quilt: all times, as for group privacy of a series ({why})."
    )


def test_an_active_quilt_says_where_it_is_and_what_it_takes():
    quilt = Fit(trivial=False, describe=lambda: "2 before and 3 after", time=1200, influence=0.25)
    fit = Fit(quilt=quilt, budget=Fit(quilt="any", eps=2.0), time="hour")
    assert counts._quilt(fit) == (
        "Active quilt: the states 2 before and 3 after, at hour number 1,200, which needs most "
        "noise; their max-influence is 0.250 of eps = 2."
    )


@pytest.mark.parametrize(
    ("upper", "is_doubted"), [((0.3, 0.9), False), ((0.3, 0.7), False), ((0.3, 0.69), True)]
)
def test_a_class_whose_shares_the_release_excludes_is_doubted(upper, is_doubted):
    intervals = pd.DataFrame({"lower": (0.1, 0.6), "upper": upper})
    levels = []
    fit = Fit(kept=np.array([0.3, 0.7]), conf_int=lambda level: levels.append(level) or intervals)
    notes = counts._doubts(fit)
    assert levels == [counts._SURE]
    assert bool(notes) == is_doubted
    if is_doubted:
        assert notes[0].startswith(
            f"The long-run shares of the class, 30.0, 70.0 %, are outside the {counts._SURE:.1%} "
        )
        assert notes[0].rank == Rank.GUARANTEE


def test_a_model_of_counts_without_degrees_of_freedom_has_no_test_of_its_fit():
    model = Fit(df=0, statistic=math.nan, pvalue=math.nan, deviance=math.nan)
    assert counts._fitted(Fit(model=model)) == ()
    assert counts._deviance(Fit(model=model)) == ()
    model = Fit(df=3, statistic=7.815, pvalue=0.05, deviance=7.9)
    (section,) = counts._fitted(Fit(model=model))
    assert section.rows[0].cells == ("7.815", "3", "0.0500")
    deviance, residual = counts._deviance(Fit(model=model))
    assert deviance == ("Deviance", "7.900 (noise included)")
    assert residual == ("Df residuals", "3")


# Means


def test_means_that_are_lost_in_noise_have_no_digits():
    number, date = Fit(date=False), Fit(date=True)
    assert groups.mean_text(number, 12.345, 0.5, 0.02) == "12.35"
    assert groups.mean_text(date, 0.4, 0.1) == "1970-01-01"
    assert groups.mean_text(number, math.nan, 0.5) == header.LOST
    assert groups.printed(math.inf, 0.5) == header.LOST
    lost = {"estimate": math.nan, "count": 12.0}
    assert groups._rows(lost) == header.LOST
    assert groups._intervals(lost, date=False) == (header.LOST, header.LOST)
    row = {"estimate": 3.0, "count": 1234.0, "noise_low": 1.0, "noise_high": 5.0}
    row |= {"conf_low": 0.0, "conf_high": 6.0}
    assert groups._rows(row) == "1,234"
    assert groups._intervals(row, date=False) == ("[1.0, 5.0]", "[0.0, 6.0]")
    assert groups._intervals(row, date=True) == (
        "[1970-01-02, 1970-01-06]",
        "[1970-01-01, 1970-01-07]",
    )


# Designs


def capped(beyond_sd=0.004, person=None, scores=None):
    cap = Fit(cap=52.34, beyond=0.031, beyond_sd=beyond_sd, scores=scores)
    return Fit(units=cap, adjacency=Fit(person=person))


@pytest.mark.parametrize(
    ("release", "notes"),
    [
        (Fit(units=None), []),
        (
            capped(),
            [
                "Weights of a row above 52.34 (3.1 ± 0.4 % of the weight) are capped: results are "
                "those of capped weights.",
                "std err: linearised, each row drawn with replacement; strata do not shorten it.",
            ],
        ),
        (
            capped(math.nan, person="psu"),
            [
                "Weights of a sampling unit above 52.34 (the declared bound of a row: noise hides "
                "the weights) are capped: results are those of capped weights.",
                "std err: linearised, each sampling unit drawn with replacement; strata do not "
                "shorten it.",
            ],
        ),
        (
            capped(scores=Fit(factors=(1.5,))),
            [
                "std err: linearised, each row drawn with replacement; within strata, where noise "
                "does not hide them."
            ],
        ),
        (
            capped(scores=Fit(factors=())),
            ["std err: linearised, each row drawn with replacement; strata do not shorten it."],
        ),
        # One step to all weights cannot be taken where noise hides them.
        (
            capped(math.nan, scores=Fit(factors=(1.5,))),
            [
                "Weights of a row above 52.34 (the declared bound of a row: noise hides the "
                "weights) are capped: results are those of capped weights.",
                "std err: linearised, each row drawn with replacement; within strata, where noise "
                "does not hide them.",
            ],
        ),
    ],
)
def test_capped_weights_and_the_unit_that_is_drawn(release, notes):
    assert list(header.sampled_notes(release)) == notes


# Surveys


def answers(**fields):
    line = {
        "answers": 0.4,
        "estimate": 0.31234,
        "std_error": 0.02,
        "private_share": 0.7,
        "noise_low": 0.28,
        "noise_high": 0.34,
        "conf_low": 0.27,
        "conf_high": 0.35,
        "design_effect": 3.456,
    }
    return survey._cells(line | fields)


def test_what_the_answers_do_not_determine_is_lost():
    printed = ("40.0", "31.2", "2.0", "70%", "[28.0, 34.0]", "[27.0, 35.0]", "3.46")
    assert answers() == printed
    assert answers(estimate=math.nan) == (survey.header.LOST,) * 7
    assert answers(private_share=math.nan) == (*printed[:3], survey.header.LOST, *printed[4:])
    assert answers(design_effect=math.nan) == (*printed[:6], survey.header.LOST)


def test_the_likelihood_of_a_survey_model_is_of_the_randomised_answers():
    assert "the corrected score" in survey._method(Fit(method="score")).lower()
    likelihood = survey._method(Fit(method="likelihood"))
    assert likelihood.endswith("The likelihood is that of the randomised answers.")
    assert likelihood.startswith("noise assumes that the model is correct")
