"""The result of a one-call table of descriptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from dpmodels.errors import ArgumentError, said
from dpmodels.released import CountsRelease
from dpmodels.results.base import Result
from dpmodels.results.call import DescribedCall, TableCall, joined
from dpmodels.results.described import described_line, taken
from dpmodels.results.groups import MeanResult
from dpmodels.results.table import TableResult


@dataclass(frozen=True, repr=False, eq=False)
class OverviewResult(Result):
    """Private descriptions of several variables: released values and public facts only.

    Parameters
    ----------
    strata : int
        How many factors rows are grouped by, the first of each table.

    Notes
    -----
    :meth:`noise_int` is of means and counts, :meth:`conf_int` of means and
    shares of all complete rows, by variable and cell.
    """

    call: DescribedCall
    release: CountsRelease
    strata: int

    @property
    def variables(self) -> tuple[str, ...]:
        """What is described, in the formula's order."""
        return tuple(table.measured or table.factors[-1] for table in self.call.tables)

    @property
    def groups(self) -> TableCall:
        """The groups that every variable is described in."""
        first = self.call.tables[0]
        return TableCall(first.factors[: self.strata], first.levels[: self.strata])

    def __getitem__(self, variable: str) -> MeanResult | TableResult:
        """Return the means or the counts of one variable.

        Raises
        ------
        ArgumentError
            If it is not in the overview.
        """
        if variable not in self.variables:
            known = ", ".join(map(repr, self.variables))
            raise ArgumentError(f"variable {said(variable)} is not described; those are {known}")
        number = self.variables.index(variable)
        own = taken(self.call, self.release, number)
        return MeanResult(*own) if self.call.tables[number].measured else TableResult(*own)

    def _noise_int(self, level: float) -> pd.DataFrame:
        return pd.concat({name: _flat(self[name].noise_int(level)) for name in self.variables})

    def _conf_int(self, level: float) -> pd.DataFrame:
        return pd.concat({name: _flat(self[name].conf_int(level)) for name in self.variables})

    def tidy(self) -> pd.DataFrame:
        """Return one row a variable and cell, columns of means and of counts together."""
        parts = []
        for name in self.variables:
            own = self[name].tidy()
            if isinstance(self[name], TableResult):
                own = own.rename(columns={name: "level"})
            parts.append(own.assign(variable=name).drop(columns="group", errors="ignore"))
        table = pd.concat(parts, ignore_index=True)
        return table[["variable", *(one for one in table.columns if one != "variable")]]

    def glance(self) -> pd.DataFrame:
        """Return one row about the whole release."""
        return super().glance().assign(nvariables=len(self.variables))

    def _line(self) -> dict[str, Any]:
        line = described_line(self.release, float("nan"), self.groups.cells)
        return {name: own for name, own in line.items() if name != "ncomplete"}

    @property
    def _size(self) -> str:
        return f"{len(self.variables)} vars"


def _flat(frame: pd.DataFrame) -> pd.DataFrame:
    """Join the levels of a cell, so that tables of all shapes stand in one index."""
    return frame.set_axis(pd.Index(joined(frame.index), name="cell"))
