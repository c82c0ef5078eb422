"""``dp_moments``: pay once for all moments of the columns, model many times."""

from __future__ import annotations

from typing import Unpack

from dpmodels.design import row_coder
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.formula.response import two_sets
from dpmodels.mechanisms.protocol import Registered
from dpmodels.models.replay import spec_of
from dpmodels.models.scaled_moments import GAUSSIAN_MOMENTS, scaled_spec
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.privacy import WRITE_DELTA, PureDP
from dpmodels.released import MomentsRelease
from dpmodels.request import Request
from dpmodels.results import CCAResult, MomentsCall, MomentsResult
from dpmodels.results.validate import require_law
from dpmodels.typing import Coder


@verb
def dp_moments(
    formula: str,
    data: object = None,
    *,
    row_norm: float | None = None,
    denoise: str | None = "auto",
    mechanism: str | Registered = "auto",
    inference: bool = False,
    **shared: Unpack[Shared],
) -> MomentsResult:
    """Release the number of rows, means and second moments of columns, once.

    Components, covariances, correlations and means of any of the columns are
    then free of charge.

    Parameters
    ----------
    formula : str
        A right-hand side that names all columns used later, for example
        ``"~ age * sex + log(income + 1)"`` or ``"~ ."``.
    eps
        The noise is Gaussian and needs ``delta > 0`` or ``budget=dp.ZCDP(rho)``.
    row_norm : float, optional
        Clip scaled rows, of all columns together, to a smaller ball than the
        codebook's worst case: less noise, and bias where rows are longer.
    denoise : {"auto", "invariant", "spiked", "psd", None}
        How noise is removed from the eigenvalues of matrices, free of charge.
    mechanism : str or instance
        ``"auto"`` and ``"gauss"`` are the same. A registered mechanism of Gaussian
        noise is taken too, see :func:`dpmodels.mechanisms.register`.
    inference : bool
        Whether 7 % of the budget buys fourth moments, so that confidence intervals of variances,
        covariances and components follow the rows rather than the codebook's bounds: noise is 1.04
        times as large, and the rows are read twice.

    Returns
    -------
    MomentsResult

    Notes
    -----
    No row is clipped to less than the codebook's bounds unless ``row_norm`` is written, so noise
    intervals hold for these rows, whatever is derived from them. Where columns are many, or bounds
    far too wide, :func:`dp_cov` has less noise in one covariance matrix.

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
    chosen = gauss_if_auto(mechanism)
    return run_verb(
        "moments",
        moments_spec,
        formula,
        data,
        shared,
        chosen,
        row_norm=row_norm,
        denoise=denoise,
        inference=inference,
    )


@spec_of("moments", gaussian="gauss")
def moments_spec(request: Request) -> VerbSpec[MomentsResult]:
    """Build the specification of a dp_moments call."""
    check_gaussian(request)
    return scaled_spec(request, GAUSSIAN_MOMENTS, _result, lawful=True)


def gauss_if_auto(mechanism: object) -> object:
    """Return the mechanism of ``"auto"``: the only one with Gaussian noise."""
    return "gauss" if isinstance(mechanism, str) and mechanism == "auto" else mechanism


def check_gaussian(request: Request) -> None:
    """Refuse rows divided by their norms, and a pure guarantee."""
    row_norm, guarantee = request.options["row_norm"], request.guarantee
    if isinstance(row_norm, str):
        raise ArgumentError(
            f"row_norm={row_norm!r}: expected a number or None; rows divided by their norm over "
            "all columns do not give moments of fewer columns: use dp.dp_pca or dp.dp_cov with "
            'row_norm="unit"'
        )
    if isinstance(guarantee, PureDP):
        raise BudgetError(
            f"{guarantee.describe()}: dp_{request.verb} adds Gaussian noise, which has no pure "
            f"guarantee: {WRITE_DELTA}, or budget=dp.ZCDP(rho)"
        )


def _result(call: MomentsCall, release: MomentsRelease, coder: Coder) -> MomentsResult:
    # Columns are named after the release: each formula of the user codes its own.
    return MomentsResult(call, release, row_coder)


# ``dp_cca``: private canonical correlations by formula.


@verb
def dp_cca(
    formula: str,
    data: object = None,
    *,
    row_norm: float | None = None,
    mechanism: str | Registered = "auto",
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
    mechanism : str or instance
        ``"auto"`` and ``"gauss"`` are the same. A registered mechanism of Gaussian
        noise is taken too, see :func:`dpmodels.mechanisms.register`.

    Returns
    -------
    CCAResult

    Notes
    -----
    One release of all moments, as of :func:`dp_moments`, whose ``m.cca(formula)``
    gives the same free of charge. Noise intervals hold whatever the other
    correlations are; one that is not distinguishable from 0 is not printed.

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
    chosen = gauss_if_auto(mechanism)
    return run_verb("cca", cca_spec, formula, data, shared, chosen, row_norm=row_norm)


@spec_of("cca", gaussian="gauss")
def cca_spec(request: Request) -> VerbSpec[CCAResult]:
    """Build the specification of a dp_cca call."""
    check_gaussian(request)
    joint = two_sets(request.formula, request.codebook).joint
    return scaled_spec(
        request, GAUSSIAN_MOMENTS, _cca_result, lawful=True, coded=joint, check=require_law
    )


def _cca_result(call: MomentsCall, release: MomentsRelease, coder: Coder) -> CCAResult:
    return CCAResult(call, release)
