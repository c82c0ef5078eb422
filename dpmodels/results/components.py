"""Released components as a public map of rows, for a second model on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from dpmodels.arguments import integer, option
from dpmodels.codebook import Codebook
from dpmodels.errors import ArgumentError, NotAvailable
from dpmodels.inference import (
    Spectrum,
    Unread,
    cut_eigenvalues,
    cut_entries,
    product_spread,
    read_spectrum,
)
from dpmodels.inference.correlations import mean_products
from dpmodels.inference.spectrum import arrow_noise
from dpmodels.labels import component_names
from dpmodels.postprocess import (
    Covariance,
    Eigen,
    correlation,
    covariance,
    denoise,
    eigen,
    in_units,
    second_moment_about,
)
from dpmodels.postprocess.covariance import longest_in_box, support
from dpmodels.released import MomentsRelease, Tails
from dpmodels.results.base import Refused, per_row
from dpmodels.results.call import MomentsCall
from dpmodels.results.derived_table import DefaultPlot
from dpmodels.results.estimate_table import EstimateTable, table_of_estimates
from dpmodels.results.public_rows import index_of, public_rows, require_coder
from dpmodels.typing import Coder, DataArray, Floats
from dpmodels.variables import Numeric
from dpmodels.verbs import documented

# Bounds are computed, and rows are mapped, to a few units in the last place of 64 bits.
ROUNDING = 1e-9


@dataclass(frozen=True, repr=False, eq=False)
class Components:
    """The map from a row to its components, with public bounds of the components.

    The map depends only on released values and public facts, and acts on rows one by one. So a verb
    applied to components is as private for the original rows: neighbours stay neighbours.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(x=(0, 4), y=(-1, 1), z=(0, 9), kind=["a", "b"])
    >>> rows = {"x": [1, 3] * 900, "y": [-0.5, 0.9] * 900, "z": [2, 8] * 900}
    >>> rows["kind"] = ["a", "b"] * 900
    >>> ledger = dp.Ledger(eps=2.0, delta=1e-6, pure=1.0)
    >>> words = {"eps": 1.0, "delta": 1e-6, "ledger": ledger}
    >>> pca = dp.dp_pca("~ x + y + z", rows, codebook=cb, ncomp=2, **words)
    >>> pcs = pca.components
    >>> svm = dp.dp_svm(
    ...     "kind ~ PC1 + PC2",
    ...     pcs.predict(rows).assign(kind=rows["kind"]),
    ...     codebook=pcs.codebook | cb.select(["kind"]),
    ...     row_norm=pcs.row_norm(),
    ...     **words,
    ... )
    >>> svm.predict(pcs.predict({"x": [1], "y": [-0.5], "z": [2]})).tolist()
    ['a']
    """

    call: MomentsCall
    matrix: Floats  # shape (columns, components): loadings, over released sds where those scale
    mean: Floats  # shape (columns,): what is taken off the scaled columns
    coder: Coder | None = field(default=None, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """``PC1`` to the last."""
        return tuple(component_names(self.matrix.shape[1]))

    @cached_property
    def codebook(self) -> Codebook:
        """Public bounds of the components.

        The tightest bounds, about the image of the ball's centre, on the components of all rows
        within the codebook's ranges and the row norm of the release. Longer rows, which the release
        shortened, are clipped by the next verb.
        """
        ends = zip(self.names, self._middle, self._reach, strict=True)
        return Codebook({name: Numeric(mid - reach, mid + reach) for name, mid, reach in ends})

    def row_norm(self, scale: str | None = "range") -> float:
        """Return the largest norm of rows of components, for the argument ``row_norm`` of a verb.

        Smaller than the separate bounds imply, and so with less noise: all components together lie
        in the image of the ball that the release clipped its rows to.

        Parameters
        ----------
        scale : {"range", None}
            The argument ``scale`` of that verb.

        Returns
        -------
        float
            For formulas that are linear in the components, with an intercept. Each further numeric
            column scaled by its range adds 1 to the square. Other formulas cannot use it.

        Raises
        ------
        ArgumentError
            If ``scale`` is neither of these.
        """
        option("scale", scale, ("range", None), ", as in the verb")
        longest = self.call.row_norm * float(np.linalg.norm(self.matrix, ord=2))
        divisor = np.ones_like(self._reach) if scale is None else self._reach
        return longest_in_box(self._reach, longest, divisor) * (1 + ROUNDING)

    def predict(self, newdata: object) -> pd.DataFrame:
        """Return the components of your rows, as R's ``predict(prcomp)`` does.

        Parameters
        ----------
        newdata : frame, mapping or path
            Rows with the formula's variables. The components are as private as the rows: those of
            private rows are only for another verb. Rows are mapped one by one, so a table larger
            than memory may be mapped part by part.

        Returns
        -------
        DataFrame
            ``PC1, PC2, ...``, with the index of a pandas ``newdata``; nan for
            incomplete rows.

        Raises
        ------
        FrameError
            If a variable is missing.
        NotAvailable
            If the release was loaded without its formula's coding.
        """
        scores = self.scores(newdata)
        return pd.DataFrame(scores, columns=list(self.names), index=index_of(newdata))

    def scores(self, newdata: object) -> Floats:
        """Return the same as an array, shape (rows, components)."""
        if self.coder is None:
            raise NotAvailable("the formula's coding is missing: load the fit with dp.load")
        return self._mapped(self.coder(newdata))

    @documented
    def augment(self, newdata: object, *, clip: bool = False) -> pd.DataFrame:
        """Return rows that are not private with their components, as R's broom does.

        Returns
        -------
        DataFrame
            All columns of `newdata`, then ``.fittedPC1, .fittedPC2, ...`` and
            ``.outside``, whether a number is beyond the codebook's bounds.

        Raises
        ------
        NotAvailable
            If the release was loaded without its formula's coding.
        """
        table = require_coder(self.coder).table(newdata)
        rows = public_rows(self.coder, table, clip=clip)
        scores = self._mapped(rows.coded).T
        fitted = {f".fitted{name}": values for name, values in zip(self.names, scores, strict=True)}
        return table.assign(**fitted, **{".outside": rows.outside})

    def _mapped(self, coded: Floats) -> Floats:
        """Return the components of coded rows, shape (rows, components)."""
        return np.asarray((self.call.scaled(coded) - self.mean[:, None]).T @ self.matrix)

    def labelled(self, newdata: object) -> DataArray:
        """Return the same as a labelled array, ``row × component``."""
        import xarray as xr

        coords = {"component": list(self.names)}
        return xr.DataArray(self.scores(newdata), dims=("row", "component"), coords=coords)

    def __repr__(self) -> str:
        return f"<Components {', '.join(self.names)} of {self.call.formula!r}>"

    @cached_property
    def _middle(self) -> Floats:
        return np.asarray(-self.mean @ self.matrix)

    @cached_property
    def _reach(self) -> Floats:
        """How far from it each component may lie, shape (components,)."""
        lower, upper = self.call.box
        if self.call.unit_rows or self.call.row_norm < self.call.worst_case:
            # Rescaled rows can leave a box that does not contain the centre.
            lower, upper = np.minimum(lower, 0.0), np.maximum(upper, 0.0)
        radius = self.call.row_norm
        distances = [
            max(support(direction, lower, upper, radius), support(-direction, lower, upper, radius))
            for direction in self.matrix.T
        ]
        smallest = ROUNDING * (math.hypot(radius, *self._middle) or 1.0)
        return np.asarray(np.maximum(np.array(distances) * (1 + ROUNDING), smallest))


# Which loadings are shown: those that stand out from 0, and from their noise.

# Smaller ones are left blank in tables and pictures: a convention.
SMALL_LOADING: Final = 0.1
# Assumed noise of loadings whose noise is not known: two digits are printed.
UNKNOWN: Final = 0.01

UNKNOWN_MATRIX: Final = 'matrix={!r}: expected "loadings" or "eigenvalues"'
ELLIPSES: Final = "95% noise ellipses"
NO_ELLIPSES: Final = "no noise ellipses: components not distinguished"
_QUANTILE: Final = -2 * np.log(0.05)  # of χ² with two degrees of freedom


def loading_noise(spectrum: Spectrum | Unread) -> Floats:
    """Return the root mean square noise by component, nan where noise dominates."""
    if isinstance(spectrum, Unread):
        return np.where(spectrum.readable, UNKNOWN, np.nan)
    turned = np.where(spectrum.readable, 1 - spectrum.expected_cos2(), np.nan)
    return np.asarray(np.sqrt(turned / max(len(turned) - 1, 1)))


def visible_loadings(loadings: DataArray, noise: Floats) -> DataArray:
    """Return loadings, ``variable × component``, nan where tables leave them blank."""
    threshold = np.maximum(SMALL_LOADING, 2 * noise[: loadings.shape[1]])
    return loadings.where(np.abs(loadings.to_numpy()) >= threshold)


def ellipses(
    spectrum: Spectrum | Unread, vectors: Floats, components: Sequence[int | str], n_components: int
) -> tuple[Floats | None, str]:
    """Return 95 % noise ellipses of a biplot's arrows as matrices, if there are any, and a note."""
    from dpmodels.plots.style import positions

    chosen = positions(component_names(n_components), components)
    if isinstance(spectrum, Unread) or len(set(chosen)) != 2:
        return None, NO_ELLIPSES
    noise = arrow_noise(spectrum, vectors, (chosen[0], chosen[1]))
    return (None, NO_ELLIPSES) if noise is None else (_QUANTILE * noise, ELLIPSES)


def blank_words(*, noise: bool, unread: Floats | None = None) -> str:
    """Return a note on blank loadings and on the components that are nan in `unread`."""
    words = f"blank: |loading| < {SMALL_LOADING}" + " or twice its noise" * noise
    blank = [] if unread is None else np.flatnonzero(np.isnan(unread)).tolist()
    names = [f"PC{place + 1}" for place in blank[:6]] + ["..."] * (len(blank) > 6)
    return f"{words}; lost in noise: {', '.join(names)}" if names else words


class Rotation(DefaultPlot):
    """A result with loadings by component; the picture is of eigenvalues where there are any."""

    if TYPE_CHECKING:

        @property
        def loadings(self) -> DataArray:
            """Columns by component."""

        @property
        def components(self) -> Components:
            """The public map of rows to components."""

        def _eigenvalues(self) -> EstimateTable:
            """Return the eigenvalues by component."""

    def _estimates(self) -> EstimateTable:
        long = self.loadings.to_series()
        index = long.index.set_names(["column", "PC"])
        names = list(index.get_level_values(0))
        return table_of_estimates(self, index, labels=names, intervals=False, estimate=long)

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
    def _plotted(self) -> tuple[EstimateTable, str]:
        try:
            return self._eigenvalues(), "Eigenvalue"
        except NotAvailable:
            return self.estimates, "Loading"

    def transform(self, newdata: object) -> DataArray:
        """Return scores of new, public rows on the released components.

        ``row × component``, nan for incomplete rows. `newdata` is a frame with the formula's
        variables. Scores of the private rows would give them away and are not available.
        """
        return self.components.labelled(newdata)

    def predict(self, newdata: object) -> pd.DataFrame:
        """Return components of your rows, see :meth:`Components.predict`."""
        return self.components.predict(newdata)

    def augment(self, newdata: object, *, clip: bool = False) -> pd.DataFrame:
        """Return rows that are not private with their components, see :meth:`Components.augment`.

        Their columns, ``.fittedPC1, ...`` and ``.outside``.
        """
        return self.components.augment(newdata, clip=clip)

    rotation = Refused("is called loadings here")
    scores, fittedvalues, resid = per_row("transform(newdata)")


# A released second moment: matrix, spectrum, best estimate.

# Standard deviations of noise by which fourth moments are read upwards: of 95 %, on one side.
UPPER: Final = 1.645


@dataclass(frozen=True)
class Analysis:
    """Post-processing of a released matrix."""

    call: MomentsCall
    release: MomentsRelease

    @property
    def lawful(self) -> bool:
        """Whether the noise of the released second moment has a known law."""
        return math.isfinite(self.release.noise.off)

    @cached_property
    def plain(self) -> Covariance:
        """The released covariance, second moment or correlation, with its noise."""
        return self._matrix(self.release.second)

    @cached_property
    def best(self) -> Covariance:
        """The same from the mechanism's own estimate, where it made one."""
        estimate = self.release.estimate
        return self.plain if estimate is None else self._matrix(estimate)

    def _matrix(self, second: Floats) -> Covariance:
        call, release = self.call, self.release
        count, total, noise = release.count, release.total, release.noise
        rows, norm = release.rows, call.row_norm
        if total is None or call.center:
            cov = covariance(
                count, total, second, noise, max_rows=rows, box=call.box, row_norm=norm
            )
        else:
            origin = -call.origin / call.divisor
            cov = second_moment_about(
                origin, count, total, second, noise, max_rows=rows, row_norm=norm
            )
        if call.scale == "sd":
            return correlation(cov)
        return in_units(cov, call.divisor) if call.scale is None else cov

    @property
    def independent(self) -> float:
        """The effective number of rows, as several may belong to one person."""
        return self.plain.count / self.release.adjacency.design_effect

    @cached_property
    def eigen(self) -> Eigen:
        """Eigenvalues and eigenvectors of `best`."""
        return eigen(self.best.matrix)

    @cached_property
    def spectrum(self) -> Spectrum | Unread:
        """The eigenvalues of `best` with their noise law, where it has one."""
        if not self.lawful:
            return Unread(self.eigen.values)
        if self.best is not self.plain:
            source = read_spectrum(self.plain, eigen(self.plain.matrix))
            return Unread(self.eigen.values, source)
        return read_spectrum(self.plain, self.eigen)

    def reach(self, directions: Floats) -> tuple[Floats, Floats]:
        """Return how far rows lie below and above the released mean, each of shape (directions,).

        `directions`, shape (columns, directions), multiply scaled columns. Rows that were shortened
        lie between the box and the origin.
        """
        lower, upper = self.call.box
        lower, upper = np.minimum(lower, 0.0), np.maximum(upper, 0.0)
        norm = self.call.row_norm
        below, above = (
            np.array([support(direction, lower, upper, norm) for direction in towards])
            for towards in (-directions.T, directions.T)
        )
        along = self.plain.mean @ directions
        return np.maximum(below + along, 0.0), np.maximum(above - along, 0.0)

    @cached_property
    def cut(self) -> tuple[float, Floats, Floats]:
        """Share of rows that may be shortened; largest distance of a column, and of its mean.

        The share of the complete rows is taken three sds of its error up, and is 0 without a ball.
        Distances are from the origin, for each scaled column.
        """
        ball, farthest = self.release.ball, np.maximum(*map(np.abs, self.call.box))
        if ball is None:
            return 0.0, farthest, np.abs(self.plain.mean)
        share = max(ball.shortened, 0.0)
        error = math.sqrt(ball.shortened_sd**2 + share / self.independent)
        return min(share + 3 * error, 1.0), farthest, np.abs(self.plain.mean)

    def product_spread(self, directions: Floats) -> tuple[Floats, Floats]:
        """Return the largest variances of products of rows along directions, and their slopes.

        By the bounds of the codebook, or less by bought fourth moments, which have no slope.
        """
        plain = self.plain
        scaled = plain.matrix * np.outer(plain.divisor, plain.divisor)
        second = directions.T @ scaled @ directions
        spread, slope = product_spread(second, *self.reach(directions))
        if self.release.tails is None:
            return spread, slope
        fourth = self._fourth_moments(self.release.tails, np.diagonal(scaled), directions)
        bought = np.maximum(fourth - second**2, 0.0)
        return np.minimum(spread, bought), np.where(bought < spread, 0.0, slope)

    def _fourth_moments(self, tails: Tails, variances: Floats, directions: Floats) -> Floats:
        """Bound fourth moments of rows about their mean: noise upwards, and what was clipped."""
        plain, mean, (_, farthest, _) = self.plain, self.plain.mean, self.cut
        radius = self.call.row_norm
        if tails.about is not None:
            mean = mean + (self.call.origin - tails.about) / self.call.divisor
            radius = tails.farthest
        noise = np.where(np.eye(len(variances)), 1.0, math.sqrt(0.5)) * tails.fourth_sd
        beyond = max(tails.beyond, 0.0) / plain.count
        added = np.outer(farthest**2, farthest**2 + np.minimum(farthest, radius) ** 2) * beyond
        fourth = (tails.fourth + UPPER * noise) * radius**4 / plain.count
        squares = variances + mean**2 + UPPER * plain.noise.diagonal + farthest**2 * beyond
        return mean_products(fourth + np.minimum(added, added.T), squares, mean, directions)

    def _clipped_off(self, tails: Tails, quantile: float) -> tuple[float, float, float]:
        """Return increments beyond the ball by row, their noise, and the root of a mean's square.

        The mean of a column moves by at most the root times the column's largest distance.
        """
        lost, error = np.array([tails.beyond, quantile * tails.beyond_sd]) / self.plain.count
        return float(lost), float(error), math.sqrt(self.cut[0] * max(lost + error, 0.0))

    def unclipped(self, width: Floats, quantile: float) -> tuple[Floats, Floats]:
        """Return how far intervals of entries reach below and above, with what clipping took off.

        `width`, shape (columns, columns), is that for the clipped rows. It is enough where nothing
        was clipped; the released part with the noise of both is, whatever was clipped.
        """
        tails, (share, farthest, mean) = self.release.tails, self.cut
        if tails is None or not share:
            below, above = cut_entries(share, farthest, mean)
            return width + below, width + above
        lost, error, root = self._clipped_off(tails, quantile)
        outer, moved = np.outer(farthest, farthest), root * farthest
        above = np.maximum(width, outer * lost + np.hypot(width, outer * error))
        shift = np.outer(mean, moved) + np.outer(moved, mean) + np.outer(moved, moved)
        return np.where(np.eye(len(mean)), width, above) + shift, above + shift

    def unclipped_eigenvalues(
        self, lower: Floats, upper: Floats, quantile: float
    ) -> tuple[Floats, Floats]:
        """Return intervals of eigenvalues with what clipping took off, by Weyl's inequality."""
        tails, (share, farthest, mean) = self.release.tails, self.cut
        unit = 1 / self.plain.divisor
        if tails is None or not share:
            below, above = cut_eigenvalues(share, farthest * unit, mean * unit)
            return np.maximum(lower - below, 0.0), upper + above
        lost, error, root = self._clipped_off(tails, quantile)
        space = max(tails.farthest**2 - self.call.row_norm**2, 0.0) * float((unit**2).max())
        moved, values = root * math.sqrt(space), self.eigen.values
        shift = 2 * float(np.linalg.norm(mean * unit)) * moved + moved**2
        width = np.maximum(upper - values, 0.0)
        reach = np.maximum(width, space * lost + np.hypot(width, space * error))
        return np.maximum(lower - shift, 0.0), values + reach + shift

    @cached_property
    def denoised(self) -> Floats:
        """`best`, denoised by the requested rule, positive semidefinite.

        Without a rule, or without a law of the noise, the nearest positive
        semidefinite matrix, and as released with ``denoise=None``. Units are
        undone after it: as released, all columns have the same noise.
        """
        if self.call.scale is None:
            released = Analysis(replace(self.call, scale="range"), self.release)
            return released.denoised * np.outer(self.call.divisor, self.call.divisor)
        rule = self.call.denoise
        if self.lawful and self.best is self.plain:
            return denoise(self.plain.matrix, self.spectrum.entry_sd, rule)
        return self.best.matrix if rule is None else denoise(self.best.matrix, 0.0, "psd")

    def captured(self) -> Floats:
        """Return estimates of the non-private variance along each component.

        Without the law of the noise, the eigenvalues of the estimate.
        """
        if isinstance(self.spectrum, Spectrum):
            return self.spectrum.captured()
        return np.maximum(self.eigen.values, 0.0)

    def share_sd(self, total: float) -> Floats:
        """Return the noise sd of ``captured() / total``, nan where it has no known law."""
        if isinstance(self.spectrum, Spectrum):
            sd = float(np.linalg.norm(self.plain.diagonal_sd))
            return self.spectrum.share_sd(total, sd)
        return np.full(len(self.eigen.values), np.nan)


def root_sd(root: Floats, sd: Floats) -> Floats:
    """Return the noise sd of roots of variances, to first order; near 0 at most ``sqrt(sd)``."""
    floor = np.where(sd > 0, np.sqrt(sd), 1.0)
    return np.asarray(sd / np.maximum(2 * root, floor))


def checked_ncomp(ncomp: object, columns: int) -> int:
    """Return a valid number of components, or raise ArgumentError; None means all."""
    if ncomp is None:
        return columns
    hint = ", the number of coded columns of the formula, or None for all"
    return integer("ncomp", ncomp, 1, columns, hint)
