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
    call, release = read_pca(path)
    return PCAResult(call, release, row_coder(design(call.formula, call.codebook)))
