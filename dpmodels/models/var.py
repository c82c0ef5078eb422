"""``dp_var``: private variances by formula."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from dpmodels.declared import Declared, declared
from dpmodels.entry_point import entry_point
from dpmodels.formula.sides import one_measured, sides
from dpmodels.formula.tally import Tally
from dpmodels.frames.delimited import CsvMode
from dpmodels.mechanisms.counts import CountMechanism
from dpmodels.models.crossing import Way, cross
from dpmodels.models.describing import described_way
from dpmodels.privacy import Adjacency, AdjacencyName, Guarantee, Ledger
from dpmodels.question import Question, asked
from dpmodels.results.groups import VarResult
from dpmodels.sites import PROTOCOLS, SiteProtocol, gathered


@entry_point
def dp_var(
    formula: str,
    data: object = None,
    *,
    sites: Mapping[str, object] | None = None,
    protocol: str | SiteProtocol | None = None,
    codebook: Declared = None,
    eps: float | None = None,
    delta: float = 0.0,
    budget: Guarantee | None = None,
    mechanism: str | CountMechanism = "auto",
    adjacency: AdjacencyName | Adjacency | None = None,
    person: str | Literal[False] | None = None,
    rows: int | Literal["mean"] | None = None,
    subset: str | None = None,
    csv: CsvMode | None = None,
    ledger: Ledger | None = None,
) -> VarResult:
    """Release the variance of a variable, by groups or not.

    Parameters
    ----------
    formula : str
        ``"income ~ sex"``, ``"income ~ sex + region"`` for each combination of
        levels, or ``"~ income"`` for all rows.
    data, sites, protocol
        The rows, or those of each site and who sees what, as for :func:`dp_pca`.
    codebook, eps, delta, budget
        As for :func:`dp_pca`.
    mechanism : {"auto", "rounds", "geometric", "gaussian"} or instance
        Discrete Laplace or discrete Gaussian noise; the quieter by default.
        ``"rounds"`` as for :func:`dp_mean`.
    adjacency, person, rows, subset, csv, ledger
        As for :func:`dp_pca`.

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
    held = gathered(data, sites, protocol, PROTOCOLS, csv)
    book = declared(codebook, data, sites, formula)
    words: dict[str, Any] = {"person": person, "rows": rows, "subset": subset}
    question = asked("var", formula, book, eps, delta, budget, adjacency, **words)
    return cross(var_way(question), held, mechanism, ledger)


def var_way(question: Question) -> Way[VarResult]:
    """Return the way of the verb's question."""
    both = sides(question.formula, question.codebook)
    number, factors = one_measured(both, "dp_var")
    return described_way(question, both, (Tally(factors, number, 4),), VarResult)
