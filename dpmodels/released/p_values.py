"""Released logarithms of p-values, of those hypotheses that were chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dpmodels.outside import Amount, Bounded, Quantity
from dpmodels.released.terms import Released


@dataclass(frozen=True, kw_only=True)
class PValuesRelease(Released):
    """Released logarithms of p-values of columns held against a response.

    Attributes
    ----------
    chosen : ndarray, shape (chosen,)
        Which columns, counted from 0, in the order of the draws.
    logs : ndarray, shape (chosen,)
        Natural logarithms of their p-values, cut off below, with Laplace noise.
    log_sd : float
        Standard deviation of the noise in them.
    count, total, squares : float
        Number of complete rows, sum of the response and of its squares, with
        noise, in public half-ranges.
    centre : float
        Made of them: the response's mean, from -1 to 1.
    response_sd : float
        Standard deviation of the noise in the last three.
    scale : float
        Made of them: what sums of products are divided by to give z-statistics.
    choice : float
        What one draw costs, in eps.
    """

    chosen: Annotated[Bounded, "chosen"]
    logs: Annotated[Bounded, "chosen"]
    log_sd: Amount
    count: Quantity
    total: Quantity
    squares: Quantity
    centre: Quantity
    response_sd: Amount
    scale: Amount
    choice: Amount
