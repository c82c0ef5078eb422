"""What is tested of a population, and how far its truth is from that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dpmodels.arguments import real
from dpmodels.errors import ArgumentError, said, shorten
from dpmodels.planning.population import Population
from dpmodels.typing import Floats

Effect = float | Mapping[str, float] | str | None
"""A number for all terms, numbers by term, ``"sample"`` for what public rows show, or none yet."""


class Posed(NamedTuple):
    """A population in which the effects are what was stated, and the tests of a verb."""

    population: Population
    terms: tuple[str, ...]
    truth: Floats  # Of the population, shape (terms,)
    null: Floats  # What each is tested against; nan where nothing is
    sampling: Floats  # Standard error without noise, times the root of the number of rows
    freedom: int = 0  # Degrees of freedom of the first term where it is a chi-square test

    @property
    def effect(self) -> Floats:
        """How far the truth is from what it is tested against; nan where nothing is tested."""
        return self.truth - self.null


def effects(effect: Effect, terms: Sequence[str]) -> Floats:
    """Return the stated effect of each term, 0 of those that are not named."""
    if effect is None:
        return np.zeros(len(terms))
    if isinstance(effect, Mapping):
        if not effect:
            raise ArgumentError(
                f"effect={{}} names no term, so that nothing is tested; write one of "
                f"{shorten(', '.join(map(repr, terms)), 300)}, such as {{{terms[0]!r}: 0.5}}"
            )
        for name, own in effect.items():
            if name not in terms:
                raise ArgumentError(
                    f"effect= names {said(name)}; the terms are "
                    f"{shorten(', '.join(map(repr, terms)), 300)}"
                )
            _nonzero(f"effect[{name!r}]", own)
        return np.array([real(effect.get(name, 0.0)) for name in terms])
    return np.full(len(terms), _nonzero("effect", effect))


def _nonzero(name: str, given: object) -> float:
    number = real(given)
    if not abs(number) > 0:
        raise ArgumentError(
            f"{name}={said(given)}: expected a number other than 0, in units of the coefficient; "
            'by term write effect={"age": 0.5}, and leave out terms without an effect'
        )
    return number


def held_against(effect: Effect, terms: Sequence[str]) -> Floats:
    """Return the 0 that coefficients are tested against, nan of those without a stated effect."""
    if not isinstance(effect, Mapping):
        return np.zeros(len(terms))
    return np.where(effects(effect, terms) == 0, np.nan, 0.0)


def of_sample(effect: Effect, population: Population) -> bool:
    """Whether effects are those that public rows show; ArgumentError for any other word."""
    if not isinstance(effect, str):
        return False
    if effect != "sample" or not population.sampled:
        raise ArgumentError(
            f'effect={effect!r}: expected a number, numbers by term, or "sample" where shape= is a '
            "frame of public rows, which has effects of its own"
        )
    return True
