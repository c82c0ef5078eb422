"""The printed reports of a synthetic table and of estimates from it."""

from __future__ import annotations

import math

import numpy as np

from dpmodels.report import Report, Row, Section, count, interval, signif, signif_uncertain
from dpmodels.report.notes import Rank
from dpmodels.reports import header
from dpmodels.results.base import report_of
from dpmodels.results.synth import SynthResult
from dpmodels.results.synth_estimates import SyntheticEstimates

# Most edges and columns in the printed table: a choice.
SHOWN = 20
# The graph gains nothing if it takes less than this fraction off the error of pairs: a choice.
LEAST_GAIN = 0.02
INSTEAD = "A structure= of single columns would spend nothing on pairs."
USE = Rank.TARGET(
    "Standard errors from rows() are too small; use lm(), glm(), table(), mean() or quantile()."
)
CELLS = Rank.DETAIL(
    "Estimates allow for the spread of numbers within their cells and for tails beyond the "
    "released range. Missing and unlisted values are a separate level.",
    "strength: the share of rows that independence of the two columns would misplace.",
)
MARGINS = Rank.DETAIL(
    "Expected errors: shares of rows misplaced by the noise, in a release simulated from the "
    "model.",
    "Dependence that the graph leaves out adds to the expected errors.",
)
CLIPPED = Rank.TARGET(
    "Numbers outside their declared bounds were clipped to them; intervals do not account for this."
)


@report_of.register
def synth_report(fit: SynthResult) -> Report:
    """Lay out columns, the graph and the errors to expect."""
    n_pairs = len(fit.columns) * (len(fit.columns) - 1) // 2
    n_edges = len(fit.source.tree.edges)
    rows = [
        Row(f"{first}:{second}", (f"{strength:.3f}", signif(noise_sd, 2)))
        for first, second, strength, noise_sd in fit.edges().head(SHOWN).itertuples(index=False)
    ]
    hidden = header.omitted(min(SHOWN, n_edges), n_edges, "edges", "edges()")
    unlisted = header.omitted(min(SHOWN, len(fit.columns)), len(fit.columns), "columns", "names")
    return header.released_report(
        fit,
        "Private synthetic table",
        first=(
            ("Graph", f"{count(n_edges)} of {count(n_pairs)} pairs are edges"),
            ("Largest clique", _largest(fit)),
            ("Counts of", header.counted_as(fit.release.adjacency)),
        ),
        sections=(
            _columns(fit),
            *([Section("Edges", ("strength", "noise sd"), tuple(rows))] if n_edges else []),
            _errors(fit),
        ),
        notes=(
            *unlisted,
            *hidden,
            *_noise_wins(fit),
            *_unmeasured(fit, n_pairs - n_edges),
            *_earlier(fit),
            *USE,
            *CELLS,
            *MARGINS,
        ),
    )


def _largest(fit: SynthResult) -> str:
    sizes = [math.prod(fit.source.sizes[i] for i in clique) for clique in fit.source.tree.cliques]
    k = int(np.argmax(sizes))
    columns = len(fit.source.tree.cliques[k])
    return f"{count(sizes[k])} cells, columns: {columns}"


def _columns(fit: SynthResult) -> Section:
    joined, rows = [i for pair in fit.source.tree.edges for i in pair], []
    for i, column in enumerate(fit.columns[:SHOWN]):
        sd = math.sqrt(fit.source.released.cell_variance((i,)))
        cells = (count(len(column.levels)), count(joined.count(i)), signif(sd, 2))
        rows.append(Row(column.category.code, cells))
    return Section("Columns", ("levels", "edges", "noise sd"), tuple(rows))


def _errors(fit: SynthResult) -> Section:
    errors, numbers = fit.expected_errors, ("one column", "two columns", "three columns")
    lines = zip(numbers, errors.expected, errors.independent, strict=True)
    rows = [
        Row(name, (f"{expected:.3f}", f"{independent:.3f}"))
        for name, expected, independent in lines
        if not math.isnan(expected)
    ]
    return Section("Expected error of margins", ("by noise", "independence"), tuple(rows))


def _noise_wins(fit: SynthResult) -> tuple[str, ...]:
    """Say where independent columns would be as close to the rows as the model."""
    if not fit.source.released.pairs:
        return Rank.IDENTIFIED("No table of two columns was released: all columns are independent.")
    if not fit.source.tree.edges:
        return Rank.IDENTIFIED(
            "Noise hides the dependence of all pairs: all columns are independent.", INSTEAD
        )
    errors = fit.expected_errors
    if errors.expected[1] < (1 - LEAST_GAIN) * errors.independent[1]:
        return ()
    return Rank.IDENTIFIED(
        f"The graph gains less than its noise costs: the expected error of two-column tables is "
        f"{errors.expected[1]:.3f}, of independent columns {errors.independent[1]:.3f}.",
        INSTEAD,
    )


def _earlier(fit: SynthResult) -> tuple[str, ...]:
    if fit.request is None or fit.request.parent is None:
        return ()
    return Rank.DETAIL("Computed from an earlier release; nothing further was charged.")


def _unmeasured(fit: SynthResult, n_outside: int) -> tuple[str, ...]:
    if not n_outside:
        has_more = any(len(term) > 2 for term in fit.source.released.tables)
        unmeasured = "" if has_more else "; no table of three columns was measured"
        return Rank.DETAIL(f"All pairs are edges{unmeasured}.")
    released = sum(len(term) == 2 for term in fit.source.released.tables)
    beyond = max(0, n_outside + len(fit.source.tree.edges) - released)
    pairs = "1 pair" if n_outside == 1 else f"{count(n_outside)} pairs"
    modelled = f"Modelled as conditionally independent: {pairs}"
    not_measured = f"; {count(beyond)} {'was' if beyond == 1 else 'were'} not measured."
    why = not_measured if beyond else "; test() checks them."
    return Rank.DETAIL(f"{modelled}{why}")


OF_ESTIMATES = Rank.INTERVALS(
    "std err: sampling and privacy noise; of noise: privacy noise alone. For these rows use "
    "noise_int()."
)
OF_COEFFICIENTS = Rank.INTERVALS(
    "std err: sampling and privacy noise at the estimate; intervals: at each value in them; of "
    "noise: privacy noise alone. For these rows use noise_int()."
)
OF_QUANTILES = Rank.INTERVALS(
    "Noise interval: privacy noise only, for these rows. Conf. interval: noise and sampling."
)
DATES = Rank.DETAIL("Dates are the nearest day; standard errors are in days.")
ASSUMES = "Assumes {}: the released tables alone do not determine these estimates."


@report_of.register
def synthetic_estimates_report(estimates: SyntheticEstimates) -> Report:
    """Lay out estimates with both errors and both intervals."""
    fit, tested = estimates.fit, estimates.is_regression
    names = [" / ".join(map(str, key)) for key in estimates.estimates.keys.to_numpy()]
    lines = estimates.tidy().head(header.SHOWN_GROUPS).to_dict("records")
    rows = [Row(name, _numbers(line, estimates)) for name, line in zip(names, lines, strict=False)]
    tests = ("z", "P>|z|") if tested else ()
    errors = () if estimates.distributions else ("std err", "of noise")
    heads = ("estimate", *errors, *tests, "95% noise interval", "95% conf. int.")
    of_errors = OF_COEFFICIENTS if tested else OF_ESTIMATES
    note = Rank.IDENTIFIED(ASSUMES.format(estimates.assumes)) if estimates.assumes else ()
    return Report(
        title=f"{estimates.title}, from a private synthetic table",
        facts=(
            ("Model" if tested else "Table", estimates.formula),
            *header.opening(fit.call, fit.release),
        ),
        sections=(Section(", ".join(map(str, estimates.index.names)), heads, tuple(rows)),),
        notes=(
            *header.omitted(header.SHOWN_GROUPS, len(names), "rows", "tidy()"),
            *note,
            *CLIPPED * (estimates.within != (0.0, 1.0) and not estimates.distributions),
            *(OF_QUANTILES if estimates.distributions else of_errors),
            *DATES * estimates.date,
            *CELLS[:1],
            *header.closing(fit.call, fit.release),
        ),
    )


def _numbers(line: dict, estimates: SyntheticEstimates) -> tuple[str, ...]:  # type: ignore[type-arg]
    """Print the numbers of an estimate; quantiles have intervals and no standard errors."""
    tested, has_errors = estimates.is_regression, not estimates.distributions
    if math.isnan(line["estimate"]):
        return ("not identified", *[""] * (2 + 2 * has_errors + 2 * tested))
    sd = line["std_error"] if line["std_error"] > 0 else (line["conf_high"] - line["conf_low"]) / 4
    tests = (f"{line['statistic']:.2f}", header.pvalue(line["p_value"])) if tested else ()
    sds = (line[name] for name in ("std_error", "noise_sd"))
    errors = ("" if math.isnan(sd_of) else signif(sd_of, 2) for sd_of in sds if has_errors)
    ends = [(line[f"{kind}_low"], line[f"{kind}_high"]) for kind in ("noise", "conf")]
    if estimates.date:
        intervals = [f"[{header.day(low)}, {header.day(high)}]" for low, high in ends]
        return (header.day(line["estimate"]), *errors, *tests, *intervals)
    intervals = [interval(low, high) for low, high in ends]
    return (signif_uncertain(line["estimate"], sd), *errors, *tests, *intervals)
