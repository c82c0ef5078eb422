"""Released names of candidates that were ranked, and values of them with fresh noise."""

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
