"""Results side by side: a column each, a row what they have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from dpmodels.results.base import STAMP, Printed, Result, convergence_words, lay_out, reading_line
from dpmodels.results.cca import CCAResult
from dpmodels.results.components import root_sd
from dpmodels.results.cov import CovResult
from dpmodels.results.estimate_table import legend
from dpmodels.results.etable_columns import LOST, NUMBERS, Column, cells_of, whole_of
from dpmodels.results.etable_columns import columns_of as columns_of
from dpmodels.results.pca import PCAResult
from dpmodels.results.subspace import SubspaceResult
from dpmodels.typing import Floats
from dpmodels.variables import Boolean, Categorical, Variable

if TYPE_CHECKING:
    from great_tables import GT


# Which results are of one release, and what is known of several: of budgets, and of tables.


def release_of(fit: Result) -> str:
    """Return the digest, as tables show it, of the release that a result is of or a part of."""
    return origin(fit.release)[:SHOWN]


def together(columns: Sequence[Column]) -> dict[str, list[str]]:
    """Return the names of the results, in the table's words, by their release."""
    found: dict[str, dict[str, None]] = {}
    for column in columns:
        found.setdefault(release_of(column.result), {})[column.model] = None
    return {own: list(names) for own, names in found.items()}


def accounts(columns: Sequence[Column], ledger: Ledger | None) -> tuple[str, ...]:
    """Say what was paid once, and what the budgets come to, where a ledger tells."""
    releases = together(columns)
    notes = [
        f"{listed(names)} are of one release, whose budget was paid once."
        for names in releases.values()
        if len(names) > 1
    ]
    if ledger is not None:
        return (*notes, *_of_ledger(releases, ledger))
    if len(releases) > 1:
        notes.append(
            "Budgets of different releases are not added up here: of releases of one table their "
            "ledger tells what they come to, etable(..., ledger=)."
        )
    return tuple(notes)


def _of_ledger(releases: dict[str, list[str]], ledger: Ledger) -> list[str]:
    register = ledger.register()
    kept = register[register["state"] == RELEASED]["digest"]
    known = {str(own)[:SHOWN]: int(str(number)) for number, own in kept.items()}
    charges = sorted(known[own] for own in releases if own in known)
    others = [name for own, names in releases.items() if own not in known for name in names]
    many = f"{len(register)} charge{'s' * (len(register) != 1)}"
    notes = [f"Ledger, all {many} together: {ledger.describe()}."]
    notes += convergence_notes(register["mechanism"])
    if charges:
        listing = ", ".join(map(str, charges))
        notes[0] += (
            f" Columns here are of {'charge' if len(charges) == 1 else 'charges'} {listing}."
        )
    if others:
        notes.append(f"{listed(others)}: not of this ledger, and in no total here.")
    return notes


def apart(columns: Sequence[Column]) -> tuple[str, ...]:
    """Say by which public facts the results are of different tables, or read them differently."""
    return (*_numbers(columns), *_declarations(columns))


def _numbers(columns: Sequence[Column]) -> list[str]:
    """Compare public numbers of what is counted in the same way."""
    found: dict[tuple[object, str], dict[int, dict[str, None]]] = {}
    for column in columns:
        release = column.result.release
        if release.rows is not None:
            whose, many = release.adjacency.person, release.rows // release.adjacency.design_effect
            many = release.rows if whose is None else many
            what = "rows" if whose is None else "persons"
            found.setdefault((whose, what), {}).setdefault(many, {})[column.model] = None
    return [
        "Different tables, by the public number of "
        f"{what}: {'; '.join(f'{listed(list(names))} of {count(n)}' for n, names in own.items())}."
        for (_, what), own in found.items()
        if len(own) > 1
    ]


def _declarations(columns: Sequence[Column]) -> list[str]:
    """Compare what codebooks declare of variables of the same name, but for words."""
    found: dict[str, dict[str, dict[str, None]]] = {}
    for column in columns:
        for name, variable in column.result.call.codebook.items():
            own = found.setdefault(name, {})
            own.setdefault(_declared(variable), {})[column.model] = None
    return [
        f"{name}: {'; '.join(f'{said} in {listed(list(one))}' for said, one in own.items())}."
        for name, own in found.items()
        # A number of two values is a category where it is explained as one.
        if len({said.partition(" ")[0] for said in own}) == 1 < len(own)
    ]


def _declared(variable: Variable) -> str:
    """Return the public range or levels, after what they are."""
    if isinstance(variable, Categorical | Boolean):
        return f"levels {shorten(', '.join(map(str, variable.levels)))}"
    return f"declared {variable.lower} to {variable.upper}"


def listed(names: Sequence[str]) -> str:
    """Join names as a sentence does."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


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


# A table of results side by side as one of great_tables, which escapes what it is given.


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
    made = GT(
        pd.DataFrame(lines, columns=["part", "row", *names]),
        rowname_col="row",
        groupname_col="part",
    ).cols_label(dict(zip(names, map(plain, section.columns), strict=True)))
    start = 0
    for text, columns in section.spans(range(len(names))):
        own = names[start : start + columns]
        made = made.tab_spanner(plain(text), own, id=f"above {start}") if text else made
        start += columns
    made = made.tab_header(plain(report.title), report.stamp).cols_align("right", names)
    for label, told in report.facts:
        made = made.tab_source_note(plain(f"{label}: {told}"))
    for note in (*report.notes, *((report.stamp,) if report.stamp else ())):
        made = made.tab_source_note(plain(note))
    return made


# Components and correlations as columns beside others: a row a variable.

# Columns of one result: a choice, what a page holds.
SHOWN_COMPONENTS = 10
LOADINGS = "Loadings"


@columns_of.register
def _principal(fit: PCAResult, level: float) -> tuple[Column, ...]:
    own = min(fit.ncomp, SHOWN_COMPONENTS)
    names, readable = component_names(own), fit.spectrum.readable[:own]
    noise, table = fit.loadings_noise_sd.to_numpy(), fit.loadings.to_numpy()
    sds = root_sd(fit.sdev.to_numpy()[:own], fit.noise()["noise_sd"].to_numpy()[:own])
    shares = fit.explained_variance_ratio.to_numpy()
    share_sds = fit.explained_variance_ratio_noise_sd.to_numpy()
    whole = whole_of(fit, nobs=_count_sd(fit))
    # What has no law of its noise is printed to two digits.
    spread = noise if isinstance(fit.spectrum, Spectrum) else np.full(own, 0.05)
    shown = [j for j in range(own) if readable[j]] or [0]
    hidden = [name for j, name in enumerate(names) if j not in shown]
    more = [f"and {fit.ncomp - own} more"] * (fit.ncomp > own)
    note = f"not shown: {', '.join(hidden + more)}" if hidden or more else ""
    if hidden:
        note += ", as noise leaves too little of some to be read" if more else ", lost in noise"
    return tuple(
        Column(
            fit,
            "PCA",
            "",
            LOADINGS,
            _loadings(fit, table[:, j], noise[j], spread[j], told=bool(readable[j])),
            {
                **whole,
                "std_dev": (fit.sdev.to_numpy()[j], sds[j]),
                "percent": (float(np.clip(shares[j], 0, 1)), share_sds[j]),
            },
            component=names[j],
            note=note,
        )
        for j in shown
    )


def _loadings(
    fit: Result, values: Floats, noise: float, spread: float, *, told: bool
) -> pd.DataFrame:
    names = fit.call.names
    numbers = {
        "estimate": values,
        "noise_sd": np.full(len(names), noise),
        "spread": np.full(len(names), spread),
    }
    return cells_of(names, numbers, told, LOST)


def _count_sd(fit: PCAResult | CovResult | CCAResult) -> float:
    return fit.release.noise.count if fit.release.rows is None else 0.0


@columns_of.register
def _directions(fit: SubspaceResult, level: float) -> tuple[Column, ...]:
    names, table = component_names(min(fit.ncomp, SHOWN_COMPONENTS)), fit.loadings.to_numpy()
    notes = (
        [] if fit.release.ordered else ["only the space that the directions span means anything"]
    )
    if fit.ncomp > len(names):
        notes.append(f"{fit.ncomp - len(names)} more directions are not shown")
    if caveat := convergence_words(fit.release):
        notes.append(f"the guarantee holds {caveat}")
    if fit.lost:
        notes.append("theory expects this budget to lose the directions")
    return tuple(
        Column(
            fit,
            "subspace",
            "",
            LOADINGS,
            _loadings(fit, table[:, j], np.nan, np.nan, told=not fit.lost),
            whole_of(fit),
            component=name,
            note="; ".join(notes),
        )
        for j, name in enumerate(names)
    )


@columns_of.register
def _correlations(fit: CovResult, level: float) -> tuple[Column, ...]:
    names = fit.call.names
    if len(names) > SHOWN_COMPONENTS:
        raise ArgumentError(
            f"correlations of {len(names)} columns have no room beside others: at most {SHOWN}; "
            "write dp.dp_moments(...) and m.cov('~ a + b') of a few"
        )
    values, noise = fit.cor.to_numpy(), fit.cor_noise_sd.to_numpy().copy()
    np.fill_diagonal(noise, np.nan)
    note = f"correlations of {fit.weak_variables} are understated" if fit.weak_variables else ""
    return tuple(
        Column(
            fit,
            "correlation",
            "",
            "Correlations",
            cells_of(names[j:], {"estimate": values[j:, j], "noise_sd": noise[j:, j]}),
            whole_of(fit, nobs=_count_sd(fit)),
            component=name,
            note=note,
        )
        for j, name in enumerate(names)
    )


@columns_of.register
def _canonical(fit: CCAResult, level: float) -> tuple[Column, ...]:
    ends, told = fit.noise_int(level), fit.readable.to_numpy()
    numbers = {
        "estimate": fit.cor.to_numpy(),
        "noise_sd": fit.cor_noise_sd.to_numpy(),
        "noise_low": ends["lower"].to_numpy(),
        "noise_high": ends["upper"].to_numpy(),
    }
    cells = cells_of(fit.names, numbers, told, LOST)
    whole = whole_of(fit, nobs=_count_sd(fit))
    return (Column(fit, "CCA", "", "Canonical correlations", cells, whole),)
