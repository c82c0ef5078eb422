"""The textbook calibration of Gaussian noise, used where it does not hold.

What was published
    σ = Δ √(2 ln(1.25/δ))/ε is proved for ε < 1 only (Dwork and Roth 2014,
    theorem 3.22). dp-stats uses it for every ε, with δ = 0.1 unless told
    otherwise, and its poster shows results at ε = 10.
Why it is wrong
    The exact price of Gaussian noise with μ = Δ/σ is
    δ(ε) = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ). At ε = 10 the textbook's noise has
    δ = .406 where .1 is claimed, and .041 where .01 is. It falls short from
    ε = 6.8 on for δ = 1e-2, from 8.4 on for δ = 1e-5.
The right form
    The σ at which the exact price is δ.

References
----------
Dwork, C. and Roth, A. (2014). "The algorithmic foundations of differential
privacy." Foundations and Trends in Theoretical Computer Science 9(3-4).
Balle, B. and Wang, Y.-X. (2018). "Improving the Gaussian mechanism for
differential privacy: analytical calibration and optimal denoising." ICML 2018.
"""

import math
from dataclasses import replace
from functools import partial

import numpy as np

from dpmodels.audit.exhibits.exhibit import Batched, Exhibit
from dpmodels.audit.pair import Pair
from dpmodels.privacy import ApproxDP, gaussian_eps, gaussian_multiplier
from dpmodels.typing import Floats

EPS, DELTA = 10.0, 0.1
TEXTBOOK = math.sqrt(2 * math.log(1.25 / DELTA)) / EPS


def _total(rows: Floats, generator: np.random.Generator, runs: int, *, scale: float) -> Floats:
    return float(rows.sum()) + scale * generator.standard_normal((runs, 1))


_ROWS = np.array([0.2, 0.5, 0.9])
EXHIBIT = Exhibit(
    name="textbook_gaussian",
    fault="a calibration proved for eps < 1, at eps = 10",
    source="dp-stats and its poster",
    recipe=Batched(partial(_total, scale=TEXTBOOK), law="gaussian"),
    pair=Pair(
        rows=np.append(_ROWS, 1.0), neighbour=np.append(_ROWS, 0.0), name="a value of 1 against 0"
    ),
    eps=EPS,
    delta=DELTA,
    runs=50_000,
    loss=gaussian_eps(DELTA, TEXTBOOK),
)
CORRECT = replace(
    EXHIBIT,
    fault="",
    source="Balle and Wang (2018)",
    recipe=Batched(
        partial(_total, scale=gaussian_multiplier(ApproxDP(EPS, DELTA))), law="gaussian"
    ),
    loss=EPS,
)
