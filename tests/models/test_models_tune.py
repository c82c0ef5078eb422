"""dp.tune: what it refuses, what a tuned call costs and keeps, and one value."""

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design.rows import Rows
from dpmodels.errors import (
    ArgumentError,
    BudgetError,
    DPModelsError,
    FrameError,
    LedgerError,
    NotAvailable,
)
from dpmodels.mechanisms.regression import NoisyGradients, Objective, Output
from dpmodels.models.linear import Tune
from dpmodels.privacy import ZCDP

BOOK = dp.codebook(x=(-1, 1), z=(0, 4), label=["no", "yes"], c=(0, 9), who=(0, 10**6))
VERBS = (dp.dp_glm, dp.dp_svm)
BUDGETS = ({"eps": 1.0}, {"eps": 1.0, "delta": 1e-6}, {"budget": ZCDP(0.1)})
TRIED = dp.tune([None, 300, 3000])


def table(rows=4000, seed=0):
    rng = np.random.default_rng(seed)
    x, z = rng.uniform(-1, 1, rows), rng.uniform(0, 4, rows)
    yes = rng.random(rows) < 1 / (1 + np.exp(-(2 * x - z + 2)))
    return {
        "x": x,
        "z": z,
        "label": np.where(yes, "yes", "no"),
        "c": rng.poisson(2, rows).clip(0, 9),
        "who": np.arange(rows) // 4,
    }


@pytest.fixture
def unread(monkeypatch):
    """Rows that must not be read."""

    def refuse(self):
        raise AssertionError("a row was read")

    monkeypatch.setattr(Rows, "parts", refuse)


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([], "0 values"),
        (range(1, 30), "29 values"),
        ([1, 10, 1.0], "listed twice"),
        ([None, 1, None], "listed twice"),
        (["1", 2], "a value='1'"),
        ([np.nan, 2], "finite"),
        ([True, 2], "a value=True"),
        (3.0, "several numbers"),
        ("1, 2", "several numbers"),
        (None, "several numbers"),
    ],
)
def test_it_refuses_what_is_no_list_of_different_numbers(values, words):
    with pytest.raises(ArgumentError, match=words):
        dp.tune(values)


@pytest.mark.guarding
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"ridge": dp.tune([-1, 2])}, "ridge=-1.0: expected a number"),
        ({"ridge": dp.tune([0, 2])}, "ridge=0.0: expected a number"),
        ({"ridge": [1, 2]}, r"write|dp\.tune\("),
        ({"ridge": (1.0, 2.0)}, r"dp\.tune\("),
        ({"ridge": np.array([1.0, 2.0])}, r"dp\.tune\("),
        ({"ridge": TRIED, "mechanism": NoisyGradients()}, "has none"),
        ({"ridge": 3.0, "mechanism": NoisyGradients()}, "has none"),
        ({"ridge": dp.tune([1, 2]), "mechanism": Objective(ridge=7.0)}, "set twice"),
        ({"ridge": 3.0, "mechanism": Output(ridge=7.0)}, "set twice"),
        ({"ridge": dp.tune([0.01, 300])}, "tune: a trial has"),
        ({"ridge": "1"}, "ridge="),
        ({"ridge": TRIED, "row_norm": dp.tune([1, 2])}, "row_norm="),
    ],
)
def test_a_verb_refuses_before_it_reads_or_charges(verb, words, message, unread):
    ledger = dp.Ledger(budget=dp.ApproxDP(9, 1e-5))
    with pytest.raises(DPModelsError, match=message):
        verb("label ~ x + z", table(8), codebook=BOOK, eps=1.0, ledger=ledger, **words)
    assert not ledger.entries


def test_other_options_and_families_take_none(unread):
    words = {"codebook": BOOK, "eps": 1.0, "delta": 1e-6}
    with pytest.raises(ArgumentError, match="has none"):
        dp.dp_glm("c ~ x", table(8), family="poisson", ridge=TRIED, **words)
    with pytest.raises(ArgumentError, match="clip="):
        dp.dp_glm("c ~ x", table(8), family="poisson", clip=TRIED, **words)
    with pytest.raises(ArgumentError, match="width="):
        dp.dp_svm("label ~ x", table(8), width=TRIED, **words)
    with pytest.raises(ArgumentError, match="ridge= is not expected"):
        dp.session(table(8), codebook=BOOK, eps=1.0).lm("c ~ x", eps=0.5, ridge=TRIED)
    with pytest.raises(FrameError, match="several times"):
        dp.dp_svm("label ~ x", iter([table(8)]), ridge=TRIED, **words)
    halves = {"A": table(50), "B": table(50, 1)}
    with pytest.raises(ArgumentError, match="pooled"):
        dp.dp_svm("label ~ x", sites=halves, protocol="full", ridge=TRIED, **words)


@pytest.mark.parametrize("verb", VERBS)
def test_one_value_is_no_choice_and_costs_nothing(verb):
    def fitted(ridge):
        with dp.simulation(seed=3):
            return verb("label ~ x + z", table(), codebook=BOOK, eps=1.0, ridge=ridge)

    alone, plain = fitted(dp.tune([40])), fitted(40)
    assert alone.release.tuning is None
    assert alone.release.events == plain.release.events
    assert (alone.release.coefficients == plain.release.coefficients).all()
    text = str(alone.summary(notes="all"))
    assert " ".join(text.split()).count("With a single ridge nothing was chosen") == 1
    assert fitted(dp.tune([None])).release.ridge == fitted(None).release.ridge


def test_a_ridge_given_to_a_mechanism_is_the_same_as_said_to_the_verb():
    words = {"codebook": BOOK, "eps": 1.0, "inference": False}
    with dp.simulation(seed=3):
        fit = dp.dp_glm("label ~ x", table(), ridge=40, **words)
    with dp.simulation(seed=3):
        objective = Objective(inference=False)
        two = dp.dp_glm("label ~ x", table(), mechanism=objective, ridge=40, **words)
    assert fit.release.ridge == two.release.ridge == 40
    assert (fit.release.coefficients == two.release.coefficients).all()


@pytest.mark.guarding
@pytest.mark.product
@pytest.mark.parametrize(
    "budget", [{"eps": 1.0}, {"eps": 1.0, "delta": 1e-6}, {"budget": ZCDP(0.1)}]
)
@pytest.mark.parametrize("verb", VERBS)
def test_it_is_one_charge_of_what_is_asked(verb, budget, monkeypatch):
    guarantee = budget.get("budget") or dp.ApproxDP(1.0, budget.get("delta", 0.0) or 1e-9)
    ledger = dp.Ledger(budget=guarantee)
    words = {"codebook": BOOK, "ridge": TRIED, "ledger": ledger, **budget}
    fit = verb("label ~ x + z", table(), **words)
    (entry,) = ledger.entries
    assert list(entry.events) == list(fit.release.events)
    assert fit.release.tuning.ridges[1:] == (300.0, 3000.0)
    monkeypatch.setattr(Rows, "parts", None)
    with pytest.raises(LedgerError):
        verb("label ~ x + z", table(8), **words)
    assert len(ledger.entries) == 1


@pytest.mark.expensive
@pytest.mark.parametrize("verb", VERBS)
def test_a_report_says_what_was_tried_and_what_it_cost(verb):
    with dp.simulation(seed=2):
        fit = verb("label ~ x + z", table(), codebook=BOOK, eps=1.0, ridge=dp.tune([60, 6000]))
        private = verb(
            *("label ~ x + z", table()),
            codebook=BOOK,
            eps=1.0,
            ridge=dp.tune([60, 6000]),
            adjacency="add-remove",
        )
    text, text_of_private = (
        " ".join(str(fit.summary(notes="all")).split()) for fit in (fit, private)
    )
    assert "chosen of 2 privately" in text
    assert "40% of the budget was spent on choosing among ridges 60.0, 6000" in text
    assert "a random 75% of the rows" in text
    assert ("Brier score" if verb is dp.dp_glm else "share of wrong labels") in text
    assert "worse by about" in text
    assert "worse by a total of" in text_of_private


@pytest.mark.product
def test_it_draws_the_better_ridge_where_rows_tell_of_it():
    with dp.simulation(seed=5):
        fits = [
            dp.dp_glm(
                *("label ~ x + z", table(10_000, seed)),
                codebook=BOOK,
                eps=2.0,
                ridge=dp.tune([1e6, 100.0]),
                inference=False,
            )
            for seed in range(3)
        ]
    # A constant misses far more: each is drawn with a chance above 1 - 1e-9.
    assert [fit.release.tuning.chosen for fit in fits] == [1] * 3
    assert [fit.release.ridge for fit in fits] == [100.0] * 3


def test_it_is_saved_and_read_back(tmp_path):
    fit = dp.dp_svm("label ~ x + z", table(), codebook=BOOK, eps=1.0, ridge=TRIED)
    fit.save(tmp_path / "fit.nc")
    assert dp.load(tmp_path / "fit.nc").release.tuning == fit.release.tuning


def test_persons_and_subsets_and_sites():
    data = table()
    words = {"codebook": BOOK, "eps": 4.0, "ridge": dp.tune([300, 3000])}
    fit = dp.dp_glm("label ~ x", data, person="who", rows="mean", subset="z < 3", **words)
    # In units of persons, each of so many places.
    places = fit.release.adjacency.places
    assert fit.release.tuning.ridges == (300 / places, 3000 / places)
    assert fit.release.ridge in fit.release.tuning.ridges
    assert fit.release.rows == 1000
    halves = {"A": table(2000, 1), "B": table(2000, 2)}
    with dp.simulation(seed=1):
        svm_fit = dp.dp_svm("label ~ x", sites=halves, protocol="pooled", **words)
    assert svm_fit.release.rows == 4000
    assert svm_fit.release.tuning is not None


@pytest.mark.product
def test_a_session_prices_it_as_it_is_charged():
    session = dp.session(table(), codebook=BOOK, budget=dp.ApproxDP(2, 1e-6))
    call = session.call.glm("label ~ x", ridge=TRIED, eps=0.5)
    (planned,) = session.plan([call]).calls
    assert planned.mechanism == "objective, tuned"
    session.glm("label ~ x", ridge=TRIED, eps=0.5)
    assert session.ledger.entries[0].events == planned.events


@pytest.mark.product
def test_what_needs_intervals_says_why_there_are_none():
    fit = dp.dp_glm("label ~ x", table(), codebook=BOOK, eps=1.0, ridge=TRIED, inference=False)
    with pytest.raises(NotAvailable, match="inference=True"):
        fit.conf_int()


def test_a_budget_is_checked_for_the_trials(unread):
    with pytest.raises(BudgetError, match="tune: a trial has eps"):
        dp.dp_glm("label ~ x", table(8), codebook=BOOK, eps=0.1, ridge=dp.tune([9, 90]))


def test_it_prints_and_compares_as_a_value():
    assert dp.tune([1, None]) == Tune((1.0, None))
    assert repr(dp.tune((1, 2))) == "Tune(values=(1.0, 2.0))"
