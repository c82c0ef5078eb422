"""Numbers as strings that claim no more than is known.

Fixed notation from 1e-4 to 1e6, powers of ten outside; ``-`` for what does not
exist, ``Inf`` for what has no end.
"""

import math
from collections.abc import Iterable
from decimal import Decimal

from dpmodels.errors import ArgumentError

_MOST = 6  # significant digits printed however small the noise
_FULL = 17  # significant decimal digits of a float64


def signif(value: float, digits: int = 4) -> str:
    """``value`` to ``digits`` significant digits.

    Examples
    --------
    >>> signif(0.41268), signif(0.163), signif(123456.7), signif(3.2e-7)
    ('0.4127', '0.1630', '123500', '3.200e-07')
    >>> signif(float("nan")), signif(float("-inf")), signif(0)
    ('-', '-Inf', '0')
    """
    if not 1 <= digits <= _FULL:
        raise ArgumentError(f"digits = {digits}: write a number of digits from 1 to {_FULL}")
    if not math.isfinite(value) or value == 0:
        return _special(value)
    rounded = f"{value:.{digits - 1}e}"
    return f"{Decimal(rounded):f}" if _is_fixed(float(rounded)) else rounded


def signif_uncertain(value: float, sd: float, digits: int = 2) -> str:
    """``value`` to the digits that noise of standard deviation ``sd`` leaves.

    The last digit printed stands where the last of the ``digits`` of ``sd``
    stands, so a value lost in its noise prints as a zero, never as a string of digits.

    Examples
    --------
    >>> signif_uncertain(0.123456, 0.0123), signif_uncertain(12345.6, 320)
    ('0.123', '12350')
    >>> signif_uncertain(29336126827944404.0, 3e15), signif_uncertain(0.4, 57.0)
    ('2.93e+16', '0')
    """
    if sd < 0:
        raise ArgumentError("sd is negative: write a standard deviation, 0 or more")
    if math.isnan(sd) or math.isinf(sd) or not math.isfinite(value):
        return _special(math.nan if math.isfinite(value) else value)
    if sd == 0 or value == 0:
        return signif(value)
    place = max(_exponent(sd, digits) - digits + 1, _exponent(value, _MOST) - _MOST + 1)
    return _at_place(value, place, fixed=None)


def interval(low: float, high: float) -> str:
    """``[low, high]`` with equal decimals, enough for two digits of the width.

    Examples
    --------
    >>> interval(0.41234, 0.43119), interval(-12.3, 45.67), interval(0.5, math.inf)
    ('[0.412, 0.431]', '[-12, 46]', '[0.5000, Inf]')
    """
    if math.isnan(low) or math.isnan(high):
        return "-"
    if low > high:
        raise ArgumentError("the lower end lies above the upper end: write the lower end first")
    largest = max(abs(low), abs(high))
    spread = high - low
    if spread == 0 or not math.isfinite(spread):
        return f"[{signif(low)}, {signif(high)}]"
    place = max(_exponent(spread, 2) - 1, _exponent(largest, _FULL) - _FULL + 1)
    fixed = _is_fixed(largest)
    ends = [_at_place(end, place, fixed=fixed, signed=True) for end in (low, high)]
    return f"[{ends[0]}, {ends[1]}]"


def count(value: float) -> str:
    """Print a number of things, to the nearest one, with thousands marked.

    Examples
    --------
    >>> count(20190), count(-3.4), count(2.9e16), count(float("nan"))
    ('20,190', '-3', '2.900e+16', '-')
    """
    if not math.isfinite(value):
        return _special(value)
    return f"{round(value):,}" if abs(value) < 1e9 else signif(value)


def uncertain(values: Iterable[float], sds: Iterable[float]) -> tuple[str, ...]:
    """Print numbers to the digits their noise leaves, ``-`` for nan."""
    return tuple(
        "-" if math.isnan(value) else signif_uncertain(value, sd)
        for value, sd in zip(map(float, values), map(float, sds), strict=True)
    )


def hundredth(value: float) -> float:
    """Return the power of ten that leaves a number four digits as its noise.

    Examples
    --------
    >>> hundredth(512.0)
    1.0
    """
    return float(10.0 ** math.floor(math.log10(value)) / 100) if value > 0 else 0.0


def _special(value: float) -> str:
    """nan, the infinities and zero."""
    if math.isnan(value):
        return "-"
    return "0" if value == 0 else ("Inf" if value > 0 else "-Inf")


def _is_fixed(value: float) -> bool:
    return 1e-4 <= abs(value) <= 1e6


def _exponent(value: float, digits: int) -> int:
    """Power of ten of the first digit once ``value`` is rounded to ``digits``."""
    return int(f"{value:.{digits - 1}e}".partition("e")[2])


def _at_place(value: float, place: int, *, fixed: bool | None, signed: bool = False) -> str:
    """``value`` to a multiple of 10**place, ties to even; ``signed`` keeps the sign of -0."""
    rounded = Decimal(value).quantize(Decimal(1).scaleb(place))
    if rounded == 0:
        sign = "-" if signed and value < 0 else ""
        return sign + (f"{0:.{-place}f}" if -5 <= place < 0 else "0")
    if fixed if fixed is not None else _is_fixed(float(rounded)):
        return f"{rounded:f}"
    power = rounded.adjusted()
    return f"{rounded.scaleb(-power):.{max(power - place, 0)}f}e{power:+03d}"
