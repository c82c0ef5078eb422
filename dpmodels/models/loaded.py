"""Whether what a file says goes together: its formula, its columns and its tables."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from dpmodels.errors import FrameError
from dpmodels.formula import Design
from dpmodels.formula.response import TwoSided, two_sided
from dpmodels.formula.sides import Sides, one_measured, sides
from dpmodels.formula.tally import Tally
from dpmodels.models.describing import table_facts
from dpmodels.models.hist import bins
from dpmodels.models.linear import levels
from dpmodels.models.overview import tables
from dpmodels.models.quantile import cells_of, checked_probs
from dpmodels.models.table import counted
from dpmodels.results.arguments import checked_level
from dpmodels.results.call import MomentsCall
from dpmodels.results.coefficients_call import CoefficientsCall
from dpmodels.results.described_call import DescribedCall, TableFacts
from dpmodels.results.described_store import HIST, OVERVIEW, QUANTILE, TABLE, TTEST, VAR

# Ranges are worked out by functions that may differ in their last bits between machines.
_NEAR = 1e-9


def require_columns(call: MomentsCall, own: Design) -> None:
    """Refuse columns that are not those of the formula.

    Raises
    ------
    FrameError
        If names or public ranges are others.
    """
    if call.names != own.names:
        raise FrameError("call.names: not the columns of the formula")
    for name, ends in (("lower", own.lower), ("upper", own.upper)):
        if not np.allclose(getattr(call, name), ends, rtol=_NEAR, atol=0):
            raise FrameError(f"array {name!r}: not the public range of the formula's columns")


def require_intercept(stated: bool, both: TwoSided) -> None:
    """Refuse a model with a constant that the formula lacks, and the reverse."""
    if stated != both.intercept:
        raise FrameError("release.model.intercept: not as in the formula")


def require_coefficients(call: CoefficientsCall) -> Design:
    """Return the terms of a linear predictor, or refuse what is not of its formula.

    Raises
    ------
    FrameError
        If names, response or levels are others.
    """
    both = two_sided(call.formula, call.codebook)
    names = ("Intercept",) * both.intercept + both.terms.names
    if call.names != names or call.response != both.response.names[0]:
        raise FrameError("call.names, call.response: not those of the formula")
    if call.levels != (() if call.family == "poisson" else levels(both, call.family)):
        raise FrameError("call.levels: not those of the formula's response")
    return both.terms


def require_tables(written: str, call: DescribedCall, own: dict[str, Any]) -> None:
    """Refuse tables that are not those of the formula.

    Parameters
    ----------
    written : str
        The format.
    call : DescribedCall
        What was asked.
    own : dict
        What else the result is made of.

    Raises
    ------
    FrameError
        If they are others.
    """
    both = sides(call.formula, call.codebook)
    made = [_bins(both, call, own)] if written == HIST else []
    expected = made or list(map(table_facts, _tallies(written, both)))
    if len(expected) != len(call.tables) or not all(map(_same, expected, call.tables)):
        raise FrameError("call.tables: not those of the formula")
    if written == OVERVIEW and own["strata"] != len(both.left):
        raise FrameError("release.own.strata: not as many as the formula groups by")
    if written == QUANTILE:
        _require_quantiles(own, _tallies(written, both)[0])


def _tallies(written: str, both: Sides) -> tuple[Tally, ...]:
    if written == OVERVIEW:
        return tables(both)
    if written == TABLE:
        return (counted(both),)
    number, factors = one_measured(both, "the result")
    if written == QUANTILE:
        return (Tally(factors, number),)
    if written == TTEST and [len(factor.levels) for factor in factors] not in ([], [2]):
        raise FrameError("call.formula: a t-test compares two groups, or one mean with a number")
    return (Tally(factors, number, 4 if written == VAR else 2),)


def _bins(both: Sides, call: DescribedCall, own: dict[str, Any]) -> TableFacts:
    """Return the table of a histogram, with the names of the bins that the file has."""
    tally, ends, variable = bins(both, 2)
    facts, breaks = table_facts(tally), own["breaks"]
    names = call.tables[0].levels[-1:] if call.tables else ()
    if not names or len(set(names[0])) + 1 != len(breaks) or len(breaks) != len(names[0]) + 1:
        raise FrameError("release.own.breaks: not as many as there are bins, and one")
    if not all(isinstance(name, str) for name in names[0]) or own["variable"] != variable:
        raise FrameError("release.own.variable, call.tables: not those of the formula")
    slack = _NEAR * (ends[-1] - ends[0])
    held = ends[0] - slack <= breaks[0] and breaks[-1] <= ends[-1] + slack
    if not held or not all(low < high for low, high in pairwise(breaks)):
        raise FrameError("release.own.breaks: not increasing, or outside the declared range")
    return replace(facts, levels=(*facts.levels[:-1], *names))


def _require_quantiles(own: dict[str, Any], grouped: Tally) -> None:
    checked_probs(own["probs"])
    if own["level"] is not None:
        checked_level(own["level"])
    if own["grid"] != cells_of(grouped):
        raise FrameError("release.own.grid: not the number of cells of such a quantile")


def _same(expected: TableFacts, found: TableFacts) -> bool:
    ends = np.allclose(
        [found.lower, found.upper], [expected.lower, expected.upper], rtol=_NEAR, atol=0
    )
    return bool(ends) and replace(found, lower=expected.lower, upper=expected.upper) == expected
