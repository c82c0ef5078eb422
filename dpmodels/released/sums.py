"""Released sums of the cells of a table that stand in an order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dpmodels.outside import Amount, Bounded, one_of
from dpmodels.released.terms import Released


@dataclass(frozen=True, kw_only=True)
class SumsRelease(Released):
    """Released sums of rows over cells of a row or a plane, from which all counts are made.

    Attributes
    ----------
    values : ndarray, shape (parts,)
        In rows: of each group in turn all its sums, last the incomplete rows. Each with independent
        noise of the same law; may be negative.
    sums : {"tree", "wavelet", "grid", "factorisation"}
        Which ones: ``"tree"`` those of the nodes above the cells, level by level from the top, the
        cells last; ``"grid"`` those of the blocks of a plane, likewise; ``"wavelet"`` that of all
        cells, then differences of neighbouring ones, level by level from the top;
        ``"factorisation"`` for each cell the sum of it and of those before it
        with the weights of :func:`dpmodels.postprocess.square_root.coefficients`.
    shape : tuple of int
        Groups, then cells of each variable.
    fanout : int
        Children of a node, at most, of a block along each axis; 2 where there are no nodes.
    law : {"laplace", "gaussian"}
        Of the noise.
    noise_sd : float
        Its standard deviation, in rows.
    step : float
        What it is a multiple of, in rows.
    """

    later = Released.later | {"shared"}
    values: Annotated[Bounded, "part"]
    sums: Annotated[str, one_of("tree", "wavelet", "grid", "factorisation")]
    shape: tuple[int, ...]
    fanout: int
    law: Annotated[str, one_of("laplace", "gaussian")]
    noise_sd: Amount
    step: Amount
