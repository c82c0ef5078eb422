import mpmath
import numpy as np
import pytest

from dpmodels.errors import ArgumentError
from dpmodels.noise import blocks, seeded
from dpmodels.noise.blocks import (
    MARGIN,
    Envelope,
    acceptance,
    draw,
    fit_envelope,
    tabulate,
    thresholds,
)
from dpmodels.noise.uniform import exp_enclosure

# Every comparison is decided by the exact routine.
EXACT = 1.0
SCALES = [2.0**-7, 0.3, 1.0, 10.0, 11.4, 1e3, 2.0**20, 2.0**43, 2.0**56]


class Script:
    """Words chosen beforehand, then a seeded stream."""

    def __init__(self, words):
        self.left = words
        self.rest = seeded(0)

    def words(self, count):
        selected, self.left = self.left[:count], self.left[count:]
        return np.concatenate([selected, self.rest.words(count - selected.size)])


@pytest.fixture(params=["gaussian_law", "laplace_law"])
def law(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("scale", SCALES)
def test_fast_and_exact_decisions_give_the_same_draws(law, scale):
    table = tabulate(fit_envelope(law(scale)))
    fast = draw(table, 1500, seeded(31))
    exact = draw(table, 1500, seeded(31), margin=EXACT)
    assert (fast == exact).all()


def test_a_margin_in_between_gives_the_same_draws(law, monkeypatch):
    table = tabulate(fit_envelope(law(1e6)))
    recorded = []
    monkeypatch.setattr(blocks, "exact_proposal", _counted(blocks.exact_proposal, recorded))
    fast = draw(table, 20_000, seeded(32))
    assert len(recorded) < 5
    assert (fast == draw(table, 20_000, seeded(32), margin=0.01)).all()
    assert 100 < len(recorded) < 2000
    recorded.clear()
    draw(table, 100, seeded(32), margin=EXACT)
    assert len(recorded) >= 100


def _counted(function, recorded):
    def counted(*arguments):
        recorded.append(arguments)
        return function(*arguments)

    return counted


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0, 10.0])
def test_fast_draws_follow_the_law(assert_follows, law, scale):
    draws = draw(tabulate(fit_envelope(law(scale))), 1_000_000, seeded(33))
    assert_follows(draws, law(scale), range(-int(40 * scale) - 2, int(40 * scale) + 3))


@pytest.mark.product
@pytest.mark.parametrize(("scale", "size"), [(0.3, 16_000), (1.0, 6000), (3.0, 6000), (10.0, 6000)])
def test_exact_draws_follow_the_law(assert_follows, law, scale, size):
    draws = draw(tabulate(fit_envelope(law(scale))), size, seeded(34), margin=EXACT)
    assert_follows(draws, law(scale), range(-int(40 * scale) - 2, int(40 * scale) + 3))


@pytest.mark.parametrize("margin", [MARGIN, EXACT])
def test_wide_blocks_at_a_small_scale_follow_the_law(assert_follows, law, margin):
    envelope = Envelope(law(10.0), 2, 30)
    size = 300_000 if margin == MARGIN else 6000
    draws = draw(tabulate(envelope), size, seeded(35), margin=margin)
    assert_follows(draws, law(10.0), range(-402, 403))


@pytest.mark.expensive
@pytest.mark.parametrize(("shift", "count"), [(1, 10), (0, 10), (0, 1), (2, 1)])
def test_an_early_tail_does_not_change_the_law(assert_follows, law, shift, count):
    envelope = Envelope(law(10.0), shift, count)
    draws = draw(tabulate(envelope), 4000, seeded(36))
    assert_follows(draws, law(10.0), range(-402, 403))


@pytest.mark.parametrize("step", [-1, 1])
def test_a_word_that_equals_a_threshold_is_decided_by_the_next(gaussian_law, step):
    envelope = fit_envelope(gaussian_law(1.0))
    with mpmath.workprec(400):
        weights = [mpmath.exp(-mpmath.mpf(m * m) / 2) for m in range(envelope.cut + 1)]
        tail = weights.pop() / (1 - mpmath.exp(-envelope.cut))
        threshold = (weights[0] + weights[1]) / mpmath.fsum([*weights, tail])
        bits = int(mpmath.floor(mpmath.ldexp(threshold, 96)))
    size = 1
    count = int(size * 1.08) + 16
    halves = np.zeros(2 * count, dtype=np.uint32)
    halves[0] = bits >> 64
    tie_breaker = (bits & (2**64 - 1)) + step
    words = np.concatenate(
        [np.zeros(count, np.uint64), halves.view(np.uint64), np.array([tie_breaker], np.uint64)]
    )
    entropy = Script(words)
    draws = draw(tabulate(envelope), size, entropy)
    assert entropy.left.size == 0
    assert draws.tolist() == [1 if step < 0 else 2]


@pytest.mark.parametrize("scale", [11.4, 1e3, 2.0**20, 1e13, 2.0**43, 2.0**56])
def test_the_computed_probability_keeps_far_inside_the_margin(law, scale):
    envelope = fit_envelope(law(scale))
    table = tabulate(envelope)
    words = seeded(37).words(600)
    block = (words >> np.uint64(1)).astype(np.int64) % envelope.blocks
    offset = seeded(38).words(600).view(np.int64) & ((1 << envelope.shift) - 1)
    offset[:50] = (1 << envelope.shift) - 1
    block[:25] = envelope.blocks - 1
    computed = acceptance(table, block, offset)
    for probability, j, o in zip(computed, block, offset, strict=True):
        low, high = exp_enclosure(envelope.drop(int(j), int(o)), 120)
        scaled = int(probability * 2.0**60) << 60
        assert abs(scaled - low) <= 2**120 * 2**-47
        assert abs(scaled - high) <= 2**120 * 2**-47
    assert MARGIN / 100 > 2.0**-47


def test_numpy_exp_is_within_four_units_in_the_last_place():
    arguments = -2.0 * (seeded(39).words(5000) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    arguments[:4] = [0.0, -(2.0**-60), -1.0, -2.0]
    computed = np.exp(arguments)
    with mpmath.workprec(120):
        for argument, value in zip(arguments, computed, strict=True):
            exact = mpmath.exp(mpmath.mpf(float(argument)))
            assert abs(mpmath.mpf(float(value)) - exact) <= 4 * mpmath.mpf(2) ** -53 * 2 * exact


@pytest.mark.parametrize("size", [0, 1, 2, 17, 2**15, 2**15 + 1, 100_000])
def test_the_size_asked_for(law, size):
    draws = draw(tabulate(fit_envelope(law(3.0))), size, seeded(40))
    assert draws.shape == (size,)
    assert draws.dtype == np.int64


@pytest.mark.parametrize("size", [-1, 1.0, "3", None, True, (2, 3)])
def test_a_size_is_a_count(law, size):
    with pytest.raises(ArgumentError, match="expected a whole number from 0"):
        draw(tabulate(fit_envelope(law(3.0))), size, seeded(41))


@pytest.mark.parametrize("bits", [64, 128, 256])
def test_thresholds_are_enclosed_within_a_unit_or_two_at_any_precision(law, bits):
    for low, high in thresholds(fit_envelope(law(1e3)), bits):
        assert 0 <= high - low <= 2
