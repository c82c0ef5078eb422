"""The printed table of estimates and tests that are computed from a fit."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from itertools import groupby
from typing import Any

from dpmodels.report import Report, Row, Section, interval, signif, signif_uncertain
from dpmodels.report.notes import Rank
from dpmodels.reports.header import about, omitted, pvalue
from dpmodels.results.base import release_facts, report_of
from dpmodels.results.derived_table import Estimates

# Most rows of a table: a choice.
SHOWN = 80
UNKNOWN = "not identified"
NUMBERS = (
    *("estimate", "std_error", "statistic", "df", "df_resid", "sumsq", "meansq", "noise_sd"),
    *("p_value", "conf_low", "conf_high", "noise_low", "noise_high", "ngroups"),
)


@report_of.register
def estimates_report(estimates: Estimates) -> Report:
    """Lay out a table of estimates or tests."""
    table, heads = estimates.table, _heads(estimates)
    first = "estimate" if "estimate" in table else "statistic"
    keys = [str(name) for name in table if name not in (*NUMBERS, "identified")]
    lines = table.head(SHOWN).to_dict("records")
    rows: list[Row] = []
    for term, group in groupby(lines, lambda line: str(line[keys[0]])):
        group_lines, description = list(group), about(estimates.fit.call, term)
        headed = len(keys) > 1 and len(group_lines) > 1
        if headed:
            rows.append(Row(term, ("",) * len(heads), heading=True, about=description))
        for line in group_lines:
            cells = (UNKNOWN,) + ("",) * (len(heads) - 1)
            if line.get("identified", math.isfinite(line[first])):
                cells = tuple(_cell(estimates, line, name) for name in heads)
            label = ", ".join(str(line[name]) for name in keys[headed:])
            rows.append(Row(label, cells, int(headed), about=None if headed else description))
    title = ", ".join(keys).replace("term", "Term")
    lost = () if table.get("identified", table[first].notna()).all() else LOST
    return Report(
        title=estimates.title,
        facts=(
            ("Formula", estimates.fit.call.formula),
            *release_facts(estimates.fit.release).items(),
            *estimates.facts,
        ),
        sections=(Section(title, tuple(heads.values()), tuple(rows)),),
        notes=(*omitted(SHOWN, len(table), "rows", "tidy()"), *estimates.notes, *lost, *FREE),
        stamp=estimates.stamp,
    )


LOST = Rank.IDENTIFIED("not identified: it depends on coefficients that the noise leaves unknown.")
FREE = Rank.SOURCE("Computed from the released fit: no data are read, and no budget is spent.")


def _heads(estimates: Estimates) -> dict[str, str]:
    """Return the head of each printed column."""
    labels = {
        "estimate": "ratio" if estimates.ratio else "estimate",
        "std_error": "std err (log)" if estimates.ratio else "std err",
        "noise_sd": "noise sd",
        "df": "df",
        "df_resid": "df resid",
        "sumsq": "sum sq",
        "meansq": "mean sq",
        "statistic": estimates.test,
        "p_value": f"P>|{estimates.test}|"
        if estimates.test in ("z", "t")
        else f"P>{estimates.test}",
        "conf_low": f"{estimates.level:.0%} conf. interval",
        "noise_low": f"{estimates.level:.0%} noise interval",
    }
    return {name: labels[name] for name in estimates.table if name in labels}


def _cell(estimates: Estimates, line: Mapping[Hashable, Any], name: str) -> str:
    value = line[name]
    match name:
        case "estimate":
            sd = line["std_error" if "std_error" in line else "noise_sd"]
            return signif_uncertain(value, sd * abs(value) if estimates.ratio else sd)
        case "std_error" | "noise_sd":
            return "" if math.isnan(value) else signif(value, 2)
        case "sumsq":
            return signif_uncertain(value, line["noise_sd"])
        case "meansq":
            return signif_uncertain(value, line["noise_sd"] / max(line["df"], 1.0))
        case "df" | "df_resid":
            return signif(value, 4) if value % 1 and value < 1e4 else f"{value:,.0f}"
        case "p_value":
            return "" if math.isnan(value) else pvalue(value)
        case "conf_low" | "noise_low":
            return interval(value, line[name.replace("low", "high")])
    return "" if math.isnan(value) else f"{value:.2f}"
