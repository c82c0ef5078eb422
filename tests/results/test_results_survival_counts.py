"""Counts by group, ending and interval: what they are counts of."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from folded import each

from dpmodels.results.call import TableCall
from dpmodels.results.survival_curve import SurvivalCounts, differing

ENDINGS, TIMES, GROUPS = ("censored", "event"), ("1", "2", "3"), ("u", "v")


def counts(*factors):
    call = SimpleNamespace(tables=(TableCall(*zip(*factors, strict=True)),))
    return SurvivalCounts(call, None, (1.0, 2.0, 3.0))


@pytest.mark.parametrize("groups", [(), (("g", GROUPS),), (("g", GROUPS), ("h", ("a", "b", "c")))])
def test_times_of_groups_are_without_the_endings(groups):
    timed = counts(*groups, ("ending", ENDINGS), ("time", TIMES)).timed
    assert timed.factors == (*(name for name, _ in groups), "time")
    assert timed.levels == (*(levels for _, levels in groups), TIMES)


def curve(share, conf, noise, squares, order=0.0):
    """A curve of one place; intervals of errors, lengths of which have nothing to do with these."""
    counts = SimpleNamespace(survival=np.array([share]))
    orders = [
        SimpleNamespace(counts=SimpleNamespace(survival=np.array([share + sign * order])))
        for sign in (-1, 1)
    ]
    ends = {"conf": conf, "noise": noise}
    return SimpleNamespace(
        counts=counts,
        orders=orders,
        weights=np.array([[1.0]]),
        sums=SimpleNamespace(sd=1.0),
        noise=lambda weights: SimpleNamespace(squares=np.array([squares])),
        survival=SimpleNamespace(std_error=np.array([0.05]), noise_sd=np.array([0.03])),
        intervals=lambda level: {
            name: (np.array([low]), np.array([high])) for name, (low, high) in ends.items()
        },
    )


@each("order", [0.0, 0.01])
@each("correlated", [1.0, 1.5])
def test_a_difference_of_curves_has_newcombes_interval(order, correlated):
    """Widened by what noise that is correlated adds to errors; between the orders of times."""
    squares = correlated * 2 * 0.03**2
    first = curve(0.7, (0.6, 0.78), (0.66, 0.73), squares, order)
    second = curve(0.4, (0.33, 0.49), (0.38, 0.43), squares, order)
    row = differing(first, second, 0, 0.95)
    assert row["estimate"] == pytest.approx(0.3)
    assert row["noise_sd"] == pytest.approx(math.sqrt(squares))
    sampled = 2 * (0.05**2 - 0.03**2)
    assert row["std_error"] == pytest.approx(math.sqrt(sampled + squares))
    for name, total, independent, (low, high), (other_low, other_high) in (
        ("conf", sampled + squares, 2 * 0.05**2, (0.6, 0.78), (0.33, 0.49)),
        ("noise", squares, 2 * 0.03**2, (0.66, 0.73), (0.38, 0.43)),
    ):
        wider = math.sqrt(total / independent)
        below = wider * math.hypot(0.7 - order - low, other_high - 0.4 - order)
        above = wider * math.hypot(high - 0.7 - order, 0.4 - order - other_low)
        assert row[f"{name}_low"] == pytest.approx(0.3 - 2 * order - below)
        assert row[f"{name}_high"] == pytest.approx(0.3 + 2 * order + above)


def test_a_difference_of_curves_is_between_minus_1_and_1():
    """Noise that is correlated widens intervals of shares beyond it."""
    squares = 16 * 0.03**2
    ends = {0.95: (0.9, 1.0), 0.05: (0.0, 0.1)}
    high, low = (curve(share, *(ends[share],) * 2, squares) for share in ends)
    for name in ("conf", "noise"):
        assert differing(high, low, 0, 0.95)[f"{name}_high"] == 1.0
        assert differing(high, low, 0, 0.95)[f"{name}_low"] > 0.0
        assert differing(low, high, 0, 0.95)[f"{name}_low"] == -1.0
        assert differing(low, high, 0, 0.95)[f"{name}_high"] < 0.0
