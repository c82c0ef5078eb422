"""Released answers, each randomised separately, and regressions fitted to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dpmodels.external_files import Amount, Bounded, Quantity, one_of
from dpmodels.released.terms import Released


@dataclass(frozen=True)
class Channel:
    """How the answer to one question depends on the truth.

    Attributes
    ----------
    truth : float
        Probability with which the truth is asked for; 1 without randomisation.
    law : tuple of float
        Probabilities of the levels otherwise; zeros without randomisation.
    eps : float
        Largest privacy loss of one answer; 0 without randomisation.
    how : str
        A description of the device; empty without one.
    """

    truth: Amount
    law: tuple[Amount, ...]
    eps: Amount
    how: str


def exact(levels: int) -> Channel:
    """Return the channel of answers without randomisation."""
    return Channel(1.0, (0.0,) * levels, 0.0, "")


@dataclass(frozen=True, kw_only=True)
class AnswersRelease(Released):
    """Released answers, each randomised separately, as numbers of respondents.

    Attributes
    ----------
    values : ndarray, shape (strata, answers)
        Numbers of respondents by combination of answers, the last question fastest; if `unary` by
        answer, 0 or 1, level by level.
    weights, squares : ndarray, shape (strata, answers), or None
        Sums of their weights and of the squared weights; None for equal weights.
    channels : tuple of Channel
        One per question; a single one if full rows were randomised, over all cells and, last,
        the incomplete rows.
    strata : tuple of str
        Names of the strata; empty without strata.
    shares : tuple of float or None
        Population shares of the strata, if known.
    incomplete : int
        Respondents without an answer to one of the questions.
    weighted, stratified : str or None
        The variables of the weights and the strata.
    unary : bool or None
        True if one question was answered by a bit for each level. The only channel is then that of
        a bit, and each respondent counts once for each level.
    """

    later = Released.later | {"unary"}
    values: Annotated[Bounded, "stratum", "answer"]
    weights: Annotated[Bounded, "stratum", "answer"] | None
    squares: Annotated[Bounded, "stratum", "answer"] | None
    channels: tuple[Channel, ...]
    strata: tuple[str, ...] = ()
    shares: tuple[Amount, ...] | None = None
    incomplete: int = 0
    weighted: str | None = None
    stratified: str | None = None
    unary: bool | None = None


@dataclass(frozen=True, kw_only=True)
class AnswersFitRelease(Released):
    """A logistic regression of the truth behind released answers.

    Attributes
    ----------
    coefficients : ndarray, shape (columns,)
        Coefficients of the coded columns, the constant first if there is one.
    covariance : ndarray, shape (columns, columns)
        Robust (sandwich) covariance of the errors relative to the population.
    noise_covariance : ndarray, shape (columns, columns)
        Covariance of the errors relative to the same regression of the truth.
    channel : Channel
        Channel of the response; `law` has the level that is not modelled, then the modelled one.
    complete : int
        Number of respondents in the fit.
    log_likelihood, log_likelihood_null : float
        At the coefficients, and for a constant only.
    method : {"score", "likelihood"} or None
        Whether the coefficients solve the corrected score or maximise the likelihood, as all did
        before this was stated.
    weighted, stratified : str or None
        The variables of the weights and the strata.
    """

    later = Released.later | {"method"}
    coefficients: Annotated[Bounded, "column"]
    covariance: Annotated[Bounded, "column", "column_"]
    noise_covariance: Annotated[Bounded, "column", "column_"]
    channel: Channel
    complete: int
    log_likelihood: Quantity
    log_likelihood_null: Quantity
    weighted: str | None = None
    stratified: str | None = None
    method: Annotated[str | None, one_of("score", "likelihood", None)] = None
