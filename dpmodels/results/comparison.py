"""What the mechanisms are predicted to do with a budget, before any of it is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from dpmodels.errors import NotAvailable
from dpmodels.privacy import Adjacency, Guarantee
from dpmodels.results.base import Printed

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
    row_length: float  # that all rows are assumed to have, as a share of it
    spectrum: str  # the assumed eigenvalues, in words
    repeats: int  # simulated releases of each mechanism


@dataclass(frozen=True, repr=False, eq=False)
class Comparison(Printed):
    """Predicted errors of mechanisms: simulated, no data were read.

    Attributes
    ----------
    question : Question
        What was compared, under which assumptions.
    table : DataFrame
        One row a mechanism, best first. Columns: ``mechanism``; ``energy``,
        the share of the variance along the first components that the released
        ones capture, and ``frobenius``, the error of the covariance estimate
        in units of the squared row norm, each with the standard error of the
        simulation, ``energy_se`` and ``frobenius_se``; ``relative``, the
        latter over the norm of the covariance; ``numerics``; ``fits``,
        whether the mechanism takes the guarantee; ``note``.
    """

    question: Question
    table: pd.DataFrame

    @property
    def best(self) -> str:
        """The mechanism at the top of the table, baselines apart.

        Raises
        ------
        NotAvailable
            If no mechanism could be simulated.
        """
        able = self.predicted[self.predicted["note"] != "baseline"]
        if able.empty:
            raise NotAvailable(_NOTHING)
        return str(able["mechanism"].iloc[0])

    @property
    def predicted(self) -> pd.DataFrame:
        """The rows of the table that have predictions."""
        return self.table[self.table["energy"].notna()]

    def tidy(self) -> pd.DataFrame:
        """Return the table."""
        return self.table.copy()

    def plot(self, axes: Sequence[Axes] | None = None) -> tuple[Axes, ...]:
        """Draw captured energy and error of each mechanism, with standard errors.

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

        shown, asked = self.predicted, self.question
        if shown.empty:
            raise NotAvailable(_NOTHING)
        energy = f"Captured energy, {asked.components} of {asked.columns}"
        error = "Frobenius error (squared row norms)"
        return bars(
            (
                Panel(energy, shown["energy"], shown["energy_se"]),
                Panel(error, shown["frobenius"], shown["frobenius_se"], log=True),
            ),
            labels=shown["mechanism"].tolist(),
            pale=(shown["note"] == "baseline").tolist(),
            axes=axes,
        )

    def __repr__(self) -> str:
        able = len(self.predicted)
        return (
            f"<Comparison {self.question.formula!r}: {able} mechanisms simulated, "
            f"{self.question.guarantee.describe()}, nothing spent>"
        )


_NOTHING = "no mechanism was simulated with this budget: the column note of the table says why"
