"""Released answers that were randomised one by one, and what was fitted to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dpmodels.outside import Amount, Bounded, Quantity
from dpmodels.released.terms import Released


@dataclass(frozen=True)
class Channel:
    """How the answer to one question comes of the truth.

    Attributes
    ----------
    truth : float
        Probability with which the truth is asked for; 1 where nothing was randomised.
    law : tuple of float
        Probabilities of the levels otherwise; of an answer as it was, zeros.
    eps : float
        What one answer costs at the most; 0 where nothing was randomised.
    how : str
        The device in words; empty where there was none.
    """

    truth: Amount
    law: tuple[Amount, ...]
    eps: Amount
    how: str


def exact(levels: int) -> Channel:
    """Return the channel of answers that are the truth."""
    return Channel(1.0, (0.0,) * levels, 0.0, "")


@dataclass(frozen=True, kw_only=True)
class AnswersRelease(Released):
    """Released answers, each randomised by itself, as numbers by what was answered.

    Attributes
    ----------
    values : ndarray, shape (strata, answers)
        Numbers of respondents by combination of answers, the last question fastest.
    weights, squares : ndarray, shape (strata, answers), or None
        Sums of their weights, and of the squares of these; None where all weigh the same.
    channels : tuple of Channel
        One a question; a single one where whole rows were randomised, over all cells and, last,
        the incomplete rows.
    strata : tuple of str
        Names of the strata; empty where there are none.
    shares : tuple of float or None
        Shares of the population in the strata, where they are known.
    incomplete : int
        Respondents without an answer to one of the questions.
    weighted, stratified : str or None
        The variables that weights and strata are of.
    """

    values: Annotated[Bounded, "stratum", "answer"]
    weights: Annotated[Bounded, "stratum", "answer"] | None
    squares: Annotated[Bounded, "stratum", "answer"] | None
    channels: tuple[Channel, ...]
    strata: tuple[str, ...] = ()
    shares: tuple[Amount, ...] | None = None
    incomplete: int = 0
    weighted: str | None = None
    stratified: str | None = None


@dataclass(frozen=True, kw_only=True)
class AnswersFitRelease(Released):
    """A logistic regression of the truth behind released answers.

    Attributes
    ----------
    coefficients : ndarray, shape (columns,)
        Of the coded columns, the constant's first where there is one.
    covariance : ndarray, shape (columns, columns)
        About the population's, robust (sandwich).
    noise_covariance : ndarray, shape (columns, columns)
        About what the same regression of the truth itself would have given.
    channel : Channel
        Of the response; `law` is that of the level that is not modelled, then of the modelled one.
    complete : int
        Respondents that the fit is of.
    log_likelihood, log_likelihood_null : float
        At the coefficients, and at a constant alone.
    weighted, stratified : str or None
        The variables that weights and strata are of.
    """

    coefficients: Annotated[Bounded, "column"]
    covariance: Annotated[Bounded, "column", "column_"]
    noise_covariance: Annotated[Bounded, "column", "column_"]
    channel: Channel
    complete: int
    log_likelihood: Quantity
    log_likelihood_null: Quantity
    weighted: str | None = None
    stratified: str | None = None
