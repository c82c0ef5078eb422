"""``dp_pca``: private principal components by formula."""

from __future__ import annotations

from typing import Unpack

from dpmodels.mechanisms import COVARIANCE, SUBSPACE, CovarianceMechanism, SubspaceMechanism
from dpmodels.mechanisms.protocol import Registered
from dpmodels.mechanisms.second_moment import checked_eigenvals
from dpmodels.models.replay import spec_of
from dpmodels.models.scaled_moments import scaled_spec
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.released import Release, SubspaceRelease
from dpmodels.request import Request
from dpmodels.results import MomentsCall, PCAResult, SubspaceResult
from dpmodels.typing import Coder

# For matrices: a table of components needs the distribution of their noise.
LAWFUL = frozenset({"gauss", "rounds", "laplace", "rounds_pure"})


@verb
def dp_pca(
    formula: str,
    data: object = None,
    *,
    ncomp: int | None = None,
    center: bool = True,
    scale: str | None = "range",
    row_norm: float | str | None = None,
    mechanism: str | CovarianceMechanism | SubspaceMechanism | Registered = "auto",
    denoise: str | None = "auto",
    eigenvals: str | None = None,
    inference: bool = False,
    **shared: Unpack[Shared],
) -> PCAResult | SubspaceResult:
    """Fit private principal components.

    Parameters
    ----------
    formula : str
        A right-hand side, for example ``"~ age + log(income + 1) + sex"`` or
        ``"~ ."`` for all variables of the codebook.
    ncomp : int, optional
        Components to keep; all by default.
    center : bool
        Subtract the private mean; False analyses the second moment about 0.
    scale : {"range", "sd", None}
        Divide columns by their public half-range, by their private standard
        deviations (correlation matrix, free of charge), or not at all.
    row_norm : float or "unit", optional
        Clip scaled rows to a smaller ball than the codebook's worst case:
        less noise, and bias where rows are longer. ``"unit"`` divides each
        scaled row by its own norm, so that all lie on the unit sphere.
    mechanism : str or instance
        ``"auto"`` or a name in ``dp.mechanisms.COVARIANCE`` or ``dp.mechanisms.SUBSPACE``; the
        automatic choice depends on public facts and is explained in the table. It is ``"rounds"``,
        or ``"rounds_pure"`` without delta, wherever rows can be read again and are not too few:
        these first estimate the centre and radius of the rows, and clip the rows to it.
    denoise : {"auto", "invariant", "spiked", "psd", None}
        How noise is removed from the eigenvalues of :attr:`PCAResult.cov`, free of charge; some
        mechanisms use it internally.
    eigenvals : {"private", None}
        Whether mechanisms that release only directions spend a share of the budget on the variances
        along them.
    inference : bool
        Whether a part of the budget buys short confidence intervals, where the mechanism is
        ``"rounds"``: a quarter of it, so that noise is 1.2 times as large.

    Returns
    -------
    PCAResult or SubspaceResult
        The latter where the mechanism releases only directions.

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
    return run_verb(
        "pca",
        pca_spec,
        formula,
        data,
        shared,
        mechanism,
        ncomp=ncomp,
        center=center,
        scale=scale,
        row_norm=row_norm,
        denoise=denoise,
        eigenvals=eigenvals,
        inference=inference,
    )


@spec_of("pca", gaussian="gauss")
def pca_spec(request: Request) -> VerbSpec[PCAResult | SubspaceResult]:
    """Build the specification of a dp_pca call."""
    checked_eigenvals(request.options.get("eigenvals"))
    able = automatic(request.options["scale"])
    return scaled_spec(request, {**COVARIANCE, **SUBSPACE}, _result, automatic=able)


def automatic(scale: object) -> frozenset[str]:
    """Return the candidates of ``mechanism="auto"``."""
    return LAWFUL if isinstance(scale, str) and scale == "sd" else LAWFUL | {"ppca"}


def _result(call: MomentsCall, release: Release, coder: Coder) -> PCAResult | SubspaceResult:
    if isinstance(release, SubspaceRelease):
        return SubspaceResult(call, release, coder)
    return PCAResult(call, release, coder)
