"""The mirrored estimate of false discoveries, against its definition and its promise."""

import numpy as np
import pytest
from scipy import stats

from dpmodels.inference.screening_tests import mirrored


def rejected(p, q):
    """By the definition: the largest of all sizes whose estimate is at most q."""
    sizes = np.minimum(p, 1 - p)
    accepted = [
        t for t in sizes if (1 + ((1 - p <= t) & (p > 0.5)).sum()) / max((p <= t).sum(), 1) <= q
    ]
    return p <= max(accepted, default=-1.0)


@pytest.mark.parametrize("q", [0.05, 0.2, 0.5])
def test_rejections_are_those_of_the_definition(q):
    rng = np.random.default_rng(1)
    for size in (1, 5, 40):
        mixed = np.where(rng.random(size) < 0.5, rng.random(size) / 50, rng.random(size))
        p = np.rint(mixed * 1024) / 1024
        assert ((mirrored(p) <= q) == rejected(p, q)).all()


def test_sizes_that_are_alike_on_both_sides_are_taken_together():
    smallest = np.ceil(2.5e-5 * 2**40) / 2**40
    p = np.array([smallest] * 10 + [1 - smallest] * 9)
    assert (mirrored(p) == 1).all()
    assert (mirrored(p[:10]) == 0.1).all()
    # An estimate above 1 is a rate of 1: one small p-value among five large ones.
    assert mirrored(np.array([0.25, *[0.875] * 5])).max() == 1


@pytest.mark.product
def test_the_rate_is_kept_whatever_was_looked_at():
    rng, q, tables = np.random.default_rng(2), 0.2, 2_000
    shares = np.empty(tables)
    for place in range(tables):
        z = rng.normal(size=60)
        z[:10] += 3.5
        looked = np.argsort(-np.abs(z))[:25]
        rejected = looked[mirrored(stats.norm.sf(z[looked])) <= q]
        shares[place] = (rejected >= 10).mean() if len(rejected) else 0.0
    # Seven standard errors of the mean of numbers from 0 to 1: below 1e-6.
    assert shares.mean() <= q + 7 * shares.std() / np.sqrt(tables)
    assert shares.mean() > q / 4
