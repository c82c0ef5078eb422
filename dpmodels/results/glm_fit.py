"""A generalised linear model read from a release: estimates and laws in the columns' own units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import NotAvailable, shorten
from dpmodels.inference.sandwich import FAR, Sandwich, sandwich
from dpmodels.inference.told_levels import told_levels
from dpmodels.postprocess.contrasts import against_first
from dpmodels.released import CoefficientsRelease
from dpmodels.results.call import INTERCEPT, CoefficientsCall
from dpmodels.typing import Floats

# Mechanisms that buy what intervals are made from.
BUYERS = ("objective", "gradients")


@dataclass(frozen=True)
class CoefficientsFit:
    """Coefficients with the law that bought curvature gives them; nan where it gives none."""

    call: CoefficientsCall
    release: CoefficientsRelease

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients, the same for each level of several."""
        return self.call.names

    @cached_property
    def held(self) -> CoefficientsCall:
        """The call in the units of the ball that the rows were read in."""
        return self.call.held_in(self.release.ball)

    @cached_property
    def matrix(self) -> Floats:
        """What turns released coefficients into those of the coded columns in their own units.

        Of several levels released contrasts, into those against the reference, level by level.
        """
        own = self.held.matrix
        if self.call.blocks == 1:
            return own
        return np.asarray(np.kron(against_first(len(self.call.levels)), own), dtype=np.float64)

    @cached_property
    def _levelled(self) -> NDArray[np.bool_]:
        """Of which coefficients the levels are told from noise; all, but of several levels."""
        own, bought, blocks = self.sandwich, self.release.curvature, self.call.blocks
        if blocks == 1 or own is None or bought is None:
            return np.ones(len(self.matrix), dtype=bool)
        reference, *others = told_levels(own, bought, blocks + 1).tolist()
        return np.repeat([reference and told for told in others], len(self.names))

    @cached_property
    def sandwich(self) -> Sandwich | None:
        """Estimate and covariances in units of the ball, None where there are none."""
        return sandwich(self.release)

    @cached_property
    def _searched(self) -> dict[tuple[bytes, float, bool], tuple[float, float]]:
        """Ends of intervals, which are searched for once."""
        return {}

    @cached_property
    def _open(self) -> list[str]:
        """Numbers whose curvature may be noise alone.

        Those of levels are of ordinary size where no row shows them. That of a number is as
        large, in units of its range, as the range is wide, and moves all others by what is not
        known of it.
        """
        if self.sandwich is None:
            return []
        named = zip(self.names, self.sandwich.swamped.reshape(self.call.blocks, -1).T, strict=True)
        lost = [name for name, own in named if own.any()]
        return [name for name in lost if name != INTERCEPT and _is_number(name)]

    @property
    def _lawful(self) -> bool:
        """Whether there is a law at all."""
        return self.sandwich is not None and self.sandwich.far <= FAR and not self._open

    def ends(self, directions: Floats, level: float, *, full: bool = True) -> Floats:
        """Return intervals for the population or for the rows' own, shape (combinations, 2).

        nan where the population's are open, which hold the others.
        """
        ends = np.full((len(directions), 2), math.nan)
        if self._lawful:
            known = ~(directions[:, ~self._levelled] != 0).any(axis=1)
            for at in np.flatnonzero(known):
                way = directions[at] @ self.matrix
                if full or math.isfinite(self._end(way, level, full=True)[0]):
                    ends[at] = self._end(way, level, full=full)
        if not full:
            wide = self.ends(directions, level)
            ends = np.clip(np.where(np.isnan(ends), wide, ends), wide[:, :1], wide[:, 1:])
        return ends

    def _end(self, way: Floats, level: float, *, full: bool) -> tuple[float, float]:
        key = way.tobytes(), level, full
        if key not in self._searched:
            assert self.sandwich is not None
            low, high = self.sandwich.interval(way, level, full=full)
            self._searched[key] = (low, high) if math.isfinite(high - low) else (math.nan, math.nan)
        return self._searched[key]

    @cached_property
    def identified(self) -> NDArray[np.bool_]:
        """Of which coefficients noise leaves the size open on no side, shape (coefficients,)."""
        return self.told(np.eye(len(self.matrix)))

    @cached_property
    def params(self) -> Floats:
        """The estimate in own units; as released where nothing of it is identified."""
        own = self.sandwich
        known = own is not None and self.identified.any()
        ball = own.estimate if own is not None and known else self.release.coefficients
        return np.asarray(self.matrix @ ball)

    @property
    def known(self) -> Sandwich:
        """The law in units of the ball, of a fit that has one."""
        assert self.sandwich is not None
        return self.sandwich

    @property
    def root(self) -> Floats:
        """A root of the covariance about the population's, in own units."""
        both = np.hstack([self.known.noise_root, self.known.sampling_root])
        return np.asarray(self.matrix @ both)

    def covariance(self) -> Floats:
        """Return the covariance in the delta form."""
        return np.asarray(self.root @ self.root.T)

    def told(self, directions: Floats) -> NDArray[np.bool_]:
        """Return which combinations have an interval of 95 % with ends."""
        return np.asarray(np.isfinite(self.ends(directions, 0.95)).all(axis=1))

    def intervals(self, directions: Floats, level: float) -> Floats:
        """Return intervals for the population, shape (combinations, 2)."""
        return self.ends(directions, level)

    def errors(self, directions: Floats) -> Floats:
        """Return standard errors of combinations, sampling and noise."""
        sds = np.linalg.norm(directions @ self.root, axis=1)
        return np.where(self.told(directions), sds, math.nan)

    def roots(self, directions: Floats, values: Floats) -> Floats:
        """Return signed roots of the statistics of combinations that are `values`."""
        ways, told = directions @ self.matrix, self.told(directions)
        each = [
            self.known.statistic(way, value) if there else math.nan
            for way, value, there in zip(ways, values.tolist(), told, strict=True)
        ]
        return np.array(each)

    def distance(self, conditions: Floats, values: Floats) -> float:
        """Return how far conditions are, to hold against χ²."""
        return self.known.distance(conditions @ self.matrix, values)

    def require_law(self, asked: str) -> CoefficientsFit:
        """Return the fit, or refuse what needs standard errors with the reason."""
        if not self.identified.any():
            raise NotAvailable(f"{asked} is not available: {self.why_not}")
        return self

    @property
    def why_not(self) -> str:
        """The reason why there are no standard errors; empty where there are."""
        if self.identified.any():
            return ""
        if self.sandwich is not None and self.sandwich.far > FAR:
            return (
                "not identified at this budget: the noise in the linear predictor is so large that "
                "its errors do not add up; a larger budget, more rows or fewer terms are needed"
            )
        if self._open:
            merged = ", or rare levels of the response merged," * (self.call.blocks > 1)
            return (
                "not identified at this budget: noise swamps the curvature of "
                f"{shorten(', '.join(self._open))}, whose part in the other coefficients is not "
                f"known; narrower bounds, a larger budget, more rows or fewer terms{merged} are "
                "needed"
            )
        if self.release.curvature is not None:
            return (
                "not identified at this budget: the curvature bought for it does not stand clear "
                "of its noise; a larger budget, more rows, fewer terms, or levels that the terms "
                "do not separate are needed"
            )
        if self.release.card.name in BUYERS:
            return "no share of the budget was spent on it: fit with inference=True"
        return (
            f'mechanism="{self.release.card.name}" has no intervals that are known to cover: fit '
            'with mechanism="objective" or "gradients"'
        )


def _is_number(name: str) -> bool:
    """Whether a coefficient is of a number, or of one within levels, by its name."""
    return any("[" not in part for part in name.split(":"))
