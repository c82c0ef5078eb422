"""The result of a private principal components analysis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from dpmodels.errors import ArgumentError, NotAvailable, PrivacyError
from dpmodels.inference import Spectrum, read_spectrum
from dpmodels.labels import component_names
from dpmodels.postprocess import Covariance, Eigen, correlation, covariance, eigen
from dpmodels.released import MomentsRelease
from dpmodels.results import pca_frames
from dpmodels.results.call import PCACall

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpmodels.results.summary import Summary

Floats = NDArray[np.float64]
Coder = Callable[[object], Floats]


@dataclass(frozen=True, repr=False)
class PCAResult:
    """Private principal components: released values and public facts only.

    Parameters
    ----------
    call : PCACall
        What was asked.
    release : MomentsRelease
        What was released.
    coder : callable, optional
        Codes public rows by the fit's formula, for :meth:`transform`.

    Notes
    -----
    Every attribute is computed from the release, at no further cost.
    Eigenvalues are variances of the centred, scaled columns; in each
    component the loading of largest size is positive.
    """

    call: PCACall
    release: MomentsRelease
    coder: Coder | None = field(default=None, repr=False)

    # ---- what the tables are made of -------------------------------------------------

    @cached_property
    def _covariance(self) -> Covariance:
        call, release = self.call, self.release
        box = tuple((end - call.origin) / call.divisor for end in (call.lower, call.upper))
        cov = covariance(
            release.count,
            release.total,
            release.second,
            release.noise,
            most=release.rows,
            box=(box[0], box[1]),
            row_norm=call.row_norm,
        )
        return correlation(cov) if call.scale == "sd" else cov

    @cached_property
    def _eigen(self) -> Eigen:
        return eigen(self._covariance.matrix)

    @cached_property
    def spectrum(self) -> Spectrum:
        """All released eigenvalues with their noise law."""
        return read_spectrum(self._covariance, self._eigen)

    def _by_component(self, values: Floats, name: str) -> xr.DataArray:
        kept = np.asarray(values, dtype=np.float64)[: self.ncomp]
        return xr.DataArray(kept, [("component", component_names(self.ncomp))], name=name)

    # ---- attributes, statsmodels' names ----------------------------------------------

    @property
    def ncomp(self) -> int:
        """Number of components kept."""
        return self.call.ncomp

    @property
    def loadings(self) -> xr.DataArray:
        """Unit eigenvectors, ``variable × component``."""
        return xr.DataArray(
            self._eigen.vectors[:, : self.ncomp].copy(),
            [("variable", list(self.call.names)), ("component", component_names(self.ncomp))],
            name="loadings",
        )

    @property
    def eigenvals(self) -> xr.DataArray:
        """Released variances of the components; negative ones are shown as 0."""
        return self._by_component(np.maximum(self.spectrum.values, 0.0), "eigenvals")

    @property
    def sdev(self) -> xr.DataArray:
        """Standard deviations of the components."""
        return self._by_component(np.sqrt(np.maximum(self.spectrum.values, 0.0)), "sdev")

    @property
    def total_variance(self) -> float:
        """Released sum of all variances, nan where it does not stand out from its noise."""
        total, noise = self._covariance.trace
        return total if total > 2 * noise else float("nan")

    @property
    def total_variance_sd(self) -> float:
        """Noise sd of the released sum of all variances."""
        return self._covariance.trace[1]

    @property
    def explained_variance_ratio(self) -> xr.DataArray:
        """Share of the non-private total variance along each released component.

        Corrected for the noise that the components were chosen with, so the
        shares of all components add up to one; nan where the total is noise.
        """
        ratio = self.spectrum.captured() / self.total_variance
        return self._by_component(ratio, "explained_variance_ratio")

    @property
    def explained_variance_ratio_sd(self) -> xr.DataArray:
        """Noise sd of each share, to first order."""
        sd = float(np.linalg.norm(self._covariance.diagonal_sd))
        values = self.spectrum.share_sd(self.total_variance, sd)
        return self._by_component(values, "explained_variance_ratio_sd")

    @property
    def center(self) -> xr.DataArray | None:
        """Released means of the coded columns in their own units; None if not centred."""
        if self.release.total is None:
            return None
        mean = self._covariance.mean * self.call.divisor + self.call.origin
        return xr.DataArray(mean, [("variable", list(self.call.names))], name="center")

    @property
    def nobs(self) -> float:
        """Number of rows: the public one, or the released one where it is private."""
        return self.release.rows if self.release.rows is not None else self._covariance.count

    @property
    def nobs_origin(self) -> str:
        """Where ``nobs`` comes from: ``"public"`` or ``"private, noise sd ..."``."""
        if self.release.rows is not None:
            return "public"
        return f"private, noise sd {self.release.noise.count:.2g}"

    @property
    def ncomplete(self) -> float:
        """Released number of complete rows; its noise sd is ``release.noise.count``."""
        return self._covariance.count

    @property
    def noise_sd(self) -> float:
        """Noise sd of a typical off-diagonal entry of the analysed matrix."""
        return self.spectrum.entry_sd

    @property
    def noise_floor(self) -> float:
        """Variance below which a component is not distinguishable from noise.

        Where the noise is not the same for all components, that of the first
        one below its own; each one's own is in :meth:`noise`.
        """
        below = np.flatnonzero(~self.spectrum.distinct)
        return float(self.spectrum.floor[below[0] if below.size else -1])

    @property
    def weak_variables(self) -> str:
        """Columns whose variance is too noisy to divide by (scale="sd" only).

        They are divided by the root of four noise sds of their variance.
        """
        weak = np.flatnonzero(self._covariance.weak)
        return ", ".join(self.call.names[i] for i in weak)

    @property
    def simulated(self) -> bool:
        """True if fitted inside ``dp.simulation``: then nothing here is private."""
        return self.release.simulated

    # ---- tables ----------------------------------------------------------------------

    def noise(self) -> pd.DataFrame:
        """Return what the noise leaves to be said about each component.

        Returns
        -------
        DataFrame
            Per component: the released ``eigenvalue``, its ``noise_sd``, the
            noise ``floor`` and whether the eigenvalue is above it, ``distinct``
            from noise; and, nan where it is not, the ``debiased`` eigenvalue,
            the 95 % noise interval ``lower, upper`` for the non-private
            eigenvalue of these rows and the expected squared cosine ``cos2``
            with the non-private component.
        """
        return pca_frames.noise(self)

    def noise_int(self, level: float = 0.95) -> pd.DataFrame:
        """Return intervals for the non-private eigenvalues of these rows: noise only.

        Parameters
        ----------
        level : float
            Coverage, in (0, 1).
        """
        return self._intervals(*self.spectrum.noise_interval(_level(level)))

    def conf_int(self, level: float = 0.95) -> pd.DataFrame:
        """Return intervals for the population's eigenvalues: noise and sampling.

        Assumes near-Gaussian rows; nan where the noise is too large for it.

        Parameters
        ----------
        level : float
            Coverage, in (0, 1).

        Raises
        ------
        NotAvailable
            For a correlation matrix, whose sampling law is another.
        """
        if self.call.scale == "sd":
            raise NotAvailable(
                'conf_int() is not available with scale="sd": the eigenvalues of a correlation '
                "matrix have another sampling law; noise_int() is available"
            )
        return self._intervals(
            *self.spectrum.confidence_interval(self._covariance.count, _level(level))
        )

    def _intervals(self, lower: Floats, upper: Floats) -> pd.DataFrame:
        index = pd.Index(component_names(self.ncomp), name="component")
        table = {"lower": lower[: self.ncomp], "upper": upper[: self.ncomp]}
        return pd.DataFrame(table, index=index)

    def tidy(self, matrix: str = "loadings") -> pd.DataFrame:
        """Return a long table, by broom's conventions.

        Parameters
        ----------
        matrix : {"loadings", "eigenvalues"}
            One row per variable and component (``column, PC, value``), or
            one row per component (``PC, std_dev, percent, cumulative``).
        """
        return pca_frames.tidy(self, matrix)

    def glance(self) -> pd.DataFrame:
        """Return one row about the whole fit."""
        return pca_frames.glance(self)

    def summary(self) -> Summary:
        """Return the printed report."""
        from dpmodels.results.pca_report import pca_report
        from dpmodels.results.summary import Summary

        return Summary(pca_report(self))

    def __repr__(self) -> str:
        kept, found = self.ncomp, int(self.spectrum.distinct[: self.ncomp].sum())
        return (
            f"<PCAResult {self.call.formula!r}: {kept} components, {found} above the noise floor, "
            f"{self.release.guarantee.describe()}>"
        )

    def _repr_html_(self) -> str:
        return self.summary().as_html()

    def to_xarray(self) -> xr.Dataset:
        """Return loadings, eigenvalues and noise panel as one labelled dataset."""
        return pca_frames.dataset(self)

    # ---- pictures --------------------------------------------------------------------

    @property
    def _stamp(self) -> str | None:
        return "SIMULATION - NOT PRIVATE" if self.simulated else None

    def plot_scree(self, ax: Axes | None = None) -> Axes:
        """Draw eigenvalues with their noise intervals and the noise floor."""
        from dpmodels.plots import scree

        panel = self.noise()
        names = component_names(self.ncomp)
        starred = np.where(panel["distinct"], names, [f"{name} *" for name in names])
        return scree(
            self.eigenvals.to_numpy(),
            lower=panel["lower"].to_numpy(),
            upper=panel["upper"].to_numpy(),
            floor=self.noise_floor,
            labels=starred.tolist(),
            ax=ax,
            stamp=self._stamp,
        )

    def plot_loadings(
        self, components: Sequence[int] | None = None, ax: Axes | None = None
    ) -> Axes:
        """Draw the loadings as a heat map; ``components`` counts from 0."""
        from dpmodels.plots import loadings

        return loadings(self.loadings, components=components, ax=ax, stamp=self._stamp)

    def biplot(self, components: tuple[int, int] = (0, 1), ax: Axes | None = None) -> Axes:
        """Draw the variables in the plane of two components; rows are never drawn."""
        from dpmodels.plots import biplot

        if self.ncomp < 2:
            raise NotAvailable("biplot() needs two components; this fit keeps one")
        marked = tuple(np.flatnonzero(~self.spectrum.distinct[: self.ncomp]).tolist())
        return biplot(
            self.loadings,
            self.sdev.to_numpy(),
            components=components,
            marked=marked,
            ax=ax,
            stamp=self._stamp,
        )

    # ---- use on public rows, storage, refusals ---------------------------------------

    def transform(self, newdata: object) -> xr.DataArray:
        """Return scores of new, public rows on the released components.

        Parameters
        ----------
        newdata : frame
            Public rows with the formula's variables. Scores of the private
            rows would give them away and are not available.

        Returns
        -------
        DataArray, ``row × component``
            nan for incomplete rows.
        """
        if self.coder is None:
            raise NotAvailable("transform() needs the formula's coding; load the fit with dp.load")
        coded = self.coder(newdata)
        own = self._covariance
        scaled = (coded - self.call.origin[:, None]) / self.call.divisor[:, None]
        scaled = (scaled - own.mean[:, None]) / own.divisor[:, None]
        scores = scaled.T @ self.loadings.to_numpy()
        names = component_names(self.ncomp)
        return xr.DataArray(scores, dims=("row", "component"), coords={"component": names})

    def save(self, path: str | PathLike[str]) -> None:
        """Write the released values and public facts to a netCDF file."""
        from dpmodels.results.store import write_pca

        write_pca(self, path)

    @property
    def scores(self) -> NoReturn:
        """Not available: scores are functions of single private rows."""
        raise NotAvailable(_PER_ROW.format("scores"))

    @property
    def fittedvalues(self) -> NoReturn:
        """Not available: fitted values are functions of single private rows."""
        raise NotAvailable(_PER_ROW.format("fittedvalues"))

    @property
    def resid(self) -> NoReturn:
        """Not available: residuals are functions of single private rows."""
        raise NotAvailable(_PER_ROW.format("resid"))

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("results are not pickled; write fit.save(path) and dp.load(path)")


_PER_ROW = (
    "{} of the private rows would give the rows away and do not exist in this result; for public "
    "rows use transform(newdata)"
)


def _level(level: float) -> float:
    if not (isinstance(level, float) and 0 < level < 1):
        raise ArgumentError(f"level={level!r}: expected a number between 0 and 1, such as 0.95")
    return level
