"""What ``dp_select`` refuses before anything is charged, and budgets that it takes."""

import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError
from dpmodels.privacy import total_eps

BOOK = dp.codebook(x=(0, 1), z=(0, 1), y=(0, 1), t=["a", "b", "c"])
ROWS = {"x": [0.0, 1.0] * 50, "z": [0.0, 0.0, 1.0, 1.0] * 25, "y": [0.0, 1.0] * 50}
ROWS["t"] = ["a", "b", "b", "c"] * 25


@pytest.mark.guarding
@pytest.mark.parametrize("formula", ["~ t", "y ~ x + z"])
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"threshold": 1e308}, "from 0 to"),
        ({"threshold": -1e308}, "from 0 to"),
        ({"threshold": -1}, "from 0 to"),
        ({"threshold": 1, "values": 0.95}, "from 0.01 to 0"),
        ({"k": 10**5000}, "whole number from 1"),
    ],
    ids=["far above", "far below", "below", "share", "k"],
)
def test_numbers_that_no_score_reaches_are_refused_before_the_charge(formula, words, message):
    ledger = dp.Ledger(eps=5.0)
    with pytest.raises(ArgumentError, match=message):
        dp.dp_select(formula, ROWS, codebook=BOOK, eps=1.0, ledger=ledger, **words)
    assert ledger.spent.amount == 0


def test_a_correlation_beyond_1_is_no_threshold_and_a_z_is():
    words = {"codebook": BOOK, "eps": 1.0, "threshold": 3.0}
    with pytest.raises(ArgumentError, match=r"write .* 3 with score='z'"):
        dp.dp_select("y ~ x + z", ROWS, **words)
    assert dp.dp_select("y ~ x + z", ROWS, score="z", **words).threshold == 3.0


def test_columns_leave_the_ranking_a_part_of_the_budget():
    words = {"codebook": BOOK, "eps": 1.0}
    assert dp.dp_select("y ~ x + z", ROWS, values=0.65, **words).share == 0.65
    with pytest.raises(ArgumentError, match=r"values=0\.8: expected a number from 0\.01 to 0.65"):
        dp.dp_select("y ~ x + z", ROWS, values=0.8, **words)


@pytest.mark.parametrize(("eps", "delta"), [(0.1, 0.01), (0.5, 0.1), (1.0, 0.3), (1.0, 1e-6)])
def test_a_large_delta_is_paid_with_and_not_exceeded(eps, delta):
    """Gaussian noise of a share has a delta alone there, and no eps above 0 at the whole delta."""
    fit = dp.dp_select("y ~ x + z", ROWS, codebook=BOOK, eps=eps, delta=delta, k=2)
    assert 0.9 * eps < total_eps(fit.release.events, delta) <= eps


@pytest.mark.parametrize("rows", [4, "mean", None])
def test_a_z_counts_the_rows_of_a_person_once(rows):
    """Each row stands four times: z is that of the rows without their copies."""
    alike = {name: [cell for cell in row for _ in range(4)] for name, row in ROWS.items()}
    words = {"codebook": BOOK, "score": "z", "eps": 1e6}
    if rows is None:
        fit = dp.dp_select("y ~ x + z", ROWS, **words)
    else:
        alike["id"] = [i // 4 for i in range(400)]
        fit = dp.dp_select("y ~ x + z", alike, person="id", rows=rows, **words)
        none = dp.dp_select(
            "y ~ x + z", alike, person="id", rows=rows, **{**words, "threshold": 11.0}
        )
        assert none.selected == ()
    assert fit.selected == ("x",)
    assert fit.values["x"] == pytest.approx(10, abs=0.01)
