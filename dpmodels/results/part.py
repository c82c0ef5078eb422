"""Some columns of a joint release, by formula or by name."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dpmodels.digest import origin
from dpmodels.errors import FormulaError, shorten
from dpmodels.formula import Design, design
from dpmodels.formula.parse import parse, quote, variables_in
from dpmodels.privacy.lines import SHOWN
from dpmodels.released import MomentsRelease
from dpmodels.results.call import MomentsCall


class Taken(NamedTuple):
    """Some columns of a release, as if they alone had been asked for."""

    call: MomentsCall
    release: MomentsRelease
    design: Design


def part(call: MomentsCall, release: MomentsRelease, formula: str | None) -> Taken:
    """Take the columns of a formula, None for all, out of a joint release; nothing is spent.

    FormulaError if the formula codes to a column that was not released.
    """
    text = call.formula if formula is None else formula
    if formula is not None:
        check_variables(formula, call)
    return part_of(call, release, design(text, call.codebook))


def part_of(call: MomentsCall, release: MomentsRelease, own: Design) -> Taken:
    """Take the columns of a design out of a joint release; FormulaError if one is not in it."""
    places, whole = _places(own, call), origin(release)
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
        part_of=f"{len(call.names)} columns ({call.formula}), digest {whole[:SHOWN]}",
    )
    assert release.total is not None
    taken = replace(
        release,
        total=release.total[places],
        second=release.second[np.ix_(places, places)],
        whole=whole,
    )
    return Taken(chosen, taken, own)


def places_of(call: MomentsCall, text: str) -> list[int]:
    """Find the columns of a column's or variable's name, or of a right-hand side without ``~``."""
    if text in call.names:
        return [call.names.index(text)]
    formula = f"~ {quote(text) if text in call.codebook else text}"
    check_variables(formula, call)
    return _places(design(formula, call.codebook), call)


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
