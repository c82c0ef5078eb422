"""Which coefficients belong to which term of a formula."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpmodels.errors import ArgumentError, shorten
from dpmodels.formula import Design
from dpmodels.formula.parse import quote, variables_in
from dpmodels.typing import Floats


@dataclass(frozen=True)
class Terms:
    """The terms of a right-hand side, and the coefficients that a model has of it."""

    design: Design
    names: tuple[str, ...]  # of all coefficients, the intercept first where there is one
    predictors: int = 1  # that have all of these, one after the other: of several levels several

    @cached_property
    def factors(self) -> dict[str, tuple[str, ...]]:
        """The factors of each term by its name, in the order of the coefficients."""
        return {":".join(block.term): block.term for block in self.design.blocks}

    @cached_property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The coefficients of each term by its name."""
        return {
            term: tuple(
                name
                for block in self.design.blocks
                if block.term == factors
                for name in block.names
            )
            for term, factors in self.factors.items()
        }

    def matrix(self, *terms: str) -> Floats:
        """Return which coefficients terms have, one a row, shape (theirs, coefficients)."""
        places = [self.names.index(name) for term in terms for name in self.columns[term]]
        own = np.eye(len(self.names))[places]
        return np.asarray(np.kron(np.eye(self.predictors), own), dtype=np.float64)

    def above(self, term: str) -> list[str]:
        """Return the terms that hold a term: those with all of its factors and more."""
        own = set(self.factors[term])
        return [name for name, factors in self.factors.items() if own < set(factors)]

    def named(self, text: str) -> str | None:
        """Return the term that a name means, None where it is of none.

        A term as it is written, its factors in any order; or a variable that one main effect alone
        is of, as ``sex`` where the formula has ``C(sex)``.
        """
        asked = sorted(part.strip() for part in text.split(":"))
        for term, factors in self.factors.items():
            if text == term or asked == sorted(factors):
                return term
        own = [
            term
            for term, factors in self.factors.items()
            if len(factors) == 1 and tuple(map(quote, variables_in(factors[0]))) == (text.strip(),)
        ]
        if len(own) > 1:
            raise ArgumentError(
                f"{shorten(text)!r} is in several terms: write one of {shorten(str(own), 120)}"
            )
        return own[0] if own else None
