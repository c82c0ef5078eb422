"""Printed plans, powers, divisions of a budget and registers: each branch of a line as read."""

import math
import re

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.privacy import ZCDP, ApproxDP, GaussianEvent, LaplaceEvent, PureDP, adjacency
from dpmodels.privacy.spent import Spent
from dpmodels.reports.plan import ledger_report
from dpmodels.results.plan import (
    PlannedCall,
    PlanResult,
    PowerRequest,
    PowerResult,
    SplitRequest,
    SplitResult,
)

REPLACE = adjacency("replace")
LAPLACE = LaplaceEvent(4.0)


def flat(result):
    """The printed report with single spaces and lines joined."""
    return re.sub(r"\s+", " ", str(result.summary(notes="all")))


# Plans


def planned(total=0.5, fits=True, events=(LAPLACE,), **fields):
    price, after = Spent(0.5, "eps"), Spent(total, "eps")
    return PlannedCall(
        "mean ~ age", "mean", "~ age", "laplace", events, price, after, fits, **fields
    )


def plan(*calls, announced=0.9):
    state = "0.000 of 1.00 eps spent; open"
    return flat(PlanResult(PureDP(1.0), REPLACE, state, calls, Spent(announced, "eps")))


REFUSED = "NO: the ledger would refuse the call; later totals exclude it."


def test_a_call_that_does_not_fit_is_left_out_of_the_total():
    both = plan(planned(), planned(1.2, fits=False))
    assert "After: 0.500, one by one" in both
    assert "Calls: 2, 1 fit" in both
    assert "mean ~ age laplace Laplace 0.500 1.20 NO" in both
    assert REFUSED in both
    accepted = plan(planned(), planned(1.0))
    assert "After: 1.00, one by one" in accepted
    assert "Calls: 2, 2 fit" in accepted
    assert REFUSED not in accepted
    assert "After: -, one by one" in plan(planned(1.2, fits=False))


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("announced", "text"),
    [(0.9, "As one: 0.900 "), (1.0, "As one: 1.00 "), (1.01, "As one: 1.01, does not fit")],
)
def test_calls_that_are_charged_together_fit_or_not(announced, text):
    printed = plan(planned(), announced=announced)
    assert text in printed
    assert ("does not fit" in printed) == ("does not fit" in text)


@pytest.mark.parametrize(
    ("events", "noise"),
    [
        ((), "laplace none 0.500"),
        ((LAPLACE,), "laplace Laplace 0.500"),
        ((LAPLACE, LAPLACE), "laplace Laplace, 2 times 0.500"),
        ((LAPLACE, GaussianEvent(2.0)), "laplace Laplace + Gaussian 0.500"),
        (
            (LAPLACE, GaussianEvent(2.0, count=3)),
            "laplace Laplace + Gaussian, 3 times 0.500",
        ),
    ],
)
def test_the_noise_of_a_call_and_how_often_it_is_drawn(events, noise):
    assert noise in plan(planned(events=events))


def test_predicted_shares_are_printed_where_there_are_any():
    assert "identified" not in plan(planned())
    predicted = plan(planned(identified=0.876), planned(1.0))
    assert "yes 88%" in predicted
    assert "yes -" in predicted


def test_where_sums_of_a_database_are_computed_is_printed_once_with_its_calls():
    reading = "sums are computed in the database"
    printed = plan(planned(reading=reading), planned(0.8), planned(1.0, reading=reading))
    assert f"Calls 1, 3: {reading}." in printed
    assert f"Call 2: {reading}." in plan(planned(), planned(1.0, reading=reading))


# Powers


def power(lines=({},), **fields):
    line = {
        "cell": 0,
        "n": 2000,
        "eps": 1.0,
        "term": "age",
        "effect": 0.25,
        "std_error": 0.1,
        "noise_sd": 0.08,
        "sampling_se": 0.06,
        "power": 0.705,
        "identified": 1.0,
        "without_noise": 0.999,
        "price": 2.78,
        "power_se": 0.01,
        "se_low": 0.09,
        "se_high": 0.12,
    }
    request = {
        "verb": "lm",
        "formula": "wage ~ age",
        "assumed": "uniform",
        "guarantee": "eps = 1",
        "adjacency": REPLACE,
        "alpha": 0.05,
        "solved": "power",
        "target": math.nan,
        "mechanisms": ("functional",),
        "tested": "z test",
        "enough": math.nan,
    }
    table = pd.DataFrame([line | changes for changes in lines])
    return flat(PowerResult(PowerRequest(**{**request, **fields}), table))


def test_a_power_is_printed_with_what_privacy_costs():
    printed = power()
    assert "n = 2,000, eps = 1" in printed
    assert "age 0.250 0.100 0.0800 0.0600 0.70 100% >.99 2.78 x" in printed
    assert "Solved for: power " in printed
    assert "Test: z test, level 0.05" in printed


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"power": math.nan}, "age - 0.100 0.0800 0.0600 - 100%"),
        ({"price": math.inf}, ">.99 - "),
        ({"without_noise": 0.994}, "100% 0.99 2.78 x"),
        ({"eps": math.nan}, "n = 2,000 effect"),
    ],
)
def test_what_has_no_number_is_a_dash(changes, text):
    assert text in power([changes])


@pytest.mark.parametrize(
    ("solved", "target", "text"),
    [
        ("n", 0.8, "Solved for: rows for power 0.8"),
        ("eps", 0.9, "Solved for: eps for power 0.9"),
        ("effect", 0.8, "Solved for: smallest effects for power 0.8"),
    ],
)
def test_what_was_solved_for_and_at_which_power(solved, target, text):
    assert text in power(solved=solved, target=target)


@pytest.mark.parametrize(
    ("power_se", "text"),
    [
        (0.01, "simulation errors of powers are one or two hundredths"),
        (math.nan, "simulation errors of powers are one or two hundredths"),
        (0.034, "simulation standard errors of powers are at most 0.03"),
    ],
)
def test_a_power_has_a_simulation_error(power_se, text):
    assert text in power([{"power_se": power_se}])


def test_terms_without_standard_errors_are_named_with_what_would_help():
    start = "Most releases have no standard errors of"
    seldom = [{"identified": 0.49}, {"term": "sex", "identified": 0.5}]
    assert start not in power()
    assert f"{start} age: about eps = 2.3 is needed, or more rows." in power(seldom, enough=2.31)
    assert f"{start} age: leave out eps or n and give a power, such as power=0.8" in power(seldom)


def test_terms_whose_standard_errors_vary_are_named():
    start = "Standard errors of age differ more than twofold from release to release"
    uneven = [{"se_low": 0.05, "se_high": 0.11}, {"term": "sex", "se_low": 0.06, "se_high": 0.12}]
    assert start in power(uneven)
    assert "differ more than twofold" not in power(uneven[1:])


# Divisions of a budget


def split(scores, guarantee=None, stage=PureDP, shares=((0.2, 0.8), (0.5, 0.5)), best="smallest"):
    guarantee = PureDP(1.0) if guarantee is None else guarantee
    divisions = tuple(tuple(map(stage, line)) for line in shares)
    request = SplitRequest("recipe", ("first", "second"), guarantee, REPLACE, 4, best)
    of_runs = np.array(scores)[:, None] + np.array([0.0, 0.1, 0.2, 0.3])
    return flat(SplitResult(request, np.array(shares), divisions, of_runs))


def test_the_best_division_has_a_star_and_no_difference():
    smallest, largest = split([1.0, 2.0]), split([1.0, 2.0], best="largest")
    assert "Best: the smallest mean score" in smallest
    assert re.search(r"\* 0.2 0.8 1.150 0.065 - -", smallest)
    assert "Best: the largest mean score" in largest
    assert re.search(r"\* 0.5 0.5 2.150 0.065 - -", largest)
    assert "separate no divisions" not in smallest


def test_divisions_that_the_runs_do_not_separate():
    printed = split([1.0, 1.0])
    assert "The runs separate no divisions." in printed
    assert "0.2 : 0.8 = 0.2 0.8 1.150 0.065 0 0 0.5 : 0.5 * " in printed
    # One division by itself is not compared.
    assert "separate no" not in split([1.0], shares=((0.2, 0.8),))


@pytest.mark.parametrize(
    ("guarantee", "stage", "text"),
    [
        (
            ApproxDP(1.0, 1e-6),
            lambda share: ApproxDP(share, 1e-6),
            "Every stage has the whole delta. Their eps add up to the total: open the ledger with "
            "pure=, the eps of the stages without Gaussian noise.",
        ),
        (
            ApproxDP(1.0, 1e-6),
            lambda share: ApproxDP(1.1 * share, 1e-6),
            "Every stage has the whole delta. Stages with Gaussian noise share 1/m^2 of their "
            "joint multiplier m: their eps add up to more than the total.",
        ),
        (ZCDP(1.0), ZCDP, ""),
        (PureDP(1.0), PureDP, ""),
    ],
)
def test_how_the_eps_of_stages_compose(guarantee, stage, text):
    printed = split([1.0, 2.0], guarantee, stage)
    assert text in printed
    assert ("whole delta" in printed) == bool(text)
    assert ("first rho" in printed) == (guarantee == ZCDP(1.0))


# Registers


def test_only_a_ledger_in_a_file_has_a_chain_to_compare(tmp_path):
    chain = "this detects a changed line"
    assert chain not in re.sub(r"\s+", " ", str(ledger_report(dp.Ledger(eps=1.0))))
    stored = dp.Ledger.open(tmp_path / "study.ledger", eps=1.0, new=True)
    assert chain in re.sub(r"\s+", " ", str(ledger_report(stored)))
