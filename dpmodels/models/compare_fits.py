"""The half of ``compare_mechanisms`` for formulas with a response: what each loses in a fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pandas as pd

from dpmodels.arguments import word
from dpmodels.codebook import Codebook
from dpmodels.errors import ArgumentError, said
from dpmodels.formula.response import two_sided
from dpmodels.models.crossing import Way
from dpmodels.models.fit_trial import (
    FIT_MEASURES,
    FitTrial,
    fit_contenders,
    fits_tried,
)
from dpmodels.models.glm import glm_way
from dpmodels.models.invented_fit import inventing
from dpmodels.models.lm import lm_way
from dpmodels.models.trial import by_shape, over_shapes
from dpmodels.privacy import Adjacency, AdjacencyName, Guarantee
from dpmodels.question import asked
from dpmodels.results.compared import Automatic
from dpmodels.results.fit_comparison import FitComparison, FitQuestion
from dpmodels.typing import Floats

FAMILIES = ("gaussian", "binomial", "poisson")


class Assumptions(NamedTuple):
    """What is assumed of rows."""

    rows: int
    lengths: tuple[float, ...]
    spectrum: str  # In words
    repeats: int


def compared_fits(
    way: Way[Any], names: list[str], assumed: Assumptions, shares: Callable[[int], Floats]
) -> FitComparison:
    """Compare mechanisms of ``dp_lm`` or ``dp_glm``.

    `shares` gives the eigenvalues of so many variables as shares of their sum.
    """
    own = way.question
    both = two_sided(own.formula, own.codebook)
    question = FitQuestion(
        formula=both.joint.formula,
        family=own.words.get("family", FAMILIES[0]),
        columns=len(both.terms.names),
        rows=assumed.rows,
        guarantee=own.private,
        adjacency=own.adjacency,
        row_norm=own.words["row_norm"],
        row_lengths=assumed.lengths,
        spectrum=assumed.spectrum,
        repeats=assumed.repeats,
    )
    shapes = inventing(assumed.lengths)
    made = FitTrial(question, way, both, shapes, shares(max(len(both.terms.codebook), 1)))
    strategy, _, reason = made.planned("auto")
    entered = fit_contenders(names, made)
    each = by_shape(fits_tried(entered, made), FIT_MEASURES)
    lines = [over_shapes(one.name, each, FIT_MEASURES) | one.known for one in entered]
    frame = pd.DataFrame(lines).sort_values(["error", "error_worst"], kind="stable")
    like = pd.DataFrame({"shape": list(shapes), "like": [one.like for one in shapes.values()]})
    auto = Automatic(strategy.card.name, reason)
    return FitComparison(question, frame.reset_index(drop=True), each, like, auto)


def fit_way(
    formula: str,
    codebook: Codebook,
    guarantee: Guarantee,
    adjacency: AdjacencyName | Adjacency,
    family: str,
    scale: str | None,
    row_norm: float | str | None,
) -> Way[Any]:
    """Return the way of the verb that fits the family."""
    word("family", family, FAMILIES)
    own: dict[str, Any] = {"weights": None, "vcov": "iid"}
    if family != FAMILIES[0]:
        own = {"family": family, "inference": True, "clip": None, "scale": scale}
    elif scale != "range":
        raise ArgumentError(
            f"scale={said(scale)}: dp_lm divides columns by their ranges: leave out scale="
        )
    verb = "lm" if family == FAMILIES[0] else "glm"
    words = {**own, "row_norm": row_norm, "person": False}
    question = asked(verb, formula, codebook, None, 0.0, guarantee, adjacency, **words)
    if question.adjacency.person is not None:
        raise ArgumentError(
            "adjacency= protects persons, and rows are invented without any: write "
            'adjacency="replace", and n= for how many persons there are'
        )
    return lm_way(question) if verb == "lm" else glm_way(question)
