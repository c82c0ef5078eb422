"""``dp_cov``: a private covariance matrix by formula."""

from __future__ import annotations

from typing import Unpack

from dpmodels.errors import ArgumentError
from dpmodels.mechanisms import COVARIANCE, SUBSPACE, CovarianceMechanism
from dpmodels.mechanisms.protocol import Registered
from dpmodels.models.replay import spec_of
from dpmodels.models.scaled_moments import scaled_spec
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.request import Request
from dpmodels.results import CovResult


@verb
def dp_cov(
    formula: str,
    data: object = None,
    *,
    center: bool = True,
    scale: str | None = "range",
    row_norm: float | str | None = None,
    mechanism: str | CovarianceMechanism | Registered = "auto",
    denoise: str | None = "auto",
    inference: bool = False,
    **shared: Unpack[Shared],
) -> CovResult:
    """Release a covariance matrix, and with it the correlations.

    Parameters
    ----------
    formula : str
        A right-hand side, for example ``"~ age + log(income + 1) + sex"``.
    center : bool
        Take off the private mean; False releases the second moment about 0.
    scale : {"range", None}
        How columns are weighted while noise is added: each by its public half-range, or not. The
        result is in the columns' own units either way.
    row_norm : float or "unit", optional
        Clip scaled rows to a smaller ball than the codebook's worst case: less
        noise, and bias where rows are longer. ``"unit"`` divides each scaled
        row by its own norm, so that all lie on the unit sphere.
    mechanism : str or instance
        ``"auto"`` or a name in ``dp.mechanisms.COVARIANCE``.
    denoise : {"auto", "invariant", "spiked", "psd", None}
        How noise is taken off the eigenvalues, free of charge.
    inference : bool
        Whether a part of the budget buys short confidence intervals, where the mechanism is
        ``"rounds"``: a quarter of it, so that noise is 1.2 times as large.

    Returns
    -------
    CovResult

    Notes
    -----
    ``"auto"`` first estimates a centre and a radius of most rows, if n is large enough, and clips
    the rows to it: the table states the share of clipped rows. :meth:`CovResult.conf_int` is for
    the population and :meth:`CovResult.noise_int` for the covariances of these rows. Both allow for
    this clipping, cover at least 95 % for any data within the bounds, and are long. With
    ``inference=True`` fourth moments, and how much clipping took off, are released too, which makes
    both several times shorter. Correlations with columns lost in noise are not printed.

    References
    ----------
    .. [1] Dong, W., Liang, Y. and Yi, K. (2022). "Differentially private
       covariance revisited." NeurIPS.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(age=(0, 100), income=(0, 250_000))
    >>> rows = {"age": [31, 64] * 500, "income": [30e3, 81e3] * 500}
    >>> fit = dp.dp_cov("~ age + income", rows, codebook=cb, eps=1.0, delta=1e-6)
    >>> fit.cov.dims
    ('variable', 'variable_')
    """
    _check(scale, mechanism)
    return run_verb(
        "cov",
        cov_spec,
        formula,
        data,
        shared,
        mechanism,
        center=center,
        scale=scale,
        row_norm=row_norm,
        denoise=denoise,
        inference=inference,
    )


@spec_of("cov", gaussian="gauss")
def cov_spec(request: Request) -> VerbSpec[CovResult]:
    """Build the specification of a dp_cov call."""
    return scaled_spec(request, COVARIANCE, CovResult)


def _check(scale: object, mechanism: object) -> None:
    if isinstance(scale, str) and scale == "sd":
        raise ArgumentError(
            'scale="sd": expected "range" or None; correlations are in .cor of the result, free of '
            "charge"
        )
    is_subspace_name = isinstance(mechanism, str) and mechanism in SUBSPACE
    if is_subspace_name or isinstance(mechanism, tuple(SUBSPACE.values())):
        raise ArgumentError(
            "mechanism= releases directions only, not a matrix; use dp.dp_pca, or write one of "
            + ", ".join(map(repr, ("auto", *COVARIANCE)))
        )
