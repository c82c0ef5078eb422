"""A subset: the rows of which a truth of the formula's closed language holds."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpmodels.codebook import Codebook
from dpmodels.errors import ArgumentError, FormulaError, said, shorten
from dpmodels.formula.coding import checked_codebook
from dpmodels.formula.expression import compile_factor
from dpmodels.formula.parse import variables_in
from dpmodels.formula.values import Category, Columns, Evaluate, Truth


@dataclass(frozen=True)
class Subset:
    """Which rows count, by a row's own values; one of which that is not known does not."""

    text: str
    codebook: Codebook  # Declarations of the variables in it
    evaluate: Evaluate = field(repr=False, compare=False)

    def holds(self, columns: Columns) -> NDArray[np.bool_]:
        """Return of each row whether it counts."""
        return np.asarray(self.evaluate(columns) == 1.0)


def subset(text: object, codebook: Codebook) -> Subset | None:
    """Compile the word ``subset=`` of a verb; None where it is left out.

    FormulaError, CodebookError, ArgumentError where it is no truth of a row.

    >>> import dpmodels as dp
    >>> own = subset("age >= 25", dp.codebook(age=(0, 100)))
    >>> own.holds({"age": np.array([20.0, 30.0, np.nan])}).tolist()
    [False, True, False]
    """
    if text is None:
        return None
    if not isinstance(text, str) or not text.strip():
        raise ArgumentError(
            f"subset={said(text)}: expected a condition on the variables of a row, such as "
            'subset="age >= 25" or subset="(region == \'north\') & (age < 65)"'
        )
    book = checked_codebook(codebook)
    try:
        value, used = compile_factor(text.strip(), book), variables_in(text.strip())
    except FormulaError as error:
        raise FormulaError(f"subset={shorten(text)!r}: {error}") from None
    match value:
        case Truth() | Category(levels=(False, True)):
            declared = book.select(name for name in book if name in used)
            return Subset(text.strip(), declared, value.evaluate)
    raise FormulaError(
        f"subset={shorten(text)!r} is no condition on a row: write a comparison, such as "
        'subset="age >= 25" or subset="region == \'north\'"'
    )
