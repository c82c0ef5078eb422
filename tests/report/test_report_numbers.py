import math
import re
from decimal import Decimal

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dpmodels.errors import ArgumentError
from dpmodels.report import count, interval, signif, signif_uncertain

examples = settings(deadline=None, database=None, max_examples=200)
finite = st.floats(allow_nan=False, allow_infinity=False)
everyday = st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) >= 1e-4)
sds = st.floats(min_value=1e-300, max_value=1e300)


def number(text: str) -> float:
    return float(text.replace("Inf", "inf"))


def power(value: float) -> int:
    return Decimal(value).adjusted()


@examples
@given(finite, st.integers(1, 4))
def test_signif_is_right_to_its_digits_and_short(value, digits):
    text = signif(value, digits)
    assert len(text) <= 12
    if value != 0:
        error = abs(Decimal(text) - Decimal(value))
        assert error <= Decimal(10) ** (power(value) - digits + 1) / 2


@examples
@given(everyday, st.integers(1, 17))
def test_signif_stays_fixed_in_the_everyday_range(value, digits):
    assert "e" not in signif(value, digits)


@examples
@given(finite, finite, st.integers(1, 17))
def test_signif_is_monotone(a, b, digits):
    low, high = sorted((a, b))
    assert number(signif(low, digits)) <= number(signif(high, digits))


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.41268, 4, "0.4127"),
        (0.163, 4, "0.1630"),
        (0.0001, 3, "0.000100"),
        (0.00009999, 4, "9.999e-05"),
        (0.000099999, 4, "0.0001000"),
        (999_999.0, 4, "1000000"),
        (1e6, 4, "1000000"),
        (1.2e6, 2, "1200000"),
        (1.2e9, 2, "1.2e+09"),
        (-123456.7, 4, "-123500"),
        (29336126827944404.0, 4, "2.934e+16"),
        (0.0, 4, "0"),
        (-0.0, 4, "0"),
        (math.nan, 4, "-"),
        (math.inf, 4, "Inf"),
        (-math.inf, 4, "-Inf"),
    ],
)
def test_signif_examples(value, digits, text):
    assert signif(value, digits) == text


@examples
@given(finite, sds)
def test_uncertain_numbers_err_by_less_than_their_noise(value, sd):
    text = signif_uncertain(value, sd)
    assert len(text) <= 13
    place = max(Decimal(10) ** (power(sd) - 1), Decimal(10) ** (power(value) - 5))
    assert abs(Decimal(text) - Decimal(value)) <= 5 * place
    digits = re.sub(r"e.*|\D", "", text).strip("0")
    assert len(digits) <= 6


@pytest.mark.product
@examples
@given(finite, sds)
def test_a_value_under_its_noise_shows_few_digits(value, sd):
    assume(abs(value) < sd)
    digits = re.sub(r"e.*|\D", "", signif_uncertain(value, sd)).strip("0")
    assert len(digits) <= 3


@examples
@given(finite, finite, sds)
def test_uncertain_numbers_are_monotone(a, b, sd):
    low, high = sorted((a, b))
    assert number(signif_uncertain(low, sd)) <= number(signif_uncertain(high, sd))


@pytest.mark.parametrize(
    ("value", "sd", "text"),
    [
        (0.123456, 0.0123, "0.123"),
        (0.123456, 0.00996, "0.123"),
        (0.123456, 0.00994, "0.1235"),
        (12345.6, 320.0, "12350"),
        (29336126827944404.0, 3e15, "2.93e+16"),
        (29336126827944404.0, 9e18, "0"),
        (0.4, 57.0, "0"),
        (0.00003, 0.0052, "0.0000"),
        (1.7e308, 1e308, "1.7e+308"),
        (1 / 3, 1e-12, "0.333333"),
        (1 / 3, 0.0, "0.3333"),
        (1 / 3, math.nan, "-"),
        (1 / 3, math.inf, "-"),
        (math.inf, 1.0, "Inf"),
        (math.nan, 1.0, "-"),
    ],
)
def test_uncertain_examples(value, sd, text):
    assert signif_uncertain(value, sd) == text


@examples
@given(finite, finite)
def test_interval_ends_differ_where_the_numbers_do(a, b):
    low, high = sorted((a, b))
    left, right = interval(low, high)[1:-1].split(", ")
    assert (left == right) == (low == high)
    assert number(left) <= number(right)
    if math.isfinite(high - low) and low < high:
        slack = (Decimal(high) - Decimal(low)) / 10
        assert abs(Decimal(left) - Decimal(low)) <= slack
        assert abs(Decimal(right) - Decimal(high)) <= slack


@examples
@given(everyday, everyday)
def test_interval_ends_have_equal_decimals_in_the_everyday_range(a, b):
    left, right = interval(min(a, b), max(a, b))[1:-1].split(", ")
    decimals = {len(end.partition(".")[2]) for end in (left, right)}
    assert len(decimals) == 1 or a == b


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.41234, 0.43119, "[0.412, 0.431]"),
        (0.41181, 0.41362, "[0.4118, 0.4136]"),
        (-12.3, 45.67, "[-12, 46]"),
        (-0.00003, 0.5, "[-0.00, 0.50]"),
        (0.0, 0.25, "[0.00, 0.25]"),
        (9.5e5, 1.2e6, "[950000, 1200000]"),
        (9.5e6, 1.2e7, "[9500000, 12000000]"),
        (9.5e8, 1.2e9, "[9.5e+08, 1.20e+09]"),
        (0.5, 0.5, "[0.5000, 0.5000]"),
        (0.5, math.inf, "[0.5000, Inf]"),
        (-math.inf, math.inf, "[-Inf, Inf]"),
        (math.nan, 1.0, "-"),
        (-1.7e308, 1.7e308, "[-1.700e+308, 1.700e+308]"),
    ],
)
def test_interval_examples(low, high, text):
    assert interval(low, high) == text


def test_counts():
    assert [count(x) for x in (20190, 0, -3.4, -0.2, 999.6)] == ["20,190", "0", "-3", "0", "1,000"]
    assert count(29336126827944404.0) == "2.934e+16"
    assert count(math.nan) == "-"
    assert count(-math.inf) == "-Inf"


def test_nonsense_is_refused():
    with pytest.raises(ArgumentError, match="digits = 0"):
        signif(1.0, 0)
    with pytest.raises(ArgumentError, match="digits = 18"):
        signif(1.0, 18)
    with pytest.raises(ArgumentError, match="negative"):
        signif_uncertain(1.0, -1.0)
    with pytest.raises(ArgumentError, match="lower end first"):
        interval(2.0, 1.0)
