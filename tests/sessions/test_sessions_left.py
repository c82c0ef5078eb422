"""What a session says is left is what the next call may spend, and the order of calls is free."""

import itertools
import random

import pytest

import dpmodels as dp
from dpmodels.errors import BudgetError, LedgerError
from dpmodels.privacy import ApproxDP, GaussianEvent, Ledger, PureEvent, gaussian_multiplier
from dpmodels.sessions.shares import left_in

ROWS = {"age": [20, 40, 60, 80] * 300, "wage": [10, 30, 20, 40] * 300, "sex": ["F", "M"] * 600}
BOOK = dp.codebook(age=(0, 100), wage=(0, 80), sex=["F", "M"])
KINDS = ("gaussian", "other")


def event(kind, eps, delta):
    if kind == "gaussian":
        return GaussianEvent(gaussian_multiplier(ApproxDP(eps, delta)))
    return PureEvent(eps)


def session_ledger(draw):
    """An empty ledger as a session opens it, with one of the terms that it may have."""
    eps, delta = draw.choice([0.3, 1.0, 3.0, 8.0]), draw.choice([1e-5, 1e-6, 1e-9])
    pure = draw.choice([None, None, 0.25 * eps])
    return dp.session(ROWS, BOOK, eps=eps, delta=delta, pure=pure).ledger


def disagreements(ledger, draw, calls=6):
    """How often a call and what is left disagree, in a session of so many random calls."""
    total, wrong = ledger.guarantee, 0
    for _ in range(calls):
        left, kind = left_in(ledger), draw.choice(KINDS)
        limit = getattr(left, kind)
        close = [limit - 1e-9 * total.eps, limit + 1e-7 * total.eps]
        eps = draw.choice([*close, limit * draw.random(), total.eps * draw.random()])
        if eps <= 0 or eps > total.eps:
            continue
        announced = eps <= limit
        planned = ledger.forecast([[event(kind, eps, total.delta)]])[0]
        try:
            ledger.charge([event(kind, eps, total.delta)], adjacency="replace")
            accepted = True
        except LedgerError:
            accepted = False
        wrong += accepted != announced or planned.fits != accepted
        if accepted:
            wrong += ledger.spent != planned.total or ledger.spent.amount > total.eps * (1 + 1e-9)
    return wrong


def test_ten_tenths_leave_nothing():
    session = dp.session(ROWS, BOOK, eps=1.0)
    for _ in range(10):
        session.table("~ sex", eps=0.1)
    assert session.left.describe() == "eps = 0"


@pytest.mark.product
@pytest.mark.parametrize("block", range(8))
def test_200_random_sessions_accept_what_they_say_is_left(block):
    draw = random.Random(block)
    assert sum(disagreements(session_ledger(draw), draw) for _ in range(25)) == 0


@pytest.mark.product
@pytest.mark.parametrize("rule", [None, "gaussian", "zcdp"])
def test_other_ledgers_accept_what_is_left(rule):
    draw = random.Random(1)
    ledgers = (Ledger(3.0, 1e-6, rule=rule, pure=pure) for pure in (0.0, 0.7) for _ in range(5))
    assert sum(disagreements(ledger, draw) for ledger in ledgers) == 0


@pytest.mark.parametrize("total", [dp.PureDP(2.0), dp.ZCDP(0.1)], ids=str)
def test_without_delta_the_rest_is_left(total):
    session = dp.session(ROWS, BOOK, budget=total)
    session.table("~ sex", share="1/4")
    amount = 0.75 * (2.0 if isinstance(total, dp.PureDP) else 0.1)
    assert session.left.other == pytest.approx(amount)
    assert session.left.describe() == f"{session.left.unit} = {amount:g}"


@pytest.mark.product
def test_the_bill_of_three_calls_is_the_same_in_all_orders():
    calls = {"lm": ("wage ~ age", 0.5), "glm": ("sex ~ age", 0.5), "hist": ("~ age", 1.0)}
    bills = []
    for order in itertools.permutations(calls):
        session = dp.session(ROWS, BOOK, eps=3.0, delta=1e-6)
        for verb in order:
            formula, eps = calls[verb]
            getattr(session, verb)(formula, eps=eps)
        bills.append(session.spent.amount)
    assert max(bills) <= 1.30
    assert max(bills) - min(bills) <= 1e-12


def test_a_plan_and_the_calls_choose_by_the_same_price():
    session = dp.session(ROWS, BOOK, eps=2.0, delta=1e-6)
    calls = [("table", "~ sex", {"eps": eps}) for eps in (0.2, 1.2, 0.3)]
    planned = session.plan(calls).table["mechanism"].tolist()
    for verb, formula, words in calls:
        getattr(session, verb)(formula, **words)
    assert session.register()["mechanism"].tolist() == planned
    assert planned[0] == "gaussian"


def test_auto_takes_the_noise_that_still_fits():
    session = dp.session(ROWS, BOOK, eps=2.0, delta=1e-6)
    session.table("~ sex", eps=1.5)
    fit = session.table("~ sex", eps=0.5)
    assert session.register()["mechanism"].tolist() == ["geometric", "geometric"]
    assert fit.release.guarantee.eps == 0.5
    assert session.spent.amount == pytest.approx(2.0)


@pytest.mark.product
def test_a_declared_share_is_kept_for_pure_releases():
    session = dp.session(ROWS, BOOK, eps=3.0, delta=1e-6, pure=1.0)
    session.lm("wage ~ age", eps=session.left.gaussian)
    assert session.left.other == pytest.approx(1.0)
    session.table("~ sex", eps=1.0, delta=0)
    assert session.left.amount < 1e-4


def test_a_share_is_refused_where_the_ledger_states_it():
    with pytest.raises(BudgetError, match="pure= is a term of the ledger"):
        dp.session(ROWS, BOOK, ledger=Ledger(2.0, 1e-6), pure=0.5)
    with pytest.raises(BudgetError, match="need a ledger with eps and delta"):
        dp.session(ROWS, BOOK, eps=2.0, pure=0.5)


def test_a_file_keeps_the_rule_that_it_was_made_with(tmp_path):
    old, new = tmp_path / "old.ledger", tmp_path / "new.ledger"
    Ledger.open(old, eps=2.0, delta=1e-6, new=True).charge([PureEvent(0.5)], adjacency="replace")
    before = Ledger.open(old).spent
    assert dp.session(ROWS, BOOK, eps=2.0, delta=1e-6, ledger=old).spent == before
    dp.session(ROWS, BOOK, eps=2.0, delta=1e-6, ledger=new).table("~ sex", eps=0.5)
    again = dp.session(ROWS, BOOK, ledger=new)
    assert again.ledger._filter.kind == "steps"
    again.ledger.verify()


def test_a_first_call_beyond_the_budget_is_refused_before_any_charge():
    session = dp.session(ROWS, BOOK, eps=1.0, delta=1e-6)
    with pytest.raises(LedgerError, match="left for such noise: 1"):
        session.lm("wage ~ age", eps=1.5)
    with pytest.raises(LedgerError):
        session.table("~ sex", eps=1.5)
    assert session.ledger.charges == 0
    assert session.left.gaussian == 1.0
    session.lm("wage ~ age", eps=1.0)
    assert session.left.amount < 1e-4
