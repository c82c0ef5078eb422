"""What a descriptive verb was asked: the public facts of its tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import pandas as pd

from dpmodels.codebook import Codebook
from dpmodels.errors import FrameError
from dpmodels.levels import Level
from dpmodels.outside import require_text


def level(plain: object) -> Level:
    """Read a level of a category; of which kinds there are, the codebook says."""
    if not isinstance(plain, Level):
        raise FrameError("expected a text, a number or a truth value")
    return require_text(plain, "a level") if isinstance(plain, str) else plain


@dataclass(frozen=True)
class TableFacts:
    """One table of declared levels.

    Attributes
    ----------
    factors : tuple of str
        What rows are grouped by, as in the formula.
    levels : tuple of tuple of Level
        The levels of each.
    measured : str
        The number whose moments are asked; empty for counts.
    lower, upper : float
        Its public range.
    degree : int
        Highest power whose sums were released; 0 for counts.
    """

    factors: tuple[str, ...]
    levels: tuple[tuple[Annotated[Level, level], ...], ...]
    measured: str = ""
    lower: float = 0.0
    upper: float = 1.0
    degree: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of levels of each factor."""
        return tuple(map(len, self.levels))

    @property
    def cells(self) -> int:
        """Number of combinations of levels; 1 without factors."""
        return math.prod(self.shape)

    @property
    def size(self) -> int:
        """Counts released, the incomplete rows among them."""
        return self.cells * (self.degree + 1) + 1

    @property
    def width(self) -> float:
        """Length of the measured number's public range; 1 where it is a point."""
        return self.upper - self.lower or 1.0

    @property
    def index(self) -> pd.Index:
        """Labels of the cells: levels, or ``(all)`` without factors."""
        if not self.factors:
            return pd.Index(["(all)"], name="group")
        if len(self.factors) == 1:
            return pd.Index(self.levels[0], name=self.factors[0], dtype=object)
        return pd.MultiIndex.from_product(self.levels, names=self.factors)

    @property
    def labels(self) -> list[str]:
        """The same as text, one string a cell."""
        keys = self.index.to_list()
        return [" / ".join(map(str, key)) if isinstance(key, tuple) else str(key) for key in keys]


@dataclass(frozen=True)
class DescribedCall:
    """A description as it was asked for.

    Attributes
    ----------
    formula : str
        As written.
    codebook : Codebook
        The declarations that were used.
    tables : tuple of TableFacts
        What rows are counted in.
    ledger : str
        What the ledger said after the charge; empty without one.
    reason : str
        Why this mechanism, where the choice was automatic.
    """

    formula: str
    codebook: Annotated[Codebook, Codebook.from_dict]
    tables: tuple[TableFacts, ...]
    ledger: str = ""
    reason: str = ""
