"""The result of a private covariance matrix."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from dpmodels.errors import ArgumentError, NotAvailable, quoted
from dpmodels.inference import entry_sd, mean_sd
from dpmodels.labels import square, with_labels
from dpmodels.postprocess import Covariance, correlation
from dpmodels.released import MomentsRelease
from dpmodels.results.base import Derivation, Result, checked_ncomp, per_row
from dpmodels.results.call import MomentsCall
from dpmodels.results.components import Analysis, root_sd
from dpmodels.results.estimate_table import EstimateTable, product_unit, table_of_estimates, unit_of
from dpmodels.results.pca import PCAResult
from dpmodels.results.release_text import public_rows, release_facts
from dpmodels.typing import Coder, Floats

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes


# Variables of a dataset of the matrix.
_PARTS = (
    *("cov", "cov_released", "noise_sd", "cor", "cor_noise_sd", "weak", "sd", "sd_noise_sd"),
    *("center", "center_noise_sd"),
)


@dataclass(frozen=True, repr=False)
class CovResult(Result):
    """A private covariance matrix: released values and public facts only.

    Notes
    -----
    Every attribute is computed from the release, at no further cost. Columns
    are in their own units; with ``row_norm="unit"`` rows lie on the unit
    sphere and have none. Without a mean, covariances are second moments about
    0 and standard deviations are root mean squares.

    Intervals are of pairs of columns (``column1, column2``, the released ``cov``), nan without a
    law of the noise. They are normal: under Laplace noise those of 95 % cover at least 93 %.
    :meth:`conf_int` needs the law and the mean, and assumes only the bounds of the rows: its
    sampling error is the largest that rows with the released moments can have within them, or
    follows from fourth moments after ``inference=True``. It is exact for columns of 0 and 1; for
    others, 95 % intervals cover at least 95 %, and are long where bounds are wide. Where rows were
    shortened to a released ball, both kinds of interval allow for their full lengths.
    """

    call: MomentsCall
    release: MomentsRelease
    coder: Coder | None = field(default=None, repr=False)

    @cached_property
    def _analysis(self) -> Analysis:
        """The matrix in the coordinates it was released in: equal noise in all columns."""
        return Analysis(replace(self.call, scale="range"), self.release)

    @property
    def _unit(self) -> Floats:
        """Each column's unit: the size of one step of its released coordinate."""
        return np.ones_like(self.call.divisor) if self.call.unit_rows else self.call.divisor

    @cached_property
    def _correlation(self) -> Covariance:
        analysis = self._analysis
        cor = correlation(replace(analysis.best, matrix=analysis.denoised))
        np.fill_diagonal(cor.matrix, 1.0)
        return cor

    def _square(self, matrix: Floats, name: str) -> xr.DataArray:
        """Label a matrix in released coordinates and bring it to the columns' own units."""
        return square(matrix * np.outer(self._unit, self._unit), self.call.names, name)

    def _by_column(self, values: NDArray[np.generic], name: str) -> xr.DataArray:
        return with_labels(values, name, variable=self.call.names)

    @property
    def cov(self) -> xr.DataArray:
        """Denoised covariances, ``variable × variable_``.

        By the rule that ``denoise=`` names; positive semidefinite.
        """
        return self._square(self._analysis.denoised, "cov")

    @property
    def cov_released(self) -> xr.DataArray:
        """Covariances as released, ``variable × variable_``.

        Unbiased where the law of the noise is known; not necessarily positive
        semidefinite.
        """
        return self._square(self._analysis.plain.matrix, "cov_released")

    @property
    def cor(self) -> xr.DataArray:
        """Correlations, from `cov`; the diagonal is exactly 1.

        Those of `weak_variables` are understated.
        """
        return square(self._correlation.matrix, self.call.names, "cor")

    @property
    def noise_sd(self) -> xr.DataArray:
        """Noise sd of each entry of `cov_released`, to first order; nan without a law."""
        return self._square(entry_sd(self._analysis.plain), "noise_sd")

    @property
    def cor_noise_sd(self) -> xr.DataArray:
        """Noise sd of each correlation, to first order; nan without a law."""
        sd = entry_sd(self._correlation)
        np.fill_diagonal(sd, 0.0)
        return square(sd, self.call.names, "cor_noise_sd")

    @property
    def center(self) -> xr.DataArray | None:
        """Released means; None if not centred."""
        if not self.call.center:
            return None
        return self._by_column(self._analysis.best.mean * self._unit + self.call.origin, "center")

    @property
    def center_noise_sd(self) -> xr.DataArray | None:
        """Noise sd of the released means; None if not centred."""
        if not self.call.center:
            return None
        return self._by_column(mean_sd(self._analysis.best) * self._unit, "center_noise_sd")

    @property
    def sd(self) -> xr.DataArray:
        """Standard deviations: roots of the diagonal of `cov`."""
        variances = np.maximum(np.diagonal(self.cov), 0.0)
        return self._by_column(np.sqrt(variances), "sd")

    @property
    def sd_noise_sd(self) -> xr.DataArray:
        """Noise sd of the standard deviations, to first order; nan without a law."""
        noise = root_sd(self.sd.to_numpy(), np.diagonal(self.noise_sd))
        return self._by_column(noise, "sd_noise_sd")

    @property
    def lawful(self) -> bool:
        """Whether the noise of `cov_released` has a known law."""
        return self._analysis.lawful

    @property
    def nobs(self) -> float:
        """Number of rows: the public one, or the released one where it is private."""
        n_public = public_rows(self.release)
        return self.ncomplete if n_public is None else n_public

    @property
    def ncomplete(self) -> float:
        """Released number of complete rows; its noise sd is ``release.noise.count``."""
        return self._analysis.best.count

    @property
    def weak(self) -> xr.DataArray:
        """Whether each column's variance is too noisy to divide by.

        For correlations it is divided by the root of four noise sds of its
        variance.
        """
        return self._by_column(self._correlation.weak, "weak")

    @property
    def weak_variables(self) -> str:
        """Names of the weak columns."""
        weak = np.flatnonzero(self._correlation.weak)
        return ", ".join(self.call.names[i] for i in weak)

    def _noise_int(self, level: float) -> pd.DataFrame:
        return self._widened(0.0, 0.0, float(ndtri((1 + level) / 2)))

    def _conf_int(self, level: float) -> pd.DataFrame:
        if not self.lawful:
            raise NotAvailable(
                "conf_int() is not available: the error of this release has no known "
                'distribution; write mechanism="gauss", and between sites protocol="full" or '
                '"secure_sum"'
            )
        if not self.call.center:
            raise NotAvailable(
                "conf_int() is not available with center=False: the sampling law of a second "
                "moment about 0 needs the mean; noise_int() is available"
            )
        analysis, quantile = self._analysis, float(ndtri((1 + level) / 2))
        spread, slope = analysis.product_spread(np.eye(len(self.call.names)))
        # As in Wilson's interval, the variance is that at the other end of the interval.
        shift = quantile**2 * slope / (2 * analysis.independent)
        return self._widened(spread / analysis.independent, shift, quantile)

    def _widened(
        self, sampling: Floats | float, shift: Floats | float, quantile: float
    ) -> pd.DataFrame:
        """Return intervals for noise, a sampling variance, and rows that were clipped."""
        analysis = self._analysis
        squared = entry_sd(analysis.plain) ** 2 + sampling
        width = np.sqrt(quantile**2 * squared + np.square(shift))
        below, above = analysis.unclipped(width, quantile)
        unit = np.outer(self._unit, self._unit)
        return self._intervals((below - shift) * unit, (above + shift) * unit)

    def _intervals(self, below: Floats, above: Floats) -> pd.DataFrame:
        """Return intervals about the released entries; a variance below 0 is read as 0."""
        released = self.cov_released.to_numpy()
        floor = np.full_like(released, -np.inf)
        np.fill_diagonal(floor, 0.0)
        middle = np.maximum(released, floor)
        lower, upper = np.maximum(middle - below, floor), middle + above
        return self._pairs(cov=released, lower=lower, upper=upper)

    def _pairs(self, **matrices: Floats) -> pd.DataFrame:
        """Return the entries on and above the diagonal, one row a pair."""
        names = np.array(self.call.names, dtype=object)
        first, second = np.triu_indices(len(names))
        entries = {name: matrix[first, second] for name, matrix in matrices.items()}
        return pd.DataFrame({"column1": names[first], "column2": names[second], **entries})

    def _estimates(self) -> EstimateTable:
        matrices = {"cov": self.cov, "cor": self.cor, "noise_sd": self.noise_sd}
        matrices["released"] = self.cov_released
        table = self._pairs(**{name: matrix.to_numpy() for name, matrix in matrices.items()})
        index, codebook = (
            pd.MultiIndex.from_frame(table[["column1", "column2"]]),
            self.call.codebook,
        )
        return table_of_estimates(
            self,
            index,
            further={"cor": table["cor"], "released": table["released"]},
            labels={"label1": table["column1"], "label2": table["column2"]},
            unit=[product_unit(*(unit_of(codebook, name) for name in pair)) for pair in index],
            estimate=table["cov"],
            noise_sd=table["noise_sd"],
        )

    def _line(self) -> dict[str, object]:
        return {
            "nobs": self.nobs,
            "ncomplete": self.ncomplete,
            "ncolumns": len(self.call.names),
            "nweak": int(self.weak.sum()),
        }

    def to_xarray(self) -> xr.Dataset:
        """Return the matrices with their noise, means and sds as one labelled dataset."""
        import xarray as xr

        parts = {name: getattr(self, name) for name in _PARTS}
        facts = {"formula": self.call.formula, "simulated": int(self.simulated)}
        available = {name: part for name, part in parts.items() if part is not None}
        return xr.Dataset(available, attrs={**facts, **release_facts(self.release)})

    @property
    def _size(self) -> str:
        return f"{len(self.call.names)} columns"

    def plot(self, kind: str = "cor", ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw the matrix as a heat map.

        Parameters
        ----------
        kind : {"cor", "cov"}
            Correlations or covariances.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        caption : bool
            Whether guarantee, neighbours and noise stand under the picture.
        """
        from dpmodels.plots import heat

        if kind == "cor":
            return heat(
                self.cor,
                label="Correlation",
                largest=1.0,
                **self._picture(ax, caption),
            )
        if kind == "cov":
            return heat(
                self.cov,
                label="Covariance",
                **self._picture(ax, caption),
            )
        raise ArgumentError(f'kind={quoted(kind)}: expected "cor" or "cov"')

    def pca(self, ncomp: int | None = None, scale: str | None = "range") -> PCAResult:
        """Return the principal components of this matrix, free of charge.

        Parameters
        ----------
        ncomp : int, optional
            Components to keep; all by default.
        scale : {"range", "sd", None}
            Divide columns by their public half-range, by their released
            standard deviations (correlation matrix), or not at all.

        Raises
        ------
        ArgumentError
            For a scale that the release does not have: ``"range"`` of one in
            natural units, None of rows on the unit sphere.
        """
        return self._derive(PCAResult, "pca", ncomp=ncomp, scale=scale)

    def _pca(self, ncomp: int | None, scale: str | None) -> Derivation:
        def result(call: MomentsCall, release: MomentsRelease) -> PCAResult:
            return PCAResult(call, release, self.coder)

        return Derivation(rescaled(self.call, ncomp, scale), result)

    derivations: ClassVar = {"pca": _pca}
    scores, fittedvalues, resid = per_row("pca().transform(newdata)")


def rescaled(call: MomentsCall, ncomp: int | None, scale: str | None) -> MomentsCall:
    """Return the call of components of a released matrix; ArgumentError if the scale is missing."""
    unscaled = call.unit_rows or call.scale is None
    free = {call.scale, "sd"} if unscaled else {"range", "sd", None}
    if not isinstance(scale, str | None) or scale not in free:
        options = " or ".join(
            f'"{option}"' if option else "None" for option in sorted(free, key=str)
        )
        raise ArgumentError(f"scale={quoted(scale)}: this release has scale={options}")
    return replace(call, ncomp=checked_ncomp(ncomp, len(call.names)), scale=scale)
