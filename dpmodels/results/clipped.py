"""How many values lie beyond the declared bounds: a table, and what a report says of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pandas as pd

from dpmodels.errors import NotAvailable, shorten
from dpmodels.labels import plain
from dpmodels.released.terms import CLEAR_SDS, Clipping, Released
from dpmodels.report import Report
from dpmodels.report.notes import Rank

_NAMED: Final = 3  # A choice: variables that a note names


def clipped_table(release: Released, codebook: Mapping[str, Any]) -> pd.DataFrame:
    """Return shares of values beyond each declared bound, or say why they were not counted."""
    clipping = _of_formula(release, codebook)
    if clipping is None:
        raise NotAvailable(
            "clipped() is not available: values beyond the bounds are counted where the number of "
            "rows is public and large beside the noise, rows can be read twice, and "
            "dp.options(clipping=False) is not set"
        )
    lines = [
        {
            "variable": name,
            "lower": codebook[name].lower,
            "upper": codebook[name].upper,
            "below": below,
            "above": above,
            "noise_sd": noise_sd,
        }
        for name, below, above, noise_sd in clipping.shares()
    ]
    return pd.DataFrame(lines).set_index("variable")


def with_clipping(report: Report, release: Released, codebook: Mapping[str, Any]) -> Report:
    """Add to a report which variables have many values beyond their bounds."""
    clipping = _of_formula(release, codebook)
    if clipping is None:
        return report
    fact = ("Clipped", _fact(clipping))
    much = clipping.much()
    if not much:
        return replace(report, facts=(*report.facts, fact))
    texts = [
        f"{share:.0%} of {shorten(plain(name), 30)} {side} "
        f"{getattr(codebook[name], 'lower' if side == 'below' else 'upper'):,.10g}"
        for name, side, share in much[:_NAMED]
    ]
    rest = f" and {len(much) - _NAMED} more" * (len(much) > _NAMED)
    note = f"Warning: values were clipped, about {', '.join(texts)}{rest}. Declare wider bounds."
    return replace(
        report, facts=(*report.facts, fact), notes=(*Rank.IDENTIFIED(note), *report.notes)
    )


def _of_formula(release: Released, codebook: Mapping[str, Any]) -> Clipping | None:
    """Return the numbers of a formula's variables, which may be part of those of the release."""
    clipping = release.clipping and release.clipping.among(codebook)
    return clipping if clipping and clipping.variables else None


def _fact(clipping: Clipping) -> str:
    """Describe the largest share in a few words."""
    finite = [side for side in clipping.sides() if not math.isnan(side[2])]
    if not finite:
        return "unknown, few values"
    name, side, share, noise_sd = max(finite, key=lambda side: side[2])
    if share < CLEAR_SDS * noise_sd:
        return f"none detected (sd {100 * noise_sd:.2g}%)"
    return f"{100 * min(share, 1.0):.3g}% of {shorten(plain(name), 12)} {side}"
