"""``dp_moments``: pay once for all moments of the columns, model many times."""

from __future__ import annotations

from collections.abc import Mapping

from dpmodels.codebook import Codebook
from dpmodels.design import row_coder
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.mechanisms import COVARIANCE
from dpmodels.models.crossing import Asked, cross
from dpmodels.privacy import Adjacency, AdjacencyName, Guarantee, Ledger, PureDP, resolve_budget
from dpmodels.released import MomentsRelease
from dpmodels.results import MomentsResult
from dpmodels.sites import PROTOCOLS, DPdisPCA, SiteProtocol, gathered, parties


def dp_moments(
    formula: str,
    data: object = None,
    *,
    sites: Mapping[str, object] | None = None,
    protocol: str | SiteProtocol | None = None,
    codebook: Codebook,
    eps: float | None = None,
    delta: float = 0.0,
    budget: Guarantee | None = None,
    row_norm: float | None = None,
    denoise: str | None = "auto",
    adjacency: AdjacencyName | Adjacency = "replace",
    ledger: Ledger | None = None,
) -> MomentsResult:
    """Release the number of rows, means and second moments of columns, once.

    Components, covariances, correlations and means of any of the columns are
    then free of charge.

    Parameters
    ----------
    formula : str
        A right-hand side that names all columns wanted later, for example
        ``"~ age * sex + log(income + 1)"`` or ``"~ ."``.
    data : frame, mapping, path or iterable of frames
        As for :func:`dp_pca`. Never kept.
    sites, protocol : mapping and str, optional
        Instead of ``data``: rows of each site by its name, and who sees what of
        them, see :func:`dp_pca`.
    codebook : Codebook
        Public bounds and levels of the variables.
    eps, delta, budget
        The guarantee, as for :func:`dp_pca`; Gaussian noise, so ``delta`` is
        above 0 or the budget is ``dp.ZCDP(rho)``.
    row_norm : float, optional
        Hold scaled rows, of all columns together, in a smaller ball than the
        codebook's worst case: less noise, and bias where rows are longer.
    denoise : {"auto", "invariant", "spiked", "psd", None}
        How noise is taken off the eigenvalues of matrices, free of charge.
    adjacency : {"replace", "add-remove"}
        Who is a neighbour.
    ledger : Ledger, optional
        Charged once, before a row is read; refuses what it cannot afford.

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
    if isinstance(row_norm, str):
        raise ArgumentError(
            f"row_norm={row_norm!r}: expected a number or None; rows divided by their norm over "
            'all columns say nothing of fewer: use dp.dp_pca or dp.dp_cov with row_norm="unit"'
        )
    rows = gathered(data, sites, protocol, PROTOCOLS)
    _require_law(rows)
    guarantee = resolve_budget(eps, delta, budget)
    if isinstance(guarantee, PureDP):
        raise BudgetError(
            f"{guarantee.describe()}: dp_moments adds Gaussian noise, which has no pure guarantee: "
            "write delta=1e-6, or budget=dp.ZCDP(rho)"
        )
    asked = Asked(
        formula=formula,
        data=rows,
        codebook=codebook,
        guarantee=guarantee,
        center=True,
        scale="range",
        row_norm=row_norm,
        mechanism="gauss",
        denoise=denoise,
        adjacency=adjacency,
        ledger=ledger,
    )
    crossed = cross("dp_moments", asked, COVARIANCE)
    assert isinstance(crossed.release, MomentsRelease)
    return MomentsResult(crossed.call, crossed.release, row_coder)


def _require_law(rows: object) -> None:
    """Refuse sites that release a part of their moments, with noise of no known law."""
    protocol = parties(rows).protocol
    if protocol is not None and protocol.trust.name == DPdisPCA.trust.name:
        raise ArgumentError(
            f"protocol={protocol.trust.name!r} releases the leading part of moments, from which no "
            "regression and no interval can be made: write protocol='full' or 'secure_sum', or use "
            "dp.dp_pca or dp.dp_cov"
        )
