"""What a device says of itself, and what respondents do with it."""

import math
from fractions import Fraction

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.audit.neighbours import Pair
from dpmodels.errors import ArgumentError

mpl.use("Agg")
YES_NO = ["no", "yes"]
DEVICES = {
    "Warner": (dp.randomized_response(YES_NO, lie="1/4"), math.log(3)),
    "k-ary": (dp.randomized_response(["a", "b", "c"], eps=1.5), 1.5),
    "dice": (dp.randomized_response(YES_NO, dice=(1, 6)), math.log(5)),
    "two dice": (dp.randomized_response(YES_NO, dice=(5, 36)), math.log(31 / 5)),
    "cards": (dp.randomized_response(["a", "b", "c"], cards=(26, 52)), math.log(2)),
    "forced": (
        dp.randomized_response(YES_NO, forced={"no": "1/6", "yes": "1/12"}),
        math.log1p(0.75 / (1 / 12)),
    ),
    "truth": (dp.randomized_response(YES_NO, truth=0.5), math.log(3)),
    "unrelated": (
        dp.randomized_response(YES_NO, truth=0.7, unrelated=0.25),
        max(
            math.log((0.7 + 0.3 * 0.25) / (0.3 * 0.25)),
            math.log((0.7 + 0.3 * 0.75) / (0.3 * 0.75)),
        ),
    ),
}


@pytest.mark.parametrize("name", DEVICES)
def test_eps_is_the_largest_ratio_within_an_answer(name):
    device, eps = DEVICES[name]
    values = device.matrix.to_numpy()
    assert values.sum(axis=0) == pytest.approx(1.0)
    ratios = values.max(axis=1) / values.min(axis=1)
    assert device.eps == pytest.approx(eps)
    assert math.log(ratios.max()) == pytest.approx(device.eps)
    assert device.lie == pytest.approx(1 - np.diagonal(values).min())


def test_probabilities_are_the_fractions_that_their_digits_say():
    assert DEVICES["dice"][0].share == Fraction(2, 3)
    assert dp.randomized_response(YES_NO, lie=0.1).share == Fraction(4, 5)
    assert dp.randomized_response(YES_NO, eps=0.1).stated == Fraction(0.1)


@pytest.mark.parametrize("name", ["k-ary", "forced"])
def test_answers_follow_the_matrix(name):
    # Of at most 9 cells each is beyond 6 standard deviations at a rate of 2e-9.
    device, rows = DEVICES[name][0], 20_000
    for truth in device.levels:
        with dp.simulation(seed=5):
            answers = pd.Series(device.randomize([truth] * rows))
        for level, chance in device.matrix[truth].items():
            sd = math.sqrt(chance * (1 - chance) / rows)
            assert abs((answers == level).mean() - chance) < 6 * sd


def test_a_value_that_is_no_level_is_answered_by_the_die_alone():
    """Within eps of every level: that somebody has no answer is as private as the answer."""
    device = DEVICES["forced"][0]
    with dp.simulation(seed=2):
        answers = device.randomize([None, np.nan, "perhaps", 3, ["yes"]] * 4_000)
    # The die says no twice as often as yes; beyond 6 standard deviations at a rate of 2e-9.
    assert set(answers) == set(YES_NO)
    assert abs((answers == "no").mean() - 2 / 3) < 6 * math.sqrt(2 / 9 / 20_000)
    values, law = device.matrix.to_numpy(), np.array([2 / 3, 1 / 3])
    assert np.abs(np.log(values / law[:, None])).max() <= device.eps


def test_answers_come_back_as_what_was_given():
    device = DEVICES["Warner"][0]
    truths = pd.Series(["no", "yes"], index=[7, 3], name="drug")
    answers = device.randomize(truths)
    assert (answers.index == truths.index).all()
    assert answers.name == "drug"
    assert device.randomize("no") in YES_NO
    assert device.randomize(("no", "yes", "no")).shape == (3,)
    truth = dp.randomized_response([False, True], lie=0.25)
    assert truth.randomize(True) in (False, True)


def test_a_table_is_no_column_of_truths():
    device = DEVICES["Warner"][0]
    for table in (pd.DataFrame({"drug": ["no"]}), {"drug": ["no"]}):
        with pytest.raises(ArgumentError, match="one column"):
            device.randomize(table)


def test_no_answer_comes_twice():
    """Outside a simulation: 200 fair answers agree at a rate below 1e-30."""
    device = dp.randomized_response(YES_NO, lie="49/100")
    assert (device.randomize(["no"] * 200) != device.randomize(["no"] * 200)).any()


@pytest.mark.product
@pytest.mark.parametrize("claimed", [1.0, 0.5])
def test_the_audit_lets_a_device_pass_at_its_eps_and_convicts_it_at_half(claimed):
    device = dp.randomized_response([0, 1], eps=1.0)
    pair = Pair(np.array([1]), np.array([0]))
    # A false alarm: at a rate of 1e-6.
    with dp.simulation(seed=4):
        result = dp.audit(
            lambda rows: np.asarray(device.randomize(rows), dtype=float),
            pair,
            eps=claimed,
            runs=3_000,
            confidence=1 - 1e-6,
        )
    assert result.verdict == ("consistent" if claimed == 1.0 else "VIOLATION")


def test_a_device_prints_as_a_small_table():
    text = repr(DEVICES["dice"][0])
    assert "dice, lie in 1 of 6" in text
    assert "eps = 1.609" in text
    assert "eps = 1 for each" in str(dp.randomized_response(["no", "yes"], eps=1).summary())
    assert "0.8333" in text
    assert "<table" in DEVICES["dice"][0]._repr_html_()


@pytest.mark.expensive
def test_the_curve_has_the_device_on_it():
    device = DEVICES["Warner"][0]
    axes = device.plot()
    curve, _, marked = axes.lines
    assert marked.get_xydata().tolist() == [[0.25, pytest.approx(math.log(3))]]
    lies, loss = curve.get_data()
    assert np.interp(0.25, lies, loss) == pytest.approx(math.log(3), abs=1e-3)
    mpl.pyplot.close(axes.figure)


@pytest.mark.parametrize(
    "values", [np.array([["no"], ["yes"]]), np.array("no"), b"no", pd.DataFrame({"a": ["no"]})]
)
def test_values_of_other_than_one_axis_are_refused_and_not_answered_by_the_die(values):
    with pytest.raises(ArgumentError, match="one column of true values"):
        dp.randomized_response(["no", "yes"], eps=1.0).randomize(values)
