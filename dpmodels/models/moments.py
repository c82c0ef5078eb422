"""``dp_moments``: pay once for all moments of the columns, model many times."""

from __future__ import annotations

from typing import Unpack

from dpmodels.design import row_coder
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.mechanisms import COVARIANCE
from dpmodels.models.crossing import Way
from dpmodels.models.replay import spec_of
from dpmodels.models.scaled import scaled_way
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.privacy import WRITE_DELTA, PureDP
from dpmodels.question import Question
from dpmodels.released import MomentsRelease
from dpmodels.results import MomentsCall, MomentsResult
from dpmodels.typing import Coder


@verb
def dp_moments(
    formula: str,
    data: object = None,
    *,
    row_norm: float | None = None,
    denoise: str | None = "auto",
    **shared: Unpack[Shared],
) -> MomentsResult:
    """Release the number of rows, means and second moments of columns, once.

    Components, covariances, correlations and means of any of the columns are
    then free of charge.

    Parameters
    ----------
    formula : str
        A right-hand side that names all columns wanted later, for example
        ``"~ age * sex + log(income + 1)"`` or ``"~ ."``.
    eps
        The noise is Gaussian and needs ``delta > 0`` or ``budget=dp.ZCDP(rho)``.
    row_norm : float, optional
        Hold scaled rows, of all columns together, in a smaller ball than the
        codebook's worst case: less noise, and bias where rows are longer.
    denoise : {"auto", "invariant", "spiked", "psd", None}
        How noise is taken off the eigenvalues of matrices, free of charge.

    Returns
    -------
    MomentsResult

    Raises
    ------
    FormulaError, CodebookError, ArgumentError, BudgetError, FrameError
        Before a row is read and before anything is charged.
    LedgerError
        If the ledger refuses; nothing is charged.

    Notes
    -----
    A row that is incomplete in any column counts in none. More columns mean
    longer rows and more noise in each: name those that will be used.

    References
    ----------
    .. [1] Dwork, C., Talwar, K., Thakurta, A. and Zhang, L. (2014). "Analyze
       Gauss: optimal bounds for privacy-preserving principal component
       analysis." STOC.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(age=(0, 100), income=(0, 250_000), sex=["F", "M"])
    >>> rows = {"age": [31, 64] * 500, "income": [30e3, 81e3] * 500, "sex": ["F", "M"] * 500}
    >>> m = dp.dp_moments("~ age + income + sex", rows, codebook=cb, eps=1.0, delta=1e-6)
    >>> m.pca("~ age + income").loadings.sizes, m.cor("~ age + sex").sizes
    (Frozen({'variable': 2, 'component': 2}), Frozen({'variable': 2, 'variable_': 2}))
    """
    return run_verb(
        "moments", moments_way, formula, data, shared, "gauss", row_norm=row_norm, denoise=denoise
    )


@spec_of("moments", gaussian="gauss")
def moments_way(question: Question) -> Way[MomentsResult]:
    """Return the way of the verb's question."""
    check_gaussian(question)
    return scaled_way(question, COVARIANCE, _result, lawful=True)


def check_gaussian(question: Question) -> None:
    """Refuse rows of their own lengths, and a pure guarantee."""
    row_norm, guarantee = question.words["row_norm"], question.guarantee
    if isinstance(row_norm, str):
        raise ArgumentError(
            f"row_norm={row_norm!r}: expected a number or None; rows divided by their norm over "
            'all columns say nothing of fewer: use dp.dp_pca or dp.dp_cov with row_norm="unit"'
        )
    if isinstance(guarantee, PureDP):
        raise BudgetError(
            f"{guarantee.describe()}: dp_{question.verb} adds Gaussian noise, which has no pure "
            f"guarantee: {WRITE_DELTA}, or budget=dp.ZCDP(rho)"
        )


def _result(call: MomentsCall, release: MomentsRelease, coder: Coder) -> MomentsResult:
    # Columns are named after the release: each question of the user's codes its own.
    return MomentsResult(call, release, row_coder)
