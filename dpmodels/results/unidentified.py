"""Why coefficients have no standard errors."""

from __future__ import annotations

from collections.abc import Sequence

from dpmodels.errors import shorten
from dpmodels.inference.sandwich import FAR, Sandwich
from dpmodels.released import CoefficientsRelease

# Mechanisms that buy what intervals are made from.
BUYERS = ("objective", "gradients")


def is_number(name: str) -> bool:
    """Whether a coefficient is of a number, or of one within levels, by its name."""
    return any("[" not in part for part in name.split(":"))


def not_identified(
    release: CoefficientsRelease, own: Sandwich | None, swamped: Sequence[str]
) -> str:
    """Return the reason why no coefficient is identified; `swamped` are numbers lost in noise."""
    if own is not None and own.far > FAR:
        return (
            "not identified at this budget: the noise in the linear predictor is so large that "
            "its errors do not add up; a larger budget, more rows or fewer terms are needed"
        )
    if swamped:
        return (
            "not identified at this budget: noise swamps the curvature of "
            f"{shorten(', '.join(swamped))}, whose part in the other coefficients is not "
            "known; narrower bounds, a larger budget, more rows or fewer terms are needed"
        )
    if release.curvature is not None:
        return (
            "not identified at this budget: the curvature bought for it does not stand clear "
            "of its noise; a larger budget, more rows, fewer terms, or levels that the terms "
            "do not separate are needed"
        )
    if release.card.name in BUYERS:
        return "no share of the budget was spent on it: fit with inference=True"
    return (
        f'mechanism="{release.card.name}" has no intervals that are known to cover: fit '
        'with mechanism="objective" or "gradients"'
    )
