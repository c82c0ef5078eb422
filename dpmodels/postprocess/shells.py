"""A second moment from noisy increments between clipping radii."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dpmodels.postprocess.denoise import denoise
from dpmodels.postprocess.eigen import nearest_psd
from dpmodels.postprocess.signed import denoise_signed
from dpmodels.typing import Floats


class Increment(NamedTuple):
    """What a radius adds to the second moment clipped to the next smaller one.

    `matrix` has noise of sd `off` off the diagonal and √2 times as much on it; `trace` is that of
    the same matrix before noise, released with noise of its own.
    """

    matrix: Floats
    trace: float
    off: float


def accumulate(
    increments: Sequence[Increment], rule: str | None = "auto", trace_cap: float | None = None
) -> Floats:
    """Estimate the sum of increments, given from the outside in, from the inside out.

    The innermost is denoised. To clip rows further out changes their second moment in proportion,
    roughly: so the estimate so far, times the ratio of the released traces, predicts the next
    increment, and only what the released one differs by is denoised, with no preference of sign.
    With the rules "psd" and None nothing is shrunk: the positive part of the sum.
    """
    if rule in ("psd", None):
        total = sum((increment.matrix for increment in increments[1:]), increments[0].matrix)
        return nearest_psd(total, trace_cap)
    innermost, *outer = reversed(increments)
    estimate = denoise(innermost.matrix, innermost.off, rule)
    trace = max(innermost.trace, 0.0)
    for matrix, own, off in outer:
        own = max(own, 0.0)
        predicted = estimate * (own / trace if trace > 0 else 0.0)
        rest = denoise_signed(matrix - predicted, off, rule)
        estimate = nearest_psd(estimate + predicted + rest)
        trace += own
    return nearest_psd(estimate, trace_cap) if trace_cap is not None else estimate
