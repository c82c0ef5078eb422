"""What has no information, no protection or is not a device is refused, with what to write."""

import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError, CodebookError

YES_NO = ["no", "yes"]


@pytest.mark.parametrize(
    ("levels", "words", "kind", "message"),
    [
        (YES_NO, {"lie": 0.5}, ArgumentError, "not identified"),
        (YES_NO, {"lie": 0.7}, ArgumentError, "not identified"),
        (["a", "b", "c"], {"cards": (2, 3)}, ArgumentError, "not identified"),
        (YES_NO, {"truth": 0}, ArgumentError, "not identified"),
        (YES_NO, {"dice": (3, 6)}, ArgumentError, "not identified"),
        (YES_NO, {"eps": 0}, BudgetError, "at least 1e-06"),
        (YES_NO, {"eps": -1.0}, BudgetError, "at least 1e-06"),
        (YES_NO, {"eps": 20.5}, BudgetError, "at most 20"),
        (YES_NO, {"eps": float("nan")}, BudgetError, "eps=1.0"),
        (YES_NO, {"eps": "1"}, BudgetError, "eps=1.0"),
        (YES_NO, {"lie": 0}, BudgetError, "eps is infinite"),
        (YES_NO, {"lie": "1/10000000000"}, BudgetError, "above 20"),
        (YES_NO, {"truth": 0.6, "unrelated": 0}, BudgetError, "eps is infinite"),
        (YES_NO, {"forced": {"no": 0, "yes": 0.3}}, BudgetError, "eps is infinite"),
        (YES_NO, {"forced": {"yes": 0.3}}, ArgumentError, "each level"),
        (YES_NO, {"forced": {"no": 0.5, "yes": 0.5}}, ArgumentError, "add up to 1"),
        (YES_NO, {"forced": 0.3}, ArgumentError, "each level"),
        (YES_NO, {"dice": (0, 6)}, ArgumentError, "from 1 to 5"),
        (YES_NO, {"dice": (6, 6)}, ArgumentError, "from 1 to 5"),
        (YES_NO, {"dice": (1.0, 6)}, ArgumentError, "whole number"),
        (YES_NO, {"dice": 6}, ArgumentError, r"dice=\(1, 6\)"),
        (YES_NO, {"cards": (1, 2, 3)}, ArgumentError, r"cards=\(1, 6\)"),
        (YES_NO, {"lie": "1/0"}, ArgumentError, "probability"),
        (YES_NO, {"lie": "often"}, ArgumentError, "probability"),
        (YES_NO, {"lie": -0.1}, ArgumentError, "probability"),
        (YES_NO, {"lie": True}, ArgumentError, "probability"),
        (["a", "b", "c"], {"truth": 0.5, "unrelated": 0.5}, ArgumentError, "two levels"),
        (YES_NO, {"eps": 1.0, "lie": 0.2}, ArgumentError, "one of eps="),
        (YES_NO, {"eps": 1.0, "unrelated": 0.2}, ArgumentError, "one of eps="),
        (YES_NO, {}, ArgumentError, "one of eps="),
        ("yes", {"eps": 1.0}, ArgumentError, "the possible answers"),
        (["yes"], {"eps": 1.0}, CodebookError, "two"),
        (["yes", "yes"], {"eps": 1.0}, CodebookError, "yes"),
    ],
)
def test_a_device_that_is_none_is_refused(levels, words, kind, message):
    with pytest.raises(kind, match=message):
        dp.randomized_response(levels, **words)


@pytest.mark.parametrize(
    "words",
    [
        {"lie": "1e-30"},
        {"forced": {"no": "1e-40", "yes": "1/6"}},
        {"lie": "0.4999999999999999999999999"},
        {"truth": "1e-9"},
        {"eps": 1e-300},
    ],
)
def test_probabilities_that_doubles_do_not_hold_are_refused_by_their_exact_eps(words):
    with pytest.raises(
        BudgetError, match=r"gives no protection|almost no information|at least 1e-06"
    ):
        dp.randomized_response(["no", "yes"], **words)


def test_a_power_of_ten_that_would_fill_the_memory_is_no_probability():
    with pytest.raises(ArgumentError, match="expected a probability"):
        dp.randomized_response(["no", "yes"], lie="1e-999999999")
