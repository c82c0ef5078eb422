"""Predicted errors of mechanisms under a budget, and what guarantees mean to an adversary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit

from dpmodels.arguments import boolean
from dpmodels.errors import ArgumentError, NotAvailable
from dpmodels.privacy import Adjacency, ApproxDP, Guarantee, PureDP
from dpmodels.privacy.trade_off import Curve, advantage, misses, odds_factor, power, shifted
from dpmodels.results.base import Printed
from dpmodels.results.call import protected
from dpmodels.typing import Axes, Floats
from dpmodels.verbs import documented

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
    shapes: pd.DataFrame | None
    auto: Automatic

    # The column that every mechanism with predictions has.
    _measure: ClassVar[str]

    if TYPE_CHECKING:

        @property
        def _panels(self) -> tuple[tuple[str, str, bool], ...]:
            """Columns of the picture, their titles, and whether their scales are logarithmic."""

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

    def plot(self, axes: Sequence[Axes] | None = None) -> tuple[Axes, ...]:
        """Draw the two predicted errors of each mechanism that ``table`` has, typical and worst.

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

        predicted, panels = simulated(self.predicted), []
        for name, title, is_log in self._panels:
            worst = None if self.shapes is None else predicted[f"{name}_worst"]
            panels.append(Panel(title, predicted[name], predicted[f"{name}_se"], is_log, worst))
        return bars(
            panels,
            labels=[self.label(name) for name in predicted["mechanism"]],
            pale=(predicted["note"] == "baseline").tolist(),
            axes=axes,
        )

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

    @property
    def _panels(self) -> tuple[tuple[str, str, bool], ...]:
        suffix = "" if self.shapes is None else "; mark: worst shape"
        energy = f"Captured energy, {self.request.components} of {self.request.columns}{suffix}"
        error = f"Error over norm of the covariance{suffix}"
        return ("energy", energy, False), ("relative", error, True)


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
    _panels = (
        ("error", "Error over standard error without privacy\n(mark: worst shape)", True),
        ("excess", "Part of the explained deviance lost\n(mark: worst shape)", True),
    )

    @property
    def behind(self) -> pd.Series[float]:
        """Error of the automatic choice over that of the best mechanism, by shape of rows.

        1 where it is the best; nan where no slope has an estimate without
        privacy, or the automatic choice was not tried.
        """
        wide = self.by_shape.pivot_table("error", "shape", "mechanism", sort=False, dropna=False)
        errors = wide.get(self.auto.mechanism, pd.Series(index=wide.index, dtype=float))
        return pd.Series(errors / wide.min(axis=1), name="behind")


# Numbers of rows, or persons, that are tested together.
UNITS: Final = (1, 2)
_MEASURES: Final = ("power", "posterior_lower", "posterior", "holds", "odds", "advantage", "lie")


@dataclass(frozen=True, repr=False, eq=False)
class ReadingResult(Printed):
    """Readings of guarantees: bounds that hold for everybody, whatever else an adversary knows.

    Parameters
    ----------
    of : str
        The source of the guarantees; empty where they were given by themselves.
    labels : tuple of str
        The guarantees as text.
    curves : tuple of Curve
        The trade-off curve of each.
    adjacency : Adjacency
        Who is protected.
    alpha, prior : float
        Level of the test, and the prior probability of an adversary.
    local : bool
        Whether each respondent randomised their own answer.
    simulated : bool
        Whether they are of a simulation, which satisfies none of them.
    spent : bool
        Whether the last one is of what a ledger has been charged so far.
    """

    of: str
    labels: tuple[str, ...]
    curves: tuple[Curve, ...]
    adjacency: Adjacency
    alpha: float
    prior: float
    local: bool = False
    simulated: bool = False
    spent: bool = False

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row a guarantee, for one unit that it protects, then one for two of them.

        Columns: ``guarantee`` as text; ``units`` and what they are, ``protected``; the largest
        ``power`` of a test at level `alpha`; ``posterior_lower`` and ``posterior``, between which
        `prior` stays, and the probability, over the noise, with which each ``holds``; the factor of
        the ``odds`` that they come from; the ``advantage``, power less level, at the best level;
        and the probability to ``lie`` of a randomized response that is as private, nan where none
        is and for two units.
        """
        lines = [self._line(at, units) for units in UNITS for at in range(len(self.curves))]
        return pd.DataFrame(lines)

    def tidy(self) -> pd.DataFrame:
        """Return one row a number: ``guarantee, units, protected, reading, value``."""
        keys = ["guarantee", "units", "protected"]
        return self.table.melt(keys, list(_MEASURES), "reading", "value")

    def trade_off(self, alarms: object) -> pd.DataFrame:
        """Return the smallest miss rates of tests, a column a guarantee.

        Parameters
        ----------
        alarms : array_like
            Rates of false alarms, in [0, 1]; the index of the frame.
        """
        try:
            rates: Floats = np.asarray(alarms, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError):
            rates = np.full(1, np.nan)
        if not ((rates >= 0) & (rates <= 1)).all():
            raise ArgumentError("alarms: expected rates of false alarms between 0 and 1")
        columns = [misses(curve, rates) for curve in self.curves]
        index = pd.Index(rates, name="false alarms")
        return pd.DataFrame(np.column_stack(columns), index, list(self.labels))

    @documented
    def plot(self, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw the smallest miss rates against false-alarm rates, a curve a guarantee."""
        from dpmodels.plots.curves import RATES, trade_offs

        curves = self.trade_off(RATES).to_numpy().T
        points = self.trade_off([self.alpha]).to_numpy()[0]
        who = f"Privacy of {protected(self.adjacency, self.local, 1)}: {'; '.join(self.labels)}."
        return trade_offs(
            curves,
            self.labels,
            (self.alpha, points),
            ax=ax,
            stamp=self.stamp,
            caption=who if boolean("caption", caption) else None,
        )

    def __repr__(self) -> str:
        return f"<ReadingResult of {', '.join(self.labels)}>"

    def _line(self, at: int, units: int) -> dict[str, object]:
        curve = self.curves[at]
        factor = odds_factor(curve, self.alpha, units)
        eps = curve.eps if isinstance(curve, PureDP | ApproxDP) and units == 1 else np.nan
        return {
            "guarantee": self.labels[at],
            "units": units,
            "protected": protected(self.adjacency, self.local, units),
            "power": power(curve, self.alpha, units),
            "posterior_lower": shifted(self.prior, 1 / factor),
            "posterior": shifted(self.prior, factor),
            "holds": 1.0 if isinstance(curve, PureDP) else 1 - self.alpha,
            "odds": factor,
            "advantage": advantage(curve, units),
            "lie": float(expit(-eps)),
        }
