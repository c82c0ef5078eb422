"""A logistic regression of randomised answers: its rows coded and fitted."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dpmodels.formula.response import TwoSided
from dpmodels.formula.values import Columns
from dpmodels.postprocess.response_fit import ResponseFit, ResponseRows, fitted
from dpmodels.surveys.read import Respondents
from dpmodels.typing import Floats


class Fitted(NamedTuple):
    """A fit, the same of a constant alone, and of how many respondents."""

    fit: ResponseFit
    null: ResponseFit
    complete: int
    incomplete: int


def fitted_answers(who: Respondents, both: TwoSided, truth: float, spoken: float) -> Fitted:
    """Fit the answers of all respondents who are complete.

    An answer is 1 with probability `spoken` whatever the truth, and the truth with `truth`.
    """
    none, rows = np.empty(0), 0
    coded = [np.empty((0, both.intercept + len(both.terms.names)))]
    answers, weights, strata = [none], [none], [none.astype(np.intp)]
    for chunk in who.chunks():
        own = _coded(both, chunk.columns)
        said = both.response.blocks[0].factors[0].evaluate(chunk.columns)
        known = (chunk.strata >= 0) & ~np.isnan(own).any(axis=1)
        known &= ~np.isnan(said) & ~np.isnan(chunk.weights)
        coded.append(own[known])
        answers.append(said[known])
        weights.append(chunk.weights[known])
        strata.append(chunk.strata[known])
        rows += len(said)
    read = ResponseRows(
        np.concatenate(coded),
        np.concatenate(answers),
        np.concatenate(weights),
        np.concatenate(strata),
        truth,
        spoken,
    )
    complete = len(read.answers)
    constant = replace(read, coded=np.ones((complete, 1)))
    return Fitted(fitted(read), fitted(constant), complete, rows - complete)


def _coded(both: TwoSided, columns: Columns) -> Floats:
    """Return the coded rows, the constant first where there is one, shape (rows, columns)."""
    size = len(next(iter(columns.values())))
    own = int(both.intercept)
    out = np.ones((own + len(both.terms.names), size))
    both.terms.evaluate(columns, out[own:])
    return out.T
