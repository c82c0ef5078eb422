"""What the mechanisms are predicted to do with a budget, before any of it is spent."""

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
class Question:
    """What a comparison of mechanisms is about: public facts and assumptions."""

    formula: str
    columns: int  # coded
    components: int  # wanted
    rows: int  # assumed
    guarantee: Guarantee  # what every mechanism is given
    adjacency: Adjacency
    center: bool  # whether the mean is taken off
    scale: str | None
    row_norm: float  # radius rows are held in
    row_lengths: tuple[float, ...]  # that rows have, as shares of it; empty for several shapes
    spectrum: str  # the assumed eigenvalues, in words
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
    question : Question
        What was compared, under which assumptions.
    table : DataFrame
        One row a mechanism, best first. Columns: ``mechanism``; ``energy``,
        the share of the variance along the first components that the released
        ones capture, ``frobenius``, the error of the covariance estimate in
        units of the squared row norm, and ``relative``, the latter over the
        norm of the covariance: each the median over shapes of rows, with the
        standard error of the simulation, ``energy_se``, and on the worst shape,
        ``energy_worst``, which is ``energy_worst_at``; ``numerics``; ``fits``,
        whether the mechanism takes the guarantee; ``note``.
    by_shape : DataFrame
        One row a mechanism and shape: ``mechanism``, ``shape``, and the three
        with their standard errors.
    shapes : DataFrame or None
        One row a shape: ``shape``; ``like``, its columns in words; lengths of
        rows in row norms, between which 90 % are, ``length_low`` and
        ``length_high``; ``spread``, their median distance from the mean. Where
        several lengths were asked for, each is a shape. None where rows have one
        length.
    auto : Automatic
        What ``mechanism="auto"`` of :func:`dp_pca` takes, with its ``reason``.
    """

    question: Question
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

        shown, asked = simulated(self.predicted), self.question
        marked = self.shapes is not None
        told = "; mark: worst shape" if marked else ""
        energy = f"Captured energy, {asked.components} of {asked.columns}{told}"
        error = f"Error over norm of the covariance{told}"
        worst = [shown[f"{name}_worst"] if marked else None for name in ("energy", "relative")]
        return bars(
            (
                Panel(energy, shown["energy"], shown["energy_se"], marks=worst[0]),
                Panel(error, shown["relative"], shown["relative_se"], log=True, marks=worst[1]),
            ),
            labels=[self.label(name) for name in shown["mechanism"]],
            pale=(shown["note"] == "baseline").tolist(),
            axes=axes,
        )
