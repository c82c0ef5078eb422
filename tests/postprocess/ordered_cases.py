"""Releases of cells in an order, and their counts as a matrix times what was released."""

from dataclasses import replace

import numpy as np

from dpmodels.postprocess.hierarchy import line
from dpmodels.postprocess.ordered import ordered
from dpmodels.privacy import PureDP, adjacency
from dpmodels.released import CountsRelease, MechanismInfo, SumsRelease

CARD = MechanismInfo(*("of no mechanism",) * 6)


def released(sums, shape, rows, fanout=3):
    """A release of zeros with noise of variance 1, without a mechanism."""
    groups, cells = shape
    terms = {
        "rows": rows,
        "info": CARD,
        "guarantee": PureDP(1.0),
        "adjacency": adjacency("add-remove" if rows is None else "replace"),
        "events": (),
        "simulated": True,
        "law": "laplace",
        "noise_sd": 1.0,
        "step": 1.0,
    }
    if sums == "flat":
        return CountsRelease(values=np.zeros(groups * cells + 1), **terms)
    parts = sum(line(cells, fanout).sizes) if sums == "tree" else cells
    values = np.zeros(groups * parts + 1)
    return SumsRelease(values=values, sums=sums, shape=shape, fanout=fanout, **terms)


def matrix(release, shape):
    """Counts of all cells, then of incomplete rows, by the released numbers: they are linear."""
    units = np.eye(len(release.values))
    columns = []
    for unit in units:
        result = ordered(replace(release, values=unit), shape)
        columns.append(np.append(result.cells.ravel(), result.incomplete))
    return np.array(columns).T
