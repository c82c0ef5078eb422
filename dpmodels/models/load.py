"""``load``: a saved result back in hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from dpmodels.design import row_coder
from dpmodels.errors import DPModelsError, FrameError
from dpmodels.formula import design
from dpmodels.formula.response import two_sided
from dpmodels.models.loaded import (
    require_coefficients,
    require_columns,
    require_intercept,
    require_tables,
)
from dpmodels.results import (
    CovResult,
    MomentsResult,
    PCAResult,
    SubspaceResult,
    open_saved,
    read_moments,
)
from dpmodels.results.call import MomentsCall
from dpmodels.results.coefficients_store import GLM, SVM, read_coefficients
from dpmodels.results.described_store import (
    HIST,
    MEAN,
    OVERVIEW,
    QUANTILE,
    TABLE,
    TTEST,
    VAR,
    read_described,
)
from dpmodels.results.glm import GLMResult
from dpmodels.results.hist import HistResult
from dpmodels.results.lm import LMResult
from dpmodels.results.lm_store import LM, read_lm
from dpmodels.results.mean import MeanResult
from dpmodels.results.netcdf import Saved
from dpmodels.results.overview import OverviewResult
from dpmodels.results.quantile import QuantileResult
from dpmodels.results.store import COV, MOMENTS, PCA
from dpmodels.results.subspace_store import SUBSPACE, read_subspace
from dpmodels.results.svm import SVMResult
from dpmodels.results.table import TableResult
from dpmodels.results.ttest import TTestResult
from dpmodels.results.var import VarResult

Described = (
    MeanResult
    | VarResult
    | TTestResult
    | QuantileResult
    | HistResult
    | TableResult
    | OverviewResult
)
Coefficients = GLMResult | SVMResult
Coder = Callable[[object], NDArray[np.float64]]
Components = PCAResult | SubspaceResult
Result = Components | CovResult | MomentsResult | LMResult | Coefficients | Described


def load(path: str | PathLike[str]) -> Result:
    """Read a result that ``fit.save(path)`` wrote.

    Parameters
    ----------
    path : path
        A netCDF file.

    Returns
    -------
    the result that was saved
        Prints the same tables and codes public rows like the one saved.

    Raises
    ------
    FrameError
        If the file is missing, was not written by ``save``, was changed, or
        says what does not go together; the message names the first fault.

    Notes
    -----
    A digest in the file shows damage and careless change. It is no signature:
    who can change a file can write the digest too. What a file says of privacy
    is as true as whoever it comes from.

    Examples
    --------
    >>> import os, tempfile
    >>> import dpmodels as dp
    >>> book = dp.codebook(a=(0, 1), b=(0, 1))
    >>> rows = {"a": [0.2, 0.7], "b": [0.1, 0.9]}
    >>> fit = dp.dp_pca("~ a + b", rows, codebook=book, eps=1.0, delta=1e-6)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "fit.nc")
    ...     fit.save(path)
    ...     again = dp.load(path)
    >>> str(again.summary()) == str(fit.summary())
    True
    """
    saved = open_saved(path, READERS)
    try:
        return READERS[saved.format](saved)
    except DPModelsError as error:
        raise FrameError(f"{str(path)!r} is no result that can be used: {error}") from None


def _moments_coder(call: MomentsCall) -> Coder:
    """Return the coder of a formula's rows, once the columns are known to be the formula's."""
    own = design(call.formula, call.codebook)
    require_columns(call, own)
    return row_coder(own)


def _pca(saved: Saved) -> PCAResult:
    call, release = read_moments(saved)
    return PCAResult(call, release, _moments_coder(call))


def _subspace(saved: Saved) -> SubspaceResult:
    call, release = read_subspace(saved)
    return SubspaceResult(call, release, _moments_coder(call))


def _cov(saved: Saved) -> CovResult:
    call, release = read_moments(saved)
    return CovResult(call, release, _moments_coder(call))


def _moments(saved: Saved) -> MomentsResult:
    call, release = read_moments(saved)
    require_columns(call, design(call.formula, call.codebook))
    if release.total is None or not call.center or call.scale != "range":
        raise FrameError("call.center, call.scale: moments are of centred columns by their ranges")
    return MomentsResult(call, release, row_coder)


def _lm(saved: Saved) -> LMResult:
    call, release, model = read_lm(saved)
    apart = () if model.weights is None else (model.weights,)
    both = two_sided(call.formula, call.codebook, apart=apart)
    require_columns(call, both.joint)
    require_intercept(model.intercept, both)
    return LMResult(call, release, model, row_coder(both.terms) if both.terms.names else None)


def _coefficients(kind: Callable[..., Coefficients], saved: Saved) -> Coefficients:
    call, release = read_coefficients(saved)
    terms = require_coefficients(call)
    return kind(call, release, row_coder(terms) if terms.names else None)


def _hist(saved: Saved) -> HistResult:
    call, release, own = read_described(saved)
    require_tables(saved.format, call, own)
    return HistResult(call, release, np.array(own["breaks"]), own["variable"])


def _described(kind: Callable[..., Described], saved: Saved) -> Described:
    call, release, own = read_described(saved)
    require_tables(saved.format, call, own)
    return kind(call, release, **own)


READERS: Mapping[str, Callable[[Saved], Result]] = {
    PCA: _pca,
    SUBSPACE: _subspace,
    COV: _cov,
    MOMENTS: _moments,
    LM: _lm,
    GLM: partial(_coefficients, GLMResult),
    SVM: partial(_coefficients, SVMResult),
    MEAN: partial(_described, MeanResult),
    VAR: partial(_described, VarResult),
    TTEST: partial(_described, TTestResult),
    QUANTILE: partial(_described, QuantileResult),
    HIST: _hist,
    TABLE: partial(_described, TableResult),
    OVERVIEW: partial(_described, OverviewResult),
}
