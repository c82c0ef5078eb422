"""Arguments as users write them: what is taken, what is refused, and what the refusal says."""

from fractions import Fraction

import numpy as np
import pytest

from dpmodels.arguments import between, boolean, finite, fraction, integer, option, real
from dpmodels.errors import ArgumentError

NO_NUMBERS = [True, np.True_, "1", None, [1], float("nan"), float("inf"), 10**400, 1j]


@pytest.mark.parametrize("inputs", [1, 1.0, np.int64(1), np.float32(1), Fraction(1)])
def test_a_number_becomes_a_plain_float(inputs):
    for selected in (real(inputs), finite("x", inputs), between("x", inputs, 1, 1)):
        assert selected == 1
        assert type(selected) is float


@pytest.mark.parametrize("inputs", NO_NUMBERS)
def test_what_is_no_finite_number_is_refused(inputs):
    assert np.isnan(real(inputs))
    for check in (finite, fraction):
        with pytest.raises(ArgumentError, match=r"^x=.*: expected a .*number"):
            check("x", inputs)
    with pytest.raises(ArgumentError, match=r"expected a number from -1 to 1e\+06; write x=2"):
        between("x", inputs, -1, 1e6, "; write x=2")


@pytest.mark.parametrize("inputs", [0, 1, 0.0, 1.0, -0.1])
def test_a_share_is_neither_nothing_nor_all(inputs):
    assert fraction("x", 0.5) == 0.5
    with pytest.raises(ArgumentError, match=r"between 0 and 1, such as 0\.2"):
        fraction("x", inputs, ", such as 0.2")


@pytest.mark.parametrize("inputs", [2, np.int64(2), np.uint8(2)])
def test_a_whole_number_becomes_a_plain_int(inputs):
    assert integer("x", inputs, 2, 2) == 2
    assert type(integer("x", inputs, 0)) is int


@pytest.mark.parametrize("inputs", [*NO_NUMBERS[:-2], 0, 2001, 1.0, -5])
def test_what_is_no_whole_number_within_the_limits_is_refused(inputs):
    with pytest.raises(ArgumentError, match=r"expected a whole number from 1 to 2,000$"):
        integer("x", inputs, 1, 2000)


def test_a_whole_number_without_a_limit_may_be_long():
    assert integer("x", 10**400, 0) == 10**400
    with pytest.raises(ArgumentError, match=r"expected a whole number from 0$"):
        integer("x", -1, 0)


@pytest.mark.parametrize("sign", [1, -1], ids=["above", "below"])
def test_a_number_too_long_to_be_printed_is_refused_by_its_size(sign):
    inputs = sign * 10**5000
    for check in (finite, fraction):
        with pytest.raises(ArgumentError, match=r"^x=-?2\*\*16609 or beyond: expected"):
            check("x", inputs)


@pytest.mark.parametrize("inputs", [0, 1, "True", None, np.True_])
def test_a_truth_value_is_no_number(inputs):
    assert boolean("x", False) is False
    with pytest.raises(ArgumentError, match=r"expected True or False"):
        boolean("x", inputs)


@pytest.mark.parametrize("inputs", ["C", 1, ["a"], np.array(["a", "b"]), {"a": 1}])
def test_a_word_is_one_of_those_listed(inputs):
    assert [option("x", value, ("a", "b", None)) for value in ("a", None)] == ["a", None]
    with pytest.raises(ArgumentError, match=r'expected "a", "b" or None$'):
        option("x", inputs, ("a", "b", None))


def test_a_refusal_names_the_type_of_what_could_hold_rows():
    for check in (finite, fraction, boolean):
        with pytest.raises(ArgumentError, match=r"^x=list:"):
            check("x", [17.25])
