"""``dp_pca``, ``dp_cov``, ``dp_moments`` and ``dp_cca``: what follows from released moments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar, Unpack

from dpmodels.arguments import boolean, option
from dpmodels.design import PrivateDesign, row_coder, unbound_design
from dpmodels.errors import ArgumentError, BudgetError, quoted
from dpmodels.formula import Design, design
from dpmodels.formula.response import two_sets
from dpmodels.mechanisms import (
    COVARIANCE,
    SUBSPACE,
    CovarianceMechanism,
    Facts,
    Gauss,
    SubspaceMechanism,
    choose_strategy,
)
from dpmodels.mechanisms.choose_moments import Table, auto_moments
from dpmodels.mechanisms.protocol import AnyStrategy, Registered
from dpmodels.mechanisms.user_supplied import UserSupplied
from dpmodels.models.assumed_rows import components, covariances
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.postprocess.denoise import RULES
from dpmodels.privacy import WRITE_DELTA, PureDP
from dpmodels.released import MomentsRelease, Release, SubspaceRelease
from dpmodels.request import Request
from dpmodels.results import (
    CCAResult,
    CovResult,
    MomentsCall,
    MomentsResult,
    PCAResult,
    SubspaceResult,
)
from dpmodels.results.call import accept
from dpmodels.results.components import checked_ncomp
from dpmodels.results.validate import require_law
from dpmodels.sites import together
from dpmodels.typing import Coder, Option
from dpmodels.verbs import spec_of

Result = TypeVar("Result")
# Mechanisms for results that need Gaussian noise of a known distribution.
GAUSSIAN_MOMENTS: Table = {"gauss": COVARIANCE["gauss"]}
MANY_PASSES = frozenset(
    name for name, kind in COVARIANCE.items() if getattr(kind, "passes", "one") == "many"
)


def scaled_spec(
    request: Request,
    table: Table,
    result: Callable[[MomentsCall, MomentsRelease, Coder], Result],
    *,
    automatic: frozenset[str] | None = None,
    lawful: bool = False,
    coded: Design | None = None,
    check: Callable[[MomentsRelease], None] = accept,
) -> VerbSpec[Result]:
    """Build the specification of a verb on moments; `coded` are columns other than a formula's."""
    options, relation = request.options, request.adjacency
    center, scale = options.get("center", True), options.get("scale", "range")
    denoise, row_norm = checked_rule(options.get("denoise")), options["row_norm"]
    placed = {"scale": scale, "center": center, "row_norm": row_norm}
    public = coded or design(request.formula, request.codebook)
    private_design = unbound_design(public, **placed)
    columns = len(private_design.public.names)
    n_components = checked_ncomp(options.get("ncomp"), columns)
    facts = Facts(columns, relation, center, n_components, private_design.scaling.unit)
    candidates = frozenset(table) if automatic is None else automatic
    strategy_options = {"denoise": denoise, "eigenvals": options.get("eigenvals")}
    strategy_options["inference"] = boolean("inference", options.get("inference", False))
    strategy_options["fourth"] = strategy_options["inference"] and table is GAUSSIAN_MOMENTS

    def chosen(mechanism: object, private: Sequence[PrivateDesign]) -> tuple[AnyStrategy, str]:
        counts = (source.nrows for source in private)
        rows = together(counts, relation.places) if relation.n_public else None
        read_once = not all(source.rereadable for source in private)
        available = candidates - MANY_PASSES if read_once else candidates
        automatic = partial(auto_moments, facts, request.private, rows, available)
        choice = choose_strategy(mechanism, table, automatic, strategy_options)
        if table is GAUSSIAN_MOMENTS:
            require_gaussian(choice.strategy, request.verb)
        if scale == "sd" and type(choice.strategy) in SUBSPACE.values():
            raise ArgumentError(
                'scale="sd" needs private standard deviations, which '
                f'{choice.strategy.info.name} does not release; write scale="range", or a '
                'mechanism that releases moments, such as "gauss"'
            )
        return choice

    def with_coder(call: MomentsCall, release: MomentsRelease) -> Result:
        return result(call, release, row_coder(private_design.public))

    settings = {"center": center, "scale": scale, "denoise": denoise, "ncomp": n_components}
    return VerbSpec(
        request,
        moments_call(private_design, settings),
        with_coder,
        private_design,
        facts,
        chosen,
        lawful=lawful,
        law=partial(components if request.verb == "pca" else covariances, private_design),
        check=check,
    )


def require_gaussian(strategy: object, verb: str) -> None:
    """Refuse mechanisms that do not support intervals."""
    is_registered_gaussian = (
        isinstance(strategy, UserSupplied) and strategy.mechanism.law == "gaussian"
    )
    if not is_registered_gaussian and not isinstance(strategy, Gauss):
        raise ArgumentError(
            f"mechanism= is of type {type(strategy).__name__}; dp_{verb} needs moments with "
            'Gaussian noise of a known distribution: write "gauss", or such a registered mechanism'
        )


def checked_rule(denoise: object) -> str | None:
    """Return the rule for removing noise from eigenvalues; ArgumentError lists the rules."""
    if denoise is None or (isinstance(denoise, str) and denoise in RULES):
        return denoise
    rules = ", ".join(f'"{rule}"' for rule in RULES)
    raise ArgumentError(f"denoise={quoted(denoise)}: expected {rules} or None")


def moments_call(private_design: PrivateDesign, settings: Mapping[str, Option]) -> MomentsCall:
    """Return the public facts of a design; `settings` are the other fields."""
    public, scaling = private_design.public, private_design.scaling
    return MomentsCall(
        formula=public.formula,
        codebook=public.codebook,
        names=public.names,
        lower=public.lower,
        upper=public.upper,
        origin=scaling.centre,
        divisor=scaling.scale,
        row_norm=scaling.row_norm,
        worst_case=scaling.worst_case,
        unit_rows=scaling.unit,
        **settings,
    )


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
    return run_verb("pca", pca_spec, **locals())


@spec_of("pca", gaussian="gauss")
def pca_spec(request: Request) -> VerbSpec[PCAResult | SubspaceResult]:
    """Build the specification of a dp_pca call."""
    option("eigenvals", request.options.get("eigenvals"), ("private", None))
    able = automatic(request.options["scale"])
    return scaled_spec(request, {**COVARIANCE, **SUBSPACE}, _pca_result, automatic=able)


def automatic(scale: object) -> frozenset[str]:
    """Return the candidates of ``mechanism="auto"``."""
    return LAWFUL if isinstance(scale, str) and scale == "sd" else LAWFUL | {"ppca"}


def _pca_result(call: MomentsCall, release: Release, coder: Coder) -> PCAResult | SubspaceResult:
    if isinstance(release, SubspaceRelease):
        return SubspaceResult(call, release, coder)
    return PCAResult(call, release, coder)


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
    return run_verb("cov", cov_spec, **locals())


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
    return run_verb("moments", moments_spec, **locals() | {"mechanism": gauss_if_auto(mechanism)})


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
    return run_verb("cca", cca_spec, **locals() | {"mechanism": gauss_if_auto(mechanism)})


@spec_of("cca", gaussian="gauss")
def cca_spec(request: Request) -> VerbSpec[CCAResult]:
    """Build the specification of a dp_cca call."""
    check_gaussian(request)
    joint = two_sets(request.formula, request.codebook).joint

    def result(call: MomentsCall, release: MomentsRelease, coder: Coder) -> CCAResult:
        return CCAResult(call, release)

    return scaled_spec(
        request, GAUSSIAN_MOMENTS, result, lawful=True, coded=joint, check=require_law
    )
