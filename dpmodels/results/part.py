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


class Part(NamedTuple):
    """Some columns of a joint release, as if they alone had been asked for."""

    call: MomentsCall
    positions: list[int]
    joint: MomentsCall

    def take(self, release: MomentsRelease) -> MomentsRelease:
        """Return these columns of the joint release."""
        assert release.total is not None
        return replace(
            release,
            total=release.total[self.positions],
            second=release.second[np.ix_(self.positions, self.positions)],
            whole=origin(release),
        )

    def named(self, call: MomentsCall, release: MomentsRelease) -> MomentsCall:
        """Return the call with the words on what these columns are a part of."""
        whole = (release.whole or "")[:SHOWN]
        of = f"{len(self.joint.names)} columns ({self.joint.formula}), digest {whole}"
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
