"""Regressions of categories on categories, from one release of the counts of their cells."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np

from dpmodels.errors import ArgumentError, FormulaError, quoted, shorten
from dpmodels.formula.crossed import MOST_CELLS, Crossed
from dpmodels.formula.response import TwoSided
from dpmodels.formula.values import Category
from dpmodels.mechanisms.choose import Choice, auto_counts, two_digits
from dpmodels.mechanisms.counts import COUNTS
from dpmodels.mechanisms.protocol import RegressionFacts
from dpmodels.mechanisms.regression.tabulated import CellCounts, cell_facts
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.privacy import PureDP
from dpmodels.request import Request
from dpmodels.results.call import CoefficientsCall

# Options that change what is fitted, which counts cannot.
_OTHERS: Final = ("ridge", "row_norm")


@dataclass(frozen=True)
class Tabulation:
    """The table of a request, or the text of the term that has no levels to count."""

    table: Crossed | str
    request: Request
    facts: RegressionFacts

    @property
    def sizes(self) -> dict[str, int]:
        """The number of counts; empty where there cannot be any."""
        is_changed = any(self.request.words.get(name) is not None for name in _OTHERS)
        if is_changed or isinstance(self.table, str) or self.table.cells > MOST_CELLS:
            return {}
        return {"part": self.table.cells + 1}

    def choice(self) -> Choice[Any]:
        """Return the counts of less noise; refuse what has no table."""
        options = self.request.words
        if isinstance(self.table, str):
            term, is_ordinal = shorten(self.table), options["family"] == "ordinal"
            what = 'family="ordinal"' if is_ordinal else 'mechanism="counts"'
            raise FormulaError(
                f"{term!r} takes many values, and {what} counts combinations of levels: cut or "
                f"compare it, as in cut({term}, [...])"
                + ", or leave mechanism= out"
                * (not is_ordinal)
            )
        for name in _OTHERS:
            if options.get(name) is not None:
                raise ArgumentError(
                    f"{name}={quoted(options[name])} does not go with counts, which need no ridge "
                    f"and shorten no row: leave {name}= out"
                )
        tally = self.table.tally
        name, reason = auto_counts(cell_facts(tally, self.facts), self.request.private)
        return Choice(CellCounts(COUNTS[name](), tally), reason)

    def best(self, other: Any) -> Choice[Any] | None:
        """Return counts if their noise in the score is predicted to be less than another's.

        That of counts of equal odds, in all gradients of rows at most 1 long together, is that of
        one count times ``√(combinations (levels - 1))``, of two levels ``√(combinations / 2)``. The
        other mechanism has its own in each coordinate.
        """
        if not self.sizes or isinstance(self.table, str):
            return None
        (strategy, _), levels = self.choice(), len(self.table.response.levels)
        if isinstance(self.request.private, PureDP) and levels > 2:
            return Choice(strategy, "it needs no delta.")
        plan, rival = (
            mechanism.plan(self.facts, self.request.private) for mechanism in (strategy, other())
        )
        spread = self.table.cells / levels * (levels - 1 if levels > 2 else 0.5)
        noise = plan.noise_sd * math.sqrt(spread)
        rival_noise = rival.scales.get("last", rival.scales.get("sd")) * self.facts.columns**0.5
        reason = (
            f"with {self.table.cells:,} cells its noise in the score has an sd of "
            f"{two_digits(noise)}; that of {other.info.name} would have {two_digits(rival_noise)}."
        )
        return Choice(strategy, reason) if noise <= rival_noise else None


def with_counts(spec: VerbSpec[object], tabulation: Tabulation, other: object) -> VerbSpec[object]:
    """Return the specification of a regression that counts may serve; `other` if they do not.

    Without another mechanism there are only counts.
    """

    def choose(mechanism: object, private: Any) -> tuple[Any, str]:
        name = mechanism if isinstance(mechanism, str) else ""
        if name == "counts":
            return Choice(tabulation.choice().strategy, "")
        if other is not None:
            counted = tabulation.best(other) if name == "auto" else None
            return spec.choose(mechanism, private) if counted is None else counted
        if name == "auto":
            return tabulation.choice()
        raise ArgumentError(
            f'mechanism={quoted(mechanism)}: family="ordinal" is computed from counts of '
            'combinations of levels; write mechanism="counts" or leave it out'
        )

    return replace(spec, choose=choose, sizes=tabulation.sizes)


def ordered_call(call: CoefficientsCall, equation: TwoSided) -> CoefficientsCall:
    """Return the public facts of an ordinal logit: slopes, then thresholds such as ``low|mid``.

    FormulaError if the levels of the response have no order, or the formula removes the constant.
    """
    factor = equation.response.blocks[0].factors[0]
    name = shorten(factor.code)
    is_ordered = isinstance(factor, Category) and (factor.ordered or name.startswith("cut("))
    if not is_ordered:
        raise FormulaError(
            f'the response {name!r} has no ordered levels, which family="ordinal" needs: declare '
            f'{name}=dp.Categorical(["low", "mid", "high"], ordered=True), or cut({name}, [...]) '
            "a number"
        )
    if not equation.intercept:
        raise FormulaError(
            'the formula removes the constant, and the thresholds of family="ordinal" are '
            "constants: leave out '- 1' or '0 +'"
        )
    thresholds = tuple(f"{low}|{high}" for low, high in pairwise(call.levels))
    names = (*equation.terms.names, *thresholds)
    return replace(call, names=names, response=factor.code, matrix=np.eye(len(names)))
