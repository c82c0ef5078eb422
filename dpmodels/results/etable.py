"""Results side by side: a column each, a row what they have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import pandas as pd

from dpmodels.report import Report
from dpmodels.results.base import STAMP, Printed, Result, lay_out
from dpmodels.results.etable_columns import NUMBERS, Column
from dpmodels.results.etable_gt import great_table
from dpmodels.results.etable_releases import listed
from dpmodels.results.legend import legend
from dpmodels.results.reading_line import reading_line

if TYPE_CHECKING:
    from great_tables import GT

# What may stand below an estimate, by the words of tidy().
STATISTICS: Final = ("std_error", "noise_sd", "statistic", "p_value", "noise_int", "conf_int")


class Line(NamedTuple):
    """A row of estimates: what it is one of, its name, and the other ways columns write it."""

    part: str
    name: str
    written: tuple[str, ...]


@dataclass(frozen=True)
class Look:
    """What of the columns is shown, and how; the words are those of :func:`dpmodels.etable`."""

    title: str
    statistic: tuple[str, ...]
    stars: tuple[float, ...]  # levels, the first of one star
    stats: tuple[str, ...]
    privacy: bool
    digits: int
    level: float
    words: Mapping[str, str] | None  # for names; None where the codebooks' stand beside
    notes: tuple[str, ...]


@dataclass(frozen=True, repr=False, eq=False)
class ETable(Printed):
    """Results side by side: what they say, laid out anew; nothing is computed of rows.

    Printing it shows the table, and so does a notebook.

    Parameters
    ----------
    columns : tuple of Column
        What is shown of each result.
    lines : tuple of Line
        The rows of estimates.
    look : Look
        How they are shown.
    accounts : tuple of str
        What is known of the budgets together.
    """

    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    look: Look
    accounts: tuple[str, ...]

    @property
    def models(self) -> tuple[Result, ...]:
        """The results, in order."""
        return tuple({column.number: column.result for column in self.columns}.values())

    @property
    def simulated(self) -> bool:
        """True if one of the results is of a simulation."""
        return any(fit.simulated for fit in self.models)

    @property
    def stamp(self) -> str | None:
        """What the table is stamped with if one of the results is of a simulation."""
        return STAMP if self.simulated else None

    def tidy(self) -> pd.DataFrame:
        """Return one row a number of the table, in the order of its columns.

        ``model, response, component, part, term, estimate, std_error, noise_sd, statistic,
        p_value, noise_low, noise_high, conf_low, conf_high, told``: nan where one is missing, and
        `told` False where noise leaves nothing to be said.
        """
        frames = []
        for column in self.columns:
            places = {name: at for at, name in enumerate(column.cells.index)}
            shown = [
                (line.part, line.name, places[name])
                for line in self.lines
                for name in line.written
                if line.part == column.part and name in places
            ]
            own = column.cells.iloc[[at for *_, at in shown]]
            numbers = own[list(NUMBERS)].reset_index(drop=True)
            said = {
                "model": column.model,
                "response": column.response,
                "component": column.component,
                "part": [part for part, *_ in shown],
                "term": [name for _, name, _ in shown],
            }
            told = (own["open"] == "").to_numpy()
            frames.append(pd.DataFrame(said).join(numbers).assign(told=told))
        return pd.concat(frames, ignore_index=True)

    def glance(self) -> pd.DataFrame:
        """Return one row a result: its own numbers, then those of its release."""
        lines = [
            {"model": own.model, **own.result.glance().iloc[0].to_dict()}
            for own in {column.number: column for column in self.columns}.values()
        ]
        return pd.DataFrame(lines)

    def frame(self) -> pd.DataFrame:
        """Return the table as it is printed: texts, by part and row, and by what is above columns.

        What stands below an estimate has a blank label.
        """
        (section,) = lay_out(self).sections
        part, keys, cells = "", [], []
        for row in section.rows:
            if row.heading:
                part = row.label
            else:
                keys.append((part, row.label))
                cells.append(row.cells)
        columns = pd.MultiIndex.from_arrays([section.spanners, section.columns])
        return pd.DataFrame(cells, pd.MultiIndex.from_tuples(keys, names=["part", "row"]), columns)

    def as_text(self) -> str:
        """Return plain text, at most 100 characters wide; wider tables are cut into panels."""
        return self.summary().as_text()

    def as_html(self) -> str:
        """Return an HTML fragment; ``summary().as_page()`` is a whole document."""
        return self.summary().as_html()

    def as_latex(self) -> str:
        r"""Return a LaTeX table with the rules of booktabs, its notes below."""
        return self.summary().as_latex()

    def as_markdown(self) -> str:
        """Return a table of GitHub's Markdown."""
        return self.summary().as_markdown()

    def as_gt(self) -> GT:
        """Return the table as one of great_tables, to be styled further.

        Raises
        ------
        NotAvailable
            If great_tables is not installed.
        """
        return great_table(self.summary().report)

    def __repr__(self) -> str:
        return self.as_text()

    def _report(self) -> Report:
        report = lay_out(self)
        if self.look.words is not None:
            return report
        books = [legend(fit.call.codebook) for fit in self.models]
        return replace(report, legend=tuple(dict.fromkeys(own for book in books for own in book)))

    def _reading(self) -> str:
        told: dict[str, dict[str, None]] = {}
        for own in self.columns:
            told.setdefault(reading_line(own.result.release), {})[own.model] = None
        lines = [(line.removeprefix("Reading: "), list(names)) for line, names in told.items()]
        return "Reading: " + " ".join(f"{listed(names)}: {line}" for line, names in lines)
