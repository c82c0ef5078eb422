"""Predicted errors of mechanisms under a budget, for components and for fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import pandas as pd

from dpmodels.errors import NotAvailable
from dpmodels.privacy import Adjacency, Guarantee
from dpmodels.results.base import Printed

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# What all comparisons of mechanisms have in common.


class Automatic(NamedTuple):
    """The choice of ``mechanism="auto"`` where rows can be read again, and its reason."""

    mechanism: str
    reason: str


class Compared(Printed):
    """Predictions by mechanism; a subclass defines the quantities."""

    request: ComparisonRequest | FitRequest
    table: pd.DataFrame
    by_shape: pd.DataFrame
    auto: Automatic

    # The column that every mechanism with predictions has.
    _measure: ClassVar[str]

    @property
    def best(self) -> str:
        """The mechanism at the top of the table, excluding baselines.

        Raises
        ------
        NotAvailable
            If no mechanism could be simulated.
        """
        able = simulated(self.predicted[self.predicted["note"] != "baseline"])
        return str(able["mechanism"].iloc[0])

    @property
    def predicted(self) -> pd.DataFrame:
        """The rows of the table that have predictions."""
        return self.table[self.table[self._measure].notna()]

    def tidy(self) -> pd.DataFrame:
        """Return the predictions of each mechanism for rows of each shape."""
        return self.by_shape.copy()

    def label(self, mechanism: str) -> str:
        """Return a mechanism's name, marked if it is the automatic choice."""
        return f"{mechanism} (auto)" if mechanism == self.auto.mechanism else mechanism

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.request.formula!r}: {len(self.predicted)} mechanisms "
            f"simulated, {self.request.guarantee.describe()}, nothing spent>"
        )


def simulated(lines: pd.DataFrame) -> pd.DataFrame:
    """Return lines of a table of predictions, or NotAvailable without any."""
    if lines.empty:
        raise NotAvailable(
            "no mechanism was simulated with this budget: the column note of the table says why"
        )
    return lines


@dataclass(frozen=True)
class ComparisonRequest:
    """What a comparison of mechanisms is about: public facts and assumptions."""

    formula: str
    columns: int  # coded
    components: int  # wanted
    rows: int  # assumed
    guarantee: Guarantee  # what every mechanism is given
    adjacency: Adjacency
    center: bool  # whether the mean is taken off
    scale: str | None
    row_norm: float  # radius rows are clipped to
    row_lengths: tuple[float, ...]  # that rows have, as shares of it; empty for several shapes
    spectrum: str  # the assumed eigenvalues, as text
    repeats: int  # simulated releases of each mechanism on each shape

    @property
    def row_length(self) -> float | None:
        """The length that all rows have, None where they are of several."""
        return self.row_lengths[0] if len(self.row_lengths) == 1 else None

    @property
    def ranked_by(self) -> str:
        """The column that mechanisms are sorted by: of the error if all components are kept."""
        return "energy" if self.components < self.columns else "relative"


@dataclass(frozen=True, repr=False, eq=False)
class Comparison(Compared):
    """Predicted errors of mechanisms: simulated, no data were read.

    Attributes
    ----------
    request : ComparisonRequest
        What was compared, under which assumptions.
    table : DataFrame
        One row a mechanism, best first. Columns: ``mechanism``; ``energy``, the share of the
        variance along the first components that the released ones capture, ``frobenius``, the error
        of the covariance estimate in units of the squared row norm, and ``relative``, the latter
        over the norm of the covariance: each the median over shapes of rows, with the standard
        error of the simulation, ``energy_se``, and on the worst shape, ``energy_worst``, which is
        ``energy_worst_at``; ``numerics``; ``fits``, whether the mechanism supports the guarantee;
        ``note``.
    by_shape : DataFrame
        One row a mechanism and shape: ``mechanism``, ``shape``, and the three
        with their standard errors.
    shapes : DataFrame or None
        One row a shape: ``shape``; ``like``, a description of its columns; lengths of rows in row
        norms, between which 90 % are, ``length_low`` and ``length_high``; ``spread``, their median
        distance from the mean. If several lengths were requested, each is a shape. None where rows
        have one length.
    auto : Automatic
        The choice of ``mechanism="auto"`` of :func:`dp_pca`, with its ``reason``.
    """

    request: ComparisonRequest
    table: pd.DataFrame
    by_shape: pd.DataFrame
    shapes: pd.DataFrame | None
    auto: Automatic

    _measure = "energy"

    def plot(self, axes: Sequence[Axes] | None = None) -> tuple[Axes, ...]:
        """Draw captured energy and relative error of each mechanism, typical and worst.

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

        predicted, request = simulated(self.predicted), self.request
        marked = self.shapes is not None
        suffix = "; mark: worst shape" if marked else ""
        energy = f"Captured energy, {request.components} of {request.columns}{suffix}"
        error = f"Error over norm of the covariance{suffix}"
        worst = [predicted[f"{name}_worst"] if marked else None for name in ("energy", "relative")]
        return bars(
            (
                Panel(energy, predicted["energy"], predicted["energy_se"], marks=worst[0]),
                Panel(
                    error, predicted["relative"], predicted["relative_se"], log=True, marks=worst[1]
                ),
            ),
            labels=[self.label(name) for name in predicted["mechanism"]],
            pale=(predicted["note"] == "baseline").tolist(),
            axes=axes,
        )


# Predicted errors of the mechanisms of a regression, before any budget is spent.


@dataclass(frozen=True)
class FitRequest:
    """What a comparison of regressions is about: public facts and assumptions."""

    formula: str
    family: str
    columns: int  # coded terms
    rows: int  # assumed
    guarantee: Guarantee  # what every mechanism is given
    adjacency: Adjacency
    row_norm: float | None  # as requested; None for the codebook's longest row
    row_lengths: tuple[float, ...]  # spreads of numbers in halves of their ranges; empty for shapes
    spectrum: str  # of the variables, as text
    repeats: int  # simulated releases of each mechanism on each shape


@dataclass(frozen=True, repr=False, eq=False)
class FitComparison(Compared):
    """Predicted errors of regressions: simulated, no data were read.

    Attributes
    ----------
    request : FitRequest
        What was compared, under which assumptions.
    table : DataFrame
        One row a mechanism, best first. Columns: ``mechanism``; ``error``, the root mean square
        over the slopes of the distance from the estimate without privacy, in its standard errors;
        ``excess``, the part of the explained deviance that is lost, with 1 for a fit like the
        constant alone; ``identified``, the share of slopes that have standard errors: each the
        median over shapes of rows, with the standard error of the simulation, ``error_se``, and on
        the worst shape, ``error_worst``, which is ``error_worst_at``; ``numerics``; ``fits``,
        whether the mechanism supports the guarantee; ``note``.
    by_shape : DataFrame
        One row a mechanism and shape: ``mechanism``, ``shape``, and the three
        with their standard errors.
    shapes : DataFrame
        One row a shape: ``shape``; ``like``, a description of its numbers.
    auto : Automatic
        The choice of ``mechanism="auto"`` of the verb, with its ``reason``.
    """

    request: FitRequest
    table: pd.DataFrame
    by_shape: pd.DataFrame
    shapes: pd.DataFrame
    auto: Automatic

    _measure = "error"

    @property
    def behind(self) -> pd.Series[float]:
        """Error of the automatic choice over that of the best mechanism, by shape of rows.

        1 where it is the best; nan where no slope has an estimate without
        privacy, or the automatic choice was not tried.
        """
        wide = self.by_shape.pivot_table("error", "shape", "mechanism", sort=False, dropna=False)
        errors = wide.get(self.auto.mechanism, pd.Series(index=wide.index, dtype=float))
        return pd.Series(errors / wide.min(axis=1), name="behind")

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

        predicted = simulated(self.predicted)
        titles = {
            "error": "Error over standard error without privacy",
            "excess": "Part of the explained deviance lost",
        }
        panels = (
            Panel(
                f"{title}\n(mark: worst shape)",
                predicted[name],
                predicted[f"{name}_se"],
                log=True,
                marks=predicted[f"{name}_worst"],
            )
            for name, title in titles.items()
        )
        return bars(
            tuple(panels), labels=[self.label(name) for name in predicted["mechanism"]], axes=axes
        )
