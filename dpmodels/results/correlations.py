"""Tests of correlations, and partial ones, from a joint release of moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from dpmodels.arguments import text
from dpmodels.errors import ArgumentError, said, shorten
from dpmodels.inference.correlations import Correlation, correlation_of
from dpmodels.labels import square
from dpmodels.postprocess.solve import NormalEquations, released_equations
from dpmodels.released import MomentsRelease
from dpmodels.results.base import Result
from dpmodels.results.call import MomentsCall
from dpmodels.results.estimates import Estimates
from dpmodels.results.part import places_of

if TYPE_CHECKING:
    import xarray as xr

NOTES = (
    "The test of 0 holds noise and sampling, as R's cor.test does sampling: exact for columns that "
    "are independent. The variance of noise is known, so that there may be more df than rows. The "
    "confidence interval is Fisher's, for columns that are normal together, widened by the noise.",
    "noise int.: where the correlation of these rows lies, privacy noise only.",
)
_NAME: Final = "the name of a column, a text"


def cor_test(
    fit: Result, x: str, y: str | None, given: str | Sequence[str], level: float
) -> Estimates:
    """Return the test of one correlation."""
    call, release = fit.call, fit.release
    pair, held = _pair(call, text("x", x, _NAME), y), _held(call, given)
    twice = sorted(set(pair) & set(held))
    if twice:
        raise ArgumentError(f"given: {call.names[twice[0]]!r} is one of the two that are tested")
    own = _correlation(call, release, equations(call, release), pair, held)
    statistic, df, pvalue = own.test
    (low, high), (least, most) = own.ends(level), own.noise_ends(level)
    row = {
        "column1": call.names[pair[0]],
        "column2": call.names[pair[1]],
        "estimate": own.estimate,
        "noise_sd": own.noise_sd,
        "statistic": statistic,
        "df": df,
        "p_value": pvalue,
        "conf_low": low,
        "conf_high": high,
        "noise_low": least,
        "noise_high": most,
        "identified": own.told,
    }
    given_names = ", ".join(call.names[at] for at in held)
    title = f"Partial correlation given {given_names}" if held else "Correlation"
    return Estimates(fit, title, pd.DataFrame([row]), NOTES, level, test="t")


def pcor(call: MomentsCall, release: MomentsRelease, names: Sequence[str]) -> xr.DataArray:
    """Return the correlation of each pair of columns given all others, nan where not identified."""
    places = [call.names.index(name) for name in names]
    matrix = np.eye(len(names))
    own = equations(call, release)
    for i, j in combinations(range(len(names)), 2):
        pair = [places[i], places[j]]
        held = [at for at in places if at not in pair]
        matrix[i, j] = matrix[j, i] = _correlation(call, release, own, pair, held).estimate
    return square(matrix, tuple(names), "pcor")


def equations(call: MomentsCall, release: MomentsRelease) -> NormalEquations:
    """Return the moments of all columns with their noise, as equations with a constant."""
    return released_equations(release, row_norm=call.row_norm, shift=None, layout=None)


def _correlation(
    call: MomentsCall,
    release: MomentsRelease,
    own: NormalEquations,
    pair: list[int],
    held: list[int],
) -> Correlation:
    entries = np.eye(len(own.moments))
    among = replace(own, regressors=entries[:, [0, *(at + 1 for at in held)]])
    rows = release.count if release.rows is None else min(release.count, release.rows)
    freedom = (rows - 2 - len(held)) / release.adjacency.design_effect
    return correlation_of(among, entries[:, [at + 1 for at in pair]], freedom)


def _pair(call: MomentsCall, x: str, y: str | None) -> list[int]:
    texts = [x.removeprefix("~").strip()] if y is None else [x, text("y", y, _NAME)]
    places = [at for own in texts for at in places_of(call, own)]
    if len(places) != 2 or len(set(places)) != 2:
        names = ", ".join(call.names[at] for at in places)
        raise ArgumentError(
            f"x, y: expected two different columns, found {shorten(names)!r}; a category of more "
            'than two levels has a column for each but the first, such as "region[T.south]"'
        )
    return places


def _held(call: MomentsCall, given: str | Sequence[str]) -> list[int]:
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list | tuple):
        raise ArgumentError(f'given={said(given)}: expected names, such as ["age", "sex"]')
    return sorted({at for own in texts for at in places_of(call, text("given", own, _NAME))})
