"""``load``: a saved result, computed again from its request and its release."""

from __future__ import annotations

from os import PathLike
from typing import Any

from dpmodels.errors import DPModelsError, FrameError
from dpmodels.models.format_1 import FORMAT_1, result_of_format_1
from dpmodels.results import open_saved
from dpmodels.results.store import FORMAT, replay


def load(path: str | PathLike[str]) -> Any:
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
        If the file is missing, was not written by ``save``, was changed, is of
        an earlier version, or says what does not go together; the message
        names the first fault.

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
    >>> rows = {"a": [0.2, 0.7] * 50, "b": [0.1, 0.9] * 50}
    >>> fit = dp.dp_pca("~ a + b", rows, codebook=book, eps=1.0, delta=1e-6)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "fit.nc")
    ...     fit.save(path)
    ...     again = dp.load(path)
    >>> str(again.summary()) == str(fit.summary())
    True
    """
    saved = open_saved(path, FORMAT, FORMAT_1)
    try:
        return replay(saved) if saved.format == FORMAT else result_of_format_1(saved)
    except DPModelsError as error:
        raise FrameError(f"{str(path)!r} is no result that can be used: {error}") from None
