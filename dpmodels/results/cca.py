"""The result of private canonical correlations."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from dpmodels.formula.response import two_sets
from dpmodels.inference.correlations import Canonical, canonical
from dpmodels.labels import with_labels
from dpmodels.postprocess.normal_equations import released_equations
from dpmodels.released import MomentsRelease
from dpmodels.results.base import Result, checked_level, per_row
from dpmodels.results.call import MomentsCall
from dpmodels.results.estimate_table import EstimateTable, table_of_estimates
from dpmodels.typing import Axes, DataArray, Floats
from dpmodels.verbs import documented


@dataclass(frozen=True, repr=False)
class CCAResult(Result):
    """Private canonical correlations: released values and public facts only.

    Notes
    -----
    Names are those of R's ``cancor``: columns left of ``~`` are x, those right of it y. Variates
    have variance 1, so that coefficients are R's times the root of ``nobs - 1``; of each pair the
    largest loading of x is positive. All numbers but the intervals are nan where noise hides all
    directions of a side.

    :meth:`noise_int` is for the correlations of these rows, shortened where the release has a ball,
    under the law of the noise; from 0 to 1 where noise leaves a side without an inverse, which then
    has a ridge, see `ridge`. Variates are distinguished where `readable`.
    """

    call: MomentsCall
    release: MomentsRelease

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        sets = two_sets(self.call.formula, self.call.codebook)
        return len(sets.left.names), len(sets.right.names)

    @cached_property
    def _canonical(self) -> Canonical:
        norm = self.call.row_norm
        equations = released_equations(self.release, row_norm=norm, shift=None, layout=None)
        columns = self._columns
        sets = replace(equations, regressors=columns[:, :-1], response=columns[:, -1])
        return canonical(sets, self._sizes[0])

    @cached_property
    def _columns(self) -> Floats:
        """The constant and the scaled columns in terms of a released row's entries."""
        columns, ball = np.eye(len(self.call.names) + 1), self.release.ball
        if ball is not None and ball.axes is not None:
            columns[1:, 1:] = ball.axes.T
        return columns

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the pairs of variates."""
        return tuple(f"CC{number}" for number in range(1, min(self._sizes) + 1))

    def _pairs(self, values: object, name: str) -> DataArray:
        return with_labels(np.asarray(values), name, component=self.names)

    def _blank_unidentified(self, values: Floats) -> Floats:
        return values if self._canonical.is_identified else np.full_like(values, math.nan)

    @property
    def cor(self) -> DataArray:
        """Canonical correlations, in [0, 1]; without the bias of the noise where `readable`."""
        return self._pairs(self._blank_unidentified(self._canonical.estimates), "cor")

    @property
    def cor_noise_sd(self) -> DataArray:
        """Noise sd of each correlation, to first order; nan with a ridge."""
        solution = self._canonical
        has_law = solution.is_identified and not solution.ridged
        sds = solution.noise_sd if has_law else np.full(len(self.names), math.nan)
        return self._pairs(sds, "cor_noise_sd")

    @property
    def noise_floor(self) -> float:
        """The largest canonical correlation that noise alone makes, about; nan with a ridge."""
        solution = self._canonical
        return solution.edge(0.0) if solution.is_identified and not solution.ridged else math.nan

    @property
    def ridge(self) -> tuple[float, float]:
        """What was added to the variances of x and of y, of columns by their half-ranges."""
        first, second = (side.ridge / self._divisor for side in self._canonical.sides)
        return first, second

    @property
    def readable(self) -> DataArray:
        """Whether each correlation is distinguished from 0 and from the others, without a ridge."""
        solution = self._canonical
        clear = solution.noise_ends(0.95)[:, 0] > 0
        is_clear = clear & solution.separated if solution.is_identified else clear
        return self._pairs(is_clear, "readable")

    @property
    def xcoef(self) -> DataArray:
        """Coefficients of the x variates in the columns' own units, ``variable × component``."""
        return self._coefficients(0)

    @property
    def ycoef(self) -> DataArray:
        """Coefficients of the y variates; as `xcoef`."""
        return self._coefficients(1)

    @property
    def xloadings(self) -> DataArray:
        """Correlations of columns x with the x variates, ``variable × component``."""
        return self._by_column(self._structure[0], 0, "xloadings")

    @property
    def yloadings(self) -> DataArray:
        """Correlations of columns y with the y variates, ``variable × component``."""
        return self._by_column(self._structure[1], 1, "yloadings")

    @property
    def xcenter(self) -> DataArray:
        """Released means of columns x."""
        return self._center[: self._sizes[0]]

    @property
    def ycenter(self) -> DataArray:
        """Released means of columns y."""
        return self._center[self._sizes[0] :]

    @property
    def _center(self) -> DataArray:
        sums = self._canonical.equations.moments[0] @ self._columns
        mean = sums[1:] / max(sums[0], 1.0) * self.call.divisor + self.call.origin
        clipped = np.clip(mean, self.call.lower, self.call.upper)
        return with_labels(clipped, "center", variable=self.call.names)

    @property
    def _divisor(self) -> float:
        return max(self.nobs - 1, 1.0)

    @cached_property
    def _structure(self) -> tuple[Floats, Floats]:
        """Loadings of both sides before their signs are chosen."""
        solution, loadings = self._canonical, []
        for side, variates in zip(solution.sides, (solution.left, solution.right), strict=True):
            scatter = side.scatter + side.ridge * np.eye(len(side.scatter))
            length = np.sqrt(np.maximum(np.diagonal(scatter), 0.0))[:, None]
            covariances = np.asarray(scatter @ variates)
            zeros = np.zeros_like(covariances)
            loadings.append(np.divide(covariances, length, out=zeros, where=length > 0))
        return loadings[0], loadings[1]

    @property
    def _signs(self) -> Floats:
        loadings = self._structure[0]
        largest = np.abs(loadings).argmax(axis=0)
        return np.where(loadings[largest, np.arange(loadings.shape[1])] < 0, -1.0, 1.0)

    def _by_column(self, values: Floats, at: int, name: str) -> DataArray:
        cut = self._sizes[0]
        names = (self.call.names[:cut], self.call.names[cut:])[at]
        signed = self._blank_unidentified(values * self._signs)
        return with_labels(signed, name, variable=names, component=self.names)

    def _coefficients(self, at: int) -> DataArray:
        coefficients = (self._canonical.left, self._canonical.right)[at]
        cut = self._sizes[0]
        unit = (self.call.divisor[:cut], self.call.divisor[cut:])[at]
        values = coefficients / unit[:, None] * math.sqrt(self._divisor)
        return self._by_column(values, at, ("xcoef", "ycoef")[at])

    @property
    def nobs(self) -> float:
        """Number of complete rows, as released."""
        n_rows, n_public = self.release.count, self.release.rows
        return max(n_rows if n_public is None else min(n_rows, n_public), 1.0)

    @property
    def ncomplete(self) -> float:
        """Released number of complete rows; its noise sd is ``release.noise.count``."""
        return self.release.count

    def _noise_int(self, level: float) -> pd.DataFrame:
        ends = self._canonical.noise_ends(level)
        index = pd.Index(self.names, name="component")
        return pd.DataFrame(ends, index=index, columns=["lower", "upper"])

    _no_intervals = (
        "the sampling distribution of canonical correlations close to each other or to 0 is not "
        "known well enough; noise_int() is for these rows, and dp_moments(...).cor_test(x, "
        "y).tidy() has the population's interval of one correlation"
    )

    def _estimates(self) -> EstimateTable:
        index, sd = pd.Index(self.names, name="component"), self.cor_noise_sd
        cor, readable = self.cor, self.readable
        return table_of_estimates(self, index, estimate=cor, noise_sd=sd, identified=readable)

    def _line(self) -> dict[str, object]:
        sizes = dict(zip(("nx", "ny"), self._sizes, strict=True))
        numbers = {"nreadable": int(self.readable.sum()), "noise_floor": self.noise_floor}
        return {"nobs": self.nobs, "ncomplete": self.ncomplete, **sizes, **numbers}

    def _size(self) -> str:
        return f"{self._sizes[0]} and {self._sizes[1]} columns"

    @documented
    def plot(self, level: float = 0.95, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw the canonical correlations with their noise intervals."""
        from dpmodels.plots.coefficients import Intervals, coefficients

        ends = self._canonical.noise_ends(checked_level(level))
        values = self.cor.to_numpy()
        panel = Intervals("", values, ends, np.full_like(ends, math.nan))
        return coefficients(
            [panel],
            labels=self.names,
            title="Canonical correlation",
            level=level,
            **self._picture(ax, caption),
        )

    scores, fittedvalues, resid = per_row("(newdata - xcenter) @ xcoef")
