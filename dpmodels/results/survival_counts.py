"""Released counts of times until an event, as survival curves by group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpmodels.arguments import finite
from dpmodels.errors import ArgumentError, said
from dpmodels.formula.survival import Survival, last_times, one_value, survival
from dpmodels.inference.log_rank import LogRank, log_rank
from dpmodels.inference.ordered import SumNoise
from dpmodels.inference.survival import Noise, joint_noise, risk_weights
from dpmodels.postprocess.ordered import ordered
from dpmodels.postprocess.survival import at_risk, identified
from dpmodels.released import CountsRelease, SumsRelease
from dpmodels.results.call import DescribedCall, TableCall
from dpmodels.results.survival_curve import Curve
from dpmodels.typing import Floats


@dataclass(frozen=True, eq=False)
class SurvivalCounts:
    """Counts by group, ending and interval, with the noise in all sums of them."""

    call: DescribedCall
    release: CountsRelease | SumsRelease
    ends: tuple[float, ...]

    @property
    def _facts(self) -> TableCall:
        return self.call.tables[0]

    @property
    def _groups(self) -> TableCall:
        return TableCall(self._facts.factors[:-2], self._facts.levels[:-2])

    @property
    def timed(self) -> TableCall:
        """The table of groups and times, without the endings."""
        groups, own = self._groups, self._facts
        return TableCall((*groups.factors, own.factors[-1]), (*groups.levels, own.levels[-1]))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows of counts, one a group and ending, and cells: the intervals and one beyond."""
        cells = self._facts.shape[-1]
        return self._facts.cells // cells, cells

    @cached_property
    def asked(self) -> Survival:
        """The time, the event and the groups, as the formula names them."""
        return survival(self.call.formula, self.call.codebook)

    @cached_property
    def breaks(self) -> Floats:
        """Where intervals begin and end; of whole numbers half a step beside them."""
        return self.asked.breaks(self.ends)

    @cached_property
    def times(self) -> Floats:
        """Last times of the intervals, shape (intervals,)."""
        return last_times(self.asked.time, self.breaks)

    def place(self, time: object) -> int:
        """Return which interval a time is the end of; ArgumentError where it is of none."""
        value = finite("time", time)
        near = int(np.argmin(np.abs(self.times - value)))
        if abs(self.times[near] - value) > 1e-9 * max(1.0, abs(value)):
            raise ArgumentError(
                f"time={said(time)} is within an interval, where survival is not told: write one "
                f"of its ends, such as {self.times[near]:.10g}, or a fit with breaks= there"
            )
        return near

    @cached_property
    def halved(self) -> Floats:
        """What share of the rows censored in an interval is not at risk in it."""
        return np.asarray((1 - one_value(self.asked.time, self.breaks)) / 2)

    @cached_property
    def cells(self) -> Floats:
        """Unbiased counts, shape (groups, endings, cells)."""
        return ordered(self.release, self.shape).cells.reshape(-1, 2, self.shape[1])

    @cached_property
    def noise(self) -> Noise:
        """The noise in sums of cells of any groups."""
        alone = ordered(replace(self.release, rows=None), self.shape)
        return joint_noise(alone.spread, *self.shape, public=self.release.rows is not None)

    @property
    def sums(self) -> SumNoise:
        """The noise that all sums are made of."""
        return SumNoise(self.release.law, self.release.noise_sd, self.release.step)

    @property
    def noise_sd(self) -> float:
        """Noise standard deviation of the number of complete rows."""
        return float(self._sds(np.ones((1, *self.shape)))[0])

    def _sds(self, weights: Floats) -> Floats:
        return np.asarray(self.sums.sd * np.sqrt(self.noise(weights).squares))

    @cached_property
    def curves(self) -> tuple[Curve, ...]:
        """The curve of each group."""
        effect = self.release.adjacency.design_effect
        own = (self.times, self.halved, self.noise, self.sums, effect)
        return tuple(Curve(cells, *own) for cells in self.cells)

    @property
    def strata(self) -> list[str]:
        """What the curves are of, as R names them; empty where there is one of all rows."""
        own = self._groups
        if not own.factors:
            return []
        keys = [key if isinstance(key, tuple) else (key,) for key in own.index]
        return [
            ", ".join(f"{name}={level}" for name, level in zip(own.factors, key, strict=True))
            for key in keys
        ]

    def log_rank(self) -> LogRank | None:
        """Test that all curves are one, as far as all rows at risk together are told from noise."""
        groups, cells = self.shape[0] // 2, self.shape[1]
        sds = self._sds(np.tile(risk_weights(cells), (1, groups, 1)))
        end = identified(at_risk(self.cells.sum(axis=0))[:-1], sds[:-1])
        if not end:
            return None
        effect = self.release.adjacency.design_effect
        fitted = [own.upto(end) for own in self.curves]
        return log_rank(self.cells[:, 1], fitted, self.noise, self.sums.sd, effect)
