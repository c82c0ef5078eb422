"""What the printed plan of an analysis and its table say, and the errors of planned shares."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import dpmodels as dp
from dpmodels.planning.analysis import AnalysisPlan, PlanLine, _facts, _notes, _weak
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


def test_a_ledger_for_calls_in_any_order_is_opened_with_their_eps():
    assert not any("Open the ledger" in note for note in _notes(plan()))
    (note,) = (note for note in _notes(plan(pure=0.75)) if "Open the ledger" in note)
    assert note.startswith("Open the ledger with pure=0.75, the eps of calls without Gaussian")


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
    assert first.words == {"eps": 0.25}
    assert second.words == {"eps": 0.5, "delta": 1e-7}
    (call,) = plan(LINE._replace(guarantee=ZCDP(0.2))).calls
    assert call.words == {"budget": ZCDP(0.2)}


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
