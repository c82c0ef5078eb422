import mpmath
import pytest

from dpmodels.noise.blocks import Envelope, fit_envelope, thresholds

SCALES = [2.0**-7, 0.3, 1.0, 10.0, 11.4, 2.0**20, 1e13, 2.0**56]


def _value(rational):
    return mpmath.mpf(rational.numerator) / rational.denominator


def _cumulative(envelope):
    law, width = envelope.law, 1 << envelope.shift
    heights = [
        mpmath.exp(-_value(law.exponent(block * width))) for block in range(envelope.blocks + 1)
    ]
    tail = heights.pop() / -mpmath.expm1(-_value(law.slope(envelope.cut)))
    masses = [width * height for height in heights]
    total = mpmath.fsum([*masses, tail])
    return [mpmath.fsum(masses[: index + 1]) / total for index in range(len(masses))]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("family", ["gaussian_law", "laplace_law"])
@pytest.mark.parametrize("bits", [64, 224])
def test_thresholds_enclose_the_exact_masses(request, family, scale, bits):
    envelope = fit_envelope(request.getfixturevalue(family)(scale))
    with mpmath.workprec(1000):
        exact = _cumulative(envelope)
        for (low, high), value in zip(thresholds(envelope, bits), exact, strict=True):
            assert mpmath.mpf(low) <= mpmath.ldexp(value, bits) <= mpmath.mpf(high)
            assert high - low <= 2


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("family", ["gaussian_law", "laplace_law"])
def test_the_fit_keeps_what_the_error_bound_assumes(request, family, scale):
    envelope = fit_envelope(request.getfixturevalue(family)(scale))
    law, width = envelope.law, 1 << envelope.shift
    assert envelope.shift == 0 or law.exponent(8 * width) <= 1
    assert law.exponent(envelope.cut) >= 32
    assert envelope.blocks == 1 or law.exponent(envelope.cut - width) < 32
    assert envelope.shift <= 55
    assert envelope.cut < 2**62
    assert envelope.blocks <= 600
    # A width of 1 has no offset, hence no drop.
    assert envelope.shift == 0 or envelope.drop(envelope.blocks - 1, width) < 2


def test_the_limit_scales_fit_the_words(gaussian_law):
    envelope = fit_envelope(gaussian_law(2.0**58))
    assert envelope.shift == 55
    assert envelope.cut < 2**62


def test_drop_and_cut(laplace_law):
    envelope = Envelope(laplace_law(100.0), 3, 5)
    assert envelope.cut == 40
    assert float(envelope.drop(2, 7)) == pytest.approx(0.07)
