"""Released quantiles of a number by group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dpmodels.outside import Bounded, BoundedOrNan
from dpmodels.released.terms import Released


@dataclass(frozen=True, kw_only=True)
class QuantilesRelease(Released):
    """Released quantiles of a number by group.

    Attributes
    ----------
    values : ndarray, shape (groups, probs, 3)
        The quantile, and the ends of its interval; places in the public range, from 0 to 1. nan
        where rows are too few, and for intervals that were not bought.
    drawn : ndarray, shape (groups, probs)
        The share of the rows that each quantile was drawn at: the one asked for, or one farther
        inside where noise could have taken it out of the rows; nan where rows are too few.
    counts : ndarray, shape (groups,)
        Noisy numbers of complete rows.
    count_sd : ndarray, shape (groups,)
        Noise standard deviation of each of them.
    rank_sd : ndarray, shape (groups, probs)
        Standard deviation of the noise in the rank of each quantile, in rows.
    """

    later = Released.later | {"shared"}

    values: Annotated[BoundedOrNan, "group", "prob", "place"]
    drawn: Annotated[BoundedOrNan, "group", "prob"]
    counts: Annotated[Bounded, "group"]
    count_sd: Annotated[Bounded, "group"]
    rank_sd: Annotated[Bounded, "group", "prob"]
