"""Devices held against formulas and codebooks."""

import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, CodebookError, FormulaError
from dpmodels.formula.sides import grouping, parse_sides
from dpmodels.surveys.answers import channels_of, checked_devices, with_levels

FORCED = dp.randomized_response(["yes", "no"], forced={"yes": "1/6", "no": "1/3"})
BOOK = dp.codebook(drug=["no", "yes"], sex=["F", "M"])


def asked(formula):
    pair = parse_sides(formula, BOOK)
    return channels_of(formula, tuple(map(grouping, pair.described)), BOOK, {"drug": FORCED})


def test_the_law_is_in_the_order_of_the_codebooks_levels():
    channel, plain = asked("~ drug + sex")
    assert channel.law == pytest.approx((2 / 3, 1 / 3))
    assert channel.eps == FORCED.eps
    assert (plain.truth, plain.how, plain.eps) == (1.0, "", 0.0)


def test_levels_that_only_the_device_knows_are_declared():
    assert with_levels(dp.codebook(sex=["F", "M"]), {"drug": FORCED})["drug"].levels == (
        "yes",
        "no",
    )


@pytest.mark.parametrize("second", [["no", "never"], ["no", "yes", "often"], (0, 1)])
def test_levels_that_are_not_the_devices_are_refused(second):
    with pytest.raises(CodebookError, match="'drug' has other levels in the codebook"):
        with_levels(dp.codebook(drug=second), {"drug": FORCED})


@pytest.mark.parametrize(
    ("formula", "message"),
    [("~ sex", "no randomised question"), ("~ (drug == 'yes') + sex", "write the variable alone")],
)
def test_a_table_of_no_plain_randomised_question_is_refused(formula, message):
    with pytest.raises(FormulaError, match=message):
        asked(formula)


@pytest.mark.parametrize("inputs", [None, {}, FORCED, {"drug": 1.0}, {3: FORCED}])
def test_what_is_no_device_is_refused(inputs):
    with pytest.raises(ArgumentError, match="randomized_response"):
        checked_devices(inputs)
