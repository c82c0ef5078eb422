"""The results of private principal components, and of mechanisms that release directions alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.special import ndtri

from dpmodels.errors import NotAvailable
from dpmodels.inference import Spectrum, Unread
from dpmodels.labels import component_names, square, with_labels
from dpmodels.released import MomentsRelease, SubspaceRelease
from dpmodels.results.base import Refused
from dpmodels.results.call import MomentsCall, convergence_words, n_public_rows, release_facts
from dpmodels.results.components import (
    Analysis,
    Components,
    Rotation,
    blank_words,
    ellipses,
    loading_noise,
    visible_loadings,
)
from dpmodels.results.estimate_table import EstimateTable, table_of_estimates
from dpmodels.typing import Axes, Coder, DataArray, Dataset, Floats


@dataclass(frozen=True, repr=False)
class PCAResult(Rotation):
    """Private principal components: released values and public facts only.

    Notes
    -----
    Every attribute is computed from the release, at no further cost. Eigenvalues are variances of
    the centred, scaled columns; in each component the loading of largest size is positive. Where
    the mechanism has its own estimate, whose error has no known distribution, there is no floor, no
    interval and no cosine. Intervals are those of eigenvalues, nan below the floor.
    :meth:`conf_int` assumes only the bounds of the rows, within which its sampling error is the
    largest that the released moments allow: 95 % intervals cover at least 95 %. Where rows were
    shortened to a released ball, intervals allow for their full lengths. It needs the mean, and is
    not available for a correlation matrix, whose sampling distribution differs.
    """

    call: MomentsCall
    release: MomentsRelease
    coder: Coder | None = field(default=None, repr=False)

    @cached_property
    def _analysis(self) -> Analysis:
        return Analysis(self.call, self.release)

    @property
    def spectrum(self) -> Spectrum | Unread:
        """All released eigenvalues with their noise law, where it is known."""
        return self._analysis.spectrum

    def _by_component(self, values: Floats, name: str) -> DataArray:
        leading = np.asarray(values, dtype=np.float64)[: self.ncomp]
        return with_labels(leading, name, component=component_names(self.ncomp))

    @property
    def ncomp(self) -> int:
        """Number of components kept."""
        return self.call.ncomp

    @property
    def loadings(self) -> DataArray:
        """Unit eigenvectors, ``variable × component``."""
        vectors = self._analysis.eigen.vectors[:, : self.ncomp]
        names = {"variable": self.call.names, "component": component_names(self.ncomp)}
        return with_labels(vectors, "loadings", **names)

    @property
    def loadings_noise_sd(self) -> DataArray:
        """Typical noise sd of a loading, by component; nan where noise hides the component.

        The root mean square over all directions that noise turns a component into.
        """
        return self._by_component(loading_noise(self.spectrum), "loadings_noise_sd")

    @property
    def eigenvals(self) -> DataArray:
        """Released variances of the components; negative ones are shown as 0."""
        return self._by_component(np.maximum(self.all_eigenvals, 0.0), "eigenvals")

    @property
    def all_eigenvals(self) -> Floats:
        """Released eigenvalues of all components, as they are."""
        return self._analysis.eigen.values

    @property
    def sdev(self) -> DataArray:
        """Standard deviations of the components."""
        return self._by_component(np.sqrt(np.maximum(self.all_eigenvals, 0.0)), "sdev")

    @property
    def cov(self) -> DataArray:
        """The denoised matrix, ``variable × variable_``.

        By the rule that ``denoise=`` names; positive semidefinite.
        """
        return square(self._analysis.denoised, self.call.names, "cov")

    @property
    def total_variance(self) -> float:
        """Released sum of all variances, nan where it does not stand out from its noise."""
        total, noise = self._analysis.best.trace
        return float("nan") if total <= 2 * np.nan_to_num(noise) else total

    @property
    def total_variance_noise_sd(self) -> float:
        """Noise sd of the released sum of all variances."""
        return self._analysis.best.trace[1]

    @property
    def explained_variance_ratio(self) -> DataArray:
        """Share of the non-private total variance along each released component.

        Corrected, where its law is known, for the noise that the components were chosen with, so
        the shares of all components add up to one; where those above the noise floor exceed the
        released total, their shares do. nan where the total is noise.
        """
        captured = np.where(self.spectrum.distinct, self._analysis.captured(), 0.0)
        distinct_variance = float(np.maximum(captured, 0.0).sum())
        total = self.total_variance
        total = max(total, distinct_variance) if total > 0 else math.nan
        ratio = self._analysis.captured() / total
        return self._by_component(ratio, "explained_variance_ratio")

    @property
    def explained_variance_ratio_noise_sd(self) -> DataArray:
        """Noise sd of each share, to first order."""
        values = self._analysis.share_sd(self.total_variance)
        return self._by_component(values, "explained_variance_ratio_noise_sd")

    @property
    def center(self) -> DataArray | None:
        """Released means of the coded columns in their own units; None if not centred."""
        if not self.call.center:
            return None
        mean = self._analysis.best.mean * self.call.divisor + self.call.origin
        return with_labels(mean, "center", variable=self.call.names)

    @property
    def nobs(self) -> float:
        """Number of rows: the public one, or the released one where it is private."""
        n_public = n_public_rows(self.release)
        return self._analysis.best.count if n_public is None else n_public

    @property
    def nobs_origin(self) -> str:
        """Where ``nobs`` comes from: ``"public"`` or ``"private, noise sd ..."``."""
        if n_public_rows(self.release) is not None:
            return "public"
        return f"private, noise sd {self.release.noise.count:.2g}"

    @property
    def ncomplete(self) -> float:
        """Released number of complete rows; its noise sd is ``release.noise.count``."""
        return self._analysis.best.count

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
        weak = np.flatnonzero(self._analysis.best.weak)
        return ", ".join(self.call.names[i] for i in weak)

    def noise(self) -> pd.DataFrame:
        """Return the noise panel of the components.

        Per component the released ``eigenvalue``, its ``noise_sd``, the noise
        ``floor`` and whether the eigenvalue is above it, ``distinct`` from
        noise; and, nan where it is not, the ``debiased`` eigenvalue, the 95 %
        noise interval ``lower, upper`` for the non-private eigenvalue of these
        rows, as they were clipped unless ``inference=True`` was bought, and the
        expected squared cosine ``cos2`` with the non-private component.
        """
        spectrum = self.spectrum
        lower, upper = spectrum.noise_interval()
        if self.release.tails is not None:
            lower, upper = self._unclipped((lower, upper), 0.95)
        table = {
            "eigenvalue": self.all_eigenvals,
            "noise_sd": spectrum.sd,
            "floor": spectrum.floor,
            "distinct": spectrum.distinct,
            "debiased": spectrum.debiased(),
            "lower": lower,
            "upper": upper,
            "cos2": spectrum.expected_cos2(),
        }
        index = pd.Index(component_names(len(spectrum.values)), name="component")
        return pd.DataFrame(table, index=index).iloc[: self.ncomp]

    def _noise_int(self, level: float) -> pd.DataFrame:
        return self._intervals(*self._unclipped(self.spectrum.noise_interval(level), level))

    def _conf_int(self, level: float) -> pd.DataFrame:
        if self.call.scale == "sd":
            raise NotAvailable(
                'conf_int() is not available with scale="sd": the eigenvalues of a correlation '
                "matrix have another sampling law; noise_int() is available"
            )
        if isinstance(self.spectrum, Unread):
            raise NotAvailable(
                "conf_int() is not available: the estimates of this release have no known sampling "
                'law; fit with mechanism="gauss", and between sites protocol="full" or "secure_sum"'
            )
        if not self.call.center:
            raise NotAvailable(
                "conf_int() is not available with center=False: the sampling law of a second "
                "moment about 0 needs the mean; noise_int() is available"
            )
        analysis = self._analysis
        directions = analysis.eigen.vectors / analysis.plain.divisor[:, None]
        spread, _ = analysis.product_spread(directions)
        interval = self.spectrum.confidence_interval(spread / analysis.independent, level)
        return self._intervals(*self._unclipped(interval, level))

    def _unclipped(self, interval: tuple[Floats, Floats], level: float) -> tuple[Floats, Floats]:
        """Widen intervals by what clipping took off the rows, where columns have public units."""
        if self.call.scale == "sd" or isinstance(self.spectrum, Unread):
            return interval
        quantile = float(ndtri((1 + level) / 2))
        return self._analysis.unclipped_eigenvalues(*interval, quantile)

    def _intervals(self, lower: Floats, upper: Floats) -> pd.DataFrame:
        table = {"lower": lower[: self.ncomp], "upper": upper[: self.ncomp]}
        return pd.DataFrame(table, index=pd.Index(component_names(self.ncomp), name="component"))

    def _eigenvalues(self) -> EstimateTable:
        shares = self.explained_variance_ratio.to_numpy()
        further = {
            "std_dev": self.sdev.to_numpy(),
            "percent": shares,
            "cumulative": np.minimum(np.cumsum(shares), 1.0),
        }
        return table_of_estimates(
            self,
            pd.Index(component_names(self.ncomp), name="PC"),
            further=further,
            estimate=self.eigenvals,
            noise_sd=self.spectrum.sd[: self.ncomp],
        )

    def _line(self) -> dict[str, object]:
        sizes = {"nobs": self.nobs, "ncolumns": len(self.call.names), "ncomp": self.ncomp}
        sizes["ndistinct"] = int(self.spectrum.distinct[: self.ncomp].sum())
        names = ("total_variance", "noise_sd", "noise_floor")
        return {**sizes, **{name: getattr(self, name) for name in names}}

    def _size(self) -> str:
        n_distinct = int(self.spectrum.distinct[: self.ncomp].sum())
        return f"{self.ncomp} components, {n_distinct} above the noise floor"

    def to_xarray(self) -> Dataset:
        """Return loadings, eigenvalues and noise panel as one labelled dataset."""
        import xarray as xr

        names = ("loadings", "eigenvals", "explained_variance_ratio")
        parts: dict[str, object] = {name: getattr(self, name) for name in names}
        for name, values in self.noise().drop(columns="eigenvalue").items():
            parts[str(name)] = ("component", values.to_numpy())
        if self.center is not None:
            parts["center"] = self.center
        facts = {"formula": self.call.formula, "simulated": int(self.simulated)}
        return xr.Dataset(parts, attrs={**facts, **release_facts(self.release)})

    def plot_scree(self, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw eigenvalues with their noise intervals and the noise floor."""
        from dpmodels.plots import scree

        panel, names = self.noise(), component_names(self.ncomp)
        starred = np.where(panel["distinct"], names, [f"{name} *" for name in names])
        return scree(
            self.eigenvals.to_numpy(),
            lower=panel["lower"].to_numpy(),
            upper=panel["upper"].to_numpy(),
            floor=self.noise_floor,
            labels=starred.tolist(),
            **self._picture(ax, caption),
        )

    def plot_loadings(
        self,
        components: Sequence[int] | None = None,
        ax: Axes | None = None,
        *,
        caption: bool = True,
    ) -> Axes:
        """Draw the loadings as a heat map, blank where noise leaves too little to read.

        ``components`` counts from 0; by default up to the last that can be read.
        """
        from dpmodels.plots import loadings

        noise = self.loadings_noise_sd.to_numpy()
        readable = np.flatnonzero(np.isfinite(noise[: self.ncomp]))
        return loadings(
            visible_loadings(self.loadings, noise),
            components=range(max(readable, default=0) + 1) if components is None else components,
            note=blank_words(noise=isinstance(self.spectrum, Spectrum), unread=noise[: self.ncomp]),
            **self._picture(ax, caption),
        )

    def biplot(
        self, components: tuple[int, int] = (0, 1), ax: Axes | None = None, *, caption: bool = True
    ) -> Axes:
        """Draw the variables in the plane of two components, with what noise leaves open.

        Ellipses are of 95 %, to first order, of each arrow by itself. Rows are never drawn.
        """
        from dpmodels.plots import biplot

        if self.ncomp < 2:
            raise NotAvailable("biplot() needs two components; this fit keeps one")
        marked = tuple(np.flatnonzero(~self.spectrum.distinct[: self.ncomp]).tolist())
        spread, note = ellipses(self.spectrum, self._analysis.eigen.vectors, components, self.ncomp)
        return biplot(
            self.loadings,
            self.sdev.to_numpy(),
            components=components,
            marked=marked,
            spread=spread,
            note=note,
            **self._picture(ax, caption),
        )

    @cached_property
    def components(self) -> Components:
        """The public map of rows to components, with its codebook: for a model on them."""
        best = self._analysis.best
        loadings = self.loadings.to_numpy() / best.divisor[:, None]
        return Components(self.call, loadings, best.mean, self.coder)


# Directions alone, without a matrix that they are computed from.

_BOUGHT = (
    'The variances along the directions cost a share of the budget: fit with eigenvals="private", '
    'or with mechanism="gauss" for all of them'
)


@dataclass(frozen=True, repr=False)
class SubspaceResult(Rotation):
    """A private principal subspace: released directions and public facts only.

    Notes
    -----
    Where the release has no order (``release.ordered``) the components are an arbitrary orthonormal
    basis, and only the space is identified. In each component the loading of largest size is
    positive.
    """

    call: MomentsCall
    release: SubspaceRelease
    coder: Coder | None = field(default=None, repr=False)

    @property
    def ncomp(self) -> int:
        """Number of components."""
        return int(self.release.frame.shape[1])

    @property
    def loadings(self) -> DataArray:
        """Orthonormal directions, ``variable × component``."""
        frame = self.release.frame
        largest = np.argmax(np.abs(frame), axis=0)
        signs = np.where(frame[largest, np.arange(self.ncomp)] < 0, -1.0, 1.0)
        names = {"variable": self.call.names, "component": component_names(self.ncomp)}
        return with_labels(frame * signs, "loadings", **names)

    @property
    def eigenvals(self) -> DataArray:
        """Released variances along the components, where bought; negative ones are shown as 0."""
        return self._by_component(np.maximum(self._variances("eigenvals"), 0.0), "eigenvals")

    @property
    def eigenvals_noise_sd(self) -> DataArray:
        """Noise sd of each of them, to first order.

        The number of rows they are divided by has noise of the same scale.
        """
        values = self._variances("eigenvals_noise_sd")
        unit = self.call.row_norm**2
        noise = self.release.variance_sd * unit / self._divisor * np.hypot(1, values / unit)
        return self._by_component(noise, "eigenvals_noise_sd")

    @property
    def sdev(self) -> DataArray:
        """Standard deviations along the components, where the variances were bought."""
        return self._by_component(np.sqrt(np.maximum(self._variances("sdev"), 0.0)), "sdev")

    explained_variance_ratio = Refused(
        "is not available: this mechanism does not release the total variance. " + _BOUGHT
    )

    @property
    def expected_loss(self) -> float:
        """Expected loss of captured variance that theory gives, an approximation.

        How much less the variances along the components sum to than those along the non-private
        ones, in the units of eigenvalues; nan where theory gives none, or the number of rows is not
        known.
        """
        return self.release.expected_loss * self.call.row_norm**2 / self._divisor

    @property
    def lost(self) -> bool:
        """Whether theory expects to lose all variance that rows of half the row norm have.

        From public facts alone; the directions may then be close to random.
        """
        return self.expected_loss >= (self.call.row_norm / 2) ** 2

    @property
    def nobs(self) -> float:
        """Number of rows: the public one, else the bought one, else nan."""
        n_public = n_public_rows(self.release)
        return self.release.count if n_public is None else n_public

    @property
    def ncomplete(self) -> float:
        """Released number of complete rows; nan where it was not bought."""
        return self.release.count

    @property
    def bought(self) -> bool:
        """Whether a part of the budget went to the variances along the components."""
        return self.release.variances is not None

    @property
    def _divisor(self) -> float:
        """The number of complete rows where bought, else of rows; one less about the mean."""
        n_public, n_complete = self.release.rows, self.release.count
        n_rows = math.nan if n_public is None else n_public
        n_rows = n_rows if math.isnan(n_complete) else n_complete
        n_rows = n_rows if n_public is None else min(n_rows, n_public)
        # max keeps a nan that comes first.
        return max(n_rows - self.call.center, 1.0)

    def _variances(self, name: str) -> Floats:
        if self.release.variances is None:
            raise NotAvailable(f"{name} of the components were not released: " + _BOUGHT)
        return self.release.variances * self.call.row_norm**2 / self._divisor

    def _by_component(self, values: Floats, name: str) -> DataArray:
        return with_labels(values, name, component=component_names(self.ncomp))

    def noise(self) -> pd.DataFrame:
        """Return each component's released ``eigenvalue, noise_sd``; nan where not bought."""
        table = {
            "eigenvalue": self.eigenvals.to_numpy() if self.bought else np.nan,
            "noise_sd": self.eigenvals_noise_sd.to_numpy() if self.bought else np.nan,
        }
        return pd.DataFrame(table, index=pd.Index(component_names(self.ncomp), name="component"))

    def _eigenvalues(self) -> EstimateTable:
        return table_of_estimates(
            self,
            pd.Index(component_names(self.ncomp), name="PC"),
            further={"std_dev": self.sdev.to_numpy()},
            estimate=self.eigenvals,
            noise_sd=self.eigenvals_noise_sd,
        )

    def _line(self) -> dict[str, object]:
        sizes = {"nobs": self.nobs, "ncolumns": len(self.call.names), "ncomp": self.ncomp}
        holds = convergence_words(self.release) or "always"
        loss = {"ordered": self.release.ordered, "expected_loss": self.expected_loss}
        return {**sizes, **loss, "guarantee_holds": holds}

    def to_xarray(self) -> Dataset:
        """Return loadings and, where bought, eigenvalues as one labelled dataset."""
        import xarray as xr

        parts: dict[str, object] = {"loadings": self.loadings}
        if self.bought:
            parts |= {"eigenvals": self.eigenvals, "noise_sd": self.eigenvals_noise_sd}
        facts = {"formula": self.call.formula, "simulated": int(self.simulated)}
        facts |= {"ordered": int(self.release.ordered), "limit": self.release.limit}
        return xr.Dataset(parts, attrs={**facts, **release_facts(self.release)})

    def _size(self) -> str:
        return f"{self.ncomp} {'components' if self.release.ordered else 'dimensions'}"

    def plot_loadings(
        self,
        components: Sequence[int] | None = None,
        ax: Axes | None = None,
        *,
        caption: bool = True,
    ) -> Axes:
        """Draw the loadings as a heat map, small ones blank; ``components`` counts from 0."""
        from dpmodels.plots import loadings

        return loadings(
            visible_loadings(self.loadings, np.zeros(self.ncomp)),
            components=components,
            note=blank_words(noise=False),
            **self._picture(ax, caption),
        )

    @cached_property
    def components(self) -> Components:
        """The public map of rows to components; not available where the fit is about the mean."""
        if self.call.center:
            raise NotAvailable(
                "components of rows need the mean, which this mechanism does not release: fit "
                'with center=False, or with mechanism="gauss"'
            )
        mean = np.zeros(len(self.call.names))
        return Components(self.call, self.loadings.to_numpy(), mean, self.coder)

    _no_intervals = 'directions have no intervals; eigenvalues do, with mechanism="gauss"'
