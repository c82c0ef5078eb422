"""The tables of a released space as labelled frames."""

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
    from dpmodels.results.subspace import SubspaceResult


def noise(fit: SubspaceResult) -> pd.DataFrame:
    """Return what is known of the noise, one row per component."""
    unknown = np.full(fit.ncomp, np.nan)
    table = {
        "eigenvalue": fit.eigenvals.to_numpy() if fit.bought else unknown,
        "noise_sd": fit.eigenvals_sd.to_numpy() if fit.bought else unknown,
    }
    return pd.DataFrame(table, index=pd.Index(component_names(fit.ncomp), name="component"))


def tidy(fit: SubspaceResult, matrix: str) -> pd.DataFrame:
    """Return loadings or eigenvalues as a long table."""
    if matrix == "loadings":
        long = fit.loadings.to_series().rename("value").reset_index()
        return long.rename(columns={"variable": "column", "component": "PC"})
    if matrix != "eigenvalues":
        raise ArgumentError(f'matrix={matrix!r}: expected "loadings" or "eigenvalues"')
    return pd.DataFrame({"PC": component_names(fit.ncomp), "std_dev": fit.sdev.to_numpy()})


def glance(fit: SubspaceResult) -> pd.DataFrame:
    """Return one row about the fit."""
    row: dict[str, Any] = {
        "nobs": fit.nobs,
        "ncolumns": len(fit.call.names),
        "ncomp": fit.ncomp,
        "ordered": fit.release.ordered,
        "expected_loss": fit.expected_loss,
        **release_row(fit.release),
    }
    return pd.DataFrame([row])


def dataset(fit: SubspaceResult) -> xr.Dataset:
    """Return loadings and, where bought, eigenvalues as one labelled dataset."""
    parts: dict[str, Any] = {"loadings": fit.loadings}
    if fit.bought:
        parts |= {"eigenvals": fit.eigenvals, "noise_sd": fit.eigenvals_sd}
    attributes = {
        "formula": fit.call.formula,
        "simulated": int(fit.simulated),
        "ordered": int(fit.release.ordered),
        "limit": fit.release.limit,
        **release_facts(fit.release),
    }
    return xr.Dataset(parts, attrs=attributes)
