"""What guarantees mean: tests, posteriors, advantages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from scipy.special import expit

from dpmodels.arguments import boolean
from dpmodels.errors import ArgumentError
from dpmodels.privacy import Adjacency, ApproxDP, PureDP
from dpmodels.privacy.trade_off import Curve, advantage, misses, odds_factor, power, shifted
from dpmodels.results.base import STAMP, Printed
from dpmodels.results.release_text import protected
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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

    @property
    def stamp(self) -> str | None:
        """The warning on tables and pictures of a simulation, else None."""
        return STAMP if self.simulated else None

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

    def plot(self, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw the smallest miss rates against false-alarm rates, a curve a guarantee.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        caption : bool
            Whether guarantee, neighbours and noise stand under the picture.
        """
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
