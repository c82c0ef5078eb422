"""The printed reports of comparisons of mechanisms, and of what a guarantee means."""

from __future__ import annotations

import math

import pandas as pd

from dpmodels.privacy import GaussianEvent, PureDP
from dpmodels.report import Fact, Report, Row, Section, count, signif, signif_uncertain
from dpmodels.report.notes import Rank
from dpmodels.results.base import report_of
from dpmodels.results.comparison import (
    UNITS,
    Comparison,
    ComparisonRequest,
    FitComparison,
    ReadingResult,
)
from dpmodels.typing import TableLine

SIMULATED = (
    "Simulated, {} releases of each{}, on artificial rows: the results depend on the assumptions "
    "about rows. No data were read."
)
ENERGY, ERROR = ("energy", "energy"), ("relative", "error")


@report_of.register
def comparison_report(comparison: Comparison) -> Report:
    """Lay out a comparison as tables of strings."""
    predicted = comparison.predicted
    sections: tuple[Section, ...] = ()
    if len(predicted):
        suffixes = (" typical", " worst") if comparison.shapes is not None else ("",)
        labels = [label + suffix for _, label in _measures(comparison) for suffix in suffixes]
        rows = tuple(_row(comparison, line) for line in predicted.to_dict("records"))
        sections = (Section("Predicted, best first", (*labels, "numerics"), rows),)
        if comparison.shapes is not None:
            sections += (_by_shape(comparison), _shapes(comparison.shapes))
    return Report(
        title="Mechanisms compared, nothing spent",
        facts=_facts(comparison),
        sections=sections,
        notes=_notes(comparison),
    )


def _measures(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    return (ENERGY, ERROR) if comparison.request.ranked_by == "energy" else (ERROR,)


def _row(comparison: Comparison, line: TableLine) -> Row:
    cells = []
    for name, _ in _measures(comparison):
        cells.append(_uncertain(line[name], line[f"{name}_se"]))
        if comparison.shapes is not None:
            cells.append(signif(line[f"{name}_worst"], 3))
    return Row(_label(comparison, line["mechanism"]), (*cells, str(line["numerics"])))


def _label(comparison: Comparison, name: str) -> str:
    notes = dict(zip(comparison.table["mechanism"], comparison.table["note"], strict=True))
    return comparison.label(name) + (" *" if notes[name] == "baseline" else "")


def _by_shape(comparison: Comparison) -> Section:
    by = comparison.request.ranked_by
    wide = comparison.by_shape.pivot_table(by, "mechanism", "shape", sort=False)
    names = [name for name in comparison.predicted["mechanism"] if name in wide.index]
    rows = tuple(
        Row(_label(comparison, name), tuple(signif(value, 3) for value in wide.loc[name]))
        for name in names
    )
    title = "Energy by shape" if by == "energy" else "Error by shape"
    return Section(title, tuple(map(str, wide.columns)), rows)


def _shapes(shapes: pd.DataFrame) -> Section:
    rows = []
    for line in shapes.to_dict("records"):
        length = f"{line['length_low']:.2f} to {line['length_high']:.2f}"
        rows.append(Row(str(line["shape"]), (length, f"{line['spread']:.2f}", str(line["like"]))))
    return Section("Shapes of rows", ("length", "from mean", "columns"), tuple(rows))


def _uncertain(value: float, se: float) -> str:
    """Print a mean to the digits of its standard error, at most four."""
    return signif(value, 3) if math.isnan(se) else signif_uncertain(value, max(se, value / 1000))


def _facts(comparison: Comparison) -> tuple[Fact, ...]:
    request = comparison.request
    how = {"range": "range", "sd": "sd (correlation)", None: "none"}[request.scale]
    centred = "centred" if request.center else "not centred"
    return (
        ("Formula", request.formula),
        ("Guarantee", request.guarantee.describe()),
        ("Rows", f"{count(request.rows)} (assumed)"),
        ("Neighbours", request.adjacency.describe()),
        ("Variables", f"{request.columns}, {centred}, scale = {how}"),
        ("Components", str(request.components)),
        ("Spectrum", f"{request.spectrum} (assumed)"),
        ("Row length", _length(request)),
    )


def _length(request: ComparisonRequest) -> str:
    norm = signif(request.row_norm, 3)
    if not request.row_lengths:
        return f"five shapes, up to {norm}"
    listed = ", ".join(signif(length, 2) for length in request.row_lengths)
    return f"{listed} of {norm} (assumed)"


def _notes(comparison: Comparison) -> tuple[str, ...]:
    request = comparison.request
    energy, order = "", "the error, since all components are kept"
    if request.ranked_by == "energy":
        energy = (
            "energy: share of the variance along the true components that the released ones "
            "capture. "
        )
        order = "energy"
    notes = [
        f'mechanism="auto" uses {comparison.auto.mechanism} if rows can be read repeatedly: '
        f"{comparison.auto.reason}",
        *Rank.TARGET(SIMULATED.format(request.repeats, _each(comparison))),
        f"{energy}error: Frobenius norm over that of the covariance; 1 is as bad as zeros. "
        f"Sorted by {order}.",
    ]
    if comparison.shapes is not None:
        notes.append(
            "typical: median over the shapes of rows; worst: worst shape. Choose by the shape that "
            "public facts make likely, or by the worst."
        )
        notes += Rank.DETAIL("length: of 90% of rows; from mean: median distance, in row norms.")
    predicted = comparison.predicted
    if (predicted["note"] == "baseline").any():
        notes += Rank.IDENTIFIED("* baseline: reads no rows. A useful mechanism does better.")
    if request.scale == "sd":
        notes += Rank.DETAIL("Measured on columns scaled by range, before division by sds.")
    absent = comparison.table[comparison.table["energy"].isna()]
    return (*notes, *not_listed(absent))


def _each(comparison: Comparison) -> str:
    return "" if comparison.shapes is None else " on each shape"


def not_listed(absent: pd.DataFrame) -> tuple[str, ...]:
    """List the mechanisms that are left out, by reason."""
    reasons: dict[str, list[str]] = {}
    for name, note in zip(absent["mechanism"], absent["note"], strict=True):
        reasons.setdefault(note, []).append(name)
    listed = (f"Not listed: {', '.join(names)}: {reason}." for reason, names in reasons.items())
    return Rank.SOURCE(*listed)


# The printed report of a comparison of regressions' mechanisms.

HEADS = ("error typical", "error worst", "excess typical", "excess worst", "identified", "numerics")


@report_of.register
def fit_comparison_report(comparison: FitComparison) -> Report:
    """Lay out a comparison of regressions as tables of strings."""
    predicted, sections = comparison.predicted, tuple[Section, ...]()
    if len(predicted):
        rows = tuple(_fit_comparison_row(comparison, line) for line in predicted.to_dict("records"))
        first = Section("Predicted, best first", HEADS, rows)
        sections = (first, _fit_comparison_by_shape(comparison))
    shapes = comparison.shapes[["shape", "like"]].astype(str)
    like = tuple(Row(shape, (text,)) for shape, text in shapes.itertuples(index=False))
    return Report(
        title="Mechanisms of a regression compared, nothing spent",
        facts=_fit_comparison_facts(comparison),
        sections=(*sections, Section("Shapes of rows", ("numbers",), like)),
        notes=_fit_comparison_notes(comparison),
    )


def _fit_comparison_row(comparison: FitComparison, line: TableLine) -> Row:
    cells = []
    for name in ("error", "excess"):
        value, se = line[name], line[f"{name}_se"]
        cells += [_uncertain(value, se) if se > 0 else signif(value, 3)]
        cells += [signif(line[f"{name}_worst"], 3)]
    cells.append(f"{100 * line['identified']:.0f}%")
    return Row(comparison.label(line["mechanism"]), (*cells, str(line["numerics"])))


def _fit_comparison_by_shape(comparison: FitComparison) -> Section:
    wide = comparison.by_shape.pivot_table("error", "mechanism", "shape", sort=False, dropna=False)
    names = [name for name in comparison.predicted["mechanism"] if name in wide.index]
    rows = [Row(comparison.label(name), tuple(map(_number, wide.loc[name]))) for name in names]
    behind = tuple(_number(comparison.behind[name]) for name in wide.columns)
    rows.append(Row("auto / best", behind))
    return Section("Error by shape", tuple(map(str, wide.columns)), tuple(rows))


def _number(value: float) -> str:
    return "open" if math.isnan(value) else signif(value, 3)


def _fit_comparison_facts(comparison: FitComparison) -> tuple[Fact, ...]:
    request = comparison.request
    norm = "the codebook's longest" if request.row_norm is None else signif(request.row_norm, 3)
    listed = ", ".join(signif(length, 2) for length in request.row_lengths)
    spread = f"numbers with sds of {listed} half ranges" if listed else "five shapes"
    return (
        ("Formula", request.formula),
        ("Family", request.family),
        ("Guarantee", request.guarantee.describe()),
        ("Rows", f"{count(request.rows)} (assumed)"),
        ("Neighbours", request.adjacency.describe()),
        ("Terms", f"{request.columns}, row norm {norm}"),
        ("Spectrum", f"{request.spectrum} (assumed)"),
        ("Rows like", spread),
    )


def _fit_comparison_notes(comparison: FitComparison) -> tuple[str, ...]:
    request = comparison.request
    worst = comparison.behind.max()
    behind = ""
    if not math.isnan(worst):
        typical = signif(float(comparison.behind.median()), 3)
        behind = f" Its error is {typical} times the best, {signif(float(worst), 3)} at worst."
    return (
        f'mechanism="auto" uses {comparison.auto.mechanism}: {comparison.auto.reason}{behind}',
        *Rank.TARGET(SIMULATED.format(request.repeats, " on each shape")),
        "error: root mean square difference of slopes from those without privacy, in their "
        "standard errors: at 1 the noise doubles the variance.",
        "excess: share of the explained deviance that is lost; 1 is as bad as a constant. typical: "
        "median over the shapes; worst: worst shape.",
        *Rank.DETAIL(
            "identified: slopes with standard errors. open: a slope is not identified on that "
            "shape even without noise."
        ),
        *not_listed(comparison.table[~comparison.table["fits"]]),
    )


_TESTS = (
    "Power: how often a test detects that somebody is in the table, if its level is the rate of "
    "false detections. Advantage: largest power less level.",
    *Rank.DETAIL(
        "Posterior: probability of being in the table, after the release.",
        "The bounds hold for attackers who know everything else, and for any use of the release.",
    ),
)
_POPULATION = (
    *Rank.TARGET(
        "The bounds limit the effect of being in the table. Conclusions about the population apply "
        "to people in it or not: no guarantee prevents them."
    ),
    *Rank.DETAIL(
        "An association of smoking and a disease is such a conclusion about the population."
    ),
)


@report_of.register
def reading_report(result: ReadingResult) -> Report:
    """Lay out readings as tables of strings."""
    local = "another truth, each respondent by itself"
    return Report(
        title="Guarantees interpreted as tests and as bets",
        facts=(
            *((("Of", result.of),) if result.of else ()),
            ("Neighbours", local if result.local else result.adjacency.describe()),
            ("Level", f"{result.alpha:g}"),
            ("Prior", f"{result.prior:g}"),
        ),
        sections=tuple(_section(result, units) for units in UNITS),
        notes=_interpretation_notes(result),
    )


def _section(result: ReadingResult, units: int) -> Section:
    table = result.table[result.table["units"] == units]
    who: str = table["protected"].iloc[0]
    columns = [_cells(line) for line in table.to_dict("records")]
    names = (
        f"Power at level {result.alpha:g}",
        "Membership advantage",
        "Odds multiplied by",
        f"Posterior of prior {result.prior:g}",
        "and at least",
        "Lying probability",
    )
    lines = zip(names, zip(*columns, strict=True), strict=True)
    rows = tuple(Row(name, cells) for name, cells in lines if set(cells) != {"-"})
    return Section(f"{who[0].upper()}{who[1:]}, at most", result.labels, rows)


def _cells(line: TableLine) -> tuple[str, ...]:
    mark = "" if line["holds"] == 1 else " *"
    odds = "no bound" if math.isinf(line["odds"]) else signif(line["odds"], 3)
    names = ("power", "advantage", "posterior", "posterior_lower", "lie")
    test, advantage, upper, lower, lie = (signif(line[name], 3) for name in names)
    return (test, advantage, odds + mark, upper + mark, lower + mark, lie)


def _interpretation_notes(result: ReadingResult) -> tuple[str, ...]:
    notes = [*_TESTS, *_POPULATION]
    pure = all(isinstance(curve, PureDP) for curve in result.curves)
    if not pure:
        notes += Rank.GUARANTEE(
            f"* except for outputs of probability at most {result.alpha:g}: with a delta, zCDP or "
            "Gaussian noise there is no bound for all outputs."
        )
    if result.table["lie"].notna().any():
        less = "" if pure else ", except for delta"
        notes.append(
            f"Lying probability: of a randomized response to yes or no that is as private{less}."
        )
    if any(isinstance(curve, GaussianEvent) for curve in result.curves):
        notes += Rank.DETAIL(
            "Gaussian noise: bounds follow from the distribution of the noise, and are tighter "
            "than the guarantee."
        )
    notes += Rank.GUARANTEE(
        "So far: if neither calls nor stopping depended on earlier answers. In all: always."
        if result.spent
        else "For this release only: other releases of the same rows add to it."
    )
    return tuple(notes)
