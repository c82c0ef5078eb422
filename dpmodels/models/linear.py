"""The way of every release of coefficients: design, choice, plan, charge, measure, release."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from dpmodels.codebook import Codebook
from dpmodels.design import PrivateDesign, row_coder
from dpmodels.design.regression import private_regression
from dpmodels.errors import FormulaError, shorten
from dpmodels.formula.response import TwoSided, two_sided
from dpmodels.formula.values import Category
from dpmodels.mechanisms.choose import choose
from dpmodels.mechanisms.coefficients import RegressionFacts
from dpmodels.mechanisms.protocol import RegressionMechanism
from dpmodels.models.asked import about
from dpmodels.noise import source
from dpmodels.privacy import Adjacency, AdjacencyName, Guarantee, Ledger, charge, check_ledger
from dpmodels.privacy import adjacency as neighbours
from dpmodels.released import CoefficientsRelease, digest
from dpmodels.results.call import CoefficientsCall
from dpmodels.statistics.losses import Poisson
from dpmodels.statistics.predictors import Predictors
from dpmodels.statistics.protocol import Loss
from dpmodels.typing import Floats

Table = Mapping[str, type[RegressionMechanism]]


class Asked(NamedTuple):
    """The words that verbs on linear predictors share, as given."""

    formula: str
    data: object
    codebook: Codebook
    guarantee: Guarantee
    scale: str | None
    row_norm: float | None
    mechanism: object
    adjacency: AdjacencyName | Adjacency
    ledger: Ledger | None


class Bound(NamedTuple):
    """A formula bound to rows, and how its rows become those of a linear predictor."""

    design: PrivateDesign
    both: TwoSided
    predictors: Predictors


class Fitted(NamedTuple):
    """A release with the public facts it came from."""

    call: CoefficientsCall
    release: CoefficientsRelease
    coder: Callable[[object], Floats] | None


def bind(asked: Asked) -> Bound:
    """Bind a formula to data without reading a row.

    Raises
    ------
    FormulaError, CodebookError, ArgumentError, FrameError
        From the formula, the codebook, the arguments and the column names.
    """
    both = two_sided(asked.formula, asked.codebook)
    design = private_regression(
        asked.formula,
        asked.data,
        asked.codebook,
        scale=asked.scale,
        row_norm=asked.row_norm,
        # Without an intercept a moved column would be another model.
        center=both.intercept,
    )
    own = design.scaling
    ends = (both.response.lower[0], both.response.upper[0])
    left = max(abs(end - own.centre[-1]) for end in ends) / own.scale[-1]
    longest = math.sqrt(own.row_norm**2 - left**2) / own.row_norm if both.terms.names else 0.0
    predictors = Predictors(
        terms=len(both.terms.names),
        intercept=both.intercept,
        radius=longest,
        middle=float(own.centre[-1]),
        reach=float(own.scale[-1] * own.row_norm),
    )
    return Bound(design, both, predictors)


def levels(both: TwoSided, verb: str) -> tuple[str, str]:
    """Return the two levels of the response, the modelled one last.

    Raises
    ------
    FormulaError
        If the response is not a category of two levels.
    """
    factor = both.response.blocks[0].factors[0]
    if isinstance(factor, Category):
        first, second = factor.levels
        return str(first), str(second)
    name = shorten(both.response.names[0])
    raise FormulaError(
        f"the response {name!r} is a number; {verb} needs two levels: declare it as such, for "
        f'example {name}=["no", "yes"] or [0, 1] in the codebook, or compare it, as in '
        f"'{name} > 1 ~ ...'"
    )


def fit(
    verb: str,
    asked: Asked,
    bound: Bound,
    loss: Loss | Poisson,
    *,
    family: str,
    classes: tuple[str, ...],
    table: Table,
    automatic: tuple[str, str],
    options: Mapping[str, object],
) -> Fitted:
    """Take rows across: everything is checked and charged before one is read.

    Parameters
    ----------
    verb : str
        Its name, for the ledger.
    asked, bound : Asked, Bound
        What the user wrote, and the formula bound to the rows.
    loss : Loss or Poisson
        What is summed.
    family : str
        The model in a word.
    classes : tuple of str
        Levels of the response; empty where it is a number.
    table : mapping
        The strategies the verb takes.
    automatic : (str, str)
        What ``mechanism="auto"`` stands for, and why.
    options : mapping
        Words for strategies that have such a field.
    """
    relation = neighbours(asked.adjacency)
    check_ledger(asked.ledger)
    strategy, reason = choose(asked.mechanism, table, lambda: automatic, options)
    bound.design.require_passes()
    facts = RegressionFacts(bound.predictors, loss, relation)
    plan = strategy.plan(facts, asked.guarantee)
    codebook = bound.design.public.codebook
    charged = charge(
        asked.ledger,
        plan.events,
        adjacency=relation,
        about=about(verb, asked.formula, strategy, codebook),
    )
    release = strategy.release(strategy.measure(bound.design, plan), plan, source())
    charged.released(lambda: digest(release))
    terms, scaled = bound.both.terms, bound.design.scaling
    call = CoefficientsCall(
        formula=bound.both.response.formula,
        codebook=codebook,
        names=("Intercept",) * bound.both.intercept + terms.names,
        response=bound.both.response.names[0],
        levels=classes,
        family=family,
        matrix=_matrix(bound),
        row_norm=bound.predictors.radius * scaled.row_norm,
        worst_case=_worst_case(bound),
        scale=asked.scale,
        clip=loss.clip if isinstance(loss, Poisson) else math.nan,
        ledger=charged.told,
        reason=reason,
    )
    return Fitted(call, release, row_coder(terms) if terms.names else None)


def _worst_case(bound: Bound) -> float:
    """Return the longest scaled row of the terms that the codebook allows."""
    scaled, predictors = bound.design.scaling, bound.predictors
    if not predictors.terms:
        return 0.0
    response = scaled.row_norm**2 * (1 - predictors.radius**2)
    return math.sqrt(scaled.worst_case**2 - response)


def _matrix(bound: Bound) -> Floats:
    """Return what turns coefficients of the ball into those of the coded columns."""
    predictors, scaled = bound.predictors, bound.design.scaling
    own, size = int(predictors.intercept), predictors.columns
    matrix = np.zeros((size, size))
    if predictors.terms:
        each = predictors.share / (predictors.radius * scaled.row_norm) / scaled.scale[:-1]
        matrix[own:, own:] = np.diag(each)
        if own:
            matrix[0, 1:] = -each * scaled.centre[:-1]
    if own:
        matrix[0, 0] = predictors.constant
    return matrix
