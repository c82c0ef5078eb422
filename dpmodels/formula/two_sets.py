"""Formulas of two sets of columns, ``x1 + x2 ~ y1 + y2``."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpmodels.codebook import Codebook
from dpmodels.errors import FormulaError, shorten
from dpmodels.formula.coding import Design, checked_codebook
from dpmodels.formula.expression import check_removed
from dpmodels.formula.parse import parse
from dpmodels.formula.response import of_blocks, one_side


@dataclass(frozen=True)
class TwoSets:
    """Both sides of a formula, coded from the codebook alone."""

    formula: str
    left: Design
    right: Design

    @property
    def joint(self) -> Design:
        """The columns of the left side, then those of the right, as one design."""
        book = Codebook({**self.left.codebook, **self.right.codebook})
        return of_blocks(self.formula, book, self.left.blocks + self.right.blocks)


def two_sets(formula: str, codebook: Codebook | None) -> TwoSets:
    """Code both sides of a formula, neither of which has a constant.

    ``.`` on the right stands for all variables that the left side leaves.

    >>> import dpmodels as dp
    >>> cb = dp.codebook(a=(0, 1), b=(0, 1), sex=["F", "M"])
    >>> both = two_sets("a + b ~ sex", cb)
    >>> both.left.names, both.right.names
    (('a', 'b'), ('sex[T.M]',))
    """
    book = checked_codebook(codebook)
    parsed = parse(formula, book)
    check_removed(parsed, book)
    if not parsed.response or not parsed.predictors:
        raise FormulaError(
            f"formula {shorten(parsed.text)!r}: expected columns on both sides; write "
            "'x1 + x2 ~ y1 + y2'"
        )
    if not parsed.intercept:
        raise FormulaError(
            f"formula {shorten(parsed.text)!r} takes the constant off, and columns are held about "
            "their means: leave out '- 1' or '0 +'"
        )
    left = one_side(replace(parsed, predictors=parsed.response), book)
    own = TwoSets(parsed.text, left, one_side(parsed, book))
    both = sorted(set(own.left.names) & set(own.right.names))
    if both:
        raise FormulaError(
            f"{shorten(both[0])!r} is on both sides of {shorten(parsed.text)!r}; take it off one"
        )
    return own
