"""``load``: a saved result back in hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from dpmodels.design import row_coder
from dpmodels.errors import FrameError
from dpmodels.formula import design
from dpmodels.results import (
    CovResult,
    MomentsResult,
    PCAResult,
    SubspaceResult,
    open_saved,
    read_moments,
)
from dpmodels.results.call import MomentsCall
from dpmodels.results.store import COV, MOMENTS, PCA, Saved
from dpmodels.results.subspace_store import SUBSPACE, read_subspace

Result = PCAResult | SubspaceResult | CovResult | MomentsResult


def load(path: str | PathLike[str]) -> Result:
    """Read a result that ``fit.save(path)`` wrote.

    Parameters
    ----------
    path : path
        A netCDF file.

    Returns
    -------
    PCAResult, SubspaceResult, CovResult or MomentsResult
        Prints the same tables and codes public rows like the one saved.

    Raises
    ------
    FrameError
        If the file is missing or was not written by ``save``.

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
    saved = open_saved(path)
    if saved.format not in READERS:
        known = ", ".join(map(repr, READERS))
        raise FrameError(
            f"{str(path)!r} has the format {saved.format!r}; this version reads {known}"
        )
    return READERS[saved.format](saved)


def _coder(call: MomentsCall) -> Callable[[object], NDArray[np.float64]]:
    return row_coder(design(call.formula, call.codebook))


def _pca(saved: Saved) -> PCAResult:
    call, release = read_moments(saved)
    return PCAResult(call, release, _coder(call))


def _subspace(saved: Saved) -> SubspaceResult:
    call, release = read_subspace(saved)
    return SubspaceResult(call, release, _coder(call))


def _cov(saved: Saved) -> CovResult:
    call, release = read_moments(saved)
    return CovResult(call, release, _coder(call))


def _moments(saved: Saved) -> MomentsResult:
    return MomentsResult(*read_moments(saved), row_coder)


READERS: Mapping[str, Callable[[Saved], Result]] = {
    PCA: _pca,
    SUBSPACE: _subspace,
    COV: _cov,
    MOMENTS: _moments,
}
