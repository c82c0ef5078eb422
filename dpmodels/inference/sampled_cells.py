"""Weighted counts of disjoint cells under a survey design: totals and shares, with their errors.

Totals and shares are sums ``Σ_i Σ_g z_g C_ig`` over units, linear or linearised: z is one number
in a run of cells, another in the cells that it is a share of, and 0 elsewhere. Their variances are
those of Theorem 79 (2), of rows for any run, of units of several rows for single cells and their
shares of all or, with running sums, for the first cells of each group; those of the rows of units
are of Theorem 82 (2).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpmodels.inference.means import Interval, central_weights, power_weights, student_factor
from dpmodels.inference.proportions import Noise, bins_of_quantile
from dpmodels.inference.sampled import Cut, Sample, SampledMoments
from dpmodels.noise.sums import half_widths
from dpmodels.postprocess.weight_caps import CLEAR, UNLIKE
from dpmodels.typing import Floats, Integers


class Runs(NamedTuple):
    """Runs of cells, and the runs that they are shares of; ends are excluded, shape (runs,)."""

    start: Integers
    stop: Integers
    first: Integers
    last: Integers


class Errors(NamedTuple):
    """Errors of weighted sums, in caps, shape (runs,)."""

    squares: Floats  # of the weights of noise variables
    fourths: Floats
    noise_sd: Floats  # with the noise and the error of what was put back
    shift: Floats  # what the cap had moved the sums by
    shift_sd: Floats
    sampling: Floats  # variance; nan where it is not known


@dataclass(frozen=True)
class SampledCells(Sample):
    """Sums by cell of capped units, in caps."""

    counts: Floats  # of shares, shape (cells,)
    noise: Noise
    cut: Cut  # parts of capped units, shape (cells, 1)
    products: Floats  # of shares with their cell and with other cells, shape (cells, 2)
    running: bool = False  # whether products are those of running sums, which add up over cells

    @cached_property
    def sizes(self) -> Floats:
        """Sums of weights by cell, with what was cut off."""
        return self.counts + self.cut.sums(np.ones(1))

    @cached_property
    def _running(self) -> Floats:
        rows = [self.counts, self.cut.parts[:, 0], *self.products.T]
        return np.pad(np.cumsum(rows, axis=1), ((0, 0), (1, 0)))

    def sums(self, runs: Runs) -> tuple[Floats, Floats]:
        """Return the sums of weights in runs and in what they are shares of."""
        inside, base = (self._in(*ends) for ends in (runs[:2], runs[2:]))
        return inside[0] + self.cut.mean * inside[1], base[0] + self.cut.mean * base[1]

    def _in(self, start: Integers, stop: Integers) -> Floats:
        return np.asarray(self._running[:, stop] - self._running[:, start])

    @property
    def single(self) -> Runs:
        """Each cell, as a share of all."""
        cells, none = np.arange(len(self.counts)), np.zeros(len(self.counts), dtype=int)
        return Runs(cells, cells + 1, none, none + len(cells))

    # ---- errors --------------------------------------------------------------------------

    def errors(self, runs: Runs, inside: Floats, outside: Floats) -> Errors:
        """Return the errors of sums with a weight inside runs and one in the rest of their base."""
        cut, n_in = self.cut, runs.stop - runs.start
        n_out = runs.last - runs.first - n_in
        total = n_in * inside + n_out * outside
        squares, fourths = (n_in * inside**k + n_out * outside**k for k in (2, 4))
        cut_noise = cut.mean * cut.noise_sd * np.sqrt(squares)
        capped, base = self._in(*runs[:2])[1], self._in(*runs[2:])[1]
        inner, outer = inside * capped, outside * (base - capped)
        shift = -cut.mean * (inner + outer)
        # The size of the excess, and by how much that of the run and of the others is unlike it.
        size = shift / cut.mean * cut.mean_sd if cut.mean > 0 else 0.0
        put_back = size**2 + (UNLIKE * cut.mean) ** 2 * (inner**2 + outer**2)
        if self.noise.parts:
            squares = np.maximum(squares - total**2 / self.noise.parts, 0.0)
        shift_sd = np.sqrt(cut_noise**2 + put_back)
        noise_sd = np.hypot(self.noise.sd * np.sqrt(squares), shift_sd)
        sampling = self._meat(runs, inside, outside)
        return Errors(squares, fourths, noise_sd, shift, shift_sd, sampling)

    def total_errors(self, runs: Runs) -> Errors:
        """Return the errors of the sums of weights in runs."""
        ones = np.ones(len(runs.start))
        return self.errors(runs, ones, 0 * ones)

    @cached_property
    def totals(self) -> Errors:
        """The errors of the sums of all cells."""
        return self.total_errors(self.single)

    @cached_property
    def design_effect(self) -> Floats:
        """Variance of shares over that of as many rows drawn at random; nan for units."""
        shares, base, errors = self.shares(self.single)
        simple = np.where(shares * (1 - shares) > 0, shares * (1 - shares), np.nan)
        if self.several:
            return np.full(len(shares), np.nan)
        return np.asarray(errors.sampling / base**2 * (self.n_units - 1) / simple)

    def shares(self, runs: Runs) -> tuple[Floats, Floats, Errors]:
        """Return shares, what they are divided by, and the errors of the sums over that."""
        sums, base = self.sums(runs)
        divisor = np.where(base > 0, base, np.nan)
        shares = np.clip(sums / divisor, 0.0, 1.0)
        return shares, divisor, self.errors(runs, 1 - shares, -shares)

    def _meat(self, runs: Runs, inside: Floats, outside: Floats) -> Floats:
        (count, capped, square, crossed), (_, all_capped, all_squares, all_crossed) = (
            self._in(*ends) for ends in (runs[:2], runs[2:])
        )
        n_in, excess = runs.stop - runs.start, 2 * self.cut.mean + self.cut.square
        mean_share = self.products[:, 0].sum() / max(self.counts.sum(), 1.0)
        if self.several:
            square = np.maximum(square, count**2 / self.n_units)
            product, base = square + np.maximum(crossed, 0.0), all_squares + all_crossed
            alone = np.clip(square / np.maximum(product, 1e-300), 0.0, 1.0)
            is_whole = (outside == 0) | (runs.last - runs.first == len(self.counts))
            is_known = runs.start == runs.first if self.running else (n_in == 1) & is_whole
        else:
            is_clear = self.cut.noise_sd * np.sqrt(n_in) < CLEAR * square
            kish = np.maximum(count, 0.0) * np.clip(mean_share, 0.01, 1.0)
            product = square = np.where(is_clear, square, kish)
            base, alone, is_known = np.maximum(all_squares, square), 1.0, n_in >= 0
        square = square + excess * np.maximum(capped, 0.0) * alone
        product, base = (
            products + excess * np.maximum(cut, 0.0)
            for products, cut in ((product, capped), (base, all_capped))
        )
        squared = np.maximum(_quadratic(square, product, base, inside, outside), 0.0)
        sums, all_sums = self.sums(runs)
        n_out = runs.last - runs.first - n_in
        noise = self.noise.sd**2 * (n_in * inside**2 + n_out * outside**2)
        simple = self.about_mean(squared, inside * sums + outside * (all_sums - sums), noise)
        if self.strata is not None:
            simple = self._by_stratum(runs, inside, outside, squared, simple)
        return np.where(is_known, simple * self.fpc, np.nan)

    def _by_stratum(
        self, runs: Runs, inside: Floats, outside: Floats, squared: Floats, simple: Floats
    ) -> Floats:
        strata = self.strata
        assert strata is not None
        # Shares, their squares and their products with other cells, by stratum and cell.
        used = strata.parts if self.several else strata.parts[:, :, [0, 2]]
        tables = np.stack([used.sum(axis=2), strata.parts[:, :, 0], used[:, :, :-1].sum(axis=2)])
        running = np.pad(np.cumsum(tables, axis=2), ((0, 0), (0, 0), (1, 0)))
        count, square, product = running[:, :, runs.stop] - running[:, :, runs.start]
        base, _, products = running[:, :, runs.last] - running[:, :, runs.first]
        n_in, n_base = runs.stop - runs.start, runs.last - runs.first
        noise = used.shape[2] * (n_in * inside**2 + (n_base - n_in) * outside**2)
        sums = inside * count + outside * (base - count)
        squares = _quadratic(square, product, products, inside, outside)
        return strata.within(sums, strata.noise_sd**2 * noise, squares, squared, simple)

    # ---- intervals -----------------------------------------------------------------------

    def _factor(self, level: float) -> float:
        df = np.array([max(self.n_units - self.n_strata, 1.0)])
        return float(student_factor(df, (1 - level) / 2)[0])

    def widths(self, errors: Errors, level: float, *, population: bool) -> Floats:
        """Return half-widths of intervals of sums, in caps."""
        sampling = np.sqrt(errors.sampling) * self._factor(level) if population else 0.0
        extra, noise = np.hypot(errors.shift_sd, sampling), self.noise
        return half_widths(noise.law, errors.squares, errors.fourths, noise.sd, extra, level)

    def interval(self, runs: Runs, level: float, *, population: bool) -> Interval:
        """Return intervals of the sums of weights in runs, not below 0, in caps."""
        sums = np.maximum(self.sums(runs)[0], 0.0)
        width = self.widths(self.total_errors(runs), level, population=population)
        return np.maximum(sums - width, 0.0), sums + width

    def share_interval(self, runs: Runs, level: float, *, population: bool) -> Interval:
        """Return intervals of shares, within 0 and 1; nan where sampling errors are not known."""
        shares, base, errors = self.shares(runs)
        width = self.widths(errors, level, population=population) / base
        shares, width = np.nan_to_num(shares), np.where(np.isnan(base), 1.0, width)
        return np.maximum(shares - width, 0.0), np.minimum(shares + width, 1.0)

    def quantile_places(
        self, prob: float, runs: Runs, level: float, *, population: bool
    ) -> tuple[float, float]:
        """Return both ends of an interval of a quantile, in cells, by Woodruff's method.

        `runs` are the first 1, 2, ... cells.
        """
        sums, base = self.sums(runs)
        weights = np.full(len(sums), 1 - prob), np.full(len(sums), -prob)
        width = self.widths(self.errors(runs, *weights), level, population=population)
        score = sums - prob * base
        first, last = bins_of_quantile(score, np.where(np.isnan(width), np.inf, width))
        return float(first), float(last) + 1


def squares_and_products(running: Floats) -> Floats:
    """Return products whose sums over the first cells are ``Σ F²`` and ``Σ F (B - F)``.

    From ``C_g (F + F')/2`` and ``C_g (2 B - F - F')/2``, on the last axis; what follows stays.
    """
    below, above, *rest = np.moveaxis(running, -1, 0)
    return np.stack([2 * below, above - below, *rest], axis=-1)


def _quadratic(
    square: Floats, product: Floats, base: Floats, inside: Floats, outside: Floats
) -> Floats:
    """Return ``Σ (a C_g + b (C - C_g))²`` from ``Σ C_g²``, ``Σ C_g C`` and ``Σ C²``."""
    step = inside - outside
    return np.asarray(step**2 * square + 2 * step * outside * product + outside**2 * base)


# The Bernstein polynomials in each product: 00, 01, 02, 11, 12, 22.
_LEFT, _RIGHT = np.triu_indices(3)


@dataclass(frozen=True, kw_only=True)
class UnitMoments(SampledMoments):
    """Moments by group of the rows of sampling units: six products, then three means."""

    @property
    def n_squares(self) -> int:
        """How many parts of a group are of squared shares."""
        return len(_LEFT)

    @property
    def weights(self) -> Floats:
        """Weights with which the parts of a group add up to its sum of positions."""
        return np.asarray(_sums_of(power_weights(2, 1)))

    @property
    def _row_correction(self) -> float:
        """1: the number of rows of a table of units is not public."""
        return 1.0

    def meat(self, centre: Floats) -> Floats:
        """Return the variance of ``Σ C (t - centre)`` over units, not below 0, shape (groups,)."""
        return self._variance_of(power_weights(2, 1) - centre[:, None])

    def _both_central(self, centre: Floats) -> Floats:
        return _sums_of(central_weights(2, 2, centre))

    @cached_property
    def variance_sampling_sd(self) -> Floats:
        """Sampling standard deviation of the variances, by linearisation."""
        spread = np.nan_to_num(self.variances)[:, None]
        scores = central_weights(2, 2, self._centre) - spread
        bound = self.joined if self.several else 1
        return np.asarray(np.sqrt(bound * self._variance_of(scores)) / self._whole)

    def _variance_of(self, scores: Floats) -> Floats:
        """Return the variance over units of sums of a score of rows, by its coefficients.

        Of capped units squared means are a fraction of the mean squares: that of all units.
        """
        squares = scores[..., _LEFT] * scores[..., _RIGHT]  # Of a function's means
        squared = (self.parts[:, : self.n_squares] * squares).sum(axis=1) * self._weight_ratio
        of_rows = (self.parts * _sums_of(scores**2)).sum(axis=1)
        fraction = np.clip(squared / np.maximum(of_rows, 1e-300), 0.0, 1.0)
        beyond = self.cut.squares(scores**2) * fraction
        return self._variance(_sums_of(scores), squares, scores, beyond)


def _sums_of(coefficients: Floats) -> Floats:
    pairs = (coefficients[..., _LEFT] + coefficients[..., _RIGHT]) / 2
    return np.concatenate([pairs, coefficients], axis=-1)
