"""``dp_pca``: private principal components by formula."""

from __future__ import annotations

import numpy as np

from dpmodels.codebook import Codebook
from dpmodels.design import private_design, row_coder
from dpmodels.errors import ArgumentError, said
from dpmodels.mechanisms import COVARIANCE, CovarianceMechanism, Facts, choose
from dpmodels.noise import source
from dpmodels.privacy import Adjacency, AdjacencyName, Guarantee, Ledger, resolve_budget
from dpmodels.privacy import adjacency as neighbours
from dpmodels.results import PCACall, PCAResult
from dpmodels.statistics import moments


def dp_pca(
    formula: str,
    data: object,
    *,
    codebook: Codebook,
    eps: float | None = None,
    delta: float = 0.0,
    budget: Guarantee | None = None,
    ncomp: int | None = None,
    center: bool = True,
    scale: str | None = "range",
    row_norm: float | None = None,
    mechanism: str | CovarianceMechanism = "auto",
    adjacency: AdjacencyName | Adjacency = "replace",
    ledger: Ledger | None = None,
) -> PCAResult:
    """Fit private principal components.

    Parameters
    ----------
    formula : str
        A right-hand side, for example ``"~ age + log(income + 1) + sex"`` or
        ``"~ ."`` for all variables of the codebook.
    data : frame, mapping, path or iterable of frames
        pandas, polars, Arrow or another frame, a mapping of names to arrays, a
        structured array, the path of a ``.parquet`` or ``.csv`` file, or an
        iterable of frames. Never kept.
    codebook : Codebook
        Public bounds and levels of the variables, see :class:`dp.codebook`.
    eps, delta : float
        The guarantee; ``delta`` in (0, 1) for Gaussian mechanisms.
    budget : Guarantee, optional
        Instead of ``eps``: ``dp.ZCDP(rho)``, ``dp.ApproxDP(eps, delta)``.
    ncomp : int, optional
        Components to keep; all by default.
    center : bool
        Take off the private mean; False analyses the second moment about 0.
    scale : {"range", "sd", None}
        Divide columns by their public half-range, by their private standard
        deviations (correlation matrix, free of charge), or not at all.
    row_norm : float, optional
        Hold scaled rows in a smaller ball than the codebook's worst case:
        less noise, and bias where rows are longer.
    mechanism : str or instance
        ``"auto"`` or a name in ``dp.mechanisms.COVARIANCE``.
    adjacency : {"replace", "add-remove"}
        Neighbours differ by one changed row (the number of rows is public) or
        by one row more or fewer (it is private).
    ledger : Ledger, optional
        Charged before a row is read; refuses what it cannot afford.

    Returns
    -------
    PCAResult

    Raises
    ------
    FormulaError, CodebookError, ArgumentError, BudgetError, FrameError
        Before a row is read and before anything is charged.
    LedgerError
        If the ledger refuses; nothing is charged.

    Notes
    -----
    The augmented moments of the coded rows, exact integers, are released once
    with noise; centring, scaling to a correlation matrix, eigenvectors and
    every table are post-processing. The guarantee covers the released result;
    it assumes a trusted curator and does not cover running time.

    References
    ----------
    .. [1] Dwork, C., Talwar, K., Thakurta, A. and Zhang, L. (2014). "Analyze
       Gauss: optimal bounds for privacy-preserving principal component
       analysis." STOC.
    .. [2] Chaudhuri, K., Sarwate, A. D. and Sinha, K. (2012). "Near-optimal
       differentially private principal components." NeurIPS.

    Examples
    --------
    >>> import dpmodels as dp
    >>> import numpy as np
    >>> cb = dp.codebook(age=(0, 100), income=(0, 250_000), sex=["F", "M"])
    >>> rows = {"age": [31, 64] * 500, "income": [30e3, 81e3] * 500, "sex": ["F", "M"] * 500}
    >>> fit = dp.dp_pca("~ age + log(income + 1) + sex", rows, codebook=cb, eps=1.0, delta=1e-6)
    >>> fit.loadings.sizes
    Frozen({'variable': 3, 'component': 3})
    """
    guarantee = resolve_budget(eps, delta, budget)
    relation = neighbours(adjacency)
    strategy = choose(mechanism, COVARIANCE)
    design = private_design(formula, data, codebook, scale=scale, center=center, row_norm=row_norm)
    if not isinstance(ledger, Ledger | None):
        raise ArgumentError(f"ledger={type(ledger).__name__}: expected a dp.Ledger or None")
    components = _checked_ncomp(ncomp, len(design.public.names))
    facts = Facts(len(design.public.names), relation, centred=center)
    plan = strategy.plan(facts, guarantee)
    if ledger is not None:
        ledger.charge(plan.events, adjacency=relation, label=f"dp_pca {formula}")
    statistic = moments(design, plan.lattice, count_public=relation.n_public)
    release = strategy.release(statistic, plan, source())
    call = PCACall(
        formula=design.public.formula,
        codebook=design.public.codebook,
        names=design.public.names,
        lower=design.public.lower,
        upper=design.public.upper,
        origin=design.scaling.centre,
        divisor=design.scaling.scale,
        row_norm=design.scaling.row_norm,
        worst_case=design.scaling.worst_case,
        center=center,
        scale=scale,
        ncomp=components,
        ledger="" if ledger is None else ledger.describe(),
    )
    return PCAResult(call, release, row_coder(design.public))


def _checked_ncomp(ncomp: int | None, columns: int) -> int:
    if ncomp is None:
        return columns
    whole = isinstance(ncomp, int | np.integer) and not isinstance(ncomp, bool)
    if not whole or not 1 <= ncomp <= columns:
        raise ArgumentError(
            f"ncomp={said(ncomp)}: expected a whole number from 1 to {columns}, the number of "
            "coded columns of the formula, or None for all"
        )
    return int(ncomp)
