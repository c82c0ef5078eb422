"""``dp_var``: private variances by formula."""

from __future__ import annotations

from typing import Unpack

from dpmodels.formula.sides import one_measured, sides
from dpmodels.formula.tally import Tally
from dpmodels.mechanisms.counts import CountMechanism
from dpmodels.models.crossing import Way
from dpmodels.models.describing import described_way
from dpmodels.models.replay import spec_of
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.question import Question
from dpmodels.results.groups import VarResult


@verb
def dp_var(
    formula: str,
    data: object = None,
    *,
    mechanism: str | CountMechanism = "auto",
    **shared: Unpack[Shared],
) -> VarResult:
    """Release the variance of a variable, by groups or not.

    Parameters
    ----------
    formula : str
        ``"income ~ sex"``, ``"income ~ sex + region"`` for each combination of
        levels, or ``"~ income"`` for all rows.
    mechanism : {"auto", "rounds", "geometric", "gaussian"} or instance
        Discrete Laplace or discrete Gaussian noise; the quieter by default.
        ``"rounds"`` first finds the range
        of the rows with 15 % of the budget and reads them twice: for bounds that
        are too wide, and the default where a public number of rows identifies a
        range.

    Returns
    -------
    VarResult

    Raises
    ------
    FormulaError, CodebookError, ArgumentError, BudgetError, FrameError
        Before a row is read and before anything is charged.
    LedgerError
        If the ledger refuses; nothing is charged.

    Warns
    -----
    BudgetWarning
        Before the charge, where the budget and a public number of rows very
        likely leave hardly any group a mean: groups are guessed to be of
        one size. :class:`dpmodels.errors.BudgetWarning` says how to stop
        there.

    Notes
    -----
    As :func:`dp_mean`, with the five Bernstein polynomials of degree 4, which
    give the fourth moments that intervals for the population need. Where
    ``"rounds"`` held the rows in a range, the variance is that of the held
    rows: of a heavy tail it misses what was cut off.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(income=(0, 250_000), sex=["F", "M"])
    >>> rows = {"income": [30e3, 81e3] * 500, "sex": ["F", "M"] * 500}
    >>> fit = dp_var("income ~ sex", rows, codebook=cb, eps=1.0)
    >>> list(fit.params.index), fit.conf_int().shape
    (['F', 'M'], (2, 2))
    """
    return run_verb("var", var_way, formula, data, shared, mechanism)


@spec_of("var", gaussian="gaussian", audited=("a ~ g", "geometric"))
def var_way(question: Question) -> Way[VarResult]:
    """Return the way of the verb's question."""
    both = sides(question.formula, question.codebook)
    number, factors = one_measured(both, "dp_var")
    return described_way(question, both, (Tally(factors, number, 4),), VarResult)
