"""Tables derived from a fit, such as effects, means and tests; no budget is spent."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dpmodels.arguments import boolean
from dpmodels.report import Report
from dpmodels.results.base import Printed, Result
from dpmodels.results.estimate_table import legend


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
