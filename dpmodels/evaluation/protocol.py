"""What an evaluation has to know of the tables it asks about."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from dpmodels.evaluation.recipe import Recipe
from dpmodels.evaluation.workload import Domain
from dpmodels.typing import Floats


class Cell(NamedTuple):
    """One setting: a table's shape, how many rows, how many cells, and a budget."""

    table: str
    scale: int
    domain: Domain  # empty of rows that are no table of cells
    eps: float

    @property
    def size(self) -> str:
        """The numbers of cells, in words."""
        return " x ".join(map(str, self.domain))

    def __str__(self) -> str:
        over = f", {self.size} cells" if self.domain else ""
        return f"table {self.table!r}, scale {self.scale:,}{over}, eps {self.eps:g}"


class Score(NamedTuple):
    """How far one answer is from the truth."""

    error: float
    # A vector as long as the error, linear in it; empty where there is none.
    signed: Floats = np.empty(0)
    answer: Floats = np.empty(0)  # as it is drawn
    coverage: float = float("nan")  # share of intervals that hold the truth


class Task(Protocol):
    """Public or simulated tables, and what is asked of them."""

    @property
    def about(self) -> str:
        """What is asked, in words."""

    @property
    def baselines(self) -> tuple[Recipe, ...]:
        """Recipes that every study has."""

    def settings(self) -> list[Cell]:
        """Return all settings but for eps, which is nan."""

    def draw(self, cell: Cell, rng: np.random.Generator) -> Any:
        """Draw a table of the setting."""

    def times(self, drawn: Any, many: int) -> Any:
        """Return a table in which every row stands so many times."""

    def truth(self, drawn: Any) -> Floats:
        """Return what an answer is drawn beside."""

    def score(self, recipe: Recipe, drawn: Any, eps: float, seed: int) -> Score:
        """Ask a recipe and measure its answer."""
