"""Releases of cells in an order, with whatever values: for the noise in sums of them."""

from dataclasses import replace

import numpy as np

import dpmodels as dp
from dpmodels.postprocess.ordered import numbers
from dpmodels.released import CountsRelease, SumsRelease

_BOOK = dp.codebook(a=(0, 1))


def released(kind, values, shape, rows):
    """Counts, or sums of a kind, of noise with variance 1."""
    with dp.simulation(seed=1):
        release = dp.dp_hist("~ a", {"a": [0.5]}, codebook=_BOOK, eps=1.0, breaks=2).release
    fields = {name: getattr(release, name) for name in ("info", "guarantee", "adjacency", "events")}
    fields |= {"law": "gaussian", "noise_sd": 1.0, "step": 0.0, "rows": rows, "simulated": True}
    if kind == "flat":
        return CountsRelease(values=values, **fields)
    sums = SumsRelease(values=np.zeros(0), sums=kind, shape=shape, fanout=2, **fields)
    return replace(sums, values=np.zeros(numbers(sums)))
