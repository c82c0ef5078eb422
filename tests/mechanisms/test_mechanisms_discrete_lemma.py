"""The lemma of Theorem 10: discrete Gaussian noise against rounded normal noise, by summation."""

import itertools
import math

import mpmath
import pytest

from dpmodels.mechanisms.add_noise import SMALLEST_SCALE
from dpmodels.privacy import ApproxDP, gaussian_multiplier
from dpmodels.privacy.calibrate import LATTICE_LOSS

DIGITS = 60
# Scales, and widths of the rounding that are smaller.
SCALES = [(1.5, 1.0), (2.0, 1.0), (4.0, 1.0), (4.0, 1.5), (9.0, 2.0), (20.0, 1.0)]


def theta(width):
    return 5 * mpmath.exp(-2 * mpmath.pi**2 * mpmath.mpf(width) ** 2)


def continuous(eps, multiplier):
    """The right side of Theorem 12; eps of either sign."""
    mu = 1 / mpmath.mpf(multiplier)
    return mpmath.ncdf(mu / 2 - eps / mu) - mpmath.exp(eps) * mpmath.ncdf(-mu / 2 - eps / mu)


def law(scale, reach=None):
    """The discrete Gaussian on integers up to a reach; what is beyond is below exp(-400)."""
    reach = math.ceil(30 * scale) if reach is None else reach
    weights = {
        x: mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * mpmath.mpf(scale) ** 2))
        for x in range(-reach, reach + 1)
    }
    total = mpmath.fsum(weights.values())
    return {x: weight / total for x, weight in weights.items()}


def discrete(eps, scale, shift):
    """The hockey-stick divergence of the discrete Gaussian from its shift."""
    probability, ratio = law(scale), mpmath.exp(eps)
    return mpmath.fsum(
        max(chance - ratio * probability.get(x - shift, 0), 0) for x, chance in probability.items()
    )


def allowed(eps, multiplier, scale, width, coordinates=1):
    """The lemma's bound."""
    lost = coordinates * theta(width)
    reduced = multiplier * mpmath.sqrt(1 - (mpmath.mpf(width) / scale) ** 2)
    return mpmath.exp(lost) * continuous(eps - 2 * lost, reduced)


@pytest.mark.parametrize(("scale", "width"), SCALES)
@pytest.mark.parametrize("shift", [1, 2, 7, 40])
def test_delta_is_at_most_that_of_the_lemma(scale, width, shift):
    with mpmath.workdps(DIGITS):
        multiplier = mpmath.mpf(scale) / shift
        for eps in (0, 0.01, 0.3, 1, 4, 15):
            exact = discrete(mpmath.mpf(eps), scale, shift)
            assert exact <= allowed(mpmath.mpf(eps), multiplier, scale, width) + mpmath.mpf("1e-55")


def test_delta_exceeds_that_of_the_continuous_law():
    """Without a smaller multiplier the bound does not hold: the lemma is about something."""
    with mpmath.workdps(DIGITS):
        assert discrete(mpmath.mpf("1.2"), 4.0, 2) > continuous(mpmath.mpf("1.2"), 2.0) * (1 + 1e-4)


@pytest.mark.parametrize("shifts", [(1, 1), (3, -1), (0, 2), (1, 1, 1), (2, -1, 1)])
@pytest.mark.parametrize("scales", [(1.5, 2.0, 1.25), (1.25, 1.25, 1.25)])
def test_delta_of_vectors_is_at_most_that_of_the_lemma(shifts, scales):
    """By brute force over all integer vectors within 9 scales: less than 1e-15 lies beyond."""
    with mpmath.workdps(30):
        used_scales = scales[: len(shifts)]
        reaches = [math.ceil(9 * scale) for scale in used_scales]
        laws = [law(scale, reach) for scale, reach in zip(used_scales, reaches, strict=True)]
        smallest, squares = (
            min(used_scales),
            sum((s / c) ** 2 for s, c in zip(shifts, used_scales, strict=True)),
        )
        tables = [
            [(float(p), float(mpmath.exp((-2 * x * s + s * s) / (2 * mpmath.mpf(c) ** 2))))
             for x, p in law.items()]
            for law, s, c in zip(laws, shifts, used_scales, strict=True)
        ]  # fmt: skip
        for eps in (0.0, 0.5, 2.0):
            total = math.fsum(
                mass * (1 - math.exp(eps) / ratio)
                for mass, ratio in _joint(tables)
                if ratio > math.exp(eps)
            )
            bound = float(allowed(mpmath.mpf(eps), squares**-0.5, smallest, 1.0, len(shifts)))
            assert 0 < total <= bound + 1e-13


def _joint(tables):
    """Probabilities of all vectors, and how much likelier they are here than at the neighbour."""
    for cells in itertools.product(*tables):
        yield math.prod(p for p, _ in cells), math.prod(q for _, q in cells)


@pytest.mark.product
@pytest.mark.parametrize(("scale", "width"), SCALES)
def test_rounded_normal_noise_has_the_discrete_law_up_to_theta(scale, width):
    """At the centre and in the tails; the integral is a sum of steps far below the width."""
    with mpmath.workdps(40):
        width, scale, step = mpmath.mpf(width), mpmath.mpf(scale), mpmath.mpf(1) / 16
        narrow = mpmath.sqrt(scale**2 - width**2)
        probability = law(float(scale))
        for y in (0, 1, round(3 * scale), round(9 * scale)):
            peak = y * narrow**2 / scale**2
            reach = 14 * width * narrow / scale
            parts, t = [], peak - reach
            while t < peak + reach:
                total = mpmath.fsum(
                    mpmath.exp(-((k - t) ** 2) / (2 * width**2))
                    for k in range(math.floor(t - 16 * width), math.ceil(t + 16 * width) + 1)
                )
                density = mpmath.exp(-(t**2) / (2 * narrow**2)) / mpmath.sqrt(2 * mpmath.pi)
                parts.append(
                    density / narrow * mpmath.exp(-((y - t) ** 2) / (2 * width**2)) / total
                )
                t += step
            ratio = probability[y] / (mpmath.fsum(parts) * step)
            assert abs(mpmath.log(ratio)) <= theta(width) + mpmath.mpf("1e-30")


@pytest.mark.parametrize("eps", [1e-4, 0.01, 1.0, 20.0, 1e3])
@pytest.mark.parametrize("delta", [1e-300, 1e-30, 1e-9, 1e-6, 1e-2, 0.3])
def test_the_calibration_leaves_what_the_lemma_needs_at_the_least_scale(eps, delta):
    """With sums of squared multipliers that exceed theirs as far as a filter allows."""
    with mpmath.workdps(400):
        remaining = mpmath.mpf(gaussian_multiplier(ApproxDP(eps, delta))) / mpmath.sqrt(1 + 2e-10)
        lost = theta(8) * 2**63
        assert allowed(eps, remaining, SMALLEST_SCALE, 8, 2**63) <= mpmath.mpf(delta)
        assert lost < mpmath.mpf("1e-500")
        assert 1 - mpmath.sqrt(1 - (8 / mpmath.mpf(SMALLEST_SCALE)) ** 2) < LATTICE_LOSS
