"""What a released second moment says of the columns: matrix, spectrum, best estimate."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpmodels.inference import Spectrum, Unread, read_spectrum
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
from dpmodels.postprocess.support import support
from dpmodels.released import MomentsRelease
from dpmodels.results.call import MomentsCall
from dpmodels.typing import Floats


@dataclass(frozen=True)
class Analysis:
    """A released matrix, read: all of it is post-processing."""

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
        cov = self._moments(second)
        match self.call.scale:
            case "sd":
                return correlation(cov)
            case None:
                return in_units(cov, self.call.divisor)
        return cov

    def _moments(self, second: Floats) -> Covariance:
        call, release = self.call, self.release
        count, total, noise = release.count, release.total, release.noise
        most, norm = release.rows, call.row_norm
        if total is None or call.center:
            return covariance(count, total, second, noise, most=most, box=call.box, row_norm=norm)
        origin = -call.origin / call.divisor
        return second_moment_about(origin, count, total, second, noise, most=most, row_norm=norm)

    @property
    def independent(self) -> float:
        """How many independent rows vary at least as much as these, of which some may be kin."""
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
        ends = [
            [support(way, lower, upper, self.call.row_norm) for way in (-own, own)]
            for own in directions.T
        ]
        below, above = np.array(ends).T
        along = self.plain.mean @ directions
        return np.maximum(below + along, 0.0), np.maximum(above - along, 0.0)

    @cached_property
    def cut(self) -> tuple[float, Floats, Floats]:
        """How many rows may have been shortened, from where, and how far the mean is from there.

        The share of the complete rows, three sds of its error up, and 0 without a ball; the
        farthest that each scaled column goes from the origin, and the distance of its mean.
        """
        ball, far = self.release.ball, np.maximum(*map(np.abs, self.call.box))
        if ball is None:
            return 0.0, far, np.abs(self.plain.mean)
        share = max(ball.shortened, 0.0)
        error = math.sqrt(ball.shortened_sd**2 + share / self.independent)
        return min(share + 3 * error, 1.0), far, np.abs(self.plain.mean)

    @cached_property
    def denoised(self) -> Floats:
        """`best` with its noise taken off by the rule asked for, positive semidefinite.

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
        """Return the non-private variance along each component, as far as it is known.

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
    least = np.where(sd > 0, np.sqrt(sd), 1.0)
    return np.asarray(sd / np.maximum(2 * root, least))
