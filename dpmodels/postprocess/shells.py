"""A second moment from noisy increments between clipping radii."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dpmodels.postprocess.denoise import denoise
from dpmodels.postprocess.psd import nearest_psd
from dpmodels.postprocess.signed import denoise_signed
from dpmodels.typing import Floats


class Increment(NamedTuple):
    """What a radius adds to the second moment clipped to the next smaller one.

    Attributes
    ----------
    matrix : ndarray, shape (columns, columns)
        Released: symmetric, with noise of standard deviation `off` off the
        diagonal and √2 times as much on it.
    trace : float
        Of the same matrix before noise, released with noise of its own.
    off : float
        Not negative.
    """

    matrix: Floats
    trace: float
    off: float


def accumulate(
    increments: Sequence[Increment], rule: str | None = "auto", trace_cap: float | None = None
) -> Floats:
    """Estimate the sum of increments from the inside out.

    The innermost is denoised. To clip rows further out changes their second
    moment in proportion, roughly: so the estimate so far, times the ratio of
    the released traces, predicts the next increment, and only what the
    released one differs by is denoised, with no preference of sign.

    Parameters
    ----------
    increments : sequence of Increment
        From the outside in, at least one.
    rule : {"auto", "invariant", "spiked", "psd"} or None
        As in :func:`dpmodels.postprocess.denoise_values`. With "psd" and None
        nothing is shrunk: the positive part of the sum.
    trace_cap : float or None
        Public upper bound on the trace of the sum, positive.

    Returns
    -------
    ndarray, shape (columns, columns)
        Positive semidefinite.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> def noisy(truth, off):
    ...     half = rng.normal(scale=off / np.sqrt(2), size=truth.shape)
    ...     return Increment(truth + half + half.T, float(np.trace(truth)), off)
    >>> inner = np.diag([2.0] + 29 * [0.1])
    >>> both = accumulate([noisy(3 * inner, off=0.1), noisy(inner, off=0.01)])
    >>> float(np.linalg.norm(both - 4 * inner).round(1))
    0.3
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
