"""Shares of what is left: they are parsed exactly, they fit, and they spend all."""

import math
from fractions import Fraction

import pytest
from verbs import forms

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError, LedgerError
from dpmodels.privacy import GaussianEvent, PureEvent, compose_gaussians
from dpmodels.sessions.shares import fraction, shared

ROWS = {"age": [20, 40, 60, 80] * 300, "wage": [10, 30, 20, 40] * 300, "sex": ["F", "M"] * 600}
BOOK = dp.codebook(age=(0, 100), wage=(0, 80), sex=["F", "M"])
WHOLES = [dp.PureDP(2.0), dp.ZCDP(0.05), dp.ApproxDP(2.0, 1e-6)]
FIVE = {
    "alike": [("lm", "wage ~ age")] * 5,
    "mixed": [(form.verb.short, form.formula) for form in forms("shared").values()],
}


def study(**words):
    return dp.session(ROWS, BOOK, **words)


@pytest.mark.parametrize(
    ("written", "part"), [("1/5", Fraction(1, 5)), (" 2 / 7 ", Fraction(2, 7)), (1, Fraction(1))]
)
def test_a_share_is_read_exactly(written, part):
    assert fraction("eps", written) == part


NO_SHARES = ["1/0", "0/3", "6/5", "-1/5", "1e9", "0.2", "", "1/5/2", "٣/٥", "1/" + "9" * 99]


@pytest.mark.parametrize("written", [*NO_SHARES, 0, 1.5, -0.1, True, math.nan, [1, 5]])
def test_what_is_no_share_is_refused(written):
    with pytest.raises(ArgumentError, match="expected a share above 0, up to 1"):
        fraction("share", written)


@pytest.mark.expensive
@pytest.mark.parametrize("calls", FIVE.values(), ids=FIVE)
@pytest.mark.parametrize("total", WHOLES, ids=str)
def test_five_fifths_fit_and_spend_all(total, calls):
    session = study(budget=total)
    session.split(5)
    for verb, formula in calls:
        getattr(session, verb)(formula)
    assert len(session.register()) == 5
    last = GaussianEvent(1e3) if not isinstance(total, dp.PureDP) else PureEvent(1e-4)
    assert not session.ledger.forecast([[last]])[0].fits
    with pytest.raises(BudgetError, match="neither eps nor a share"):
        session.mean("~ age")


@pytest.mark.product
def test_parts_fit_whatever_rule_the_ledger_was_opened_with():
    for words in ({"rule": "zcdp"}, {"pure": 0.5}):
        session = study(ledger=dp.Ledger(eps=2.0, delta=1e-6, **words))
        session.split(3)
        session.table("~ sex")
        session.pca("~ age", mechanism="separate")
        session.lm("wage ~ age")
        assert len(session.register()) == 3
        assert not session.ledger.forecast([[GaussianEvent(1e3)]])[0].fits


@pytest.mark.product
@pytest.mark.parametrize("total", WHOLES, ids=str)
def test_parts_of_calls_alike_are_equal(total):
    session = study(budget=total)
    session.split(5)
    results = [session.lm("wage ~ age", mechanism="moments").release.events for _ in range(5)]
    noise = [compose_gaussians(event.multiplier for event in events) for events in results]
    assert noise == pytest.approx([noise[0]] * 5, rel=1e-7)


def test_a_share_is_of_what_is_left_after_all_that_was_charged():
    session = study(eps=2.0)
    session.table("~ sex", eps=1.0)
    assert session.table("~ sex", eps="1/4").release.guarantee == dp.PureDP(0.25)
    assert session.table("~ sex", share=0.5).release.guarantee == dp.PureDP(0.375)
    study_result = study(eps=2.0, share="1/2")
    budgets = [study_result.table("~ sex").release.guarantee.eps for _ in range(3)]
    assert budgets == [1.0, 0.5, 0.25]


def test_a_refused_call_takes_no_part():
    session = study(eps=2.0, delta=1e-6)
    session.split(2)
    with pytest.raises(dp.errors.CodebookError):
        session.lm("wage ~ nobody")
    with pytest.raises(ArgumentError):
        session.lm("wage ~ age", weights=7, vcov="HC4")
    session.table("~ sex", eps=0.5, delta=0)
    parts = [session.table("~ sex", delta=0).release.guarantee.eps for _ in range(2)]
    assert parts == [0.75, 0.75]


def test_eps_has_the_delta_of_the_session_unless_the_call_has_its_own():
    session = study(eps=2.0, delta=1e-6)
    assert session.pca("~ age + wage", eps=0.5).release.guarantee == dp.ApproxDP(0.5, 1e-6)
    assert session.table("~ sex", eps=1e-3, delta=0).release.guarantee == dp.PureDP(1e-3)
    part = session.table("~ sex", eps="1/5", delta=0).release.guarantee
    assert isinstance(part, dp.PureDP)
    less = session.pca("~ age", eps="1/5", delta=1e-9).release.guarantee
    assert less.delta == 1e-9
    assert session.pca("~ age", budget=dp.ZCDP(1e-4)).release.guarantee == dp.ZCDP(1e-4)


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        ({}, 'write eps=0.2, eps="1/5" of what is left'),
        ({"eps": 0.1, "share": 0.1}, "eps and share are both given"),
        ({"eps": "1/5", "budget": dp.PureDP(1)}, "eps and budget are both given"),
        ({"eps": "1/5", "delta": 1e-5}, "a share is one of eps = 2, delta = 1e-06"),
        ({"eps": "1/5", "delta": "all"}, "a share is one of eps = 2, delta = 1e-06"),
        ({"budget": dp.PureDP(1), "delta": 1e-6}, "delta=1e-06 is given with budget"),
    ],
)
def test_words_that_make_no_budget_are_refused_and_nothing_is_charged(words, reported):
    session = study(eps=2.0, delta=1e-6)
    with pytest.raises(BudgetError, match=reported):
        session.mean("~ age", **words)
    assert not session.ledger.entries


def test_of_nothing_there_is_no_share():
    session = study(eps=1.0)
    session.table("~ sex", eps=1.0)
    with pytest.raises(BudgetError, match="too little is left"):
        session.table("~ sex", eps="1/5")
    with pytest.raises(LedgerError, match=r"the total would be 1\.1"):
        session.table("~ sex", eps=0.1)


@pytest.mark.product
def test_what_rounding_leaves_of_a_spent_ledger_is_no_budget():
    session = study(eps=2.0, delta=1e-6)
    session.split(2)
    session.table("~ sex", eps=0.3)
    session.lm("wage ~ age")
    session.lm("wage ~ age + sex")
    with pytest.raises(BudgetError, match="too little is left"):
        session.lm("wage ~ age", share=1)
    assert len(session.register()) == 3


def test_where_the_price_jumps_the_share_is_kept():
    """A release that costs nine tenths of all from 0.3 on, and a hundredth below."""

    def price(value):
        return 0.9 if value.eps >= 0.3 else value.eps / 100

    result = shared(Fraction(1, 2), dp.PureDP, 1.0, price)
    assert 0.2999 < result.eps < 0.3


@pytest.mark.product
@pytest.mark.parametrize("words", [{"eps": 0.5}, {"eps": "1/4"}, {"share": 0.5}])
def test_levels_do_not_take_all_delta_unasked(words):
    session = study(eps=2.0, delta=1e-6)
    with pytest.raises(BudgetError, match="write delta=1e-08"):
        session.levels("~ sex", **words)
    with pytest.raises(BudgetError, match="write delta=1e-08"):
        session.plan([session.call.levels("~ sex", **words)])
    assert not session.ledger.entries
    assert session.levels("~ sex", delta=1e-8, **words)
    assert session.lm("wage ~ age", eps=0.5).release.guarantee.delta == 1e-6
