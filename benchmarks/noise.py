"""Nanoseconds a draw: the exact integer samplers, NumPy's floats, OpenDP's exact integers.

Run as ``python benchmarks/noise.py``. OpenDP is measured where it can be
imported. Every figure is the median of repeats that take turns, in one run on
one core; NumPy's draws are floating point and from a generator that is not
cryptographic, so they are a speed limit and no substitute.
"""

import importlib.util
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np

from dpmodels.noise import discrete_gaussian, discrete_laplace, secure

DRAWS = 1_000_000
PEER_DRAWS = 2_000
REPEATS = 7
SCALES = {"10": 10.0, "2^10": 2.0**10, "2^20": 2.0**20, "2^30": 2.0**30, "2^43": 2.0**43}
ROW = "{:<10}{:>6}{:>12}{:>12}{:>12}{:>14}{:>14}"

Sampler = tuple[Callable[[], object], int]


def ours(law: str, scale: float) -> Sampler:
    draw = {"gaussian": discrete_gaussian, "laplace": discrete_laplace}[law]
    return lambda: draw(scale, DRAWS, secure()), DRAWS


def numpys(law: str, scale: float) -> Sampler:
    generator = np.random.default_rng()
    draw = {"gaussian": generator.normal, "laplace": generator.laplace}[law]
    return partial(draw, 0.0, scale, DRAWS), DRAWS


def opendps(law: str, scale: float) -> Sampler:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if law == "gaussian":
        mechanism = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=scale)
    else:
        mechanism = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
    zeros = [0] * PEER_DRAWS
    return lambda: mechanism(zeros), PEER_DRAWS


def nanoseconds(samplers: list[Sampler]) -> list[float]:
    """Time the samplers in turn and give the median of each."""
    for sample, _ in samplers:
        sample()
    spent: list[list[float]] = [[] for _ in samplers]
    for _ in range(REPEATS):
        for (sample, draws), times in zip(samplers, spent, strict=True):
            start = time.perf_counter()
            sample()
            times.append((time.perf_counter() - start) / draws * 1e9)
    return [median(times) for times in spent]


def main() -> None:
    makers = [ours, numpys]
    if importlib.util.find_spec("opendp"):
        makers.append(opendps)
    print(f"ns a draw, medians of {REPEATS}; {DRAWS:,} draws a call (OpenDP {PEER_DRAWS:,})")
    print(ROW.format("law", "scale", "dpmodels", "numpy", "opendp", "numpy/ours", "opendp/ours"))
    for law in ("gaussian", "laplace"):
        for name, scale in SCALES.items():
            mine, reference, *peer = nanoseconds([make(law, scale) for make in makers])
            print(
                ROW.format(
                    law,
                    name,
                    f"{mine:.1f}",
                    f"{reference:.1f}",
                    f"{peer[0]:,.0f}" if peer else "-",
                    f"{reference / mine:.2f}",
                    f"{peer[0] / mine:,.0f}" if peer else "-",
                )
            )


if __name__ == "__main__":
    main()
