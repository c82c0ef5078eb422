"""The result of a mechanism that releases directions alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpmodels.errors import NotAvailable
from dpmodels.labels import component_names, with_labels
from dpmodels.released import SubspaceRelease
from dpmodels.results.base import Refused
from dpmodels.results.call import MomentsCall
from dpmodels.results.components import (
    Components,
    Rotation,
    blank_words,
    visible_loadings,
)
from dpmodels.results.estimate_table import EstimateTable, table_of_estimates
from dpmodels.results.release_text import convergence_words, public_rows, release_facts
from dpmodels.typing import Coder, Floats

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes


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
    def loadings(self) -> xr.DataArray:
        """Orthonormal directions, ``variable × component``."""
        frame = self.release.frame
        largest = np.argmax(np.abs(frame), axis=0)
        signs = np.where(frame[largest, np.arange(self.ncomp)] < 0, -1.0, 1.0)
        components = component_names(self.ncomp)
        return with_labels(
            frame * signs, "loadings", variable=self.call.names, component=components
        )

    @property
    def eigenvals(self) -> xr.DataArray:
        """Released variances along the components, where bought; negative ones are shown as 0."""
        return self._by_component(np.maximum(self._variances("eigenvals"), 0.0), "eigenvals")

    @property
    def eigenvals_noise_sd(self) -> xr.DataArray:
        """Noise sd of each of them, to first order.

        The number of rows they are divided by has noise of the same scale.
        """
        values = self._variances("eigenvals_noise_sd")
        unit = self.call.row_norm**2
        noise = self.release.variance_sd * unit / self._divisor * np.hypot(1, values / unit)
        return self._by_component(noise, "eigenvals_noise_sd")

    @property
    def sdev(self) -> xr.DataArray:
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
        n_public = public_rows(self.release)
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

    def _by_component(self, values: Floats, name: str) -> xr.DataArray:
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
        return {
            "nobs": self.nobs,
            "ncolumns": len(self.call.names),
            "ncomp": self.ncomp,
            "ordered": self.release.ordered,
            "expected_loss": self.expected_loss,
            "guarantee_holds": convergence_words(self.release) or "always",
        }

    def to_xarray(self) -> xr.Dataset:
        """Return loadings and, where bought, eigenvalues as one labelled dataset."""
        import xarray as xr

        parts: dict[str, object] = {"loadings": self.loadings}
        if self.bought:
            parts |= {"eigenvals": self.eigenvals, "noise_sd": self.eigenvals_noise_sd}
        attributes = {
            "formula": self.call.formula,
            "simulated": int(self.simulated),
            "ordered": int(self.release.ordered),
            "limit": self.release.limit,
            **release_facts(self.release),
        }
        return xr.Dataset(parts, attrs=attributes)

    @property
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

    def transform(self, newdata: object) -> xr.DataArray:
        """Return coordinates of new, public rows along the components.

        As :meth:`PCAResult.transform`; not available where the fit is about the
        mean, since none is released then.
        """
        return self.components.labelled(newdata)

    @cached_property
    def components(self) -> Components:
        """The public map of rows to components, as :attr:`PCAResult.components`."""
        if self.call.center:
            raise NotAvailable(
                "components of rows need the mean, which this mechanism does not release: fit "
                'with center=False, or with mechanism="gauss"'
            )
        mean = np.zeros(len(self.call.names))
        return Components(self.call, self.loadings.to_numpy(), mean, self.coder)

    _no_intervals = 'directions have no intervals; eigenvalues do, with mechanism="gauss"'
