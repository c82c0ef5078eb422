"""Released counts of runs of cells, which were chosen by the counts before them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dpmodels.outside import Amount, Bounded, one_of
from dpmodels.released.terms import Released


@dataclass(frozen=True, kw_only=True)
class RunsRelease(Released):
    """Released counts of rows in runs of the cells of a table that stand in an order.

    The cells of a group are halved and halved again; a run is what is then in one of the parts.
    Counts were made in steps, of runs of one length each, and decided what the next step counted.

    Attributes
    ----------
    values : ndarray, shape (parts,)
        In rows, step by step; last the incomplete rows. The noise of each is independent given all
        before it; may be negative.
    starts : ndarray, shape (parts,)
        The first cell of each run, the cells of all groups in a row; of the incomplete rows their
        number.
    sizes, levels : tuple of int
        Of each step, how many counts it made, and how often the cells were halved.
    noise_sds : tuple of float
        Of each step, the standard deviation of the noise, in rows.
    shape : tuple of int
        Groups, then cells of each.
    law : {"laplace", "gaussian"}
        Of the noise.
    noise_sd : float
        Standard deviation of the noise in a run that was cut, in rows.
    step : float
        What it is a multiple of, in rows.
    """

    later = Released.later | {"shared"}
    values: Annotated[Bounded, "part"]
    starts: Annotated[Bounded, "part"]
    sizes: tuple[int, ...]
    levels: tuple[int, ...]
    noise_sds: tuple[Amount, ...]
    shape: tuple[int, ...]
    law: Annotated[str, one_of("laplace", "gaussian")]
    noise_sd: Amount
    step: Amount
