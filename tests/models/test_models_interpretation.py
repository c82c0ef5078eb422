"""Readings of budgets, ledgers and results; anything else is refused."""

import math

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.privacy import Adjacency, GaussianEvent
from tests.mines import Mine

ROWS = {"y": [1.0, 2.0, 3.0, 4.0] * 50, "g": ["u", "v"] * 100, "id": np.arange(200) // 4}
WORDS = {"codebook": dp.codebook(y=(0, 5), g=["u", "v"])}


def first(read):
    """The readings of one unit of the first guarantee."""
    return read.table.iloc[0]


def test_the_table_of_the_notes():
    rows_read = dp.reading(eps=[0.1, 0.5, 1, 2, 5]).table.query("units == 1")
    eps = np.array([0.1, 0.5, 1, 2, 5])
    np.testing.assert_allclose(rows_read["posterior"], 1 / (1 + np.exp(-eps)))
    np.testing.assert_allclose(rows_read["advantage"], np.tanh(eps / 2), atol=1e-11)
    np.testing.assert_allclose(rows_read["lie"], 1 / (1 + np.exp(eps)))
    np.testing.assert_allclose(rows_read["power"][:4], 0.05 * np.exp(eps[:4]))
    assert rows_read["power"].iloc[2] <= 0.136
    assert rows_read["power"].iloc[4] == pytest.approx(1 - math.exp(-5) * 0.95)
    assert (rows_read["holds"] == 1).all()


def test_budgets_are_said_in_the_words_of_verbs():
    plain = dp.reading(eps=1.0, delta=1e-3)
    assert dp.reading(dp.ApproxDP(1.0, 1e-3)).table.equals(plain.table)
    several = dp.reading([dp.ApproxDP(1.0, 1e-3), dp.ZCDP(0.1)])
    assert several.curves == (dp.ApproxDP(1.0, 1e-3), dp.ZCDP(0.1))
    assert first(plain)["advantage"] == pytest.approx((math.e - 1 + 2e-3) / (math.e + 1))
    assert first(plain)["holds"] == 0.95
    assert first(plain)["odds"] == pytest.approx(math.e * 0.05 / 0.049)


def test_level_and_prior_are_those_asked_for():
    row = first(dp.reading(eps=1.0, alpha=0.01, prior=0.001))
    assert row["power"] == pytest.approx(0.01 * math.e)
    assert row["posterior"] == pytest.approx(0.001 * math.e / (0.999 + 0.001 * math.e))
    assert row["posterior_lower"] == pytest.approx(0.001 / (0.999 * math.e + 0.001))


def test_units_are_those_of_the_neighbours():
    persons = dp.reading(eps=1.0, person="id", adjacency="add-remove")
    assert persons.adjacency == Adjacency("add-remove", "mean", "id")
    assert persons.table["protected"].tolist() == ["one person (all rows)", "2 persons"]
    rows = dp.reading(eps=1.0, rows=4).table["protected"].tolist()
    assert rows == ["any 4 rows (one person's)", "any 8 rows"]


def test_a_result_is_read_by_its_guarantee_and_by_its_gaussian_noise():
    fit = dp.dp_mean("~ y", ROWS, **WORDS, eps=1.0, delta=1e-6, mechanism="gaussian")
    read = dp.reading(fit)
    assert read.curves[0] == dp.ApproxDP(1.0, 1e-6)
    assert isinstance(read.curves[1], GaussianEvent)
    row = read.table.query("units == 1")
    assert row["power"].iloc[1] < row["power"].iloc[0]
    assert read.labels[1] == f"Gaussian noise, mu = {1 / read.curves[1].multiplier:.3g}"
    assert read.of == "MeanResult ~ y"


def test_noise_of_a_person_is_read_in_persons():
    fit = dp.dp_table("~ g", ROWS, **WORDS, budget=dp.ZCDP(0.5), person="id", mechanism="gaussian")
    read = dp.reading(fit)
    assert read.adjacency.unit == "one person (all rows)"
    # The multiplier is of the person: rho = 1/2 has no less noise than mu = 1.
    assert read.curves[1].multiplier == pytest.approx(1.0, rel=1e-4)


def test_a_delta_that_is_not_used_is_left_out_of_a_reading():
    fit = dp.dp_table("~ g", ROWS, **WORDS, eps=1.0, delta=1e-6, mechanism="geometric")
    read = dp.reading(fit)
    assert read.labels[1] == "eps = 1, without delta"
    assert read.table["holds"].tolist() == [0.95, 1.0, 0.95, 1.0]


def test_a_ledger_is_read_in_all_and_so_far():
    ledger = dp.Ledger(eps=2.0)
    assert dp.reading(ledger).labels == ("eps = 2, in all",)
    dp.dp_table("~ g", ROWS, **WORDS, eps=0.5, ledger=ledger)
    read = dp.reading(ledger)
    assert read.labels == ("eps = 2, in all", "eps = 0.5, so far")
    assert read.spent
    assert read.curves[0] == dp.PureDP(2.0)
    assert read.curves[1].eps == pytest.approx(0.5)
    rho = dp.Ledger(budget=dp.ZCDP(1.0))
    dp.dp_table("~ g", ROWS, **WORDS, budget=dp.ZCDP(0.25), ledger=rho)
    assert dp.reading(rho).curves[1].rho == pytest.approx(0.25)
    mixed = dp.Ledger(eps=2.0, delta=1e-6)
    dp.dp_table("~ g", ROWS, **WORDS, eps=0.5, delta=1e-6, ledger=mixed, mechanism="gaussian")
    assert dp.reading(mixed).curves[1].delta == 1e-6


def test_answers_are_read_respondent_by_respondent():
    fit = dp.dp_table("~ g", ROWS, **WORDS, eps=1.0, mechanism="randomized_response")
    assert dp.reading(fit).table["protected"].tolist() == ["one respondent", "2 respondents"]


def test_a_simulation_is_stamped():
    with dp.simulation(seed=3):
        fit = dp.dp_table("~ g", ROWS, **WORDS, eps=1.0)
    assert dp.reading(fit).stamp == fit.stamp
    assert "NOT PRIVATE" in str(dp.reading(fit).summary())


LEDGER = dp.Ledger(eps=1.0)


def test_a_pufferfish_guarantee_bounds_no_test_of_who_is_in_the_table():
    budget = dp.Pufferfish(1.0, dp.markov_chain(["u", "v"], stay=0.8))
    book = dp.codebook(g=["u", "v"], t=dp.Integer(0, 3))
    rows = {**ROWS, "t": np.arange(200) % 4}
    fit = dp.dp_table("~ g", rows, codebook=book, time="t", person="id", budget=budget)
    ledger = dp.Ledger(budget=budget)
    for declared in (budget, [dp.PureDP(1.0), budget], ledger, fit):
        with pytest.raises(BudgetError, match=r"Pufferfish .* write dp\.reading\(eps=1\.0\)"):
            dp.reading(declared)


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("declared", "words", "error", "reported"),
    [
        (None, {}, BudgetError, "Neither eps nor budget"),
        (1.0, {}, BudgetError, "float, not a guarantee: write eps=1.0"),
        (pd.DataFrame(ROWS), {}, BudgetError, "DataFrame, not a guarantee"),
        ([Mine()], {}, BudgetError, "Mine, not a guarantee"),
        (Mine(), {}, BudgetError, "Mine, not a guarantee"),
        ([], {}, BudgetError, r"write eps=\[0.1"),
        (None, {"eps": []}, BudgetError, r"write eps=\[0.1"),
        (None, {"eps": 0.0}, BudgetError, "not positive"),
        (None, {"eps": [1.0, "2"]}, BudgetError, "finite number"),
        (None, {"eps": 1.0, "delta": 1.0}, BudgetError, r"not in \[0, 1\)"),
        (dp.PureDP(1.0), {"eps": 1.0}, BudgetError, "both given"),
        (dp.PureDP(1.0), {"delta": 0.1}, BudgetError, "leave delta out"),
        (None, {"eps": 1.0, "alpha": 0.0}, ArgumentError, "alpha=0.0: expected .* between 0 and 1"),
        (None, {"eps": 1.0, "alpha": 1}, ArgumentError, "alpha=1: expected"),
        (None, {"eps": 1.0, "prior": 1.0}, ArgumentError, "prior=1.0: expected"),
        (None, {"eps": 1.0, "prior": Mine()}, ArgumentError, "prior=Mine: expected"),
        (None, {"eps": 1.0, "adjacency": "swap"}, ArgumentError, "write adjacency='replace'"),
        (LEDGER, {"eps": 1.0}, ArgumentError, "Ledger states .* leave out eps="),
        (LEDGER, {"person": "id"}, ArgumentError, "leave out"),
    ],
)
def test_what_is_no_guarantee_is_refused_unread(declared, words, error, reported):
    with pytest.raises(error, match=reported):
        dp.reading(declared, **words)
