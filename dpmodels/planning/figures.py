"""The figures by which each kind of result is planned: values and their standard errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.special import ndtri

from dpmodels.errors import NotAvailable
from dpmodels.results.bounds import BoundsResult
from dpmodels.results.cca import CCAResult
from dpmodels.results.cov import CovResult
from dpmodels.results.fdr import FDRResult
from dpmodels.results.groups import TTestResult
from dpmodels.results.hist import HistResult
from dpmodels.results.levels import LevelsResult
from dpmodels.results.margins import MarginsResult
from dpmodels.results.moments import MomentsResult
from dpmodels.results.overview import OverviewResult
from dpmodels.results.pca import PCAResult
from dpmodels.results.plane import PlaneResult
from dpmodels.results.quantile import QuantileResult
from dpmodels.results.select import SelectResult
from dpmodels.results.series import SeriesResult
from dpmodels.results.subspace import SubspaceResult
from dpmodels.results.survfit import SurvfitResult
from dpmodels.results.svm import SVMResult
from dpmodels.results.table import TableResult
from dpmodels.typing import Floats

# Width of a 95 % interval in standard errors.
LEVEL: Final = 0.95
_WIDTH: Final = float(2 * ndtri((1 + LEVEL) / 2))
COLUMNS: Final = ("value", "noise", "total")


def figures(fit: object) -> pd.DataFrame:
    """Return the figures of a result, by name.

    Columns: ``value``; standard errors ``noise`` and ``total``, nan if the result has none (then
    releases are compared) and infinite if the value is not identified.
    """
    reader = next((FIGURES[kind] for kind in type(fit).__mro__ if kind in FIGURES), None)
    if reader is None and not hasattr(type(fit), "bse_noise"):
        raise NotAvailable(f"{type(fit).__name__} has no bse and bse_noise, which a plan needs")
    table = (reader or _errors)(fit)
    frame = pd.DataFrame(table, columns=list(COLUMNS), dtype=np.float64)
    return frame.set_axis(pd.Index([_name(label) for label in frame.index], name="figure"))


def _name(label: object) -> str:
    parts = label if isinstance(label, tuple) else (label,)
    return ", ".join(f"{part:.6g}" if isinstance(part, float) else str(part) for part in parts)


def _errors(fit: Any) -> pd.DataFrame:
    """Return the printed standard errors; a coefficient without them is not identified."""
    table = fit.tidy().set_index(list(fit.estimates.keys))
    total = table["std_error"].fillna(math.inf)
    noise = table["noise_sd"].where(np.isfinite(total), math.inf).fillna(math.inf)
    columns = {"value": table["estimate"], "noise": noise, "total": total}
    return pd.DataFrame(columns).set_axis(table.index.to_flat_index())


def _difference(fit: TTestResult) -> pd.DataFrame:
    columns = {"value": fit.params, "noise": fit.bse_noise, "total": fit.bse}
    return pd.DataFrame(columns, index=[fit.term])


def _spread(interval: pd.DataFrame) -> Floats:
    """Return the standard errors that intervals imply."""
    return np.asarray((interval["upper"] - interval["lower"]) / _WIDTH)


def _shares(fit: Any) -> pd.DataFrame:
    """Return shares of the complete rows with the noise of their counts."""
    return _counted(fit, max(fit.ncomplete, 1.0))


def _counted(fit: Any, unit: float = 1.0) -> pd.DataFrame:
    """Return counts or shares, with standard errors from their intervals."""
    values = np.asarray(fit.released, dtype=np.float64).ravel() / unit
    try:
        noise, total = fit.noise_int(LEVEL), fit.conf_int(LEVEL)
    except NotAvailable:
        return pd.DataFrame({"value": values})
    # Lower bounds may be truncated at 0.
    above = 2 * (noise["upper"].to_numpy() / unit - values) / _WIDTH
    errors = {"noise": above, "total": _spread(total)}
    return pd.DataFrame({"value": values, **errors}, index=total.index)


def _survival(fit: SurvfitResult) -> pd.DataFrame:
    """Return the curves at all times; they are not identified beyond their last time."""
    names = {"estimate": "value", "noise_sd": "noise", "std_error": "total"}
    curves = fit.at(fit.times)
    index = [*curves.columns[: list(curves.columns).index("n_risk")]]
    table = curves.set_index(index)[list(names)].rename(columns=names)
    return table.fillna({"noise": math.inf, "total": math.inf})


def _margins(fit: MarginsResult) -> pd.DataFrame:
    tables = [_shares(fit.table(*name.split(":"))) for name in fit.terms]
    return pd.concat([table.set_axis(table.index.to_flat_index()) for table in tables])


def _overview(fit: OverviewResult) -> pd.DataFrame:
    return pd.concat({name: figures(fit[name]) for name in fit.variables})


def _eigenvalues(fit: PCAResult) -> pd.DataFrame:
    """Return eigenvalues, identified above the noise floor; without any, absolute loadings.

    Their intervals hold for any directions, and do not imply standard errors.
    """
    try:
        values, floor = fit.eigenvals.to_series(), fit.noise_floor
    except NotAvailable:
        return _directions(fit)
    return pd.DataFrame({"value": values.mask(values <= floor)})


def _directions(fit: PCAResult | SubspaceResult) -> pd.DataFrame:
    """Return absolute loadings, as signs are arbitrary."""
    return pd.DataFrame({"value": np.abs(fit.loadings.to_series())})


def _covariances(fit: CovResult) -> pd.DataFrame:
    """Return entries with their noise standard deviations."""
    names, upper = fit.call.names, np.triu_indices(len(fit.call.names))
    matrices = {"value": fit.cov_released, "noise": fit.noise_sd}
    pairs = [(names[row], names[column]) for row, column in zip(*upper, strict=True)]
    return pd.DataFrame(
        {name: matrix.to_numpy()[upper] for name, matrix in matrices.items()}, index=pairs
    )


def _long(wide: pd.DataFrame) -> object:
    return wide.stack()


def _quantiles(fit: QuantileResult) -> pd.DataFrame:
    """Return quantiles, whose intervals combine noise and sampling."""
    value = _long(fit.params)
    if fit.level is None:
        return pd.DataFrame({"value": value})
    interval = fit.conf_int()
    total = (interval["upper"] - interval["lower"]) / float(2 * ndtri((1 + fit.level) / 2))
    return pd.DataFrame({"value": value, "total": total})


def _levels(fit: LevelsResult) -> pd.DataFrame:
    """Return counts of the released levels, with binomial sampling errors."""
    noise, totals = _spread(fit.noise_int(LEVEL)), fit.counts.groupby(level=0).transform("sum")
    sampling_variance = np.maximum(fit.counts * (1 - fit.counts / totals), 0.0)
    return pd.DataFrame(
        {"value": fit.counts, "noise": noise, "total": np.hypot(noise, sampling_variance**0.5)}
    )


def _bounds(fit: BoundsResult) -> pd.DataFrame:
    return pd.DataFrame({"value": _long(fit.params[["lower", "upper"]])})


def _selected(fit: SelectResult) -> pd.DataFrame:
    """Return the selected candidates, with values if they were released."""
    try:
        return pd.DataFrame({"value": fit.values, "noise": fit.noise_sd})
    except NotAvailable:
        return pd.DataFrame({"value": 1.0, "noise": 0.0}, index=fit.index)


def _associations(fit: FDRResult) -> pd.DataFrame:
    """Return the associations of examined columns; others are not identified."""
    return pd.DataFrame({"value": fit.params, "noise": fit.bse_noise})


def _hyperplane(fit: SVMResult) -> pd.DataFrame:
    return fit.params.to_frame("value")


def _canonical(fit: CCAResult) -> pd.DataFrame:
    """Return canonical correlations, with noise from their intervals."""
    table = fit.tidy().set_index("component")
    return pd.DataFrame({"value": table["estimate"], "noise": _spread(fit.noise_int(LEVEL))})


def _moments(fit: MomentsResult) -> pd.DataFrame:
    return _covariances(fit.whole)


# The kinds of result that are not planned by params, bse and bse_noise.
FIGURES: Final[Mapping[type, Callable[[Any], pd.DataFrame]]] = MappingProxyType(
    {
        TTestResult: _difference,
        TableResult: _shares,
        HistResult: _shares,
        PlaneResult: _shares,
        MarginsResult: _margins,
        OverviewResult: _overview,
        SeriesResult: _counted,
        SurvfitResult: _survival,
        PCAResult: _eigenvalues,
        SubspaceResult: _directions,
        CovResult: _covariances,
        MomentsResult: _moments,
        CCAResult: _canonical,
        QuantileResult: _quantiles,
        LevelsResult: _levels,
        BoundsResult: _bounds,
        SelectResult: _selected,
        FDRResult: _associations,
        SVMResult: _hyperplane,
    }
)
