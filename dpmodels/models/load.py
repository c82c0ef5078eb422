"""``load``: a saved result back in hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, Final

from dpmodels.design import row_coder
from dpmodels.errors import DPModelsError, FrameError
from dpmodels.formula import Design, design
from dpmodels.models.loaded import (
    require_centred,
    require_coefficients,
    require_columns,
    require_linear,
    require_tables,
)
from dpmodels.results import CovResult, MomentsResult, PCAResult, SubspaceResult, open_saved
from dpmodels.results.glm import GLMResult
from dpmodels.results.groups import MeanResult, VarResult
from dpmodels.results.hist import HistResult
from dpmodels.results.lm import LMResult
from dpmodels.results.overview import OverviewResult
from dpmodels.results.quantile import QuantileResult
from dpmodels.results.store import FORMAT, read_result
from dpmodels.results.svm import SVMResult
from dpmodels.results.table import TableResult
from dpmodels.results.ttest import TTestResult

Described = (
    MeanResult
    | VarResult
    | TTestResult
    | QuantileResult
    | HistResult
    | TableResult
    | OverviewResult
)
Components = PCAResult | SubspaceResult
Result = Components | CovResult | MomentsResult | LMResult | GLMResult | SVMResult | Described


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
    >>> rows = {"a": [0.2, 0.7], "b": [0.1, 0.9]}
    >>> fit = dp.dp_pca("~ a + b", rows, codebook=book, eps=1.0, delta=1e-6)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "fit.nc")
    ...     fit.save(path)
    ...     again = dp.load(path)
    >>> str(again.summary()) == str(fit.summary())
    True
    """
    saved = open_saved(path, FORMAT)
    try:
        result = read_result(saved, RESULTS)
        held: Result = RESULTS[type(result)](result)
        return held
    except DPModelsError as error:
        raise FrameError(f"{str(path)!r} is no result that can be used: {error}") from None


def _columns(result: Any) -> Any:
    """Attach the coder of a formula's rows, once the columns are known to be the formula's."""
    own = design(result.call.formula, result.call.codebook)
    require_columns(result.call, own)
    return replace(result, coder=row_coder(own))


def _moments(result: MomentsResult) -> MomentsResult:
    require_centred(result)
    return replace(result, coders=row_coder)


def _terms(require: Callable[[Any], Design], result: Any) -> Any:
    """Attach the coder of the right-hand side, where it has terms."""
    terms = require(result)
    return replace(result, coder=row_coder(terms) if terms.names else None)


def _described(result: Described) -> Described:
    require_tables(result)
    return result


# What is held against the formula, and given back what code it needs, in each kind of result.
RESULTS: Final[Mapping[type[Any], Callable[[Any], Any]]] = {
    PCAResult: _columns,
    SubspaceResult: _columns,
    CovResult: _columns,
    MomentsResult: _moments,
    LMResult: partial(_terms, require_linear),
    GLMResult: partial(_terms, require_coefficients),
    SVMResult: partial(_terms, require_coefficients),
    MeanResult: _described,
    VarResult: _described,
    TTestResult: _described,
    QuantileResult: _described,
    HistResult: _described,
    TableResult: _described,
    OverviewResult: _described,
}
