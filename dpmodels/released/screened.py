"""Released sums of columns with a response, of those columns that were chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dpmodels.outside import Amount, Bounded, Quantity, one_of
from dpmodels.released.terms import Released


@dataclass(frozen=True, kw_only=True)
class ScreenedRelease(Released):
    """Released covariances of chosen columns with a response, in public half-ranges of both.

    Attributes
    ----------
    chosen : ndarray, shape (chosen,)
        Which columns, counted from 0; where they were drawn, in the order of the draws.
    products : ndarray, shape (chosen,)
        Sums of the column times the response less `centre`, with noise.
    scatters : ndarray, shape (chosen,)
        Sums of squares of the column about its mean, with noise; may be negative.
    count, total, squares : float
        Number of complete rows, sum of the response and of its squares, with noise.
    centre : float
        Made of them: the response's mean, from -1 to 1.
    law : {"laplace", "gaussian"}
        Of all noise.
    product_sd, scatter_sd, response_sd : float
        Standard deviations of the noise in a product, in a scatter, and in the last three.
    choice : float
        What one draw costs, in eps of a release of bounded range; 0 where nothing was drawn.
    """

    chosen: Annotated[Bounded, "chosen"]
    products: Annotated[Bounded, "chosen"]
    scatters: Annotated[Bounded, "chosen"]
    count: Quantity
    total: Quantity
    squares: Quantity
    centre: Quantity
    law: Annotated[str, one_of("laplace", "gaussian")]
    product_sd: Amount
    scatter_sd: Amount
    response_sd: Amount
    choice: Amount
