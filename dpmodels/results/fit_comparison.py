"""What the mechanisms of a regression are predicted to do with a budget, before any is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from dpmodels.privacy import Adjacency, Guarantee
from dpmodels.results.compared import Automatic, Compared, simulated

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class FitQuestion:
    """What a comparison of regressions is about: public facts and assumptions."""

    formula: str
    family: str
    columns: int  # coded terms
    rows: int  # assumed
    guarantee: Guarantee  # what every mechanism is given
    adjacency: Adjacency
    row_norm: float | None  # as asked for; None for the codebook's longest row
    row_lengths: tuple[float, ...]  # spreads of numbers in halves of their ranges; empty for shapes
    spectrum: str  # of the variables, in words
    repeats: int  # simulated releases of each mechanism on each shape


@dataclass(frozen=True, repr=False, eq=False)
class FitComparison(Compared):
    """Predicted errors of regressions: simulated, no data were read.

    Attributes
    ----------
    question : FitQuestion
        What was compared, under which assumptions.
    table : DataFrame
        One row a mechanism, best first. Columns: ``mechanism``; ``error``, the
        root mean square over the slopes of the distance from the estimate
        without privacy, in its standard errors; ``excess``, the part of the
        explained deviance that is lost, of which 1 is no better than the constant
        alone; ``identified``, the share of slopes that have standard errors:
        each the median over shapes of rows, with the standard error of the
        simulation, ``error_se``, and on the worst shape, ``error_worst``, which
        is ``error_worst_at``; ``numerics``; ``fits``, whether the mechanism takes
        the guarantee; ``note``.
    by_shape : DataFrame
        One row a mechanism and shape: ``mechanism``, ``shape``, and the three
        with their standard errors.
    shapes : DataFrame
        One row a shape: ``shape``; ``like``, its numbers in words.
    auto : Automatic
        What ``mechanism="auto"`` of the verb takes, with its ``reason``.
    """

    question: FitQuestion
    table: pd.DataFrame
    by_shape: pd.DataFrame
    shapes: pd.DataFrame
    auto: Automatic

    _measure = "error"

    @property
    def behind(self) -> pd.Series[float]:
        """How many times the error of the best the automatic choice has, by shape of rows.

        1 where it is the best; nan where no slope has an estimate without
        privacy, or the automatic choice was not tried.
        """
        wide = self.by_shape.pivot_table("error", "shape", "mechanism", sort=False, dropna=False)
        own = wide.get(self.auto.mechanism, pd.Series(index=wide.index, dtype=float))
        return pd.Series(own / wide.min(axis=1), name="behind")

    def plot(self, axes: Sequence[Axes] | None = None) -> tuple[Axes, ...]:
        """Draw errors in standard errors and excess of each mechanism, typical and worst.

        Bars are of the typical shape with standard errors, marks of the worst.

        Parameters
        ----------
        axes : two matplotlib Axes, optional
            Where to draw; a new figure by default.

        Raises
        ------
        NotAvailable
            If no mechanism could be simulated.
        """
        from dpmodels.plots import Panel, bars

        shown = simulated(self.predicted)
        titles = {
            "error": "Error over standard error without privacy",
            "excess": "Part of the explained deviance lost",
        }
        panels = (
            Panel(
                f"{title}\n(mark: worst shape)",
                shown[name],
                shown[f"{name}_se"],
                log=True,
                marks=shown[f"{name}_worst"],
            )
            for name, title in titles.items()
        )
        return bars(
            tuple(panels), labels=[self.label(name) for name in shown["mechanism"]], axes=axes
        )
