"""Tests of correlations, and partial ones, from a joint release of moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pandas as pd

from dpmodels.arguments import text
from dpmodels.digest import origin
from dpmodels.errors import ArgumentError, FormulaError, quoted, shorten
from dpmodels.formula import Design, design
from dpmodels.formula.parse import parsed_formula, quote, variables_in
from dpmodels.inference.correlations import Correlation, correlation_of
from dpmodels.labels import square
from dpmodels.postprocess.normal_equations import NormalEquations, released_equations
from dpmodels.privacy.lines import SHOWN
from dpmodels.released import MomentsRelease
from dpmodels.results.base import Result
from dpmodels.results.call import MomentsCall
from dpmodels.results.derived_table import Estimates

if TYPE_CHECKING:
    import xarray as xr


NOTES = (
    "The test of 0 allows for noise and sampling, and is exact for independent columns, as R's "
    "cor.test. The noise variance is known, so df may exceed the number of rows. The confidence "
    "interval is Fisher's, which assumes joint normality, widened for the noise.",
    "noise int.: interval for the correlation of these rows, privacy noise only.",
)
_NAME: Final = "the name of a column, a text"


def cor_test(
    fit: Result, x: str, y: str | None, given: str | Sequence[str], level: float
) -> Estimates:
    """Return the test of one correlation."""
    call, release = fit.call, fit.release
    pair, conditions = _pair(call, text("x", x, _NAME), y), _conditions(call, given)
    repeated = sorted(set(pair) & set(conditions))
    if repeated:
        raise ArgumentError(f"given: {call.names[repeated[0]]!r} is one of the two tested columns")
    correlation = _correlation(call, release, equations(call, release), pair, conditions)
    statistic, df, pvalue = correlation.test
    (low, high), (noise_low, noise_high) = correlation.ends(level), correlation.noise_ends(level)
    row = {
        "column1": call.names[pair[0]],
        "column2": call.names[pair[1]],
        "estimate": correlation.estimate,
        "noise_sd": correlation.noise_sd,
        "statistic": statistic,
        "df": df,
        "p_value": pvalue,
        "conf_low": low,
        "conf_high": high,
        "noise_low": noise_low,
        "noise_high": noise_high,
        "identified": correlation.is_identified,
    }
    given_names = ", ".join(call.names[at] for at in conditions)
    title = f"Partial correlation given {given_names}" if conditions else "Correlation"
    return Estimates(fit, title, pd.DataFrame([row]), NOTES, level, test="t")


def pcor(call: MomentsCall, release: MomentsRelease, names: Sequence[str]) -> xr.DataArray:
    """Return the correlation of each pair of columns given all others, nan where not identified."""
    positions = [call.names.index(name) for name in names]
    matrix = np.eye(len(names))
    joint = equations(call, release)
    for i, j in combinations(range(len(names)), 2):
        pair = [positions[i], positions[j]]
        conditions = [at for at in positions if at not in pair]
        matrix[i, j] = matrix[j, i] = _correlation(call, release, joint, pair, conditions).estimate
    return square(matrix, tuple(names), "pcor")


def equations(call: MomentsCall, release: MomentsRelease) -> NormalEquations:
    """Return the moments of all columns with their noise, as equations with a constant."""
    return released_equations(release, row_norm=call.row_norm, shift=None, layout=None)


def _correlation(
    call: MomentsCall,
    release: MomentsRelease,
    joint: NormalEquations,
    pair: list[int],
    conditions: list[int],
) -> Correlation:
    entries = np.eye(len(joint.moments))
    among = replace(joint, regressors=entries[:, [0, *(at + 1 for at in conditions)]])
    n_rows = release.count if release.rows is None else min(release.count, release.rows)
    freedom = (n_rows - 2 - len(conditions)) / release.adjacency.design_effect
    return correlation_of(among, entries[:, [at + 1 for at in pair]], freedom)


def _pair(call: MomentsCall, x: str, y: str | None) -> list[int]:
    texts = [x.removeprefix("~").strip()] if y is None else [x, text("y", y, _NAME)]
    positions = [at for column in texts for at in places_of(call, column)]
    if len(positions) != 2 or len(set(positions)) != 2:
        names = ", ".join(call.names[at] for at in positions)
        raise ArgumentError(
            f"x, y: expected two different columns, found {shorten(names)!r}; a category of more "
            'than two levels has a column for each but the first, such as "region[T.south]"'
        )
    return positions


def _conditions(call: MomentsCall, conditions: str | Sequence[str]) -> list[int]:
    texts = [conditions] if isinstance(conditions, str) else conditions
    if not isinstance(texts, list | tuple):
        raise ArgumentError(f'given={quoted(conditions)}: expected names, such as ["age", "sex"]')
    return sorted({at for name in texts for at in places_of(call, text("given", name, _NAME))})


# Some columns of a joint release, by formula or by name.


class Part(NamedTuple):
    """Some columns of a joint release, as if requested alone."""

    call: MomentsCall
    positions: list[int]
    joint: MomentsCall

    def take(self, release: MomentsRelease) -> MomentsRelease:
        """Return these columns of the joint release."""
        assert release.total is not None
        tails = release.tails
        if tails is not None and tails.about is not None:
            fourth = tails.fourth[np.ix_(self.positions, self.positions)]
            tails = replace(tails, fourth=fourth, about=tails.about[self.positions])
        return replace(
            release,
            tails=tails,
            total=release.total[self.positions],
            second=release.second[np.ix_(self.positions, self.positions)],
            whole=origin(release),
        )

    def named(self, call: MomentsCall, release: MomentsRelease) -> MomentsCall:
        """Return the call with a note on the joint release."""
        joint_digest = (release.whole or "")[:SHOWN]
        of = f"{len(self.joint.names)} columns ({self.joint.formula}), digest {joint_digest}"
        return replace(call, part_of=of)


def part(call: MomentsCall, coded: Design) -> Part:
    """Return the columns of a design; FormulaError if one is not in the joint release."""
    positions = _places(coded, call)
    chosen = replace(
        call,
        formula=coded.formula,
        codebook=coded.codebook,
        names=coded.names,
        lower=call.lower[positions],
        upper=call.upper[positions],
        origin=call.origin[positions],
        divisor=call.divisor[positions],
        ncomp=len(coded.names),
    )
    return Part(chosen, positions, call)


def columns_of(call: MomentsCall, formula: str | None) -> Design:
    """Code a formula, None for that of all columns; FormulaError if one was not released."""
    if formula is not None:
        check_variables(formula, call)
    return design(call.formula if formula is None else formula, call.codebook)


def places_of(call: MomentsCall, text: str) -> list[int]:
    """Find the columns of a column's or variable's name, or of a right-hand side without ``~``."""
    if text in call.names:
        return [call.names.index(text)]
    formula = f"~ {quote(text) if text in call.codebook else text}"
    check_variables(formula, call)
    return _places(design(formula, call.codebook), call)


def check_variables(formula: str, call: MomentsCall) -> None:
    """Refuse a formula, one- or two-sided, with variables that were not released."""
    parsed = parsed_formula(formula, call.codebook)
    terms = parsed.response + parsed.predictors
    used = dict.fromkeys(name for term in terms for code in term for name in variables_in(code))
    missing = [name for name in used if name not in call.codebook]
    if missing:
        raise FormulaError(_refusal(f"variable {shorten(missing[0])!r}", formula, call))


def _places(coded: Design, call: MomentsCall) -> list[int]:
    """Find columns by name and public range; interactions in any order of their factors."""
    positions = {column: place for place, column in enumerate(_columns(call))}
    columns = _columns(coded)
    missing = [
        name for name, column in zip(coded.names, columns, strict=True) if column not in positions
    ]
    if missing:
        raise FormulaError(_refusal(f"column {shorten(missing[0])!r}", coded.formula, call))
    return [positions[column] for column in columns]


def _columns(coded: Design | MomentsCall) -> list[tuple[tuple[str, ...], str, str]]:
    """Return the identity of columns; the order of products changes the last bits of a range."""
    parts = (tuple(sorted(name.split(":"))) for name in coded.names)
    low, high = ([f"{end:.9e}" for end in ends] for ends in (coded.lower, coded.upper))
    return list(zip(parts, low, high, strict=True))


def _refusal(what: str, formula: str, call: MomentsCall) -> str:
    names = shorten(", ".join(call.names), 200)
    return (
        f"{what} of {shorten(formula)!r} was not released; this release has the columns {names}. "
        "Name columns among these, or add it to the formula of a new release with dp.dp_moments"
    )
