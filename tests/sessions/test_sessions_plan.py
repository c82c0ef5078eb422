"""Calls are priced before any is made, without a row."""

import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, CodebookError, FormulaError, LedgerError, NotAvailable
from dpmodels.frames.columns import ColumnRows

ROWS = {"age": [20, 40, 60, 80] * 300, "wage": [10, 30, 20, 40] * 300, "sex": ["F", "M"] * 600}
BOOK = dp.codebook(age=(0, 100), wage=(0, 80), sex=["F", "M"])


def study(**words):
    return dp.session(ROWS, BOOK, **({"eps": 2.0, "delta": 1e-6} | words))


def calls(session):
    return [
        ("mean", "age ~ sex", {"eps": 0.3}),
        session.call.lm("wage ~ age", eps="1/3"),
        ["dp_pca", "~ age + wage", {"eps": 0.5, "mechanism": "gauss"}],
        session.call.table("~ sex", share=0.25),
    ]


@pytest.mark.product
def test_a_plan_is_what_the_calls_then_cost():
    session = study()
    plan = session.plan(calls(session))
    assert plan.fits
    assert not session.ledger.entries
    for call in calls(session):
        session.make(session.call.read(call))
    spent = session.register()
    assert plan.table["total"].tolist() == spent["total"].tolist()
    assert plan.table["mechanism"].tolist() == spent["mechanism"].tolist()
    assert plan.table["noise"].tolist() == spent["events"].tolist()


def test_no_row_is_read_for_a_price(monkeypatch):
    def read(*_):
        raise AssertionError("rows were read")

    session = study()
    monkeypatch.setattr(ColumnRows, "chunks", read)
    assert len(session.plan(calls(session)).table) == 4
    assert "2.00 eps" in repr(session)
    with pytest.raises(AssertionError, match="rows were read"):
        session.mean("~ age", eps=0.1)


@pytest.mark.product
def test_a_plan_for_a_number_of_rows_says_what_will_be_identified():
    session = study()
    values = [
        ("table", "~ sex", {"eps": 0.1}),
        ("lm", "wage ~ age + sex", {"eps": 0.1, "delta": 0}),
    ]
    assert session.plan(values).table["identified"].isna().all()
    assert "identified" not in session.plan(values).summary().as_text()
    few, second = (session.plan(values, n=n) for n in (300, 10**6))
    assert few.table["identified"].tolist() == [1.0, 0.0]
    assert second.table["identified"].tolist() == [1.0, 1.0]
    assert "identified" in few.summary().as_text()
    assert "100%" in few.summary().as_text()
    assert not session.ledger.entries
    with pytest.raises(ArgumentError, match="n=0"):
        session.plan(values, n=0)


def test_what_does_not_fit_is_said_and_counts_for_none_after_it():
    session = study()
    plan = session.plan([("table", "~ sex", {"eps": eps}) for eps in (1.5, 1.0, 0.5)])
    assert plan.table["fits"].tolist() == [True, False, True]
    assert plan.table["total"].tolist() == pytest.approx([1.5, 2.5, 2.0], rel=1e-4)
    text = plan.summary().as_text()
    assert "3, 2 fit" in text
    assert text.count(" NO") == 1
    assert repr(plan) == "<PlanResult of 3 calls: 1 do not fit, nothing spent>"
    with pytest.raises(LedgerError):
        study().ledger.charge(plan.events, adjacency="replace")


def test_charged_as_one_a_plan_costs_the_tight_total():
    session = study()
    plan = session.plan([("table", "~ sex", {"eps": 0.02, "delta": 0})] * 60)
    entry = session.ledger.charge(plan.events, adjacency="replace", label="plan")
    assert entry.spent_after == plan.announced
    total = plan.table["total"].iloc[-1]
    assert plan.announced.amount < 0.8 * total < 0.8 * 0.5 * 60 * 0.02


@pytest.mark.product
def test_parts_of_a_split_are_planned_as_they_will_be_charged():
    session = study()
    session.split(3)
    three = [("mean", "~ age"), ("lm", "wage ~ age"), ("pca", "~ age + wage")]
    plan = session.plan(three)
    for verb, formula in three:
        getattr(session, verb)(formula)
    assert session.register()["total"].tolist() == plan.table["total"].tolist()


@pytest.mark.parametrize("delta", [0, None])
def test_pure_releases_cost_the_same_before_and_after_others(delta):
    session = study()
    late = [("lm", "wage ~ age", {"eps": 0.5}), ("table", "~ sex", {"eps": 0.3, "delta": delta})]
    first, second = (session.plan(calls) for calls in (late, late[::-1]))
    totals = [plan.table["total"].iloc[-1] for plan in (first, second)]
    assert totals[0] == pytest.approx(totals[1], rel=1e-12)


def test_a_call_says_what_it_is_and_asks_nothing():
    session = study()
    call = session.call.pca("~ age", eps=0.5, ncomp=1)
    assert repr(call) == "pca('~ age', eps=0.5, ncomp=1)"
    assert "lm" in dir(session.call)
    assert not session.ledger.entries


@pytest.mark.parametrize(
    ("written", "error"),
    [
        ("lm", ArgumentError),
        ([("lm",)], ArgumentError),
        ([("lm", 7)], ArgumentError),
        ([("lm", "wage ~ age", [("eps", 1)])], ArgumentError),
        ([ROWS], ArgumentError),
        ([("lme", "wage ~ age")], NotAvailable),
        ([("lm", "wage ~ age", {"ep": 1})], ArgumentError),
        ([("lm", "wage ~ nobody", {"eps": 1})], CodebookError),
        ([("lm", "~ age", {"eps": 1})], FormulaError),
    ],
)
def test_what_is_no_call_is_refused(written, error):
    with pytest.raises(error):
        study().plan(written)
