"""What releases of quantiles are planned from."""

from __future__ import annotations

from dataclasses import dataclass

from dpmodels.mechanisms.quantile_grid import Grid
from dpmodels.privacy import Adjacency

# A choice, within what the sampler takes: no table has so many rows.
LARGEST_SCALE = 2.0**50


@dataclass(frozen=True)
class QuantileFacts:
    """Public facts a plan may use."""

    probs: tuple[float, ...]  # Which quantiles, each from 0 to 1
    groups: int
    grid: Grid  # Cells of the public range
    level: float | None  # Coverage of the intervals that are wanted; None for none
    adjacency: Adjacency
