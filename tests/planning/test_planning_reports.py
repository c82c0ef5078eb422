"""What the plan of an analysis says, its targets and budgets, and the errors of planned shares."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.planning.analysis import (
    AnalysisPlan,
    Budgeting,
    PlanLine,
    Target,
    _facts,
    _notes,
    _weak,
    named_calls,
    targets_of,
    weights_of,
)
from dpmodels.planning.noise_curve import Release
from dpmodels.planning.plan import _figures, _identifying, _line, _rounded_up, _without_noise
from dpmodels.planning.verbs import _shares
from dpmodels.privacy import ZCDP, ApproxDP, GaussianEvent, LaplaceEvent, PureDP, adjacency
from dpmodels.report.notes import Rank

CALL = dp.call.mean("~ wage", eps=0.1)
LINE = PlanLine(
    name="wages",
    call=CALL,
    guarantee=PureDP(0.25),
    mechanism="geometric",
    events=(LaplaceEvent(4.0),),
    figure="wage",
    figures=1,
    sampling=3.0,
    noise=4.0,
    total=5.0,
    ratio=5 / 3,
    identified=1.0,
    share=0.5,
    even=1.5,
    needs=0.2,
)


def plan(*lines, pure=None, **request):
    of = {
        "best": "mean",
        "over": "worst",
        "targets": {},
        "n_rows": 1_000,
        "adjacency": adjacency("replace"),
        "guarantee": PureDP(1.0),
        "assumed": "uniform",
        "subset": None,
        "solved": None,
    }
    request = SimpleNamespace(**{**of, **request})
    return AnalysisPlan(request, lines or (LINE,), None, pd.DataFrame(), pd.DataFrame(), pure)


def test_the_table_has_the_price_of_noise_in_rows_and_in_variance():
    (row,) = plan().table.to_dict("records")
    assert list(row) == [
        *("name", "call", "mechanism", "eps", "share", "figure", "sampling", "noise", "total"),
        *("ratio", "noise_share", "rows_factor", "even", "identified", "needs"),
    ]
    assert row["noise_share"] == pytest.approx(16 / 25)
    # Sampling errors of the total's size take (3/5)² of the rows.
    assert row["rows_factor"] == pytest.approx(25 / 9)
    assert (row["eps"], row["share"], row["needs"]) == (0.25, 0.5, 0.2)


def test_a_plan_says_what_it_minimises_and_for_which_figure():
    text = " ".join(_notes(plan()))
    assert "The division minimises the geometric mean of the ratios." in text
    assert "expected standard errors of the worst figure of each call" in text
    text = " ".join(_notes(plan(best="worst", over="median", targets={"wages": ()})))
    assert "The division minimises the largest ratio, subject to the targets." in text
    assert "expected standard errors of the median figure of each call" in text


def test_a_plan_says_what_is_not_identified_and_what_would_help():
    assert not any(note.rank == Rank.IDENTIFIED for note in map(ranked, _notes(plan())))
    weak = LINE._replace(identified=0.5, needs=1.25)
    (note,) = (note for note in _notes(plan(weak)) if ranked(note).rank == Rank.IDENTIFIED)
    assert note.endswith("identified: wages, which needs about eps = 1.2.") or note.endswith("1.3.")
    never = LINE._replace(identified=0.5, needs=math.nan)
    assert _weak(never) == "wages, for which no eps suffices: use more rows or fewer terms"
    assert "no rho suffices" in _weak(never._replace(guarantee=ZCDP(0.1)))


def ranked(note):
    return SimpleNamespace(rank=getattr(note, "rank", Rank.INTERVALS))


def test_a_session_for_calls_in_any_order_is_opened_with_their_eps():
    assert not any("Open the session" in note for note in _notes(plan()))
    (note,) = (note for note in _notes(plan(pure=0.75)) if "Open the session" in note)
    assert note.startswith("Open the session with pure=0.75, the eps of calls without Gaussian")


def test_the_facts_of_a_plan():
    facts = dict(_facts(plan()))
    assert facts["Rows"] == "1,000"
    assert "Subset" not in facts
    assert "Solved" not in facts
    private = {"adjacency": adjacency("add-remove"), "subset": "wage > 0", "solved": "n"}
    facts = dict(_facts(plan(**private)))
    assert facts["Rows"] == "1,000 (guessed)"
    assert (facts["Subset"], facts["Solved"]) == ("wage > 0", "least n found")
    assert dict(_facts(plan(solved="eps")))["Solved"] == "least eps found"


def test_calls_come_with_their_budgets_those_without_gaussian_noise_first():
    gaussian = LINE._replace(
        name="model", guarantee=ApproxDP(0.5, 1e-7), events=(GaussianEvent(3.0),)
    )
    first, second = plan(gaussian, LINE).calls
    assert first.options == {"eps": 0.25}
    assert second.options == {"eps": 0.5, "delta": 1e-7}
    (call,) = plan(LINE._replace(guarantee=ZCDP(0.2))).calls
    assert call.options == {"budget": ZCDP(0.2)}


@pytest.mark.expensive
def test_standard_errors_of_shares_are_those_of_proportions():
    """Without noise half an interval over its quantile is √(p (1 - p)/n), to first order."""
    n_rows = 40_000
    rows = {"g": np.repeat(["a", "b", "c"], [4_000, 16_000, 20_000])}
    fit = dp.dp_table("~ g", rows, codebook=dp.codebook(g=["a", "b", "c"]), eps=1e6)
    truth, null = np.array([0.1, 0.4, 0.5]), np.array([0.1, 0.3, np.nan])
    posed = SimpleNamespace(freedom=0, truth=truth, null=null, effect=truth - null)
    posed._replace = lambda **fields: SimpleNamespace(**{**vars(posed), **fields})
    reading = _shares(fit, posed, 0.05)
    exact = np.sqrt(truth * (1 - truth) / n_rows)
    assert reading.se == pytest.approx(exact, rel=5e-3)
    assert reading.noise == pytest.approx(np.full(3, fit.noise_sd() / n_rows))
    assert reading.statistic[:2] == pytest.approx([0.0, 0.1 / exact[1]], abs=0.02, rel=0.02)
    # A statistic rejects if the null is outside the interval.
    ends = fit.conf_int().to_numpy()[1]
    for null_share, rejects in ((ends[0] * 0.999, True), (ends[0] * 1.001, False)):
        posed.null, posed.effect = np.full(3, null_share), truth - null_share
        statistic = _shares(fit, posed, 0.05).statistic[1]
        assert (abs(statistic) > norm.isf(0.025)) == rejects


def test_targets_are_read_for_all_calls_or_by_name():
    targets = targets_of({"se": 0.2, "noise": 0.5}, ["a", "b"])
    assert targets == {name: (Target("se", 0.2), Target("noise", 0.5)) for name in ("a", "b")}
    assert targets_of({"b": {"se": 3}}, ["a", "b"]) == {"b": (Target("se", 3.0),)}
    assert targets_of(None, ["a"]) == {}
    assert Target("se", 0.2).describe() == "total se at most 0.2"
    assert Target("noise", 0.5).describe() == "share of noise at most 0.5"


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ({"c": {"se": 1}}, "'c' is not a call; calls are a, b"),
        ({"a": {"sd": 1}}, "targets of a: write targets="),
        ({"a": {}}, "targets of a: write targets="),
        ({}, "write targets="),
        ("se", "of type str"),
        ({"se": 0}, "expected a positive number"),
        ({"noise": 1}, "expected a share between 0 and 1"),
        ({"noise": 0.0}, "expected a share between 0 and 1"),
    ],
)
def test_targets_that_are_refused(targets, message):
    with pytest.raises(ArgumentError, match=message):
        targets_of(targets, ["a", "b"])


def test_a_share_of_noise_may_be_near_one_and_an_error_above_it():
    assert targets_of({"noise": 0.99}, ["a"])["a"][0].level == 0.99
    assert targets_of({"se": 1.5}, ["a"])["a"][0].level == 1.5


def test_weights_are_one_where_none_is_written():
    assert weights_of(None, ["a", "b"]).tolist() == [1.0, 1.0]
    assert weights_of({"b": 2.5}, ["a", "b"]).tolist() == [1.0, 2.5]
    for wrong in ({"b": 0}, {"b": -1}, {"c": 1}, [1, 2]):
        with pytest.raises(ArgumentError, match="weights="):
            weights_of(wrong, ["a", "b"])


def test_calls_are_named_by_their_verbs_and_numbered():
    calls = named_calls([dp.call.mean("~ wage"), dp.call.lm("wage ~ age"), dp.call.mean("~ age")])
    assert list(calls) == ["mean", "lm", "mean 2"]
    assert list(named_calls({"first": dp.call.mean("~ wage")})) == ["first"]
    for wrong in ([], "mean", 3, {"": dp.call.mean("~ wage")}):
        with pytest.raises(ArgumentError):
            named_calls(wrong)


def test_the_deltas_of_calls_leave_less_for_gaussian_noise():
    calls = {"a": dp.call.mean("~ wage"), "b": dp.call.levels("~ town", delta=1e-7)}
    left = Budgeting(ApproxDP(1.0, 1e-6), calls).left
    assert (left.eps, left.delta) == (1.0, pytest.approx(9e-7))
    budgeting = Budgeting(ApproxDP(1.0, 1e-6), calls)
    assert budgeting.form("a")(0.25) == ApproxDP(0.25, left.delta)
    assert budgeting.form("b")(0.25) == ApproxDP(0.25, 1e-7)
    assert Budgeting(PureDP(1.0), {"a": calls["a"]}).form("a")(0.5) == PureDP(0.5)
    assert Budgeting(ZCDP(1.0), {"a": calls["a"]}).form("a")(0.5) == ZCDP(0.5)
    too_much = {"b": dp.call.levels("~ town", delta=1e-6)}
    with pytest.raises(BudgetError, match="the deltas of calls add up to 1e-06"):
        _ = Budgeting(ApproxDP(1.0, 1e-6), too_much).left
    with pytest.raises(BudgetError, match="write delta=1e-08"):
        _ = Budgeting(ApproxDP(1.0, 1e-6), {"b": dp.call.levels("~ town")}).left


def test_stated_budgets_are_those_of_the_calls():
    calls = {"a": dp.call.mean("~ wage", eps=0.2), "b": dp.call.mean("~ wage", eps=0.2, delta=0)}
    budgeting = Budgeting(ApproxDP(1.0, 1e-6), calls)
    assert budgeting.stated_budget("a") == ApproxDP(0.2, 1e-6)
    assert budgeting.stated_budget("b") == PureDP(0.2)
    assert budgeting.form("b")(0.9) == PureDP(0.2)
    assert Budgeting(ZCDP(1.0), {"a": dp.call.mean("~ wage")}).stated_budget("a") is None


class Simulated:
    """A call whose figures a release identifies with a chance that grows with its budget."""

    exact = pd.DataFrame({"value": [1.0, 2.0]}, index=["x", "z"])
    sampling = np.array([3.0, 6.0])
    call = CALL
    form = staticmethod(PureDP)

    def __init__(self, enough=math.inf):
        self.enough = enough

    def at(self, amount, repeats):
        chance = np.full(2, 1.0 if amount >= self.enough else 0.5)
        return Release("geometric", (LaplaceEvent(1 / amount),), np.array([4.0, 2.5]), chance)


def test_figures_of_a_call_and_the_one_that_stands_for_it():
    curve = SimpleNamespace(name="wages", simulated_call=Simulated(), over="worst")
    release = curve.simulated_call.at(0.5, 1)
    frame = _figures(curve, release)
    assert frame["total"].tolist() == pytest.approx([5.0, 6.5])
    assert frame["ratio"].tolist() == pytest.approx([5 / 3, 6.5 / 6])
    line = _line(curve, release, frame, 0.5)
    assert (line.figure, line.figures, line.sampling, line.noise) == ("x", 2, 3.0, 4.0)
    assert line.total == pytest.approx(5.0)
    assert line.identified == 0.5


def test_the_budget_that_identifies_is_searched_by_doubling():
    for enough, budget in ((0.3, 0.4), (0.2, 0.2), (3.2, 3.2), (25.6, 25.6)):
        curve = SimpleNamespace(simulated_call=Simulated(enough))
        assert _identifying(curve, 0.1) == pytest.approx(budget)
    assert math.isnan(_identifying(SimpleNamespace(simulated_call=Simulated(51.2)), 0.1))


@pytest.mark.parametrize(
    ("number", "digits", "rounded"),
    [(1.2341, 3, 1.24), (1.24, 3, 1.24), (0.012301, 3, 0.0124), (98_700, 2, 99_000), (10, 2, 10)],
)
def test_budgets_and_rows_are_rounded_up(number, digits, rounded):
    assert _rounded_up(number, digits) == pytest.approx(rounded)
    assert _rounded_up(number, digits) >= number * (1 - 1e-9)


def test_calls_whose_sampling_error_exceeds_a_target_are_named():
    curve = SimpleNamespace(name="wages", simulated_call=Simulated(), of_all=max)
    targets = {"wages": (Target("noise", 0.1), Target("se", 6.0))}
    study = SimpleNamespace(curves=[curve], request=SimpleNamespace(targets=targets))
    assert list(_without_noise(study)) == ["; without noise the standard error of wages is 6"]
    study.request.targets = {"wages": (Target("se", 6.1), Target("noise", 0.1))}
    assert list(_without_noise(study)) == []
