"""Every recipe on the same drawn tables, in every setting, again and again."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmodels.errors import ArgumentError
from dpmodels.evaluation.protocol import Cell, Score, Task
from dpmodels.evaluation.recipe import Recipe
from dpmodels.frames.progress import steps
from dpmodels.options import options
from dpmodels.typing import Floats


@dataclass(frozen=True, repr=False, eq=False)
class Outcomes:
    """What came of all runs in one setting: arrays of shape (recipes, repeats)."""

    error: Floats
    coverage: Floats
    signed: tuple[Floats, ...]  # a recipe's signed errors, of shape (repeats, numbers)
    truth: Floats  # of the first repeat, as the answers below
    answers: tuple[Floats, ...]


def run(
    task: Task, recipes: Sequence[Recipe], cells: Sequence[Cell], repeats: int, seed: int
) -> list[Outcomes]:
    """Run all recipes in all settings; nothing is charged, whatever was chosen for all calls."""
    with options(codebook=None, adjacency=None, ledger=None):
        watched = steps(iter(cells), total=len(cells), label="evaluation")
        return [_setting(task, recipes, cell, repeats, seed) for cell in watched]


def _setting(
    task: Task, recipes: Sequence[Recipe], cell: Cell, repeats: int, seed: int
) -> Outcomes:
    scores: list[list[Score]] = [[] for _ in recipes]
    truth = np.empty(0)
    for repeat in range(repeats):
        drawn = task.draw(cell, np.random.default_rng(seed_of(seed, "rows", cell, repeat)))
        truth = truth if repeat else task.truth(drawn)
        for recipe, own in zip(recipes, scores, strict=True):
            own.append(asked(task, recipe, drawn, cell, seed_of(seed, recipe.name, cell, repeat)))
    return Outcomes(
        np.array([[one.error for one in own] for own in scores]),
        np.array([[one.coverage for one in own] for own in scores]),
        tuple(np.stack([one.signed for one in own]) for own in scores),
        truth,
        tuple(own[0].answer for own in scores),
    )


def asked(task: Task, recipe: Recipe, drawn: Any, cell: Cell, seed: int) -> Score:
    """Ask a recipe once; what it raises is said with its name and the setting."""
    try:
        score = task.score(recipe, drawn, cell.eps, seed)
    except Exception as error:
        raise ArgumentError(
            f"recipes[{recipe.name!r}] raised {type(error).__name__} at {cell}: {error}"
        ) from error
    if not np.isfinite(score.error):
        raise ArgumentError(
            f"recipes[{recipe.name!r}] returned numbers that are not finite at {cell}: mend it, or "
            "leave out the setting"
        )
    return score


def seed_of(seed: int, name: str, cell: Cell, repeat: int) -> int:
    """Return a seed of one run, that does not depend on which others there are.

    Rows drawn for a table, scale and domain are the same at every eps.
    """
    setting = cell._replace(eps=0.0) if name == "rows" else cell
    words = zlib.crc32(f"{name} at {setting}".encode())
    made = np.random.SeedSequence([seed, words, repeat]).generate_state(2, np.uint64)
    return int(made[0])
