"""``dp_cca``: private canonical correlations by formula."""

from __future__ import annotations

from typing import Unpack

from dpmodels.formula.two_sets import two_sets
from dpmodels.mechanisms import COVARIANCE
from dpmodels.models.crossing import Way
from dpmodels.models.moments import check_gaussian
from dpmodels.models.replay import spec_of
from dpmodels.models.scaled import scaled_way
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.question import Question
from dpmodels.released import MomentsRelease
from dpmodels.results import CCAResult, MomentsCall
from dpmodels.results.validate import require_law
from dpmodels.typing import Coder


@verb
def dp_cca(
    formula: str,
    data: object = None,
    *,
    row_norm: float | None = None,
    **shared: Unpack[Shared],
) -> CCAResult:
    """Release canonical correlations of two sets of columns, as R's ``cancor``.

    Parameters
    ----------
    formula : str
        Both sets, for example ``"height + weight ~ chest + waist"``; ``.`` on the
        right stands for all variables that the left side leaves.
    eps
        The noise is Gaussian and needs ``delta > 0`` or ``budget=dp.ZCDP(rho)``.
    row_norm : float, optional
        Clip scaled rows to a smaller ball than the codebook's worst case: less
        noise, and bias where rows are longer.

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
    return run_verb("cca", cca_way, formula, data, shared, "gauss", row_norm=row_norm)


@spec_of("cca", gaussian="gauss")
def cca_way(question: Question) -> Way[CCAResult]:
    """Return the way of the verb's question."""
    check_gaussian(question)
    joint = two_sets(question.formula, question.codebook).joint
    return scaled_way(question, COVARIANCE, _result, lawful=True, coded=joint, check=require_law)


def _result(call: MomentsCall, release: MomentsRelease, coder: Coder) -> CCAResult:
    return CCAResult(call, release)
