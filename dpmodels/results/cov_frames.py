"""The tables of a covariance result as labelled frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import ndtri

from dpmodels.released import release_facts
from dpmodels.results.header import release_row
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from dpmodels.results.cov import CovResult


def _pairs(fit: CovResult, **matrices: Floats) -> pd.DataFrame:
    """Return the entries on and above the diagonal, one row a pair."""
    names = np.array(fit.call.names, dtype=object)
    first, second = np.triu_indices(len(names))
    entries = {name: matrix[first, second] for name, matrix in matrices.items()}
    return pd.DataFrame({"column1": names[first], "column2": names[second], **entries})


def intervals(fit: CovResult, sd: Floats, level: float) -> pd.DataFrame:
    """Return normal intervals about the released entries; variances are not negative."""
    released = fit.cov_released.to_numpy()
    width = float(ndtri((1 + level) / 2)) * sd
    least = np.full_like(released, -np.inf)
    np.fill_diagonal(least, 0.0)
    lower, upper = np.maximum(released - width, least), np.maximum(released + width, least)
    return _pairs(fit, cov=released, lower=lower, upper=upper)


def tidy(fit: CovResult) -> pd.DataFrame:
    """Return covariances and correlations, one row a pair."""
    matrices = (fit.cov, fit.cor, fit.noise_sd)
    cov, cor, noise = (matrix.to_numpy() for matrix in matrices)
    return _pairs(fit, cov=cov, cor=cor, noise_sd=noise)


def glance(fit: CovResult) -> pd.DataFrame:
    """Return one row about the matrix."""
    row: dict[str, Any] = {
        "nobs": fit.nobs,
        "ncomplete": fit.ncomplete,
        "ncolumns": len(fit.call.names),
        "nweak": int(fit.weak.sum()),
        **release_row(fit.release),
    }
    return pd.DataFrame([row])


def dataset(fit: CovResult) -> xr.Dataset:
    """Return all matrices and moments as one labelled dataset."""
    parts = {
        "cov": fit.cov,
        "cov_released": fit.cov_released,
        "noise_sd": fit.noise_sd,
        "cor": fit.cor,
        "cor_noise_sd": fit.cor_noise_sd,
        "weak": fit.weak,
        "sd": fit.sd,
        "sd_noise_sd": fit.sd_noise_sd,
        "center": fit.center,
        "center_noise_sd": fit.center_noise_sd,
    }
    attributes = {
        "formula": fit.call.formula,
        "simulated": int(fit.simulated),
        **release_facts(fit.release),
    }
    known = {name: part for name, part in parts.items() if part is not None}
    return xr.Dataset(known, attrs=attributes)
