"""Levels of a category whose own curvature tells enough for intervals of their coefficients."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmodels.inference.sandwich import Sandwich
from dpmodels.postprocess.contrasts import contrasts
from dpmodels.released import BoughtCurvature

# Choices by simulation: edges of its noise that a level's curvature has along every way at the
# least, and the root mean square by which the logarithm of its probability moved and is off, at
# the most.
EDGES, OFF = 2.0, 0.3


def told_levels(own: Sandwich, bought: BoughtCurvature, levels: int) -> NDArray[np.bool_]:
    """Return for each level whether its rows are told from noise, shape (levels,).

    A level that few rows have bends little, and as its probability does: a step from a point that
    is off by much ends elsewhere than at the minimum, and curvature that noise made large looks
    like that of more rows. Averages over all levels, as :attr:`Sandwich.far`, do not show it. A
    level's part of the curvature times what moved is ``Σ p_k δ(log p_k) z``, whatever is added to
    the coefficients of all levels.
    """
    size = len(own.point) // (levels - 1)
    turn = np.kron(contrasts(levels), np.eye(size))
    edge = 2 * bought.bread_noise.off * np.sqrt(size)
    bent = turn @ bought.bread @ turn.T
    off = np.column_stack([own.noise_root, own.sampling_root, own.estimate - own.point])
    moved = turn @ bought.bread @ off
    told = []
    for each in np.split(np.arange(levels * size), levels):
        part, rows = bent[np.ix_(each, each)], moved[each]
        square = np.einsum("ij,ij->", rows, np.linalg.pinv(part) @ rows) / np.trace(part)
        told.append(np.linalg.eigvalsh(part)[0] >= EDGES * edge and square <= OFF**2)
    return np.array(told)
