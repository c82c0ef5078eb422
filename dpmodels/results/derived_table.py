"""Estimates derived from a result at no cost, and the default picture of a table of estimates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from dpmodels.arguments import boolean
from dpmodels.report import Report
from dpmodels.results.base import Printed, Result, checked_level
from dpmodels.results.estimate_table import EstimateTable, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False, eq=False)
class Estimates(Printed):
    """Numbers derived from a fit: post-processing at no privacy cost.

    Parameters
    ----------
    fit : Result
        The fit that they are derived from, with its guarantee.
    title : str
        The printed title.
    table : DataFrame
        One row an estimate or a test: columns that name it, then of ``estimate, std_error,
        statistic, df, p_value, conf_low, conf_high`` those that there are.
    notes : tuple of str
        The printed notes.
    level : float
        Coverage of the intervals, in (0, 1).
    ratio : bool
        Whether estimates and intervals are of ratios; standard errors are of their logarithms.
    test : {"z", "t", "F", "chi2"}
        What the statistic is.
    facts : tuple of (str, str)
        Lines of the heading, such as at which values the estimates stand.

    Examples
    --------
    >>> import dpmodels as dp
    >>> from dpmodels.models.lm import dp_lm
    >>> cb = dp.codebook(wage=(0, 100), educ=(0, 20), sex=["F", "M"])
    >>> rows = {"wage": [31, 64] * 500, "educ": [9, 16] * 500, "sex": ["F", "M", "M", "F"] * 250}
    >>> fit = dp_lm("wage ~ educ + sex", rows, codebook=cb, eps=10.0)
    >>> table = fit.anova()
    >>> table.tidy()["term"].tolist(), table.summary().as_markdown().count("Term")
    (['sex', 'educ'], 1)
    """

    fit: Result
    title: str
    table: pd.DataFrame
    notes: tuple[str, ...]
    level: float = 0.95
    ratio: bool = False
    test: str = "z"
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def stamp(self) -> str | None:
        """The warning on tables of a simulation, else None."""
        return self.fit.stamp

    def tidy(self) -> pd.DataFrame:
        """Return the table, with the column names of R's broom."""
        return self.table.copy()

    def _report(self) -> Report:
        return replace(super()._report(), legend=legend(self.fit.call.codebook))

    def _reading(self) -> str:
        return self.fit._reading()

    def __repr__(self) -> str:
        return f"<Estimates {self.title!r} of {self.fit.call.formula!r}: {len(self.table)} rows>"


def exponentiated(table: pd.DataFrame) -> pd.DataFrame:
    """Return a tidy table with exponentials of estimates and ends; errors stay as they are."""
    names = ("estimate", "noise_low", "noise_high", "conf_low", "conf_high")
    table = table.drop(columns="unit", errors="ignore")
    with np.errstate(over="ignore"):
        return table.assign(**{name: np.exp(table[name]) for name in names if name in table})


def ratios_where(exponentiate: bool, table: pd.DataFrame) -> pd.DataFrame:
    """Return a tidy table, exponentiated if requested."""
    return exponentiated(table) if boolean("exponentiate", exponentiate) else table


class DefaultPlot(Result):
    """A result that is drawn as its table of estimates."""

    # The name of the estimates.
    _estimated: ClassVar[str] = "Estimate"

    @property
    def _plotted(self) -> tuple[EstimateTable, str]:
        """The estimates that the picture shows, and what they are."""
        return self.estimates, self._estimated

    def plot(self, level: float = 0.95, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw the estimates, with noise intervals and confidence intervals where available.

        Parameters
        ----------
        level : float
            Coverage of the intervals, in (0, 1).
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        caption : bool
            Whether guarantee, neighbours and noise stand under the picture.
        """
        from dpmodels.plots.points import estimates

        source, title = self._plotted
        table = source.tidy(checked_level(level))
        noise, confidence = (
            table[[f"{kind}_low", f"{kind}_high"]].to_numpy() for kind in ("noise", "conf")
        )
        return estimates(
            table["estimate"].to_numpy(),
            noise,
            confidence,
            labels=[", ".join(map(str, key)) for key in source.keys.itertuples(index=False)],
            title=title,
            level=level,
            **self._picture(ax, caption),
        )
