"""Every recipe on the same drawn tables, in every setting, again and again."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
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
    # A recipe's inner products of signed errors, of shape (repeats, repeats); none of no errors.
    products: tuple[Floats, ...]
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
    """Ask one recipe after the other; tables are drawn anew for each, and are the same."""
    errors, coverages, products, answers = [], [], [], []
    for recipe in recipes:
        scores = [
            asked(task, recipe, own, cell, seed_of(seed, f"ask {recipe.name}", cell, repeat))
            for repeat, own in enumerate(drawn(task, cell, repeats, seed))
        ]
        errors.append([score.error for score in scores])
        coverages.append([score.coverage for score in scores])
        signed = np.stack([score.signed for score in scores])
        products.append(signed @ signed.T if signed.size else np.empty((0, 0)))
        answers.append(scores[0].answer)
    truth = task.truth(next(drawn(task, cell, 1, seed)))
    return Outcomes(np.array(errors), np.array(coverages), tuple(products), truth, tuple(answers))


def drawn(task: Task, cell: Cell, many: int, seed: int) -> Iterator[Any]:
    """Draw the tables of a setting, which are the same at every eps."""
    setting = cell._replace(eps=0.0)
    for repeat in range(many):
        yield task.draw(cell, np.random.default_rng(seed_of(seed, "rows", setting, repeat)))


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
    """Return a seed of one run, that does not depend on which others there are."""
    words = zlib.crc32(f"{name} at {cell}".encode())
    made = np.random.SeedSequence([seed, words, repeat]).generate_state(2, np.uint64)
    return int(made[0])
