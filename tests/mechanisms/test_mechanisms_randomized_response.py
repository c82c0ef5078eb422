"""Rows that answer for themselves: every count of answers of every pair of neighbours."""

from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, product

import mpmath
import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.mechanisms import RandomizedResponse
from dpmodels.mechanisms.protocol import CountFacts
from dpmodels.noise.finite import truthful
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, adjacency, total_rho
from dpmodels.privacy.budget import Adjacency

BOOK = dp.codebook(a=["u", "v"], b=[0, 1, 2], id=[1, 2])
ROWS = {"a": ["u", "v", "v", None] * 50, "b": [0, 1, 2, 2] * 50}


def planned(guarantee, cells=3, relation="replace"):
    facts = CountFacts(1, cells, False, adjacency(relation))
    return RandomizedResponse().plan(facts, guarantee)


def answer_law(truth, cells, eps):
    """The probability of each answer by the coin that is thrown, to 200 bits."""
    low, _ = truthful(Fraction(eps), cells, 200)
    fraction = Fraction(low, 2**200)
    chance = (1 - fraction) / cells
    return [chance + fraction * (cell == truth) for cell in range(cells)]


def count_law(truths, cells, eps):
    """The probability of each vector of numbers of answers."""
    law = Counter({(0,) * cells: Fraction(1)})
    for truth in truths:
        answers = answer_law(truth, cells, eps)
        grown = Counter()
        for counts, answer in product(law, range(cells)):
            counts_after = tuple(c + (at == answer) for at, c in enumerate(counts))
            grown[counts_after] += law[counts] * answers[answer]
        law = grown
    return law


@pytest.mark.parametrize(("cells", "rows", "eps"), [(2, 4, 1.0), (3, 3, 0.3), (4, 2, 3.0)])
def test_neighbours_are_no_farther_than_declared(cells, rows, eps):
    """Of all tables of so many rows, that of one row alone reaches eps."""
    plan = planned(PureDP(eps), cells)
    with mpmath.workdps(50):
        odds = mpmath.exp(mpmath.mpf(plan.events[0].eps))
    largest = 0
    for size in (1, rows):
        for base in combinations_with_replacement(range(cells), size - 1):
            laws = [count_law((*base, cell), cells, plan.eps) for cell in range(cells)]
            largest = max(max(a[key] / b[key] for key in a) for a, b in product(laws, repeat=2))
            assert largest <= odds * (1 + mpmath.mpf(2) ** -150)
            if size == 1:
                assert largest >= odds * (1 - mpmath.mpf(2) ** -150), "nowhere near"


def test_the_incomplete_rows_answer_like_all_others():
    """A row that has no cell of its own moves the counts no farther, and is estimated."""
    fit = dp.dp_table("~ a", ROWS, codebook=BOOK, eps=12.0, mechanism="randomized_response")
    assert fit.release.values.sum() == 200
    assert abs(fit.nincomplete - 50) <= 2
    assert len(fit.release.channels[0].law) == 3


def test_a_guarantee_of_another_kind_is_kept():
    plan = planned(ZCDP(0.5))
    assert plan.eps == pytest.approx(1.0)
    assert total_rho(plan.events) <= 0.5 * (1 + 1e-12)
    assert planned(ApproxDP(1.0, 1e-6)).events == planned(PureDP(1.0)).events


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (CountFacts(1, 3, False, adjacency("add-remove")), "adjacency='replace'"),
        (CountFacts(2, 6, False, adjacency("replace")), "one table of counts"),
        (CountFacts(1, 3, True, adjacency("replace")), "one table of counts"),
        (
            CountFacts(1, 2_002, False, adjacency("replace")),
            "and the table has 2,001",
        ),
        (CountFacts(1, 3, False, Adjacency("replace", "mean", "id")), "rows=1"),
    ],
)
def test_what_rows_cannot_answer_is_refused(facts, words):
    with pytest.raises(ArgumentError, match=words):
        RandomizedResponse().plan(facts, PureDP(1.0))


def test_a_budget_of_which_nothing_is_learnt_is_refused():
    with pytest.raises(BudgetError, match="larger eps"):
        planned(PureDP(1e-7))


def test_rows_of_a_person_share_its_eps():
    data = {**ROWS, "id": np.repeat(np.arange(50), 4)}
    ledger = dp.Ledger(1.0, adjacency=Adjacency("replace", 4, "id"))
    words = {"person": "id", "rows": 4, "mechanism": "randomized_response", "ledger": ledger}
    fit = dp.dp_table("~ a", data, codebook=BOOK, eps=1.0, **words)
    assert fit.release.channels[0].eps == pytest.approx(0.25)
    assert ledger.spent.amount == pytest.approx(1.0)
    assert fit._read.complete == 200
    assert fit.release.rows == 200


def test_only_a_table_takes_it():
    for verb, formula in ((dp.dp_hist, "~ b"), (dp.dp_mean, "~ b")):
        with pytest.raises((ArgumentError, dp.errors.FormulaError)):
            verb(formula, ROWS, codebook=dp.codebook(b=(0, 2)), eps=1.0,
                 mechanism="randomized_response")  # fmt: skip
