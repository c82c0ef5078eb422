"""A formula's columns among those of a joint release."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dpmodels.errors import FormulaError, shorten
from dpmodels.formula import Design, design
from dpmodels.formula.parse import parse
from dpmodels.formula.syntax import variables_in
from dpmodels.released import MomentsRelease
from dpmodels.results.call import MomentsCall


class Part(NamedTuple):
    """Some columns of a release, as if they alone had been asked for."""

    call: MomentsCall
    release: MomentsRelease
    design: Design


def part(call: MomentsCall, release: MomentsRelease, formula: str | None) -> Part:
    """Take the columns of a formula out of a joint release; no budget is spent.

    Parameters
    ----------
    call, release : MomentsCall, MomentsRelease
        Of the joint release.
    formula : str or None
        A right-hand side over the released variables; None for all columns.

    Raises
    ------
    FormulaError
        If the formula codes to a column that was not released.
    """
    text = call.formula if formula is None else formula
    if formula is not None:
        check_variables(formula, call)
    return part_of(call, release, design(text, call.codebook))


def part_of(call: MomentsCall, release: MomentsRelease, own: Design) -> Part:
    """Take the columns of a design out of a joint release.

    Raises
    ------
    FormulaError
        If one of them was not released.
    """
    places = _places(own, call)
    chosen = replace(
        call,
        formula=own.formula,
        codebook=own.codebook,
        names=own.names,
        lower=call.lower[places],
        upper=call.upper[places],
        origin=call.origin[places],
        divisor=call.divisor[places],
        ncomp=len(own.names),
        part_of=f"{len(call.names)} columns ({call.formula})",
    )
    assert release.total is not None
    taken = replace(
        release, total=release.total[places], second=release.second[np.ix_(places, places)]
    )
    return Part(chosen, taken, own)


def check_variables(formula: str, call: MomentsCall) -> None:
    """Refuse a formula, one- or two-sided, with variables that were not released."""
    parsed = parse(formula, call.codebook)
    terms = parsed.response + parsed.predictors
    used = dict.fromkeys(name for term in terms for code in term for name in variables_in(code))
    missing = [name for name in used if name not in call.codebook]
    if missing:
        raise FormulaError(_refusal(f"variable {shorten(missing[0])!r}", formula, call))


def _places(own: Design, call: MomentsCall) -> list[int]:
    """Find columns by name and public range; interactions in any order of their factors."""
    known = {column: place for place, column in enumerate(_columns(call))}
    wanted = _columns(own)
    missing = [name for name, column in zip(own.names, wanted, strict=True) if column not in known]
    if missing:
        raise FormulaError(_refusal(f"column {shorten(missing[0])!r}", own.formula, call))
    return [known[column] for column in wanted]


def _columns(coded: Design | MomentsCall) -> list[tuple[tuple[str, ...], str, str]]:
    """Return what a column is known by; the order of products costs a range its last bits."""
    parts = (tuple(sorted(name.split(":"))) for name in coded.names)
    low, high = ([f"{end:.9e}" for end in ends] for ends in (coded.lower, coded.upper))
    return list(zip(parts, low, high, strict=True))


def _refusal(what: str, formula: str, call: MomentsCall) -> str:
    names = shorten(", ".join(call.names), 200)
    return (
        f"{what} of {shorten(formula)!r} was not released; this release holds the columns {names}. "
        "Name columns among these, or add it to the formula of a new release with dp.dp_moments"
    )
