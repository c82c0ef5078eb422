"""The results of an evaluation: table, plots and page."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from os import PathLike
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
import xarray as xr

from dpmodels.arguments import integer, option
from dpmodels.atomic_files import write_whole
from dpmodels.errors import ArgumentError
from dpmodels.plots.style import (
    BLUE,
    FONT,
    GREY,
    INK,
    PALE,
    SERIES,
    VERMILION,
    axes_or_new,
    finished,
    listed,
    literal,
    number,
    quiet,
)
from dpmodels.results.base import STAMP, Printed
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# A study as one HTML file: three plots with a choice of cells, and a table under each.
#
# The file contains its script and style, and its content policy forbids loading anything else.
# Results are data in the script, so that no name acts as markup.

# Most parts of a plotted table along its one axis, or each of two.
_PARTS: Final = {1: 256, 2: 32}
_DIGITS: Final = 5
_DATA, _REPORT = "/*study*/null", "<!--report-->"


def page(
    settings: StudySettings,
    data: xr.Dataset,
    truths: Mapping[int, Floats],
    answers: Mapping[tuple[str, int], Floats],
    stamp: str,
    report: str,
) -> str:
    """Return the file's text; `report` is a fragment of HTML with all other results."""
    coordinates = ("table", "domain", "scale", "eps")
    columns = {name: data[name].to_numpy().tolist() for name in coordinates}
    lines = zip(*columns.values(), strict=True)
    cells = [dict(zip(columns, values, strict=True)) for values in lines]
    names = data["algorithm"].to_numpy().tolist()
    measures = ("mean", "se", "p95", "regret", "bias")
    study = {
        "stamp": stamp,
        "about": f"{settings.error}: {settings.about}. {settings.repeats} repeats in each of "
        f"{len(cells)} cells. Rows were drawn from public or simulated shapes; no budget was "
        "charged.",
        "algorithms": names,
        "baselines": settings.baselines,
        "cells": cells,
        **{name: _rounded(data[name].to_numpy()) for name in measures},
        "competitive": data["competitive"].to_numpy().tolist(),
        "runs": _rounded(data["error"].to_numpy()),
        "truths": [_in_parts(truths[at]) for at in range(len(cells))],
        "answers": [[_in_parts(answers[name, at]) for at in range(len(cells))] for name in names],
    }
    text = files("dpmodels.evaluation").joinpath("page.html").read_text("utf-8")
    before, after = text.split(_DATA)
    # A table's name could end the script or begin a comment.
    plain = json.dumps(study, allow_nan=False).replace("<", "\\u003c")
    return before.replace(_REPORT, report) + plain + after


def _rounded(values: Floats) -> object:
    """Return nested lists of numbers of few digits, None for those that are not finite."""
    if values.ndim:
        return [_rounded(part) for part in values]
    value = float(values)
    return float(f"{value:.{_DIGITS - 1}e}") if math.isfinite(value) else None


def _in_parts(table: Floats) -> dict[str, object]:
    """Return a table in few enough parts for a plot."""
    if table.ndim not in _PARTS:
        table = table.ravel()
    max_parts = _PARTS[table.ndim]
    small, parts = table, 1
    for axis, cells in enumerate(table.shape):
        n_parts = min(cells, max_parts)
        edges = np.linspace(0, cells, n_parts + 1).astype(np.int64)
        small = np.add.reduceat(small, edges[:-1], axis=axis) if cells else small
        parts *= max(round(cells / max(n_parts, 1)), 1)
    return {"shape": small.shape, "parts": parts, "values": _rounded(small.ravel())}


# The settings of a study.


@dataclass(frozen=True)
class StudySettings:
    """The error, the repeats, the seed and the baselines."""

    error: str  # Its name
    about: str  # The description of the error
    repeats: int  # Tables drawn in each cell
    seed: int  # Of the simulation
    baselines: tuple[str, ...]  # Names of the algorithms that are part of every study


@dataclass(frozen=True, repr=False, eq=False)
class Study(Printed):
    """An evaluation of algorithms on public or simulated tables; nothing in it is private.

    Attributes
    ----------
    settings : StudySettings
        The error, the repeats and the seed.
    data : xarray.Dataset
        ``error`` and, for intervals, ``coverage`` by ``algorithm``, ``cell`` and
        ``repeat``; ``mean``, ``se``, ``p95``, ``regret``, ``competitive``,
        ``bias`` (the share of the squared error that is squared bias) and
        ``bias_p`` by ``algorithm`` and ``cell``. A cell has the coordinates
        ``table``, ``scale``, ``domain`` and ``eps``.
    checks : DataFrame
        One row per algorithm, table and domain: ``falls_to``, the error at a
        million times eps over that at a thousand times, ``consistent``;
        ``ratio``, of errors with ten times the rows and a tenth of eps, with
        its interval ``ratio_low, ratio_high``, ``exchangeable``. Where
        ``table`` is empty the ratio is that of all tables.
    truths, answers : mapping
        The first table in each cell, and the answer of each algorithm to it.
    """

    settings: StudySettings
    data: xr.Dataset
    checks: pd.DataFrame
    truths: Mapping[int, Floats]
    answers: Mapping[tuple[str, int], Floats]

    simulated = True

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Names of the algorithms, baselines last."""
        return tuple(map(str, self.data["algorithm"].to_numpy()))

    @property
    def table(self) -> pd.DataFrame:
        """One row per algorithm over all cells, the most competitive first.

        ``algorithm``; ``regret``, the geometric mean over cells, and
        ``regret_worst``; ``competitive``, in how many of ``cells``; ``p95``, the
        95th percentile of errors over their mean; ``bias``, the mean share, and
        ``biased``, in how many cells it is significant at 5 % over the number
        of tests; ``coverage`` of intervals; ``consistent`` and
        ``exchangeable``, False if ruled out on a table, None if not tested,
        and ``ratio_low, ratio_high``.
        """
        data, checks = self.data, self.checks
        level = 0.05 / data["bias_p"].size
        mean, p95 = data["mean"].to_numpy(), data["p95"].to_numpy()
        ratios = checks[checks["table"] == ""].set_index("algorithm").loc[list(self.algorithms)]
        columns = {
            "algorithm": list(self.algorithms),
            "regret": np.exp(np.log(data["regret"].to_numpy()).mean(axis=1)),
            "regret_worst": data["regret"].max("cell").to_numpy(),
            "competitive": data["competitive"].sum("cell").to_numpy(),
            "cells": data.sizes["cell"],
            "p95": np.divide(p95, mean, out=np.ones_like(p95), where=mean > 0).mean(axis=1),
            "bias": data["bias"].mean("cell").to_numpy(),
            "biased": (data["bias_p"] <= level).sum("cell").to_numpy(),
            "coverage": data["coverage"].mean(("cell", "repeat")).to_numpy(),
            "consistent": [_all(checks, name, "consistent") for name in self.algorithms],
            "exchangeable": [_all(checks, name, "exchangeable") for name in self.algorithms],
            "ratio_low": ratios["ratio_low"].to_numpy(),
            "ratio_high": ratios["ratio_high"].to_numpy(),
        }
        frame = pd.DataFrame(columns)
        order = frame.sort_values(["competitive", "regret"], ascending=[False, True], kind="stable")
        return order.reset_index(drop=True)

    def tidy(self) -> pd.DataFrame:
        """Return one row per algorithm and cell: the setting, errors and tests."""
        names = ["mean", "se", "p95", "regret", "competitive", "bias", "bias_p"]
        wide = self.data[names].assign(coverage=self.data["coverage"].mean("repeat"))
        frame = wide.to_dataframe().reset_index()
        first = ["algorithm", "table", "scale", "domain", "eps"]
        return frame[[*first, *names, "coverage"]]

    def glance(self) -> pd.DataFrame:
        """Return one row: the algorithm that is competitive most often, and the settings."""
        best = self.table.iloc[0]
        line = {
            "best": best["algorithm"],
            "regret": best["regret"],
            "competitive": best["competitive"],
            "cells": best["cells"],
            "algorithms": len(self.algorithms),
            "repeats": self.settings.repeats,
            "error": self.settings.error,
            "seed": self.settings.seed,
            "simulated": True,
        }
        return pd.DataFrame([line])

    def plot(self, cell: int = 0, axes: Sequence[Axes] | None = None) -> tuple[Axes, ...]:
        """Draw three plots of one cell side by side.

        Errors by algorithm in the cell; errors against eps times scale for the
        cell's table and domain; the true table and the answer of the best.

        Parameters
        ----------
        cell : int
            Number of the cell, from 0.
        axes : three matplotlib Axes, optional
            Where to draw; a new figure by default.

        Raises
        ------
        ArgumentError
            If there is no such cell.
        """
        panels = three_axes(axes)
        best = str(self.cell(cell).sort_values("mean")["algorithm"].iloc[0])
        return (
            self.plot_errors(cell, panels[0]),
            self.plot_signal(cell, panels[1]),
            self.plot_released(best, cell, panels[2]),
        )

    def plot_errors(self, cell: int = 0, ax: Axes | None = None) -> Axes:
        """Draw errors by algorithm in one cell, smallest mean first: runs, means, 95 %."""
        names, title = self.algorithms, self.title(cell)
        runs = self.data["error"].isel(cell=self._number(cell)).to_numpy()
        ax = axes_or_new(ax, (6.0, 1.1 + 0.3 * len(names)))
        order = np.argsort(runs.mean(axis=1), kind="stable")
        for place, at in enumerate(order):
            positive = runs[at][runs[at] > 0]
            ax.plot(
                positive, np.full(positive.size, place), "|", color=PALE, markersize=9, zorder=1
            )
            if positive.size:
                ax.plot(runs[at].mean(), place, "o", color=BLUE, markersize=6, zorder=3)
                ax.plot(np.quantile(runs[at], 0.95), place, "|", color=INK, markersize=11)
        ax.set_xscale("log")
        ax.set_yticks(range(len(names)), [names[at] for at in order])
        literal(ax.get_yticklabels())
        ax.set_ylim(len(names) - 0.4, -0.6)
        ax.set_xlabel("error: mean, 95th percentile, runs")
        summary = listed([names[at] for at in order], map(number, runs[order].mean(axis=1)))
        return self._titled(ax, title, f"Errors of algorithms, {title}. Means: {summary}")

    def plot_signal(self, cell: int = 0, ax: Axes | None = None) -> Axes:
        """Draw errors against eps times scale, for the table and domain of a cell."""
        setting = self.cell(cell).iloc[0]
        lines = self.tidy()
        same_table = lines[
            (lines["table"] == setting["table"]) & (lines["domain"] == setting["domain"])
        ]
        title = f"{setting['table']} {setting['domain']}".strip()
        ax = axes_or_new(ax, (6.0, 4.0))
        for at, name in enumerate(self.algorithms):
            line = same_table[same_table["algorithm"] == name]
            x = (line["eps"] * line["scale"]).to_numpy()
            order = np.argsort(x, kind="stable")
            ax.plot(
                x[order],
                line["mean"].to_numpy()[order],
                color=_COLOURS[at % len(_COLOURS)],
                marker=_MARKS[at % len(_MARKS)],
                markersize=5,
                linewidth=1.2,
                label=name,
            )
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("eps x scale")
        ax.set_ylabel("mean error")
        _legend(ax)
        alt = f"Mean errors against eps times scale, {title}, of {', '.join(self.algorithms)}"
        return self._titled(ax, title, alt)

    def plot_released(self, algorithm: str, cell: int = 0, ax: Axes | None = None) -> Axes:
        """Draw the first table in a cell and an answer to it; for two axes, their difference."""
        name = option("algorithm", algorithm, self.algorithms)
        truth = self.truths[self._number(cell)]
        answer, title = self.answers[name, cell], self.title(cell)
        ax = axes_or_new(ax, (6.0, 4.0))
        if truth.ndim == 2 and truth.shape == answer.shape:
            limit = float(np.abs(answer - truth).max()) or 1.0
            image = ax.imshow(
                (answer - truth).T, origin="lower", cmap="RdBu", vmin=-limit, vmax=limit
            )
            ax.figure.colorbar(image, ax=ax, label="released less true")
        else:
            ax.plot(truth.ravel(), color=INK, linewidth=1.4, drawstyle="steps-mid", label="true")
            values = answer.ravel()
            ax.plot(
                values, color=VERMILION, linewidth=0.9, drawstyle="steps-mid", label=name, alpha=0.8
            )
            _legend(ax)
            ax.set_xlabel("cell")
            quiet(ax)
        alt = f"True table beside that released by {name}, {title}"
        return self._titled(ax, f"{name}, {title}", alt)

    def _titled(self, ax: Axes, title: str, alt: str) -> Axes:
        ax.set_title(title, fontsize=FONT + 1, color=INK, parse_math=False)
        return finished(ax, alt, {"stamp": self.stamp})

    def cell(self, number: int) -> pd.DataFrame:
        """Return the results of one cell, one row per algorithm."""
        lines = self.tidy()
        cell_numbers = np.tile(np.arange(self.data.sizes["cell"]), len(self.algorithms))
        return lines.iloc[np.flatnonzero(cell_numbers == self._number(number))]

    def title(self, cell: int) -> str:
        """Return the title of a cell."""
        setting = self.data.isel(cell=self._number(cell))
        domain = [f"{setting['domain'].item()} cells"] if setting["domain"].item() else []
        rest = (*domain, f"{setting['scale'].item():,} rows", f"eps {setting['eps'].item():g}")
        return f"{setting['table'].item()}: {', '.join(rest)}"

    def page(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write one HTML file with the three plots, which needs no network.

        Parameters
        ----------
        path : path
            Of the file.
        overwrite : bool
            Whether to overwrite an existing file.

        Raises
        ------
        ArgumentError, FrameError
            If it cannot be written.
        """
        report = self.summary().as_html()
        text = page(self.settings, self.data, self.truths, self.answers, STAMP, report)
        write_whole(path, text.encode(), overwrite=overwrite)

    def _number(self, cell: int) -> int:
        return integer("cell", cell, 0, self.data.sizes["cell"] - 1)

    def __repr__(self) -> str:
        sizes = self.data.sizes
        return (
            f"<Study of {sizes['algorithm']} algorithms in {sizes['cell']} cells, "
            f"{self.settings.repeats} repeats, error {self.settings.error!r}: simulated, nothing "
            "spent>"
        )


def _all(checks: pd.DataFrame, algorithm: str, name: str) -> bool | None:
    results = checks.loc[checks["algorithm"] == algorithm, name]
    tested = [result for result in results if result is not None]
    return all(tested) if tested else None


# Three plots of a study: errors in a cell, errors against signal, and truth with an answer.

_MARKS = "os^DvP*X<>"
_COLOURS = (*SERIES, INK, GREY)


def three_axes(axes: Sequence[Axes] | None) -> tuple[Axes, ...]:
    """Return three given axes, or those of a new figure."""
    if axes is None:
        first = axes_or_new(None, (15.0, 4.4))
        figure = first.figure
        first.remove()
        axes = list(figure.subplots(1, 3))
    if len(axes) != 3:
        raise ArgumentError(f"axes has {len(axes)} entries: give three")
    return tuple(axes)


def _legend(ax: Axes) -> None:
    for text in ax.legend(frameon=False, fontsize=FONT - 1).get_texts():
        text.set_parse_math(False)
