"""Gaussian noise on one sum, of a size that was proved for something else.

The textbook calibration where it does not hold, `textbook_gaussian`
    σ = Δ √(2 ln(1.25/δ))/ε is proved for ε < 1 only [1]_, theorem 3.22.
    dp-stats uses it for every ε, with δ = 0.1 unless told otherwise, and its
    poster shows results at ε = 10. The exact price of Gaussian noise with
    μ = Δ/σ is δ(ε) = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ). At ε = 10 the
    textbook's noise has δ = .406 where .1 is claimed, and .041 where .01 is. It
    falls short from ε = 6.8 on for δ = 1e-2, from 8.4 on for δ = 1e-5. Right is
    the σ at which the exact price is δ [2]_.

Two sites share the noise, and one of them knows its half, `told_share`
    Sites add their numbers under masks, so that nothing but the sum is seen,
    and each adds independent noise of variance σ²/S: the sum has σ², what one
    trusted curator would add [3]_. Against an aggregator alone that is right.
    But a site sees the result, or tells the aggregator what it added. Without
    its own noise the sum has σ²(S - 1)/S: for two sites half of what is
    claimed, and μ is √2 times as large. With t sites that may tell, each has to
    add σ²/(S - t).

References
----------
.. [1] Dwork, C. and Roth, A. (2014). "The algorithmic foundations of
   differential privacy." Foundations and Trends in Theoretical Computer Science
   9(3-4).
.. [2] Balle, B. and Wang, Y.-X. (2018). "Improving the Gaussian mechanism for
   differential privacy: analytical calibration and optimal denoising." ICML.
.. [3] Dwork, Kenthapadi, McSherry, Mironov and Naor (2006). "Our data,
   ourselves: privacy via distributed noise generation." EUROCRYPT 2006.
"""

import math
from functools import partial

import numpy as np

from dpmodels.audit.neighbours import Pair
from dpmodels.privacy import ApproxDP, gaussian_eps, gaussian_multiplier
from dpmodels.typing import Floats
from exhibits.exhibit import Batched, Exhibit

_POSTER = ApproxDP(10.0, 0.1)  # of dp-stats
TEXTBOOK = math.sqrt(2 * math.log(1.25 / _POSTER.delta)) / _POSTER.eps


def _total(rows: Floats, generator: np.random.Generator, runs: int, *, scale: float) -> Floats:
    return float(rows.sum()) + scale * generator.standard_normal((runs, 1))


def _one_more(alternatives: Floats) -> Pair:
    return Pair(
        np.append(alternatives, 1.0), np.append(alternatives, 0.0), name="a value of 1 against 0"
    )


_TEXTBOOK = Exhibit(
    name="textbook_gaussian",
    fault="a calibration proved for eps < 1, at eps = 10",
    source="dp-stats and its poster",
    recipe=Batched(partial(_total, scale=TEXTBOOK), law="gaussian"),
    pair=_one_more(np.array([0.2, 0.5, 0.9])),
    eps=_POSTER.eps,
    delta=_POSTER.delta,
    runs=50_000,
    loss=gaussian_eps(_POSTER.delta, TEXTBOOK),
)

SITES = 2
_SHARED = ApproxDP(1.0, 1e-5)
MULTIPLIER = gaussian_multiplier(_SHARED)


def _seen(rows: Floats, generator: np.random.Generator, runs: int, *, honest: int) -> Floats:
    """Release the sum, and beside it what the site that tells has added: shape (runs, 2)."""
    shares = MULTIPLIER / math.sqrt(honest) * generator.standard_normal((runs, SITES))
    return np.column_stack([rows.sum() + shares.sum(axis=1), shares[:, 0]])


_TOLD = Exhibit(
    name="told_share",
    fault="noise is divided by all sites, and one of them knows its own",
    source="a slip in distributed noise",
    recipe=Batched(partial(_seen, honest=SITES), law="gaussian"),
    pair=_one_more(np.linspace(0.0, 1.0, 11)),
    eps=_SHARED.eps,
    delta=_SHARED.delta,
    runs=50_000,
    loss=gaussian_eps(_SHARED.delta, MULTIPLIER * math.sqrt((SITES - 1) / SITES)),
)

EXHIBITS = {value.name: value for value in (_TEXTBOOK, _TOLD)}
CORRECT = {
    _TEXTBOOK.name: _TEXTBOOK.mended(
        Batched(partial(_total, scale=gaussian_multiplier(_POSTER)), law="gaussian"),
        "Balle and Wang (2018)",
    ),
    _TOLD.name: _TOLD.mended(
        Batched(partial(_seen, honest=SITES - 1), law="gaussian"),
        "noise divided by the sites that do not tell",
    ),
}
