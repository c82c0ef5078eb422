"""Two sites share the noise of one release, and one of them knows its half.

What is done
    Sites add their numbers under masks, so that nothing but the sum is seen,
    and each adds independent noise of variance σ²/S: the sum has σ², what one
    trusted curator would add. Against an aggregator alone that is right.
Why it is wrong
    A site sees the result, or tells the aggregator what it added. Without its
    own noise the sum has σ²(S - 1)/S: for two sites half of what is claimed,
    and μ is √2 times as large. With t sites that may tell, each has to add
    σ²/(S - t).

References
----------
Dwork, Kenthapadi, McSherry, Mironov and Naor (2006), "Our data, ourselves:
privacy via distributed noise generation." EUROCRYPT 2006.
"""

import math
from dataclasses import replace
from functools import partial

import numpy as np

from dpmodels.audit.exhibits.exhibit import Batched, Exhibit
from dpmodels.audit.pair import Pair
from dpmodels.privacy import ApproxDP, gaussian_eps, gaussian_multiplier
from dpmodels.typing import Floats

EPS = 1.0
DELTA = 1e-5
SITES = 2
MULTIPLIER = gaussian_multiplier(ApproxDP(EPS, DELTA))


def _seen(rows: Floats, generator: np.random.Generator, runs: int, *, honest: int) -> Floats:
    """Release the sum, and beside it what the site that tells has added: shape (runs, 2)."""
    shares = MULTIPLIER / math.sqrt(honest) * generator.standard_normal((runs, SITES))
    return np.column_stack([rows.sum() + shares.sum(axis=1), shares[:, 0]])


def _recipe(honest: int) -> Batched:
    return Batched(partial(_seen, honest=honest), law="gaussian")


_ROWS = np.linspace(0.0, 1.0, 11)
EXHIBIT = Exhibit(
    name="told_share",
    fault="noise is divided by all sites, and one of them knows its own",
    source="a slip in distributed noise",
    recipe=_recipe(SITES),
    pair=Pair(
        rows=np.append(_ROWS, 1.0), neighbour=np.append(_ROWS, 0.0), name="a value of 1 against 0"
    ),
    eps=EPS,
    delta=DELTA,
    runs=50_000,
    loss=gaussian_eps(DELTA, MULTIPLIER * math.sqrt((SITES - 1) / SITES)),
)
CORRECT = replace(
    EXHIBIT,
    fault="",
    source="noise divided by the sites that do not tell",
    recipe=_recipe(SITES - 1),
    loss=EPS,
)
