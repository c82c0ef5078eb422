"""What reports say of any release: its guarantee and what that means, and how much it clipped."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pandas as pd

from dpmodels.errors import NotAvailable, shorten
from dpmodels.labels import plain
from dpmodels.privacy import ZCDP, Adjacency, ApproxDP, PureDP, hidden_by
from dpmodels.privacy.register import UNPROVED
from dpmodels.privacy.trade_off import Curve, curve_of, odds_factor, power, shifted
from dpmodels.released import AnswersFitRelease, AnswersRelease, AnyRelease
from dpmodels.released.terms import CLEAR_SDS, Clipping, Released
from dpmodels.report import Report
from dpmodels.report.notes import Rank
from dpmodels.typing import TableColumns

_NAMED: Final = 3  # A choice: variables that a note names


def clipped_table(release: Released, codebook: Mapping[str, object]) -> pd.DataFrame:
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
            "lower": getattr(codebook[name], "lower", None),
            "upper": getattr(codebook[name], "upper", None),
            "below": below,
            "above": above,
            "noise_sd": noise_sd,
        }
        for name, below, above, noise_sd in clipping.shares()
    ]
    return pd.DataFrame(lines).set_index("variable")


def with_clipping(report: Report, release: Released, codebook: Mapping[str, object]) -> Report:
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


def _of_formula(release: Released, codebook: Mapping[str, object]) -> Clipping | None:
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


def guarantee_words(release: AnyRelease) -> str:
    """Return what a release satisfies, with :func:`convergence_words`."""
    return f"{release.guarantee.describe()} {convergence_words(release)}".strip()


def release_facts(release: AnyRelease) -> Mapping[str, str]:
    """Return the facts that every report has about a release."""
    return {
        "Guarantee": guarantee_words(release),
        "Mechanism": f"{release.info.name} ({release.info.numerics})",
        "Neighbours": neighbours_text(release),
    }


def neighbours_text(release: AnyRelease) -> str:
    """Describe the neighbours that a release protects."""
    return _of_units(release, release.adjacency.describe())


def _of_units(release: AnyRelease, text: str) -> str:
    """Name the persons of a survey design with sampling units as such units."""
    is_sampled = any(getattr(release, name, None) is not None for name in ("units", "weights"))
    if release.adjacency.person is None or not is_sampled:
        return text
    return text.replace("person", "sampling unit")


def caption_of(release: AnyRelease) -> str:
    """Return the caption of a picture: guarantee, neighbours and mechanism."""
    facts = release_facts(release)
    hidden = _of_units(release, hidden_by(release.guarantee, release.adjacency))
    mechanism = facts["Mechanism"]
    return f"Privacy: {facts['Guarantee']}; neighbours: {hidden}; noise: {mechanism}."


def public_rows(release: Released) -> int | None:
    """Return the public number of rows; None where only a maximum by person is public."""
    adjacency: Adjacency = release.adjacency
    n_rows: int | None = release.rows
    return n_rows if adjacency.person is None or adjacency.counts_persons else None


def release_row(release: AnyRelease) -> TableColumns:
    """Return the columns of glance() that describe a release."""
    guarantee = release.guarantee
    return {
        "eps": float("nan") if isinstance(guarantee, ZCDP) else guarantee.eps,
        "delta": guarantee.delta if isinstance(guarantee, ApproxDP) else 0.0,
        "rho": guarantee.rho if isinstance(guarantee, ZCDP) else float("nan"),
        "adjacency": release.adjacency.name,
        "unit": getattr(guarantee, "hidden", _of_units(release, release.adjacency.unit)),
        "mechanism": release.info.name,
        "simulated": release.simulated,
    }


# Conventions: the level of a test, and odds that are even.
ALPHA: Final = 0.05
PRIOR: Final = 0.5

NO_ROW: Final = "Reading: none, as nothing here was computed from private rows."
_SIMULATED: Final = (
    "Reading: none, as a simulation is not private: anyone with its seed can subtract the noise."
)


def is_local(release: object) -> bool:
    """Whether each respondent's answer was randomised before anybody saw it."""
    return isinstance(release, AnswersRelease | AnswersFitRelease)


def protected(adjacency: Adjacency, local: bool, units: int) -> str:
    """Return the protected unit of the guarantee, or several of them, as text."""
    if local and adjacency.rows is None:
        return "one respondent" if units == 1 else f"{units} respondents"
    if units == 1:
        return adjacency.unit
    if adjacency.person is None:
        return f"any {units * adjacency.places} rows"
    return f"{units} persons"


def closest(release: Any) -> Curve:
    """Return the curve of a release's guarantee, or of its own noise where that allows less."""
    guaranteed: Curve = release.guarantee
    noise_curve = curve_of(release.events) or guaranteed
    return min(guaranteed, noise_curve, key=lambda curve: power(curve, ALPHA))


def convergence_words(release: Released) -> str:
    """Return the caveat of a release whose guarantee holds in the limit of a Markov chain.

    A Markov chain of a public number of sweeps has no proved distance from its limit. Empty for
    all other releases.
    """
    return f"if {UNPROVED}" if getattr(release, "limit", "") else ""


def reading_line(release: Released) -> str:
    """Return bounds on the power of a test and on a posterior, given one release.

    >>> from types import SimpleNamespace
    >>> from dpmodels.privacy import LaplaceEvent
    >>> made = {"simulated": False, "adjacency": Adjacency("replace"), "guarantee": PureDP(1.0)}
    >>> print(reading_line(SimpleNamespace(**made, events=(LaplaceEvent(1.0),))))
    Reading: by this release alone, ... has power 0.136 at most, and a prior of 0.5 becomes 0.731...
    """
    if release.simulated:
        return _SIMULATED
    local = is_local(release)
    if not release.events and not local:
        return f"Reading: no row contributed to it; a test at level {ALPHA} has power {ALPHA}."
    curve = closest(release)
    posterior = shifted(PRIOR, odds_factor(curve, ALPHA))
    mostly = "" if isinstance(curve, PureDP) else f" with probability {1 - ALPHA:g} or more"
    who, caveat = protected(release.adjacency, local, 1), convergence_words(release)
    caveat = f", {caveat}" if caveat else ""
    source = "these answers" if local else "this release"
    what = f"the truth of {who} was one or another" if local else f"{who} contributed to it"
    return (
        f"Reading: by {source} alone, a test at level {ALPHA} of whether {what} has power "
        f"{power(curve, ALPHA):.3g} at most, and a prior of {PRIOR} becomes {posterior:.3g} at "
        f"most{mostly}{caveat}. Facts about the population can be learnt about anyone, in these "
        "rows or not."
    )
