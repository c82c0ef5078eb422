"""Results side by side: one column each, with their common rows aligned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pandas as pd

from dpmodels.digest import origin
from dpmodels.errors import ArgumentError, NotAvailable, shorten
from dpmodels.inference import Spectrum
from dpmodels.labels import component_names, plain
from dpmodels.privacy import Ledger
from dpmodels.privacy.lines import RELEASED, SHOWN
from dpmodels.privacy.register import convergence_notes
from dpmodels.report import Report, count
from dpmodels.report.notes import Rank
from dpmodels.results.base import Printed, Result, lay_out
from dpmodels.results.call import convergence_words, reading_line
from dpmodels.results.cca import CCAResult
from dpmodels.results.components import root_sd
from dpmodels.results.cov import CovResult
from dpmodels.results.estimate_table import legend
from dpmodels.results.etable_columns import LOST, NUMBERS, Column, cells_of, one_column, stats_of
from dpmodels.results.etable_columns import columns_of as columns_of
from dpmodels.results.pca import PCAResult, SubspaceResult
from dpmodels.variables import Boolean, Categorical, Variable

if TYPE_CHECKING:
    from great_tables import GT


# Notes on results that share a release, on budgets, and on different data.


def together(columns: Sequence[Column]) -> dict[str, list[str]]:
    """Return the names of the results by their release."""
    models: dict[str, dict[str, None]] = {}
    for column in columns:
        models.setdefault(origin(column.result.release)[:SHOWN], {})[column.model] = None
    return {digest: list(names) for digest, names in models.items()}


def accounts(columns: Sequence[Column], ledger: Ledger | None) -> tuple[str, ...]:
    """Return notes on releases paid once, and on the total of a ledger."""
    releases = together(columns)
    notes = [
        f"{listed(names)} share one release, whose budget was paid once."
        for names in releases.values()
        if len(names) > 1
    ]
    if ledger is not None:
        return (*notes, *_of_ledger(releases, ledger))
    if len(releases) > 1:
        notes.append(
            "Budgets of different releases are not added up here: for releases of one table "
            "write etable(..., ledger=)."
        )
    return tuple(notes)


def _of_ledger(releases: dict[str, list[str]], ledger: Ledger) -> list[str]:
    register = ledger.register()
    digests = register[register["state"] == RELEASED]["digest"]
    charge_numbers = {str(digest)[:SHOWN]: int(str(number)) for number, digest in digests.items()}
    charges = sorted(charge_numbers[digest] for digest in releases if digest in charge_numbers)
    unlisted = [
        name for digest, names in releases.items() if digest not in charge_numbers for name in names
    ]
    all_charges = f"{len(register)} charge{'s' * (len(register) != 1)}"
    notes = [f"Ledger, all {all_charges} together: {ledger.describe()}."]
    notes += Rank.GUARANTEE(*convergence_notes(register["mechanism"]))
    if unlisted:
        notes.append(f"{listed(unlisted)}: not charged to this ledger, and not in its total.")
    if charges:
        word = "charge" if len(charges) == 1 else "charges"
        columns = f"The columns belong to {word} {', '.join(map(str, charges))}."
        notes += Rank.DETAIL(columns)
    return notes


def differences(columns: Sequence[Column]) -> tuple[str, ...]:
    """Return notes on public facts by which the results' data or declarations differ."""
    return (*_numbers(columns), *_declarations(columns))


def _numbers(columns: Sequence[Column]) -> list[str]:
    models: dict[tuple[object, str], dict[int, dict[str, None]]] = {}
    for column in columns:
        release = column.result.release
        if release.rows is not None:
            person, n_units = release.adjacency.person, release.rows
            n_units //= 1 if person is None else release.adjacency.design_effect
            unit = "rows" if person is None else "persons"
            models.setdefault((person, unit), {}).setdefault(n_units, {})[column.model] = None
    return [
        f"Different tables, by the public number of {unit}: "
        + "; ".join(f"{listed(list(names))} of {count(n)}" for n, names in by_count.items())
        + "."
        for (_, unit), by_count in models.items()
        if len(by_count) > 1
    ]


def _declarations(columns: Sequence[Column]) -> list[str]:
    models: dict[str, dict[str, dict[str, None]]] = {}
    for column in columns:
        for name, variable in column.result.call.codebook.items():
            declarations = models.setdefault(name, {})
            declarations.setdefault(_declared(variable), {})[column.model] = None
    return [
        f"{name}: "
        + "; ".join(f"{text} in {listed(list(names))}" for text, names in declarations.items())
        + "."
        for name, declarations in models.items()
        # A number of two values may be declared as a category: not a difference.
        if len({text.partition(" ")[0] for text in declarations}) == 1 < len(declarations)
    ]


def _declared(variable: Variable) -> str:
    if isinstance(variable, Categorical | Boolean):
        return f"levels {shorten(', '.join(map(str, variable.levels)))}"
    return f"declared {variable.lower} to {variable.upper}"


def listed(names: Sequence[str]) -> str:
    """Join names with commas and a final 'and'."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


# What may stand below an estimate, named as in tidy().
STATISTICS: Final = ("std_error", "noise_sd", "statistic", "p_value", "noise_int", "conf_int")


class Line(NamedTuple):
    """A row of estimates: its part of the table, its name, and its spellings in the columns."""

    part: str
    name: str
    spellings: tuple[str, ...]


@dataclass(frozen=True)
class Look:
    """Options of :func:`dpmodels.etable`: what is shown of the columns, and how."""

    title: str
    statistic: tuple[str, ...]
    stars: tuple[float, ...]  # levels, the first of one star
    stats: tuple[str, ...]
    privacy: bool
    digits: int
    level: float
    words: Mapping[str, str] | None  # labels of names; None to print those of the codebooks beside
    notes: tuple[str, ...]


@dataclass(frozen=True, repr=False, eq=False)
class ETable(Printed):
    """Results side by side; nothing is computed from rows.

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
        Notes on the budgets.
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

    def tidy(self) -> pd.DataFrame:
        """Return one row a number of the table, in the order of its columns.

        ``model, response, component, part, term, estimate, std_error, noise_sd, statistic, p_value,
        noise_low, noise_high, conf_low, conf_high, identified``: nan where one is missing, and
        `identified` False where noise hides the estimate.
        """
        frames = []
        for column in self.columns:
            positions = {name: at for at, name in enumerate(column.cells.index)}
            entries = [
                (line.part, line.name, positions[name])
                for line in self.lines
                for name in line.spellings
                if line.part == column.part and name in positions
            ]
            cells = column.cells.iloc[[at for *_, at in entries]]
            numbers = cells[list(NUMBERS)].reset_index(drop=True)
            labels = {name: getattr(column, name) for name in ("model", "response", "component")}
            labels |= {"part": [part for part, *_ in entries]}
            labels |= {"term": [name for _, name, _ in entries]}
            is_identified = (cells["open"] == "").to_numpy()
            frames.append(pd.DataFrame(labels).join(numbers).assign(identified=is_identified))
        return pd.concat(frames, ignore_index=True)

    def glance(self) -> pd.DataFrame:
        """Return one row a result: its own numbers, then those of its release."""
        lines = [
            {"model": col.model, **col.result.glance().iloc[0].to_dict()}
            for col in {column.number: column for column in self.columns}.values()
        ]
        return pd.DataFrame(lines)

    def frame(self) -> pd.DataFrame:
        """Return the printed table as text, by part and row, with spanners above its columns.

        Statistics below an estimate have a blank label.
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
        entries = chain(*(legend(fit.call.codebook) for fit in self.models))
        return replace(report, legend=tuple(dict.fromkeys(entries)))

    def _reading(self) -> str:
        models: dict[str, dict[str, None]] = {}
        for column in self.columns:
            models.setdefault(reading_line(column.result.release), {})[column.model] = None
        lines = [(line.removeprefix("Reading: "), list(names)) for line, names in models.items()]
        return "Reading: " + " ".join(f"{listed(names)}: {line}" for line, names in lines)


# Conversion to great_tables, which escapes its input.


def great_table(report: Report) -> GT:
    """Return the one table of a report: parts as groups of rows, notes below, the stamp above.

    NotAvailable where great_tables is not installed.
    """
    try:
        from great_tables import GT
    except ImportError:
        raise NotAvailable(
            "as_gt() needs great_tables: pip install 'dpmodels[tables]', or write as_html()"
        ) from None
    (section,) = report.sections
    part, lines = "", []
    for row in section.rows:
        if row.heading:
            part = plain(row.label)
        else:
            lines.append((part, plain(row.label), *map(plain, row.cells)))
    names = [f"column {at}" for at in range(len(section.columns))]
    frame = pd.DataFrame(lines, columns=["part", "row", *names])
    table = GT(frame, rowname_col="row", groupname_col="part")
    table = table.cols_label(dict(zip(names, map(plain, section.columns), strict=True)))
    start = 0
    for text, columns in section.spans(range(len(names))):
        spanned = names[start : start + columns]
        table = table.tab_spanner(plain(text), spanned, id=f"above {start}") if text else table
        start += columns
    table = table.tab_header(plain(report.title), report.stamp).cols_align("right", names)
    for label, value in report.facts:
        table = table.tab_source_note(plain(f"{label}: {value}"))
    for note in (*report.notes, *((report.stamp,) if report.stamp else ())):
        table = table.tab_source_note(plain(note))
    return table


# Components and correlations as columns beside others: a row a variable.

# A choice: columns of one result that fit a page.
SHOWN_COMPONENTS = 10
LOADINGS = "Loadings"


@columns_of.register
def _principal(fit: PCAResult, level: float) -> tuple[Column, ...]:
    n_shown = min(fit.ncomp, SHOWN_COMPONENTS)
    names, readable = component_names(n_shown), fit.spectrum.readable[:n_shown]
    noise, table = fit.loadings_noise_sd.to_numpy(), fit.loadings.to_numpy()
    sds = root_sd(fit.sdev.to_numpy()[:n_shown], fit.noise()["noise_sd"].to_numpy()[:n_shown])
    shares = fit.explained_variance_ratio.to_numpy()
    share_sds = fit.explained_variance_ratio_noise_sd.to_numpy()
    stats = stats_of(fit, nobs=_count_sd(fit))
    # Without a noise distribution, loadings are printed to two digits.
    spread = noise if isinstance(fit.spectrum, Spectrum) else np.full(n_shown, 0.05)
    positions = [j for j in range(n_shown) if readable[j]] or [0]
    hidden = [name for j, name in enumerate(names) if j not in positions]
    remainder = [f"and {fit.ncomp - n_shown} more"] * (fit.ncomp > n_shown)
    note = f"not shown: {', '.join(hidden + remainder)}" if hidden or remainder else ""
    if hidden:
        note += ", some of them lost in noise" if remainder else ", lost in noise"
    columns = []
    for j in positions:
        numbers = {"estimate": table[:, j], "noise_sd": noise[j], "spread": spread[j]}
        cells = cells_of(fit.call.names, numbers, readable[j], LOST)
        percent = (float(np.clip(shares[j], 0, 1)), share_sds[j])
        of_component = {**stats, "std_dev": (fit.sdev.to_numpy()[j], sds[j]), "percent": percent}
        columns.append(Column(fit, "PCA", "", LOADINGS, cells, of_component, names[j], note=note))
    return tuple(columns)


def _count_sd(fit: PCAResult | CovResult | CCAResult) -> float:
    return fit.release.noise.count if fit.release.rows is None else 0.0


@columns_of.register
def _directions(fit: SubspaceResult, level: float) -> tuple[Column, ...]:
    names, table = component_names(min(fit.ncomp, SHOWN_COMPONENTS)), fit.loadings.to_numpy()
    notes = [] if fit.release.ordered else ["only the space that the directions span is identified"]
    if fit.ncomp > len(names):
        notes.append(f"{fit.ncomp - len(names)} more directions are not shown")
    if caveat := convergence_words(fit.release):
        notes.append(f"the guarantee holds {caveat}")
    if fit.lost:
        notes.append("theory expects this budget to lose the directions")
    columns = list[Column]()
    for name, loadings in zip(names, table.T, strict=False):
        cells = cells_of(fit.call.names, {"estimate": loadings}, not fit.lost, LOST)
        note = "; ".join(notes)
        columns += one_column(fit, "subspace", "", LOADINGS, cells, component=name, note=note)
    return tuple(columns)


@columns_of.register
def _correlations(fit: CovResult, level: float) -> tuple[Column, ...]:
    names = fit.call.names
    if len(names) > SHOWN_COMPONENTS:
        raise ArgumentError(
            f"correlations of {len(names)} columns are too many for a table: at most "
            f"{SHOWN_COMPONENTS}; write dp.dp_moments(...) and m.cov('~ a + b') of a few"
        )
    values, noise = fit.cor.to_numpy(), fit.cor_noise_sd.to_numpy().copy()
    np.fill_diagonal(noise, np.nan)
    note = f"correlations of {fit.weak_variables} are understated" if fit.weak_variables else ""
    columns, stats = [], stats_of(fit, nobs=_count_sd(fit))
    for j, name in enumerate(names):
        cells = cells_of(names[j:], {"estimate": values[j:, j], "noise_sd": noise[j:, j]})
        kind = ("correlation", "", "Correlations")
        columns.append(Column(fit, *kind, cells, stats, name, note=note))
    return tuple(columns)


@columns_of.register
def _canonical(fit: CCAResult, level: float) -> tuple[Column, ...]:
    interval, identified = fit.noise_int(level), fit.readable.to_numpy()
    numbers = {"estimate": fit.cor.to_numpy(), "noise_sd": fit.cor_noise_sd.to_numpy()}
    numbers |= dict(zip(("noise_low", "noise_high"), interval.to_numpy().T, strict=True))
    cells = cells_of(fit.names, numbers, identified, LOST)
    stats = stats_of(fit, nobs=_count_sd(fit))
    return (Column(fit, "CCA", "", "Canonical correlations", cells, stats),)
