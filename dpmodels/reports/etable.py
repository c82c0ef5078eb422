"""The printed report of results side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from dpmodels.privacy import BoundedRangeEvent, GaussianEvent, LaplaceEvent
from dpmodels.released import AnyRelease
from dpmodels.report import Fact, Report, Row, Section, count, interval, signif, signif_uncertain
from dpmodels.report.notes import Rank
from dpmodels.reports.header import day, pvalue
from dpmodels.results.base import report_of
from dpmodels.results.call import is_local, neighbours_text, protected, release_row
from dpmodels.results.etable import ETable, Line, Look, differences, listed, together
from dpmodels.results.etable_columns import COEFFICIENTS, LOST, NOT_IDENTIFIED, Column, worded

# Labels of fit statistics; others have their names in glance().
WORDS: Final = {
    "nobs": "Observations",
    "ncomplete": "Complete rows",
    "r_squared": "R-squared",
    "adj_r_squared": "Adj. R-squared",
    "sigma": "Residual sd",
    "std_dev": "Standard deviation",
    "percent": "Proportion of variance",
    "df_residual": "Df of residuals",
    "nterms": "Coefficients",
    "llf": "Log-likelihood",
}
COUNTED: Final = ("nobs", "ncomplete", "df_residual", "df", "nterms", "ncolumns", "ngroups")
BELOW: Final = {
    "std_error": "(standard error: sampling and privacy noise)",
    "noise_sd": "[noise sd: privacy noise alone]",
    "statistic": "z",
    "p_value": "p-value",
    "noise_int": "{} noise interval, for the value without privacy on these rows",
    "conf_int": "{} confidence interval, for the population",
}

Cell = dict[str, Any]


@report_of.register
def etable_report(table: ETable) -> Report:
    """Lay out results as one table of strings, one column per result."""
    columns, look = table.columns, table.look
    rows = [*_estimates(table), *_fit_rows(columns, look)]
    if look.privacy:
        rows += privacy_rows(columns)
    words = look.words or {}
    above = tuple(
        worded(column.above, words) if column.above == column.response else column.above
        for column in columns
    )
    heads = tuple(column.head for column in columns)
    section = Section("Estimates", heads, tuple(rows), above)
    facts = common_facts(columns) if look.privacy else ()
    return Report(look.title, facts, (section,), _notes(table, rows))


def _estimates(table: ETable) -> list[Row]:
    look, columns = table.look, table.columns
    cells = [
        dict(zip(column.cells.index, column.cells.to_dict("records"), strict=True))
        for column in columns
    ]
    parts = list(dict.fromkeys(line.part for line in table.lines))
    rows = []
    for part in parts:
        if parts != [COEFFICIENTS]:
            rows.append(Row(part, ("",) * len(columns), heading=True))
        for line in table.lines:
            if line.part != part:
                continue
            matches = [_cell(line, *pair) for pair in zip(columns, cells, strict=True)]
            texts = [_estimate(*pair, look) for pair in zip(columns, matches, strict=True)]
            rows.append(Row(_label(line, look), tuple(texts)))
            for name in look.statistic:
                below = tuple("" if cell is None else _below(name, cell, look) for cell in matches)
                rows += [Row("", below)] * any(below)
    return rows


def _cell(line: Line, column: Column, cells: dict[str, Cell]) -> Cell | None:
    if column.part != line.part:
        return None
    return next((cells[name] for name in line.spellings if name in cells), None)


def _label(line: Line, look: Look) -> str:
    return line.name if look.words is None else worded(line.name, look.words)


def _estimate(column: Column, cell: Cell | None, look: Look) -> str:
    if cell is None or cell["open"]:
        return "" if cell is None else str(cell["open"])
    value, spread = cell["estimate"], cell["spread"]
    if not math.isfinite(value):
        return NOT_IDENTIFIED
    if column.form == "date":
        return day(value)
    if column.form == "step":
        return f"{value:.10g}"
    text = signif(value, column.digits)
    if math.isfinite(spread):
        text = signif_uncertain(value, spread, look.digits)
    return text + "*" * sum(bool(cell["p_value"] < level) for level in look.stars)


def _below(name: str, cell: Cell, look: Look) -> str:
    """Print one number below an estimate, or blank."""
    if cell["open"]:
        return ""
    if name in ("noise_int", "conf_int"):
        kind = name.removesuffix("_int")
        low, high = cell[f"{kind}_low"], cell[f"{kind}_high"]
        if math.isnan(low) or math.isnan(high):
            return ""
        return interval(low, high) if math.isfinite(high - low) else NOT_IDENTIFIED
    value = cell[name]
    if not math.isfinite(value):
        return ""
    formats: dict[str, Callable[[float], str]] = {
        "std_error": lambda sd: f"({signif(sd, look.digits)})",
        "noise_sd": lambda sd: f"[{signif(sd, look.digits)}]",
        "statistic": lambda z: f"z = {z:.2f}",
        "p_value": lambda p: f"p {'' if p < 1e-4 else '= '}{pvalue(p)}",
    }
    return formats[name](value)


def _fit_rows(columns: Sequence[Column], look: Look) -> list[Row]:
    rows = [Row("Model", tuple(column.kind for column in columns))]
    fixed = [getattr(getattr(column.result, "model", None), "fixed", ()) for column in columns]
    for code in dict.fromkeys(code for codes in fixed for code in codes):
        cells = tuple("Yes" if code in codes else "No" for codes in fixed)
        rows.append(Row(f"Fixed effects: {code}", cells))
    for name in look.stats:
        label = (look.words or {}).get(name, WORDS.get(name, name))
        numbers = [column.stats.get(name, ("", math.nan)) for column in columns]
        rows.append(Row(label, tuple(_number(name, *pair, look) for pair in numbers)))
        noise = tuple(_noise(*pair, look) for pair in numbers)
        rows += [Row("", noise)] * any(noise)
    return [Row("Fit", ("",) * len(columns), heading=True), *rows]


def _number(name: str, value: float | str, sd: float, look: Look) -> str:
    """Print a fit statistic to the digits that its noise leaves."""
    if isinstance(value, str | bool):
        return str(value)
    if not math.isfinite(value):
        return {"nobs": "private", "r_squared": LOST, "adj_r_squared": LOST}.get(name, "-")
    if name in COUNTED:
        return count(value)
    return signif_uncertain(value, sd, look.digits) if 0 < sd < math.inf else signif(value)


def _noise(value: float, sd: float, look: Look) -> str:
    """Print the noise sd of a fit statistic, if it is requested and known."""
    is_reported = "noise_sd" in look.statistic and 0 < sd < math.inf and math.isfinite(value)
    return f"[{signif(sd, look.digits)}]" if is_reported else ""


def _notes(table: ETable, rows: Sequence[Row]) -> tuple[str, ...]:
    look, columns = table.look, table.columns
    notes = [*_below_note(look), *_stars_note(look)]
    ratios = [column.model for column in columns if column.exponential]
    if ratios:
        notes.append(
            f"{listed(ratios)}: ratios, the exponentials of coefficients, with errors by the delta "
            "method and the ends of intervals transformed."
        )
    texts = {cell for row in rows for cell in row.cells}
    if NOT_IDENTIFIED in texts:
        notes += Rank.IDENTIFIED(
            "not identified: the noise leaves its size unknown at this budget; see the fit's "
            "summary()."
        )
    if LOST in texts:
        notes += Rank.IDENTIFIED("lost in noise: too few rows or too little variance.")
    models: dict[str, dict[str, None]] = {}
    for column in columns:
        if column.note:
            models.setdefault(column.note, {})[column.model] = None
    column_notes = (f"{listed(list(names))}: {note}." for note, names in models.items())
    notes += Rank.IDENTIFIED(*column_notes)
    simulated = dict.fromkeys(column.model for column in columns if column.result.simulated)
    if simulated:
        names = listed(list(simulated))
        notes += Rank.GUARANTEE(f"{names}: simulated, without a privacy guarantee.")
    differing, requested = Rank.TARGET(*differences(columns)), Rank.GUARANTEE(*look.notes)
    return (*notes, *differing, *table.accounts, *requested)


def _below_note(look: Look) -> list[str]:
    words = [BELOW[name].format(f"{100 * look.level:g}%") for name in look.statistic]
    return [f"Below each number: {', '.join(words)}."] if words else []


def _stars_note(look: Look) -> list[str]:
    marks = [f"{'*' * (at + 1)} p < {level:g}" for at, level in enumerate(look.stars)]
    return [f"{', '.join(marks)}; p-values allow for sampling and privacy noise."] if marks else []


# Rows about the release of each result.

LAWS: Final = {
    GaussianEvent: "Gaussian",
    LaplaceEvent: "Laplace",
    BoundedRangeEvent: "exponential mechanism",
}


def _neighbours(release: AnyRelease) -> str:
    local = is_local(release) and not release.events
    return "one respondent's answers" if local else neighbours_text(release)


def _law(release: AnyRelease) -> str:
    if is_local(release) and not release.events:
        return "randomised answers"
    laws = (LAWS.get(type(event), "of its own law") for event in release.events)
    return ", ".join(dict.fromkeys(laws))


ALL_ROWS, NO_DESIGN = "all rows", "none"


# Facts that are printed once above the table if they are the same for all columns.
SHARED: Final[dict[str, Callable[[AnyRelease], str]]] = {
    "Neighbours": _neighbours,
    "Numerics": lambda release: str(release.info.numerics),
    "Subset": lambda release: release.subset or ALL_ROWS,
    "Design": lambda release: dict(release.table or ()).get("Design", NO_DESIGN),
}


# Facts that differ are printed in rows, in fewer words.
DIFFERING: Final[dict[str, dict[str, Callable[[AnyRelease], str]]]] = {
    **{name: {name: describe} for name, describe in SHARED.items()},
    "Neighbours": {
        "Neighbours": lambda release: str(release_row(release)["adjacency"]),
        "Protected": lambda release: protected(release.adjacency, is_local(release), 1),
    },
}


def common_facts(columns: Sequence[Column]) -> tuple[Fact, ...]:
    """Return the facts that all releases have in common."""
    facts = []
    for name, describe in SHARED.items():
        values = {describe(column.result.release) for column in columns}
        if len(values) == 1 and not values <= {ALL_ROWS, NO_DESIGN}:
            facts.append((name, values.pop()))
    return tuple(facts)


def privacy_rows(columns: Sequence[Column]) -> list[Row]:
    """Return a row for each budget unit in use, then for facts that differ between releases."""
    releases = [column.result.release for column in columns]
    lines = [release_row(release) for release in releases]
    for line in lines:
        line["delta"] = math.nan if math.isnan(line["eps"]) else line["delta"]
    rows = [Row("Privacy", ("",) * len(columns), heading=True)]
    for name in ("eps", "delta", "rho"):
        cells = tuple("" if math.isnan(line[name]) else f"{line[name]:g}" for line in lines)
        if name != "delta" or any(line["delta"] > 0 for line in lines):
            rows += [Row(name, cells)] * any(cells)
    for name, describe in SHARED.items():
        if len(set(map(describe, releases))) > 1:
            rows += [Row(label, tuple(map(of, releases))) for label, of in DIFFERING[name].items()]
    rows.append(Row("Mechanism", tuple(release.info.name for release in releases)))
    rows.append(Row("Noise", tuple(map(_law, releases))))
    return [*rows, *_release_row(columns)]


def _release_row(columns: Sequence[Column]) -> list[Row]:
    groups = together(columns)
    models = {name: at for at, names in enumerate(groups.values()) for name in names}
    indices = [models[column.model] for column in columns]
    if len(set(indices)) == len(indices):
        return []
    return [Row("Release", tuple(_letter(at) for at in indices))]


def _letter(at: int) -> str:
    return chr(ord("A") + at) if at < 26 else f"A{at}"
