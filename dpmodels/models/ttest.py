"""``dp_ttest``: a private t-test by formula."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from dpmodels.arguments import finite
from dpmodels.errors import FormulaError, shorten
from dpmodels.formula.sides import one_measured, sides
from dpmodels.mechanisms.counts import CountMechanism
from dpmodels.models.crossing import Way
from dpmodels.models.describing import described_way, mean_tally
from dpmodels.models.replay import spec_of
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.question import Question
from dpmodels.results.ttest import TTestResult


@verb
def dp_ttest(
    formula: str,
    data: object = None,
    *,
    mu: float = 0.0,
    mechanism: str | CountMechanism = "auto",
    **shared: Unpack[Shared],
) -> TTestResult:
    """Test the difference of two means, or one mean, with the noise counted in.

    Parameters
    ----------
    formula : str
        ``"income ~ sex"``, a group of two declared levels, or ``"~ income"``
        for one sample.
    mu : float
        The difference, or the mean, that is tested.
    mechanism : {"auto", "rounds", "paired", "geometric", "gaussian"} or instance
        Discrete Laplace or discrete Gaussian noise; the quieter by default.
        ``"paired"`` is Laplace noise for the mean of all rows under
        ``"replace"``, √2 times less of it. ``"rounds"`` first finds the range
        of the rows with 15 % of the budget and reads them twice: for bounds that
        are too wide, and the default where a public number of rows identifies a
        range.

    Returns
    -------
    TTestResult

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
    The release is that of :func:`dp_mean`, with errors clustered by person where
    persons are named; those with rows in both groups can make the standard error
    larger than need be, never smaller. Variances are not taken as equal;
    the law of the statistic is that of the noise and a sampling error with
    Welch's degrees of freedom together. A p-value is not below 1e-9.

    References
    ----------
    .. [1] Welch, B. L. (1947). "The generalization of 'Student's' problem when
       several different population variances are involved." Biometrika 34,
       28-35.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(income=(0, 250_000), sex=["F", "M"])
    >>> rows = {"income": [30e3, 81e3] * 500, "sex": ["F", "M"] * 500}
    >>> dp_ttest("income ~ sex", rows, codebook=cb, eps=1.0).pvalue < 0.001
    True
    """
    return run_verb("ttest", ttest_way, formula, data, shared, mechanism, mu=mu)


@spec_of("ttest", gaussian="gaussian")
def ttest_way(question: Question) -> Way[TTestResult]:
    """Return the way of the verb's question."""
    both = sides(question.formula, question.codebook)
    number, factors = one_measured(both, "dp_ttest")
    levels = [len(factor.levels) for factor in factors]
    if levels not in ([], [2]):
        raise FormulaError(
            f"formula {shorten(both.text)!r}: a t-test compares two groups; write 'y ~ group' "
            "with a group of two levels, such as (region == \"north\"), or '~ y'"
        )
    made = partial(TTestResult, mu=finite("mu", question.words["mu"]))
    tally = mean_tally(question.adjacency, factors, number)
    return described_way(question, both, (tally,), made)
