"""What every comparison of mechanisms holds, of whatever they are tried on."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import pandas as pd

from dpmodels.errors import NotAvailable
from dpmodels.results.base import Printed


class Automatic(NamedTuple):
    """What ``mechanism="auto"`` takes where rows can be read again, and why."""

    mechanism: str
    reason: str


class Compared(Printed):
    """Predictions by mechanism, of which a subclass says what they are of."""

    question: Any
    table: pd.DataFrame
    by_shape: pd.DataFrame
    auto: Automatic

    # The column that every mechanism with predictions has.
    _measure: ClassVar[str]

    @property
    def best(self) -> str:
        """The mechanism at the top of the table, baselines apart.

        Raises
        ------
        NotAvailable
            If no mechanism could be simulated.
        """
        able = simulated(self.predicted[self.predicted["note"] != "baseline"])
        return str(able["mechanism"].iloc[0])

    @property
    def predicted(self) -> pd.DataFrame:
        """The rows of the table that have predictions."""
        return self.table[self.table[self._measure].notna()]

    def tidy(self) -> pd.DataFrame:
        """Return what is predicted of each mechanism for rows of each shape."""
        return self.by_shape.copy()

    def label(self, mechanism: str) -> str:
        """Return a mechanism's name, marked if it is the automatic choice."""
        return f"{mechanism} (auto)" if mechanism == self.auto.mechanism else mechanism

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.question.formula!r}: {len(self.predicted)} mechanisms "
            f"simulated, {self.question.guarantee.describe()}, nothing spent>"
        )


def simulated(lines: pd.DataFrame) -> pd.DataFrame:
    """Return lines of a table of predictions, or NotAvailable where there are none."""
    if lines.empty:
        raise NotAvailable(
            "no mechanism was simulated with this budget: the column note of the table says why"
        )
    return lines
