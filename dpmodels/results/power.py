"""What analyses will tell: expected standard errors and power, before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpmodels.errors import NotAvailable
from dpmodels.privacy import Adjacency
from dpmodels.results.base import Printed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A choice: below it a release has very likely no standard error.
SELDOM = 0.5
# A choice: beyond it a median standard error tells little of the next one.
UNEVEN = 2.0
AXES = {"n": "rows", "eps": "eps", "effect": "effect"}


@dataclass(frozen=True)
class PowerQuestion:
    """What was planned for: public facts and a stated guess."""

    verb: str
    formula: str
    guess: str  # what rows are taken to be like
    guarantee: str  # all of it but an eps that varies
    adjacency: Adjacency
    alpha: float
    solved: str  # "n", "eps", "effect" or "power"
    target: float  # the power that was asked for; nan where power was solved for
    mechanisms: tuple[str, ...]  # by cell, and why
    tested: str  # what the verb's test is
    enough: float  # about the eps at which most releases have standard errors; nan where they do


@dataclass(frozen=True, repr=False, eq=False)
class PowerResult(Printed):
    """What a verb will tell of each term; nothing was read and nothing spent.

    Notes
    -----
    `table` has a row for each term of each cell, a number of rows and an eps:
    ``n, eps, term, effect``; ``std_error`` as the verb's table will print it,
    the median of the releases that have one, with their 10 and 90 % quantiles
    ``se_low, se_high``; ``noise_sd`` in it, and ``sampling_se`` without noise;
    ``power`` and its simulation error ``power_se``; ``identified``, the share of
    releases in which the term has a standard error at all; ``without_noise``, the
    power of the same rows without privacy; and ``price``, how many times the rows
    it takes for the same standard error, or power where a test has none; nan
    where most releases have none.
    """

    question: PowerQuestion
    table: pd.DataFrame

    @property
    def n(self) -> int:
        """The number of rows, of one cell."""
        return int(self._one("n"))

    @property
    def eps(self) -> float:
        """The privacy loss eps, of one cell; nan where a budget was given instead."""
        return float(self._one("eps"))

    @property
    def power(self) -> pd.Series[float]:
        """Power by term, of one cell; nan where nothing is tested."""
        return self._by_term("power")

    @property
    def effect(self) -> pd.Series[float]:
        """Effects by term, of one cell."""
        return self._by_term("effect")

    @property
    def bse(self) -> pd.Series[float]:
        """Expected standard errors by term, of one cell."""
        return self._by_term("std_error")

    @property
    def cells(self) -> int:
        """How many cells there are: numbers of rows, eps and effects."""
        return int(self.table["cell"].nunique())

    def _one(self, column: str) -> float:
        if self.cells > 1:
            raise NotAvailable(
                f"{column} has several values: this plan has {self.cells} cells; see table"
            )
        return float(self.table[column].iloc[0])

    def _by_term(self, column: str) -> pd.Series[float]:
        self._one("n")
        index = pd.Index(self.table["term"], name="term")
        return pd.Series(self.table[column].to_numpy(), index=index, name=column)

    def tidy(self) -> pd.DataFrame:
        """Return the table, a copy."""
        return self.table.drop(columns="cell")

    def glance(self) -> pd.DataFrame:
        """Return one row about the plan: the least power, and the chance that all is identified."""
        asked = self.question
        row = {
            "verb": asked.verb,
            "solved": asked.solved,
            "n": self.table["n"].max(),
            "eps": self.table["eps"].max(),
            "power": self.table["power"].min(),
            "identified": self.table["identified"].min(),
            "alpha": asked.alpha,
        }
        return pd.DataFrame([row])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw power by term against what varies from cell to cell, with that without noise.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Raises
        ------
        NotAvailable
            If there is one cell, or no term is tested.
        """
        from dpmodels.plots.curves import curves

        tested = self.table[self.table["power"].notna()]
        varying = [name for name in AXES if tested.groupby("term")[name].nunique().max() > 1]
        if not varying:
            raise NotAvailable(
                "plot() draws power against rows, eps or effects: list several of them, such as "
                "n=[1_000, 3_000, 10_000]"
            )
        across = varying[0]
        others = [name for name in varying[1:] if name != "effect"]
        lines = []
        for key, own in tested.groupby(["term", *others], sort=False):
            ordered = own.sort_values(across)
            names = dict(zip(["", *others], key if isinstance(key, tuple) else (key,), strict=True))
            label = ", ".join(f"{name} {part}".strip() for name, part in names.items())
            columns = (ordered[name].to_numpy(np.float64) for name in (across, *_DRAWN))
            lines.append((label, np.stack([*columns])))
        return curves(lines, across=AXES[across], logarithmic=across != "effect", ax=ax)

    def __repr__(self) -> str:
        asked = self.question
        which = f"{self.cells} cells" if self.cells > 1 else f"n={self.n:,}, eps={self.eps:.3g}"
        return f"<PowerResult of {asked.verb} {asked.formula!r}: {which}, nothing spent>"


_DRAWN = ("power", "without_noise", "identified")
