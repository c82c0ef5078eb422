"""Statistics that add over disjoint rows are measured wherever the rows lie."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeVar

from dpmodels.design import PrivateDesign
from dpmodels.design.cells import PrivateCells
from dpmodels.frames import RowSource, no_rows
from dpmodels.frames.dask_rows import Sums
from dpmodels.statistics.statistic import Statistic

Rows = TypeVar("Rows", PrivateDesign, PrivateCells)
Words = ParamSpec("Words")


def additive(
    measure: Callable[Concatenate[Rows, Words], Statistic],
) -> Callable[Concatenate[Rows, Words], Statistic]:
    """Let a statistic be measured on the partitions of rows that lie elsewhere.

    `measure` takes rows and public words and gives integers that add over disjoint rows. For those
    of a Dask DataFrame it is sent to the workers with a recipe made of public facts; they bind it
    to their partitions, and the integers and numbers of rows they give are added.
    """

    def anywhere(private: Rows, /, *words: Words.args, **named: Words.kwargs) -> Statistic:
        if private.scattered is None:
            return measure(private, *words, **named)
        recipe: Callable[[RowSource], Any] = private.recipe
        nothing = measure(recipe(no_rows(private.variables)), *words, **named)
        there = partial(_there, anywhere, recipe, words, named)
        public = bool(named.get("count_public"))
        exact, rows = private.scattered.summed(private.variables, there, count_public=public)
        found = Statistic(nothing.name, exact.astype(object), rows, nothing.fingerprint)
        return nothing + found

    # By the name of what it stands for it can be sent to workers.
    return update_wrapper(anywhere, measure)


def _there(
    measure: Callable[..., Statistic],
    recipe: Callable[[RowSource], Any],
    words: tuple[Any, ...],
    named: dict[str, Any],
    source: RowSource,
) -> Sums:
    """Bind rows where they lie and measure them."""
    return measure(recipe(source), *words, **named).cross()
