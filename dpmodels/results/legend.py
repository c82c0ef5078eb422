"""Labels and units of the codebook, as tables show them."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from dpmodels.codebook import Codebook
from dpmodels.formula.parse import quote
from dpmodels.labels import plain
from dpmodels.variables import Variable

# A choice: what a line has room for; a longer label is cut, and whole in the codebook.
MOST = 60


def words(name: str, variable: Variable) -> str:
    """Return label and unit on one line, a label of more than 60 characters cut.

    A label that is the name says nothing, and is left out.

    >>> import dpmodels as dp
    >>> words("age", dp.Numeric(0, 100, label="Age at interview", unit="years"))
    'Age at interview (years)'
    >>> words("age", dp.Numeric(0, 100, label="Age", unit="years"))
    'years'
    """
    label, unit = (_cut(getattr(variable, own, "")) for own in ("label", "unit"))
    label = "" if label.casefold() == name.casefold() else label
    return f"{label} ({unit})" if label and unit else label or unit


def _cut(text: str) -> str:
    line = plain(text)
    return line if len(line) <= MOST else f"{line[: MOST - 3].rstrip()}..."


def legend(codebook: Codebook) -> tuple[tuple[str, str], ...]:
    """Return the variables that have a label or a unit, as formulas name them, with both."""
    told = ((quote(name), words(name, variable)) for name, variable in codebook.items())
    return tuple((name, own) for name, own in told if own)


def labelled(table: pd.DataFrame, codebook: Codebook, **names: Iterable[str]) -> pd.DataFrame:
    """Add columns of labels to a tidy table, where any variable has one.

    A keyword names the column and gives what its rows are about, as formulas name it; a column of a
    category has the label of the category, and what is no variable by itself none.
    """
    known = {quote(name): own.label for name, own in codebook.items() if own.label}
    if not known:
        return table
    columns = {
        column: [known.get(code) or known.get(code.partition("[")[0], "") for code in codes]
        for column, codes in names.items()
    }
    return table.assign(**columns)
