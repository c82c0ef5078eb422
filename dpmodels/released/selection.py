"""Released names of candidates with their values, and p-values of columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dpmodels.outside import Amount, Bounded, Quantity, one_of
from dpmodels.released.terms import Released


@dataclass(frozen=True, kw_only=True)
class SelectionRelease(Released):
    """Released names of some of many candidates; nothing of the others.

    Attributes
    ----------
    places : tuple of int
        Of the candidates, in the order in which they were named.
    scale : float
        Of the noise in the ranking, in rows: of columns a correlation times their number.
    values : ndarray, shape (selected,), or None
        Of the same candidates, each with independent noise that the ranking had no part in: numbers
        of rows, or of columns the scatter with the response, in these units; None where none were
        bought.
    scatters : ndarray, shape (selected,), or None
        Of columns their own scatter, with noise of the same law.
    response : float or None
        The scatter of the response, likewise.
    law : {"laplace", "gaussian"}
        Of that noise.
    noise_sd : float
        Its standard deviation.
    step : float
        What it is a multiple of.
    count, centre : float or None
        Noisy number of complete rows, and mean of the response, about which columns were ranked.
    least : float or None
        The spread, as a share of their half-range, that columns of less were taken for.
    slopes : ndarray, shape (selected,), or None
        Of columns ranked by gain, the coefficients of the fit, all in half-ranges, that residuals
        were made with. Values are then scatters with the residuals before each, divided by
        `stretch`.
    """

    later = Released.later | {"shared"}
    places: tuple[int, ...]
    scale: Amount
    values: Annotated[Bounded, "selected"] | None = None
    scatters: Annotated[Bounded, "selected"] | None = None
    response: Quantity | None = None
    law: Annotated[str, one_of("laplace", "gaussian")] = "laplace"
    noise_sd: Amount = 0.0
    step: Amount = 0.0
    count: Quantity | None = None
    centre: Quantity | None = None
    least: Quantity | None = None
    slopes: Annotated[Bounded, "selected"] | None = None


# Released logarithms of p-values, of those hypotheses that were chosen.


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


# Released sums of columns with a response, of those columns that were chosen.


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
