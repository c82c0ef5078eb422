"""The result of a one-call table of descriptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
import pandas as pd

from dpmodels.errors import ArgumentError, NotAvailable, did_you_mean, quoted
from dpmodels.inference.independence import Independence
from dpmodels.inference.means import EqualMeans, equal_means
from dpmodels.released import CountsRelease
from dpmodels.results import estimate_table
from dpmodels.results.base import Derivation
from dpmodels.results.call import DescribedCall, TableCall, joined
from dpmodels.results.count_tables import described_line, taken
from dpmodels.results.discoveries import Tested
from dpmodels.results.groups import NO_DESIGN, MeanResult
from dpmodels.results.table import TableResult
from dpmodels.results.weighted import WeightedTableResult
from dpmodels.typing import Axes
from dpmodels.verbs import documented


@dataclass(frozen=True, repr=False, eq=False)
class OverviewResult(Tested):
    """Private descriptions of several variables: released values and public facts only.

    Parameters
    ----------
    strata : int
        How many factors rows are grouped by, the first of each table.
    tested : bool
        Whether the printed table has p-values.

    Notes
    -----
    :meth:`noise_int` is of means and counts, :meth:`conf_int` of means and
    shares of all complete rows, by variable and cell. Under a survey design
    counts are totals of the population, and `design` has the cap and its effects.
    """

    call: DescribedCall
    release: CountsRelease
    strata: int
    tested: bool

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
        kind: type[MeanResult | TableResult] = MeanResult
        return self._derive(kind, "variable", name=variable)

    def _variable(self, name: str) -> Derivation:
        if name not in self.variables:
            options = ", ".join(map(repr, self.variables))
            problem = (
                f"variable {quoted(name)} is not described{did_you_mean(name, self.variables)}"
            )
            raise ArgumentError(f"{problem}; those are {options}")
        number = self.variables.index(name)
        table = self.call.tables[number]
        counts = TableResult if table.sampled is None else WeightedTableResult
        kind = MeanResult if table.measured else counts
        call = replace(self.call, tables=self.call.tables[number : number + 1])
        return Derivation(call, kind, partial(taken, self.call, number=number))

    derivations: ClassVar = {"variable": _variable}

    @property
    def design(self) -> pd.DataFrame:
        """Under a survey design by variable and cell: deff, effective n, df, and the cap.

        The columns are those of `design` of means and of tables.

        Raises
        ------
        NotAvailable
            Without a survey design.
        """
        designs = {
            name: result.design
            for name in self.variables
            if isinstance(result := self[name], MeanResult | WeightedTableResult)
        }
        if not designs:
            raise NotAvailable(NO_DESIGN)
        return self._joined(designs)

    def _interval(self, level: float, *, population: bool) -> pd.DataFrame:
        of_kind = "conf_int" if population else "noise_int"
        return self._joined({name: getattr(self[name], of_kind)(level) for name in self.variables})

    @staticmethod
    def _joined(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
        # The levels of a cell are joined, so that tables of all shapes stand in one index.
        names = {
            name: frame.set_axis(pd.Index(joined(frame.index), name="cell"))
            for name, frame in frames.items()
        }
        return pd.concat(names, names=["variable", "cell"])

    def overall(self) -> pd.DataFrame:
        """Return all groups together, one row a variable, or a level of one.

        Sums of what was released for the groups, at no further cost; their noise is that of the
        sums. Rows without a declared group are in none. The columns are those of :meth:`tidy`,
        without intervals.
        """
        lines: list[dict[str, object]] = []
        for name in self.variables:
            result = self[name]
            if isinstance(result, TableResult):
                lines += ({"variable": name, **line} for line in _levels(result))
            else:
                lines.append({"variable": name, **_mean(result)})
        table = pd.DataFrame(lines)
        return estimate_table.labelled(table, self.call.codebook, label=_codes(table["variable"]))

    def tests(self) -> pd.DataFrame:
        """Return one row a variable: whether the groups differ, allowing for the noise.

        ``variable, test, statistic, df, df_resid, p_value, reason``: of means Welch's t or F, of
        counts chi-square; nan for the reason given. Made of what was released, at no further cost;
        p-values are not adjusted for their number, and none is below 1e-9 for means.

        Raises
        ------
        NotAvailable
            If there are no groups.
        """
        if not self.strata:
            raise NotAvailable(
                "tests() is not available: there are no groups to compare; write 'a + b ~ group'"
            )
        return pd.DataFrame([{"variable": name, **_test(self[name])} for name in self.variables])

    @property
    def pvalues(self) -> pd.Series[float]:
        """P-values of :meth:`tests`, by variable."""
        return self.tests().set_index("variable")["p_value"].rename("pvalues")

    def _estimates(self) -> estimate_table.EstimateTable:
        parts = []
        for name in self.variables:
            rows = self[name].tidy().rename(columns={name: "level"}).assign(variable=name)
            parts.append(rows.drop(columns=["group", "label"], errors="ignore"))
        table = pd.concat(parts, ignore_index=True)
        table["level"] = table.get("level", pd.Series(np.nan, table.index, dtype=object))
        keys = ["variable", *self.groups.factors, "level"]
        columns = {*keys, *estimate_table.COLUMNS, "proportion_low", "proportion_high"}
        numbers = table[["estimate", "std_error", "noise_sd"]]
        tables = [self[name].estimates for name in self.variables]
        counts = {"proportion"} & set(table)
        estimates = estimate_table.table_of_estimates(
            self,
            pd.MultiIndex.from_frame(table[keys]),
            further={name: table[name] for name in map(str, table) if name not in columns},
            labels=_codes(table["variable"]),
            unit=[part.unit for part in tables for _ in part.keys.index],
            p_value=np.nan,
            **numbers,
        )
        shares = {name: estimate_table.joined_ends(tables, name) for name in counts}
        total = estimate_table.joined_ends(tables, "conf")
        return replace(estimates, total=total, further_intervals=shares)

    def glance(self) -> pd.DataFrame:
        """Return one row about the whole release."""
        return super().glance().assign(nvariables=len(self.variables))

    @documented
    def plot(
        self,
        ax: Axes | None = None,
        variable: str | None = None,
        level: float = 0.95,
        *,
        caption: bool = True,
    ) -> Axes:
        """Draw the means or the shares of one variable by group, with both intervals.

        Raises
        ------
        ArgumentError
            If it is not in the overview.
        """
        result = self[self.variables[0] if variable is None else variable]
        return result.plot(ax, level, caption=caption)

    def _line(self) -> dict[str, object]:
        line = described_line(self.release, float("nan"), self.groups.cells)
        return {"nobs": line["nobs"], "ngroups": line["ngroups"]}

    def _size(self) -> str:
        return f"{len(self.variables)} vars"


def _mean(result: MeanResult) -> dict[str, object]:
    facts, moments = result._facts, result._moments.together
    noise, sampling = moments.mean_noise_sd[0], moments.mean_sampling_sd[0]
    mean, sd = facts.lower + facts.width * moments.means[0], np.sqrt(moments.variances[0])
    numbers = {"count": float(result.counts.sum()), "estimate": mean, "sd": facts.width * sd}
    error = facts.width * np.hypot(noise, sampling)
    return {**numbers, "std_error": error, "noise_sd": facts.width * noise}


def _levels(result: TableResult) -> list[dict[str, object]]:
    counts, levels = result.by_level, result._facts.levels[-1]
    total, noise = max(counts.sum(), 1), result.noise_sd(len(counts))
    return [
        {"level": level, "count": count, "proportion": count / total, "noise_sd": noise}
        for level, count in zip(levels, counts.sum(axis=0).tolist(), strict=True)
    ]


def _test(result: MeanResult | TableResult) -> dict[str, object]:
    test: Independence | EqualMeans
    if isinstance(result, TableResult):
        name, test = "chi-square", result._tested(result.by_level.shape)
    else:
        test = equal_means(result._moments)
        name = "Welch t" if test.groups == 2 else "Welch F"
    numbers = {"test": name, "statistic": test.statistic, "df": test.df}
    numbers |= {"df_resid": getattr(test, "df_resid", np.nan), "p_value": test.pvalue}
    return {**numbers, "reason": test.reason}


def _codes(names: Iterable[str]) -> list[str]:
    """Return the names of variables without the counted level."""
    return [name.partition(" = ")[0] for name in names]
