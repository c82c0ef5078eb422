"""``dp_cca``: private canonical correlations by formula."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from dpmodels.declared import Declared, declared
from dpmodels.entry_point import entry_point
from dpmodels.formula.two_sets import two_sets
from dpmodels.frames.delimited import CsvMode
from dpmodels.mechanisms import COVARIANCE
from dpmodels.models.crossing import Way, cross
from dpmodels.models.moments import check_gaussian
from dpmodels.models.scaled import scaled_way
from dpmodels.privacy import Adjacency, AdjacencyName, Guarantee, Ledger
from dpmodels.question import Question, asked
from dpmodels.released import MomentsRelease
from dpmodels.results import CCAResult, MomentsCall
from dpmodels.sites import PROTOCOLS, SiteProtocol, gathered
from dpmodels.typing import Coder


@entry_point
def dp_cca(
    formula: str,
    data: object = None,
    *,
    sites: Mapping[str, object] | None = None,
    protocol: str | SiteProtocol | None = None,
    codebook: Declared = None,
    eps: float | None = None,
    delta: float = 0.0,
    budget: Guarantee | None = None,
    row_norm: float | None = None,
    adjacency: AdjacencyName | Adjacency | None = None,
    person: str | Literal[False] | None = None,
    rows: int | Literal["mean"] | None = None,
    subset: str | None = None,
    csv: CsvMode | None = None,
    ledger: Ledger | None = None,
) -> CCAResult:
    """Release canonical correlations of two sets of columns, as R's ``cancor``.

    Parameters
    ----------
    formula : str
        Both sets, for example ``"height + weight ~ chest + waist"``; ``.`` on the
        right stands for all variables that the left side leaves.
    data, sites, protocol
        The rows, or those of each site and who sees what, as for :func:`dp_pca`.
    codebook, eps, delta, budget
        As for :func:`dp_pca`; the noise is Gaussian, and takes ``delta > 0`` or
        ``budget=dp.ZCDP(rho)``.
    row_norm : float, optional
        As for :func:`dp_pca`.
    adjacency, person, rows, subset, csv, ledger
        As for :func:`dp_pca`.

    Returns
    -------
    CCAResult

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
        likely leave no component clear of the noise; as for :func:`dp_pca`.

    Notes
    -----
    One release of all moments, as of :func:`dp_moments`, whose ``m.cca(formula)``
    gives the same free of charge. Noise intervals hold whatever the other
    correlations are; one that is not told from 0 is not printed.

    References
    ----------
    .. [1] Hotelling, H. (1936). "Relations between two sets of variates."
       Biometrika 28, 321-377.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(a=(0, 10), b=(0, 10), c=(0, 10), d=(0, 10))
    >>> rows = {"a": [1, 9] * 500, "b": [2, 3, 7] * 333 + [5], "c": [2, 8] * 500}
    >>> rows["d"] = [5, 6, 7, 8] * 250
    >>> fit = dp.dp_cca("a + b ~ c + d", rows, codebook=cb, eps=1.0, delta=1e-6)
    >>> fit.cor.sizes, fit.xcoef.sizes
    (Frozen({'component': 2}), Frozen({'variable': 2, 'component': 2}))
    """
    held = gathered(data, sites, protocol, PROTOCOLS, csv)
    book = declared(codebook, data, sites, formula)
    words: dict[str, Any] = {"row_norm": row_norm}
    words |= {"person": person, "rows": rows, "subset": subset}
    question = asked("cca", formula, book, eps, delta, budget, adjacency, **words)
    return cross(cca_way(question), held, "gauss", ledger)


def cca_way(question: Question) -> Way[CCAResult]:
    """Return the way of the verb's question."""
    check_gaussian(question)
    joint = two_sets(question.formula, question.codebook).joint
    return scaled_way(question, COVARIANCE, _result, lawful=True, coded=joint)


def _result(call: MomentsCall, release: MomentsRelease, coder: Coder) -> CCAResult:
    return CCAResult(call, release)
