"""``load``: a saved result back in hand."""

from __future__ import annotations

from os import PathLike

from dpmodels.design import row_coder
from dpmodels.formula import design
from dpmodels.results import PCAResult, read_pca


def load(path: str | PathLike[str]) -> PCAResult:
    """Read a result that ``fit.save(path)`` wrote.

    Parameters
    ----------
    path : path
        A netCDF file.

    Returns
    -------
    PCAResult
        Prints the same tables and transforms public rows like the one saved.

    Raises
    ------
    FrameError
        If the file is missing or was not written by ``save``.
    """
    call, release = read_pca(path)
    return PCAResult(call, release, row_coder(design(call.formula, call.codebook)))
