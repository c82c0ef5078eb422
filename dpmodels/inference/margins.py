"""The noise of margins made of released components, and intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import chdtrc, xlogy

from dpmodels.errors import NotAvailable
from dpmodels.inference.independence import EXCESS, whitening
from dpmodels.inference.proportions import SMALL_NOISE, Noise, stepped_width, wilson, within
from dpmodels.noise.sums import SMALL, half_width
from dpmodels.postprocess.residuals import (
    Term,
    cells,
    crossed,
    fitted_variances,
    precisions,
    subsets,
)
from dpmodels.typing import Floats, Integers


@dataclass(frozen=True)
class MarginNoise:
    """The noise distribution of all margins of a release, without their covariance matrix.

    `sds` are noise sds by cell of the tables that noise was added to: components for Gaussian
    noise; margins, to which the components are fitted, for Laplace noise. With `public_total` the
    number of rows has no noise; `step` is the lattice step of discrete noise.
    """

    law: str
    sizes: tuple[int, ...]
    sds: Mapping[Term, float]
    public_total: bool
    step: float = 0.0

    def divided(self, rows: int) -> MarginNoise:
        """Return the noise of counts in units of `rows` rows."""
        sds = {term: sd / rows for term, sd in self.sds.items()}
        return MarginNoise(self.law, self.sizes, sds, self.public_total, self.step / rows)

    @cached_property
    def _weights(self) -> Mapping[Term, Mapping[Term, float]]:
        """By component, the weights of the noisy tables in it."""
        if self.law == "gaussian":
            return {term: {term: 1.0} for term in self.sds}
        weights = precisions(self.sds, self.sizes)
        return {**weights, (): {}} if self.public_total else weights

    @cached_property
    def variances(self) -> Mapping[Term, float]:
        """Noise variances of a cell of each component before centring; 0 for a public total."""
        if self.law == "gaussian":
            return {(): 0.0, **{part: sd**2 for part, sd in self.sds.items()}}
        variances = fitted_variances(self.sds, self.sizes)
        return {**variances, (): 0.0} if self.public_total else variances

    def product(self, term: Term, left: Sequence[Floats], right: Sequence[Floats]) -> float:
        """Return the noise covariance of two weighted sums of a margin's cells.

        Weights are products of `left` and `right`, the weights of the levels of each variable.
        """
        contrast, common = {}, {}
        for i, left_weights, right_weights in zip(term, left, right, strict=True):
            common_part = float(left_weights.sum() * right_weights.sum()) / self.sizes[i]
            contrast[i] = float(left_weights @ right_weights) - common_part
            common[i] = common_part / self.sizes[i]
        return math.fsum(
            self.variances[part] * math.prod(contrast[i] if i in part else common[i] for i in term)
            for part in subsets(term)
        )

    def cell_sd(self, term: Term) -> float:
        """Return the standard deviation of the noise in each cell of a margin."""
        indicator = [np.eye(1, self.sizes[i])[0] for i in term]
        return math.sqrt(self.product(term, indicator, indicator))

    def drawn(self, term: Term, level_sets: Sequence[Integers]) -> tuple[Floats, Floats]:
        """Return a root of the noise covariance of a margin's cells, and fourth cumulants.

        The root, shape (cells, variables), times independent variables of variance 1 with these
        cumulants is the noise; the cells are all combinations of `level_sets`.
        """
        blocks, fourth_cumulants = [], []
        for source, sd in self.sds.items():
            shared = tuple(i for i in term if i in source)
            if self.law == "gaussian" and shared != source:
                continue
            n_summed = cells(source, self.sizes) / cells(shared, self.sizes)
            block = self._spread(term, level_sets, source, shared)
            blocks.append(sd * math.sqrt(n_summed) * block)
            fourth_cumulants.append(np.full(block.shape[1], EXCESS[self.law] / n_summed))
        return np.hstack(blocks), np.concatenate(fourth_cumulants)

    def _spread(
        self, term: Term, level_sets: Sequence[Integers], source: Term, shared: Term
    ) -> Floats:
        """Return the matrix from a noisy table, summed to the shared variables, to a margin."""
        total = np.zeros((math.prod(map(len, level_sets)), cells(shared, self.sizes)))
        for part in subsets(shared):
            weight = self._weights.get(part, {}).get(source, 0.0)
            if weight:
                factors = [
                    _factor(self.sizes[i], levels, shared=i in shared, centred=i in part)
                    for i, levels in zip(term, level_sets, strict=True)
                ]
                total += weight * crossed(factors)
        return total

    def width(self, term: Term, level: float) -> float:
        """Return the half-width of an interval for the noise of a cell."""
        sd = self.cell_sd(term)
        if self.law == "gaussian" or sd == 0:
            return half_width("gaussian", np.ones(1), sd, 0.0, level)
        noise_root, fourth_cumulants = self.drawn(term, [np.zeros(1, dtype=np.int64)] * len(term))
        weights, times = np.abs(noise_root[0]), np.rint(EXCESS[self.law] / fourth_cumulants)
        largest = int(np.argmax(weights * (times == 1)))
        noised = max(self.sds.values())
        if times[largest] == 1 and self.step > SMALL_NOISE * noised:
            other_sd = math.sqrt(max(sd**2 - weights[largest] ** 2, 0.0))
            noise = Noise(self.law, noised, 0, self.step)
            return stepped_width(noise, weights[largest] / noised, other_sd, level)
        large = weights**2 / times > SMALL * sd**2
        leading = np.repeat((weights / np.sqrt(times))[large], times[large].astype(int))
        rest = math.sqrt(max(sd**2 - float((leading**2).sum()), 0.0))
        return half_width(self.law, leading, 1.0, rest, level)

    def count_interval(self, term: Term, counts: Floats, level: float) -> tuple[Floats, Floats]:
        """Return intervals of the counts of these rows in some cells of a margin, not below 0."""
        return within(counts, self.width(term, level))

    def share_interval(
        self, term: Term, counts: Floats, declared: Sequence[Floats], level: float
    ) -> tuple[Floats, Floats]:
        """Return intervals of the population's proportions of a margin's cells of declared levels.

        `declared` has 1 for the levels of each variable that complete rows can have, else 0.
        """
        indicator = [np.eye(1, self.sizes[i])[0] for i in term]
        noise = (
            self.product(term, indicator, indicator),
            self.product(term, indicator, declared),
            self.product(term, declared, declared),
        )
        return wilson(counts, noise, self.law, level)


def _factor(size: int, levels: Integers, *, shared: bool, centred: bool) -> Floats:
    """Return the factor of one variable in :meth:`MarginNoise._spread`."""
    if not shared:
        return np.full((len(levels), 1), 1 / size)
    even = np.full((size, size), 1 / size)
    return np.asarray((np.eye(size) - even if centred else even)[levels])


# Log-linear models of noisy tables, accounting for the noise.

# Most Newton steps, their tolerance in units of the coefficients, and logarithms of expected counts
# below and above which the fit diverges.
STEPS, TOLERANCE, MIN_LOG_COUNT, MAX_LOG_COUNT = 100, 1e-10, -18.0, 30.0
# Stands for a total of 0 in the starting values.
START = 0.5


@dataclass(frozen=True)
class LogLinearFit:
    """Coefficients of a log-linear model of one table.

    `cov` is for sampling and noise, `noise_cov` for the noise alone. `statistic` is the squared
    distance of the table from the fit in the metric of its covariance: under the model chi-square
    with `df` degrees of freedom, a multiple of it for heavy-tailed noise. `deviance` takes negative
    counts as 0.
    """

    params: Floats
    cov: Floats
    noise_cov: Floats
    fitted: Floats
    deviance: float
    df: int
    statistic: float
    pvalue: float


def loglinear(
    counts: Floats, coded: Floats, noise_root: Floats, fourth_cumulants: Floats
) -> LogLinearFit:
    """Fit ``log E(counts) = coded @ params``.

    `counts`, shape (cells,), are unbiased and may be negative; `noise_root` and `fourth_cumulants`
    are as in :func:`dpmodels.inference.independence.independence_within`. The estimate solves the
    score equation ``X'(y - μ) = 0`` of Poisson counts, to which the noise adds a term with mean 0:
    its covariance is ``I⁻¹ + I⁻¹ X' Σ X I⁻¹``, ``I = X' diag(μ) X``, Σ the noise covariance.
    """
    fit = from_sums(coded.T @ counts, coded, coded.T @ noise_root)
    fitted = fit.fitted
    inverse = fit.cov - fit.noise_cov
    df = len(counts) - len(fit.params)
    statistic = pvalue = math.nan
    if df:
        left = np.eye(len(counts)) - fitted[:, None] * (coded @ inverse @ coded.T)
        residual_root = left @ noise_root
        metric = whitening(left @ (fitted[:, None] * left.T) + residual_root @ residual_root.T, df)
        statistic = float(((metric @ (counts - fitted)) ** 2).sum())
        fourth = float((fourth_cumulants * ((metric @ residual_root) ** 2).sum(axis=0) ** 2).sum())
        larger = 1 + fourth / (2 * df)
        pvalue = float(chdtrc(df / larger, statistic / larger))
    clipped = np.maximum(counts, 0.0)
    deviance = 2 * float((xlogy(clipped, clipped / fitted) - clipped + fitted).sum()) if df else 0.0
    return replace(fit, deviance=deviance, df=df, statistic=statistic, pvalue=pvalue)


def from_sums(sums: Floats, coded: Floats, noise_root: Floats) -> LogLinearFit:
    """Fit the same model to ``X'y`` alone, whose noise has the root `noise_root`.

    These are sums of margins, so no table of all variables is needed; goodness of fit is not
    available.
    """
    params = _solved(sums, coded)
    fitted = np.exp(coded @ params)
    inverse = np.linalg.inv(coded.T @ (fitted[:, None] * coded))
    coefficient_root = inverse @ noise_root
    noise = np.asarray(coefficient_root @ coefficient_root.T)
    not_tested = (math.nan, 0, math.nan, math.nan)
    return LogLinearFit(params, np.asarray(inverse + noise), noise, fitted, *not_tested)


def _solved(sums: Floats, coded: Floats) -> Floats:
    """Return the root of the score, the gradient of a concave function.

    The first column of the coding is constant.
    """
    params = np.zeros(len(sums))
    params[0] = math.log(max(float(sums[0]), START) / len(coded))

    def value(at: Floats) -> float:
        return float(sums @ at - np.exp(np.minimum(coded @ at, 700.0)).sum())

    for _ in range(STEPS):
        fitted = np.exp(coded @ params)
        step = np.linalg.lstsq(
            coded.T @ (fitted[:, None] * coded), sums - coded.T @ fitted, rcond=None
        )[0]
        size = 1.0
        while value(params + size * step) < value(params) - TOLERANCE and size > TOLERANCE:
            size /= 2
        params = params + size * step
        logs = coded @ params
        if logs.min() < MIN_LOG_COUNT or logs.max() > MAX_LOG_COUNT:
            break
        if np.abs(size * step).max() < TOLERANCE:
            return np.asarray(params)
    raise NotAvailable(
        "the log-linear model is not identified: a cell in the margins of its terms is empty or "
        "hidden by noise; drop terms or increase eps"
    )
