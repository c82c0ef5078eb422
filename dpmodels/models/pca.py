"""``dp_pca``: private principal components by formula."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from dpmodels.declared import Declared, declared
from dpmodels.entry_point import entry_point
from dpmodels.frames.delimited import CsvMode
from dpmodels.mechanisms import COVARIANCE, SUBSPACE, CovarianceMechanism, SubspaceMechanism
from dpmodels.mechanisms.eigenvectors_within import checked_eigenvals
from dpmodels.models.crossing import Way, cross
from dpmodels.models.scaled import scaled_way
from dpmodels.privacy import Adjacency, AdjacencyName, Guarantee, Ledger
from dpmodels.question import Question, asked
from dpmodels.released import Release, SubspaceRelease
from dpmodels.results import MomentsCall, PCAResult, SubspaceResult
from dpmodels.sites import PROTOCOLS, SiteProtocol, gathered
from dpmodels.typing import Coder

# Of matrices: a table of components needs to tell them from noise.
LAWFUL = frozenset({"gauss", "rounds", "laplace", "rounds_pure"})


@entry_point
def dp_pca(
    formula: str,
    data: object = None,
    *,
    sites: Mapping[str, object] | None = None,
    protocol: str | SiteProtocol | None = None,
    codebook: Declared = None,
    eps: float | None = None,
    delta: float = 0.0,
    budget: Guarantee | None = None,
    ncomp: int | None = None,
    center: bool = True,
    scale: str | None = "range",
    row_norm: float | str | None = None,
    mechanism: str | CovarianceMechanism | SubspaceMechanism = "auto",
    denoise: str | None = "auto",
    eigenvals: str | None = None,
    adjacency: AdjacencyName | Adjacency | None = None,
    person: str | Literal[False] | None = None,
    rows: int | Literal["mean"] | None = None,
    subset: str | None = None,
    csv: CsvMode | None = None,
    ledger: Ledger | None = None,
) -> PCAResult | SubspaceResult:
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
    sites : mapping of str to data, optional
        Instead of ``data``: the rows of each site, disjoint, by its public name.
    protocol : str or instance, optional
        Who sees what of the sites, see :mod:`dpmodels.sites`: ``"pooled"`` (a
        trusted aggregator), ``"local"`` (one site alone), ``"full"`` (noisy
        moments of each), ``"dpdispca"`` (the leading part of these, of R columns:
        ``dp.sites.DPdisPCA(R=10)``), ``"cape"`` or ``"secure_sum"`` (noise of about
        one release, without a trusted aggregator). Has to be stated.
    codebook : Codebook, Draft, dict of declarations or path, optional
        Public bounds and levels of the variables, see :class:`dp.codebook`. By
        default the one that travels with the table, see
        :meth:`dp.Codebook.attach`, or that of :class:`dp.options`.
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
    row_norm : float or "unit", optional
        Hold scaled rows in a smaller ball than the codebook's worst case:
        less noise, and bias where rows are longer. ``"unit"`` divides each
        scaled row by its own norm, so that all lie on the unit sphere.
    mechanism : str or instance
        ``"auto"`` or a name in ``dp.mechanisms.COVARIANCE`` or
        ``dp.mechanisms.SUBSPACE``; the automatic choice goes by public facts
        and is explained in the table. It is ``"rounds"``, or ``"rounds_pure"`` without
        delta, wherever rows can be read again and are not too few: these find the
        centre and the radius of the rows first, and what lies outside is shortened to it.
    denoise : {"auto", "invariant", "spiked", "psd", None}
        How noise is taken off the eigenvalues of :attr:`PCAResult.cov`, free
        of charge; some mechanisms use it within.
    eigenvals : {"private", None}
        Whether mechanisms that release directions alone spend a share of the
        budget on the variances along them.
    adjacency : {"replace", "add-remove"}
        Neighbours differ by one changed row (the number of rows is public), the
        default, or by one row more or fewer (it is private).
    person : str or False, optional
        The column that says whose a row is, by default that of the codebook:
        neighbours differ in one person with all rows, and instead of the rows
        the number of persons is public or private. Numbers and texts that
        spell them are one person. A row of nobody, its person missing, does
        not count. All rows of a person have to lie at one site. False where
        the rows are nobody's.
    rows : int or "mean", optional
        How many rows of a person count, drawn by a key of this release, or
        ``"mean"``, the default, for all of them, in all with the weight of one.
        Without ``person`` any so many rows are protected together.
    subset : str, optional
        A condition on a row, such as ``"age >= 25"``: only rows count of which it
        is true. How many these are is private, other than after filtering by
        hand.
    csv : {"records", "lines"}, optional
        What a row of a CSV file is. ``"records"``, the default, for files whose
        writer quotes cells (pandas, R, spreadsheets, databases): quoted cells may
        hold line breaks, and the unit of protection is a record. ``"lines"`` for
        files whose writer does not quote: each line is a row, and quotes do not
        reach over it. The choice is public; the report repeats it.
    ledger : Ledger, optional
        Charged before a row is read; refuses what it cannot afford.

    Returns
    -------
    PCAResult or SubspaceResult
        The latter where the mechanism releases directions alone.

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
        likely leave no component clear of the noise: numbers are guessed to
        have a standard deviation of a sixth of their range.
        :class:`dpmodels.errors.BudgetWarning` says how to stop there.

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
    held = gathered(data, sites, protocol, PROTOCOLS, csv)
    book = declared(codebook, data, sites, formula)
    words: dict[str, Any] = {"ncomp": ncomp, "center": center, "scale": scale, "row_norm": row_norm}
    words |= {"denoise": denoise, "eigenvals": eigenvals}
    words |= {"person": person, "rows": rows, "subset": subset}
    question = asked("pca", formula, book, eps, delta, budget, adjacency, **words)
    return cross(pca_way(question), held, mechanism, ledger)


def pca_way(question: Question) -> Way[PCAResult | SubspaceResult]:
    """Return the way of the verb's question."""
    checked_eigenvals(question.words.get("eigenvals"))
    able = automatic(question.words["scale"])
    return scaled_way(question, {**COVARIANCE, **SUBSPACE}, _result, automatic=able)


def automatic(scale: object) -> frozenset[str]:
    """Return what ``mechanism="auto"`` may stand for."""
    return LAWFUL if isinstance(scale, str) and scale == "sd" else LAWFUL | {"ppca"}


def _result(call: MomentsCall, release: Release, coder: Coder) -> PCAResult | SubspaceResult:
    if isinstance(release, SubspaceRelease):
        return SubspaceResult(call, release, coder)
    return PCAResult(call, release, coder)
