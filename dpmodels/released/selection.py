"""Released names of candidates with their values, and p-values of columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dpmodels.external_files import Amount, Bounded, Quantity, one_of
from dpmodels.released.terms import Released


@dataclass(frozen=True, kw_only=True)
class SelectionRelease(Released):
    """Released names of the selected candidates.

    Attributes
    ----------
    places : tuple of int
        Positions of the candidates, in the order of selection.
    scale : float
        Scale of the noise in the ranking, in rows: for columns a correlation times their number.
    values : ndarray, shape (selected,), or None
        Values of the candidates, with independent noise that was not used in the ranking: numbers
        of rows, or for columns the scatter with the response, in these units; None if not
        requested.
    scatters : ndarray, shape (selected,), or None
        Scatters of the columns, with noise of the same distribution.
    response : float or None
        The scatter of the response, likewise.
    law : {"laplace", "gaussian"}
        Distribution of that noise.
    noise_sd : float
        Its standard deviation.
    step : float
        Lattice step of the values.
    count, centre : float or None
        Noisy number of complete rows, and the mean of the response used in the ranking.
    least : float or None
        The smallest spread of a column, as a fraction of its half-range; smaller ones were raised.
    slopes : ndarray, shape (selected,), or None
        For columns ranked by gain, the coefficients of the fit, in half-ranges, that gave the
        residuals. Values are then scatters with the residuals before each step, divided by
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


# Released logarithms of p-values of selected hypotheses.


@dataclass(frozen=True, kw_only=True)
class PValuesRelease(Released):
    """Released logarithms of p-values of tests of columns against a response.

    Attributes
    ----------
    chosen : ndarray, shape (chosen,)
        Positions of the columns, from 0, in the order of the draws.
    logs : ndarray, shape (chosen,)
        Natural logarithms of their p-values, clipped from below, with Laplace noise.
    log_sd : float
        Standard deviation of the noise in them.
    count, total, squares : float
        Number of complete rows, sum of the response and of its squares, with
        noise, in public half-ranges.
    centre : float
        The mean of the response computed from them, from -1 to 1.
    response_sd : float
        Standard deviation of the noise in these three.
    scale : float
        The divisor computed from them that turns sums of products into z-statistics.
    choice : float
        Cost of one draw, in eps.
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


# Released sums of selected columns with a response.


@dataclass(frozen=True, kw_only=True)
class ScreenedRelease(Released):
    """Released covariances of chosen columns with a response, in public half-ranges of both.

    Attributes
    ----------
    chosen : ndarray, shape (chosen,)
        Positions of the columns, from 0; if drawn, in the order of the draws.
    products : ndarray, shape (chosen,)
        Sums of the column times the response minus `centre`, with noise.
    scatters : ndarray, shape (chosen,)
        Sums of squares of the column about its mean, with noise; may be negative.
    count, total, squares : float
        Number of complete rows, sum of the response and of its squares, with noise.
    centre : float
        The mean of the response computed from them, from -1 to 1.
    law : {"laplace", "gaussian"}
        Distribution of all noise.
    product_sd, scatter_sd, response_sd : float
        Standard deviations of the noise in a product, in a scatter, and in the response's sums.
    choice : float
        Cost of one draw, in eps of a release of bounded range; 0 without draws.
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
