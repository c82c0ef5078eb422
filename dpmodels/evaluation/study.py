"""What an evaluation found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr

from dpmodels.arguments import whole, word
from dpmodels.evaluation.asked import Asked
from dpmodels.results.base import STAMP, Printed
from dpmodels.typing import Floats
from dpmodels.writing import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False, eq=False)
class Study(Printed):
    """An evaluation of algorithms on public or simulated tables; nothing in it is private.

    Attributes
    ----------
    asked : Asked
        What was measured, in how many repeats, from which seed.
    data : xarray.Dataset
        ``error`` and, of intervals, ``coverage`` by ``algorithm``, ``cell`` and
        ``repeat``; ``mean``, ``se``, ``p95``, ``regret``, ``competitive``,
        ``bias`` (the share of the squared error that is squared bias) and
        ``bias_p`` by ``algorithm`` and ``cell``. A cell has the coordinates
        ``table``, ``scale``, ``domain`` and ``eps``.
    checks : DataFrame
        One row an algorithm, table and domain: ``falls_to``, the error at a
        million times eps over that at a thousand times, ``consistent``;
        ``ratio``, of errors where rows are ten times as many and eps is a
        tenth, with its interval ``ratio_low, ratio_high``, ``exchangeable``.
        Where ``table`` is empty the ratio is that of all tables.
    truths, answers : mapping
        What was drawn first in each cell, and what each algorithm gave for it.
    """

    asked: Asked
    data: xr.Dataset
    checks: pd.DataFrame
    truths: Mapping[int, Floats]
    answers: Mapping[tuple[str, int], Floats]

    @property
    def stamp(self) -> str:
        """What tables and pictures are stamped with."""
        return STAMP

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Names of the algorithms, baselines last."""
        return tuple(map(str, self.data["algorithm"].to_numpy()))

    @property
    def table(self) -> pd.DataFrame:
        """One row an algorithm over all cells, the most competitive first.

        ``algorithm``; ``regret``, the geometric mean over cells, and
        ``regret_worst``; ``competitive``, in how many of ``cells``; ``p95``, the
        95th percentile of errors over their mean; ``bias``, the mean share, and
        ``biased``, in how many cells it is told from 0 at 5 % over the number
        of tests; ``coverage`` of intervals; ``consistent`` and
        ``exchangeable``, False where that is ruled out on a table, None where
        it could not be tried, and ``ratio_low, ratio_high``.
        """
        data, checks = self.data, self.checks
        level = 0.05 / data["bias_p"].size
        ratios = checks[checks["table"] == ""].set_index("algorithm").loc[list(self.algorithms)]
        columns = {
            "algorithm": list(self.algorithms),
            "regret": np.exp(np.log(data["regret"].to_numpy()).mean(axis=1)),
            "regret_worst": data["regret"].max("cell").to_numpy(),
            "competitive": data["competitive"].sum("cell").to_numpy(),
            "cells": data.sizes["cell"],
            "p95": _over(data["p95"].to_numpy(), data["mean"].to_numpy()).mean(axis=1),
            "bias": data["bias"].mean("cell").to_numpy(),
            "biased": (data["bias_p"] <= level).sum("cell").to_numpy(),
            "coverage": data["coverage"].mean(("cell", "repeat")).to_numpy(),
            "consistent": [_all(checks, name, "consistent") for name in self.algorithms],
            "exchangeable": [_all(checks, name, "exchangeable") for name in self.algorithms],
            "ratio_low": ratios["ratio_low"].to_numpy(),
            "ratio_high": ratios["ratio_high"].to_numpy(),
        }
        made = pd.DataFrame(columns)
        order = made.sort_values(["competitive", "regret"], ascending=[False, True], kind="stable")
        return order.reset_index(drop=True)

    def tidy(self) -> pd.DataFrame:
        """Return one row an algorithm and cell: where, how large errors are, and what is told."""
        names = ["mean", "se", "p95", "regret", "competitive", "bias", "bias_p"]
        wide = self.data[names].assign(coverage=self.data["coverage"].mean("repeat"))
        made = wide.to_dataframe().reset_index()
        first = ["algorithm", "table", "scale", "domain", "eps"]
        return made[[*first, *names, "coverage"]]

    def glance(self) -> pd.DataFrame:
        """Return one row: the algorithm that is competitive most often, and what was run."""
        best = self.table.iloc[0]
        line = {
            "best": best["algorithm"],
            "regret": best["regret"],
            "competitive": best["competitive"],
            "cells": best["cells"],
            "algorithms": len(self.algorithms),
            "repeats": self.asked.repeats,
            "error": self.asked.error,
            "seed": self.asked.seed,
            "simulated": True,
        }
        return pd.DataFrame([line])

    def plot(self, cell: int = 0, axes: Sequence[Axes] | None = None) -> tuple[Axes, ...]:
        """Draw three pictures side by side, of one cell.

        Errors by algorithm in the cell; errors against eps times scale for the
        cell's table and domain; the true table and the answer of the best.

        Parameters
        ----------
        cell : int
            Number of the cell, from 0; of two axes the first picture and the
            second alone are of use.
        axes : three matplotlib Axes, optional
            Where to draw; a new figure by default.

        Raises
        ------
        ArgumentError
            If there is no such cell.
        """
        from dpmodels.evaluation.picture import three_axes

        drawn = three_axes(axes)
        best = str(self.cell(cell).sort_values("mean")["algorithm"].iloc[0])
        return (
            self.plot_errors(cell, drawn[0]),
            self.plot_signal(cell, drawn[1]),
            self.plot_released(best, cell, drawn[2]),
        )

    def plot_errors(self, cell: int = 0, ax: Axes | None = None) -> Axes:
        """Draw errors by algorithm in one cell: means, and every run."""
        from dpmodels.evaluation.picture import errors

        number = self._number(cell)
        found = self.data["error"].isel(cell=number).to_numpy()
        return errors(self.algorithms, found, self.title(cell), ax=ax, stamp=self.stamp)

    def plot_signal(self, cell: int = 0, ax: Axes | None = None) -> Axes:
        """Draw errors against eps times scale, for the table and domain of a cell."""
        from dpmodels.evaluation.picture import signal

        own = self.cell(cell).iloc[0]
        lines = self.tidy()
        alike = lines[(lines["table"] == own["table"]) & (lines["domain"] == own["domain"])]
        title = f"{own['table']} {own['domain']}".strip()
        return signal(alike, self.algorithms, title, ax=ax, stamp=self.stamp)

    def plot_released(self, algorithm: str, cell: int = 0, ax: Axes | None = None) -> Axes:
        """Draw what was drawn first in a cell, and what an algorithm gave for it."""
        from dpmodels.evaluation.picture import beside

        name = word("algorithm", algorithm, self.algorithms)
        truth = self.truths[self._number(cell)]
        answer = self.answers[name, cell]
        return beside(truth, answer, name, self.title(cell), ax=ax, stamp=self.stamp)

    def cell(self, number: int) -> pd.DataFrame:
        """Return what is told of one cell, a row an algorithm."""
        own = self.tidy()
        places = np.tile(np.arange(self.data.sizes["cell"]), len(self.algorithms))
        return own.iloc[np.flatnonzero(places == self._number(number))]

    def title(self, cell: int) -> str:
        """Return a cell in words."""
        own = self.data.isel(cell=self._number(cell))
        domain = [f"{own['domain'].item()} cells"] if own["domain"].item() else []
        rest = (*domain, f"{own['scale'].item():,} rows", f"eps {own['eps'].item():g}")
        return f"{own['table'].item()}: {', '.join(rest)}"

    def page(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write one HTML file with the three pictures, to be looked at without a network.

        Parameters
        ----------
        path : path
            Of the file.
        overwrite : bool
            Whether to write over a file that is there.

        Raises
        ------
        ArgumentError, FrameError
            If it cannot be written.
        """
        from dpmodels.evaluation.page import page

        report = self.summary().as_html()
        made = page(self.asked, self.data, self.truths, self.answers, self.stamp, report)
        write_whole(path, made.encode(), overwrite=overwrite)

    def _number(self, cell: int) -> int:
        return whole("cell", cell, 0, self.data.sizes["cell"] - 1)

    def __repr__(self) -> str:
        sizes = self.data.sizes
        return (
            f"<Study of {sizes['algorithm']} algorithms in {sizes['cell']} cells, "
            f"{self.asked.repeats} repeats, error {self.asked.error!r}: simulated, nothing spent>"
        )


def _over(above: Floats, below: Floats) -> Floats:
    """Divide, 1 where both are 0."""
    return np.divide(above, below, out=np.ones_like(above), where=below > 0)


def _all(checks: pd.DataFrame, algorithm: str, name: str) -> bool | None:
    """Return whether a check holds on all tables on which it could be made."""
    own = [one for one in checks.loc[checks["algorithm"] == algorithm, name] if one is not None]
    return all(own) if own else None
