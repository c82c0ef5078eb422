"""Divisions of a budget between the stages of a recipe, tried in simulation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from dpmodels.arguments import truth
from dpmodels.privacy import Adjacency, Guarantee
from dpmodels.privacy.spent import capacity
from dpmodels.results.base import STAMP, Printed
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Two-sided, for one difference between two divisions.
LEVEL = 0.95


@dataclass(frozen=True)
class SplitQuestion:
    """What divisions of a budget were tried for: public facts."""

    recipe: str  # its name
    stages: tuple[str, ...]
    guarantee: Guarantee  # what all stages together satisfy
    adjacency: Adjacency
    repeats: int  # runs of each division
    best: str  # which score is: "largest" or "smallest"


@dataclass(frozen=True, repr=False, eq=False)
class SplitResult(Printed):
    """Scores of a recipe under divisions of its budget: simulated, nothing was spent.

    In a column of `scores` the runs have the same random words.
    """

    question: SplitQuestion
    shares: Floats  # of the budget, shape (divisions, stages)
    divisions: tuple[tuple[Guarantee, ...], ...]  # what the shares come to
    scores: Floats  # what the recipe returned, shape (divisions, repeats)

    @property
    def table(self) -> pd.DataFrame:
        """One row a division.

        Columns: the share of each stage, by its name; the mean ``score`` and
        its standard error ``score_se``; ``behind``, by how much the mean is
        worse than the best one's, and ``behind_se``, from differences run by
        run; whether it is ``best``; and whether it is ``near``: the interval
        of level 95 % for ``behind`` reaches 0.
        """
        behind, behind_se = _mean_and_se(self._sign * (self.scores[self._first] - self.scores))
        mean, se = _mean_and_se(self.scores)
        shares = dict(zip(self.question.stages, self.shares.T, strict=True))
        reach = float(stdtrit(self.question.repeats - 1, (1 + LEVEL) / 2))
        numbers = {"score": mean, "score_se": se, "behind": behind, "behind_se": behind_se}
        best = np.arange(len(mean)) == self._first
        near = behind <= reach * behind_se
        return pd.DataFrame({**shares, **numbers, "best": best, "near": near | best})

    @property
    def best(self) -> dict[str, float]:
        """Shares of the division with the best mean score, by stage."""
        return dict(zip(self.question.stages, self.shares[self._first].tolist(), strict=True))

    @property
    def labels(self) -> tuple[str, ...]:
        """The divisions in words, such as ``"0.3 : 0.7"``."""
        return tuple(ratio(own) for own in self.shares)

    @property
    def near(self) -> pd.DataFrame:
        """The rows of the table that are not told apart from the best, itself among them."""
        table = self.table
        return table[table["near"]]

    @property
    def budgets(self) -> dict[str, Guarantee]:
        """Guarantees of the stages in the best division: the word ``budget`` of their verbs."""
        return dict(zip(self.question.stages, self.divisions[self._first], strict=True))

    @property
    def simulated(self) -> bool:
        """True: the scores depend on the rows without any guarantee."""
        return True

    def tidy(self) -> pd.DataFrame:
        """Return one row a division and stage: ``division, stage, share, eps`` or ``rho, ...``."""
        asked, table = self.question, self.table.drop(columns=list(self.question.stages))
        common = [dict(zip(map(str, table), line, strict=True)) for line in table.to_numpy(object)]
        lines: list[dict[str, Any]] = []
        for number, (shares, budgets) in enumerate(zip(self.shares, self.divisions, strict=True)):
            for stage, share, budget in zip(asked.stages, shares, budgets, strict=True):
                own = {"division": number, "stage": stage, "share": share}
                spent = capacity(budget)
                lines.append({**own, spent.unit: spent.amount, **common[number]})
        return pd.DataFrame(lines)

    def glance(self) -> pd.DataFrame:
        """Return one row about the whole trial."""
        asked, table = self.question, self.table
        row = {
            **{f"best_{stage}": share for stage, share in self.best.items()},
            "score": table["score"].iloc[self._first],
            "score_se": table["score_se"].iloc[self._first],
            "divisions": len(table),
            "near": int(table["near"].sum()),
            "repeats": asked.repeats,
            "guarantee": asked.guarantee.describe(),
            "adjacency": asked.adjacency.name,
            "simulated": self.simulated,
        }
        return pd.DataFrame([row])

    def plot(self, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw mean scores with their standard errors against the first stage's share.

        With more than two stages the divisions stand side by side.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        caption : bool
            Whether guarantee, neighbours and noise stand under the picture.
        """
        from dpmodels.plots.points import divisions

        asked, table = self.question, self.table
        told = f"Privacy: {asked.guarantee.describe()}; neighbours: {asked.adjacency.describe()}."
        two = len(asked.stages) == 2
        return divisions(
            table["score"].to_numpy(),
            table["score_se"].to_numpy(),
            places=self.shares[:, 0] if two else np.arange(len(table), dtype=np.float64),
            labels=[f"{own[0]:.3g}" for own in self.shares] if two else self.labels,
            best=int(self._first),
            near=table["near"].to_numpy(),
            across=f"share of {asked.stages[0]}" if two else " : ".join(asked.stages),
            up=f"score, {asked.best} is best",
            ax=ax,
            stamp=STAMP,
            caption=told if truth("caption", caption) else None,
        )

    @property
    def _sign(self) -> float:
        return 1.0 if self.question.best == "largest" else -1.0

    @cached_property
    def _first(self) -> int:
        """The best division; of equal ones the most even."""
        means = self._sign * self.scores.mean(axis=1)
        evenness = -np.abs(self.shares - 1 / self.shares.shape[1]).sum(axis=1)
        return int(np.lexsort((evenness, means))[-1])

    def __repr__(self) -> str:
        asked, names = self.question, " : ".join(self.question.stages)
        return (
            f"<SplitResult of {asked.recipe}: best {names} = {self.labels[self._first]}, "
            f"{asked.guarantee.describe()}, {STAMP}>"
        )


def ratio(shares: Floats) -> str:
    """Write shares as they are compared: ``0.3 : 0.7``."""
    return " : ".join(f"{share:.3g}" for share in shares)


def _mean_and_se(runs: Floats) -> tuple[Floats, Floats]:
    """Return means over runs and their standard errors."""
    count = runs.shape[1]
    return runs.mean(axis=1), runs.std(axis=1, ddof=1) / math.sqrt(count)
