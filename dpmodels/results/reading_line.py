"""What the guarantee of a release lets anybody tell, in one line."""

from __future__ import annotations

from typing import Any, Final

from dpmodels.privacy import Adjacency, PureDP
from dpmodels.privacy.register import UNPROVED
from dpmodels.privacy.trade_off import Curve, curve_of, odds_factor, power, shifted
from dpmodels.released import AnswersFitRelease, AnswersRelease

ALPHA: Final = 0.05  # conventions: the level of a test, and odds that are even
PRIOR: Final = 0.5

NO_ROW: Final = (
    "Reading: none, as nothing was released here from private rows: it is made of public or "
    "simulated ones, or of none."
)
_SIMULATED: Final = (
    "Reading: none, as a simulation is not private: who knows its seed can subtract the noise."
)


def is_local(release: Any) -> bool:
    """Whether each respondent's answer was randomised before anybody saw it."""
    return isinstance(release, AnswersRelease | AnswersFitRelease)


def protected(adjacency: Adjacency, local: bool, units: int) -> str:
    """Say who is protected together: one unit of the guarantee, or more of them."""
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
    own = curve_of(release.events) or guaranteed
    return min(guaranteed, own, key=lambda curve: power(curve, ALPHA))


def convergence_words(release: Any) -> str:
    """Return the caveat of a release whose guarantee holds in the limit of a Markov chain.

    A Markov chain of a public number of sweeps has no proved distance from its limit. Empty for
    all other releases.
    """
    return f"if {UNPROVED}" if getattr(release, "limit", "") else ""


def reading_line(release: Any) -> str:
    """Say what a test, and a prior, may gain by a release alone.

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
        return f"Reading: no row had a part in it; a test at level {ALPHA} has power {ALPHA}."
    curve = closest(release)
    posterior = shifted(PRIOR, odds_factor(curve, ALPHA))
    mostly = "" if isinstance(curve, PureDP) else f" with probability {1 - ALPHA:g} or more"
    who, caveat = protected(release.adjacency, local, 1), convergence_words(release)
    caveat = f", {caveat}" if caveat else ""
    source = "these answers" if local else "this release"
    what = f"the truth of {who} was one or another" if local else f"{who} had a part in it"
    return (
        f"Reading: by {source} alone, a test at level {ALPHA} of whether {what} has power "
        f"{power(curve, ALPHA):.3g} at most, and a prior of {PRIOR} becomes {posterior:.3g} at "
        f"most{mostly}{caveat}. What holds of the population may be learnt of anybody, in these "
        "rows or not."
    )
