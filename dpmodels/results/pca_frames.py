"""The tables of a principal components result as labelled frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from dpmodels.errors import ArgumentError
from dpmodels.labels import component_names
from dpmodels.released import release_facts
from dpmodels.results.header import release_row

if TYPE_CHECKING:
    from dpmodels.results.pca import PCAResult


def noise(fit: PCAResult) -> pd.DataFrame:
    """Return the noise panel, one row per component."""
    spectrum = fit.spectrum
    lower, upper = spectrum.noise_interval()
    table = {
        "eigenvalue": fit.all_eigenvals,
        "noise_sd": spectrum.sd,
        "floor": spectrum.floor,
        "distinct": spectrum.distinct,
        "debiased": spectrum.debiased(),
        "lower": lower,
        "upper": upper,
        "cos2": spectrum.expected_cos2(),
    }
    index = pd.Index(component_names(len(spectrum.values)), name="component")
    return pd.DataFrame(table, index=index).iloc[: fit.ncomp]


def tidy(fit: PCAResult, matrix: str) -> pd.DataFrame:
    """Return loadings or eigenvalues as a long table."""
    if matrix == "loadings":
        long = fit.loadings.to_series().rename("value").reset_index()
        return long.rename(columns={"variable": "column", "component": "PC"})
    if matrix != "eigenvalues":
        raise ArgumentError(f'matrix={matrix!r}: expected "loadings" or "eigenvalues"')
    share = fit.explained_variance_ratio.to_numpy()
    return pd.DataFrame(
        {
            "PC": component_names(fit.ncomp),
            "std_dev": fit.sdev.to_numpy(),
            "percent": share,
            "cumulative": np.cumsum(share),
        }
    )


def glance(fit: PCAResult) -> pd.DataFrame:
    """Return one row about the fit."""
    row: dict[str, Any] = {
        "nobs": fit.nobs,
        "ncolumns": len(fit.call.names),
        "ncomp": fit.ncomp,
        "ndistinct": int(fit.spectrum.distinct[: fit.ncomp].sum()),
        "total_variance": fit.total_variance,
        "noise_sd": fit.noise_sd,
        "noise_floor": fit.noise_floor,
        **release_row(fit.release),
    }
    return pd.DataFrame([row])


def dataset(fit: PCAResult) -> xr.Dataset:
    """Return loadings, eigenvalues and noise panel as one labelled dataset."""
    panel = noise(fit)
    parts: dict[str, Any] = {
        "loadings": fit.loadings,
        "eigenvals": fit.eigenvals,
        "explained_variance_ratio": fit.explained_variance_ratio,
    }
    for name in ("noise_sd", "floor", "distinct", "debiased", "lower", "upper", "cos2"):
        parts[name] = ("component", panel[name].to_numpy())
    if fit.center is not None:
        parts["center"] = fit.center
    attributes = {
        "formula": fit.call.formula,
        "simulated": int(fit.simulated),
        **release_facts(fit.release),
    }
    return xr.Dataset(parts, attrs=attributes)
