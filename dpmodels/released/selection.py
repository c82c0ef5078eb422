"""Released names of candidates that were ranked, and values of them with fresh noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dpmodels.outside import Amount, Bounded, one_of
from dpmodels.released.terms import Released


@dataclass(frozen=True, kw_only=True)
class SelectionRelease(Released):
    """Released names of some of many candidates; nothing of the others.

    Attributes
    ----------
    places : tuple of int
        Of the candidates, best first as they were drawn.
    scale : float
        Of the noise in the ranking, in the unit of the scores.
    values : ndarray, shape (selected,), or None
        Of the same candidates, each with independent noise that the ranking had no part in; None
        where none were bought.
    law : {"laplace", "gaussian"}
        Of that noise.
    noise_sd : float
        Its standard deviation.
    step : float
        What it is a multiple of.
    """

    later = Released.later | {"shared"}
    places: tuple[int, ...]
    scale: Amount
    values: Annotated[Bounded, "selected"] | None = None
    law: Annotated[str, one_of("laplace", "gaussian")] = "laplace"
    noise_sd: Amount = 0.0
    step: Amount = 0.0
