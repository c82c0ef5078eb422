"""Which loadings are shown: those that stand out from 0, and from their noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from dpmodels.errors import ArgumentError, NotAvailable
from dpmodels.inference import Spectrum, Unread
from dpmodels.inference.arrows import arrow_noise
from dpmodels.labels import component_names
from dpmodels.results.default_plot import DefaultPlot
from dpmodels.results.estimate_table import EstimateTable, estimate_table
from dpmodels.typing import Floats

if TYPE_CHECKING:
    import xarray as xr

# Smaller ones are left blank in tables and pictures: a convention.
SMALL_LOADING: Final = 0.1
# Of loadings whose noise is not known so much is taken for it: two digits are printed.
UNKNOWN: Final = 0.01

UNKNOWN_MATRIX: Final = 'matrix={!r}: expected "loadings" or "eigenvalues"'
ELLIPSES: Final = "95% noise ellipses"
NO_ELLIPSES: Final = "no noise ellipses: components not told apart"
_QUANTILE: Final = -2 * np.log(0.05)  # of χ² with two degrees of freedom


def loading_noise(spectrum: Spectrum | Unread) -> Floats:
    """Return the root mean square noise by component, nan where noise is all there is to read."""
    if isinstance(spectrum, Unread):
        return np.where(spectrum.readable, UNKNOWN, np.nan)
    turned = np.where(spectrum.readable, 1 - spectrum.expected_cos2(), np.nan)
    return np.asarray(np.sqrt(turned / max(len(turned) - 1, 1)))


def told(loadings: xr.DataArray, noise: Floats) -> xr.DataArray:
    """Return loadings, ``variable × component``, nan where tables leave them blank."""
    least = np.maximum(SMALL_LOADING, 2 * noise[: loadings.shape[1]])
    return loadings.where(np.abs(loadings.to_numpy()) >= least)


def ellipses(
    spectrum: Spectrum | Unread, vectors: Floats, components: Sequence[int | str], kept: int
) -> tuple[Floats | None, str]:
    """Return 95 % noise ellipses of a biplot's arrows as matrices, if there are any, and words."""
    from dpmodels.plots.names import positions

    chosen = positions(component_names(kept), components)
    if isinstance(spectrum, Unread) or len(set(chosen)) != 2:
        return None, NO_ELLIPSES
    noise = arrow_noise(spectrum, vectors, (chosen[0], chosen[1]))
    return (None, NO_ELLIPSES) if noise is None else (_QUANTILE * noise, ELLIPSES)


def blank_words(*, noise: bool, unread: Floats | None = None) -> str:
    """Say what is left blank, as tables do, and the components that are nan in `unread`."""
    words = f"blank: |loading| < {SMALL_LOADING}" + " or twice its noise" * noise
    blank = [] if unread is None else np.flatnonzero(np.isnan(unread)).tolist()
    names = [f"PC{place + 1}" for place in blank[:6]] + ["..."] * (len(blank) > 6)
    return f"{words}; not read: {', '.join(names)}" if names else words


class Rotation(DefaultPlot):
    """A result with loadings by component; the picture is of eigenvalues where there are any."""

    if TYPE_CHECKING:

        @property
        def loadings(self) -> xr.DataArray:
            """Columns by component."""

        def _eigenvalues(self) -> EstimateTable:
            """Return the eigenvalues by component."""

    def _estimates(self) -> EstimateTable:
        long = self.loadings.to_series()
        index = long.index.set_names(["column", "PC"])
        names = list(index.get_level_values(0))
        return estimate_table(self, index, labels=names, intervals=False, estimate=long)

    def tidy(self, matrix: str = "loadings") -> pd.DataFrame:
        """Return loadings or eigenvalues, one a row, with the column names of R's broom.

        Parameters
        ----------
        matrix : {"loadings", "eigenvalues"}
            Loadings by ``column, PC``, which have no intervals, or eigenvalues by ``PC``, with
            their square roots in ``std_dev``.

        Returns
        -------
        DataFrame
            Keys, then the columns that :meth:`Result.tidy` lists.

        Raises
        ------
        ArgumentError
            For another matrix.
        """
        if matrix not in ("loadings", "eigenvalues"):
            raise ArgumentError(UNKNOWN_MATRIX.format(matrix))
        return super().tidy() if matrix == "loadings" else self._eigenvalues().tidy()

    @property
    def _drawn(self) -> tuple[EstimateTable, str]:
        try:
            return self._eigenvalues(), "Eigenvalue"
        except NotAvailable:
            return self.estimates, "Loading"
