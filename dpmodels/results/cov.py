"""The results of a private covariance matrix, and of correlations derived from one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import ClassVar, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from dpmodels.arguments import text
from dpmodels.digest import origin
from dpmodels.errors import ArgumentError, FormulaError, NotAvailable, quoted, shorten
from dpmodels.formula import Design, design
from dpmodels.formula.parse import parsed_formula, quote, variables_in
from dpmodels.inference import entry_sd, mean_sd
from dpmodels.inference.correlations import Correlation, correlation_of
from dpmodels.labels import square, with_labels
from dpmodels.postprocess import Covariance, correlation
from dpmodels.postprocess.normal_equations import NormalEquations, released_equations
from dpmodels.privacy.lines import SHOWN
from dpmodels.released import MomentsRelease
from dpmodels.results.base import Derivation, Result, per_row
from dpmodels.results.call import MomentsCall, n_public_rows, release_facts
from dpmodels.results.components import Analysis, checked_ncomp, root_sd
from dpmodels.results.derived_table import Estimates
from dpmodels.results.estimate_table import EstimateTable, product_unit, table_of_estimates, unit_of
from dpmodels.results.pca import PCAResult
from dpmodels.typing import Axes, Coder, DataArray, Dataset, Floats
from dpmodels.verbs import documented

# Variables of a dataset of the matrix.
_PARTS = (
    *("cov", "cov_released", "noise_sd", "cor", "cor_noise_sd", "weak", "sd", "sd_noise_sd"),
    *("center", "center_noise_sd"),
)


@dataclass(frozen=True, repr=False)
class CovResult(Result):
    """A private covariance matrix: released values and public facts only.

    Notes
    -----
    Every attribute is computed from the release, at no further cost. Columns
    are in their own units; with ``row_norm="unit"`` rows lie on the unit
    sphere and have none. Without a mean, covariances are second moments about
    0 and standard deviations are root mean squares.

    Intervals are of pairs of columns (``column1, column2``, the released ``cov``), nan without a
    law of the noise. They are normal: under Laplace noise those of 95 % cover at least 93 %.
    :meth:`conf_int` needs the law and the mean, and assumes only the bounds of the rows: its
    sampling error is the largest that rows with the released moments can have within them, or
    follows from fourth moments after ``inference=True``. It is exact for columns of 0 and 1; for
    others, 95 % intervals cover at least 95 %, and are long where bounds are wide. Where rows were
    shortened to a released ball, both kinds of interval allow for their full lengths.
    """

    call: MomentsCall
    release: MomentsRelease
    coder: Coder | None = field(default=None, repr=False)

    @cached_property
    def _analysis(self) -> Analysis:
        """The matrix in the coordinates it was released in: equal noise in all columns."""
        return Analysis(replace(self.call, scale="range"), self.release)

    @property
    def _unit(self) -> Floats:
        """Each column's unit: the size of one step of its released coordinate."""
        return np.ones_like(self.call.divisor) if self.call.unit_rows else self.call.divisor

    @cached_property
    def _correlation(self) -> Covariance:
        analysis = self._analysis
        cor = correlation(replace(analysis.best, matrix=analysis.denoised))
        np.fill_diagonal(cor.matrix, 1.0)
        return cor

    def _square(self, matrix: Floats, name: str) -> DataArray:
        """Label a matrix in released coordinates and bring it to the columns' own units."""
        return square(matrix * np.outer(self._unit, self._unit), self.call.names, name)

    def _by_column(self, values: NDArray[np.generic], name: str) -> DataArray:
        return with_labels(values, name, variable=self.call.names)

    @property
    def cov(self) -> DataArray:
        """Denoised covariances, ``variable × variable_``.

        By the rule that ``denoise=`` names; positive semidefinite.
        """
        return self._square(self._analysis.denoised, "cov")

    @property
    def cov_released(self) -> DataArray:
        """Covariances as released, ``variable × variable_``.

        Unbiased where the law of the noise is known; not necessarily positive
        semidefinite.
        """
        return self._square(self._analysis.plain.matrix, "cov_released")

    @property
    def cor(self) -> DataArray:
        """Correlations, from `cov`; the diagonal is exactly 1.

        Those of `weak_variables` are understated.
        """
        return square(self._correlation.matrix, self.call.names, "cor")

    @property
    def noise_sd(self) -> DataArray:
        """Noise sd of each entry of `cov_released`, to first order; nan without a law."""
        return self._square(entry_sd(self._analysis.plain), "noise_sd")

    @property
    def cor_noise_sd(self) -> DataArray:
        """Noise sd of each correlation, to first order; nan without a law."""
        sd = entry_sd(self._correlation)
        np.fill_diagonal(sd, 0.0)
        return square(sd, self.call.names, "cor_noise_sd")

    @property
    def center(self) -> DataArray | None:
        """Released means; None if not centred."""
        if not self.call.center:
            return None
        return self._by_column(self._analysis.best.mean * self._unit + self.call.origin, "center")

    @property
    def center_noise_sd(self) -> DataArray | None:
        """Noise sd of the released means; None if not centred."""
        if not self.call.center:
            return None
        return self._by_column(mean_sd(self._analysis.best) * self._unit, "center_noise_sd")

    @property
    def _shift(self) -> Floats:
        """How far the means of all rows may be from `center`, where rows were shortened."""
        share, farthest, _ = self._analysis.cut
        return np.asarray(share * farthest * self._unit)

    @property
    def sd(self) -> DataArray:
        """Standard deviations: roots of the diagonal of `cov`."""
        variances = np.maximum(np.diagonal(self.cov), 0.0)
        return self._by_column(np.sqrt(variances), "sd")

    @property
    def sd_noise_sd(self) -> DataArray:
        """Noise sd of the standard deviations, to first order; nan without a law."""
        noise = root_sd(self.sd.to_numpy(), np.diagonal(self.noise_sd))
        return self._by_column(noise, "sd_noise_sd")

    @property
    def lawful(self) -> bool:
        """Whether the noise of `cov_released` has a known law."""
        return self._analysis.lawful

    @property
    def nobs(self) -> float:
        """Number of rows: the public one, or the released one where it is private."""
        n_public = n_public_rows(self.release)
        return self.ncomplete if n_public is None else n_public

    @property
    def ncomplete(self) -> float:
        """Released number of complete rows; its noise sd is ``release.noise.count``."""
        return self._analysis.best.count

    @property
    def weak(self) -> DataArray:
        """Whether each column's variance is too noisy to divide by.

        For correlations it is divided by the root of four noise sds of its
        variance.
        """
        return self._by_column(self._correlation.weak, "weak")

    @property
    def weak_variables(self) -> str:
        """Names of the weak columns."""
        weak = np.flatnonzero(self._correlation.weak)
        return ", ".join(self.call.names[i] for i in weak)

    def _noise_int(self, level: float) -> pd.DataFrame:
        return self._widened(0.0, 0.0, float(ndtri((1 + level) / 2)))

    def _conf_int(self, level: float) -> pd.DataFrame:
        if not self.lawful:
            raise NotAvailable(
                "conf_int() is not available: the error of this release has no known "
                'distribution; write mechanism="gauss", and between sites protocol="full" or '
                '"secure_sum"'
            )
        if not self.call.center:
            raise NotAvailable(
                "conf_int() is not available with center=False: the sampling law of a second "
                "moment about 0 needs the mean; noise_int() is available"
            )
        analysis, quantile = self._analysis, float(ndtri((1 + level) / 2))
        spread, slope = analysis.product_spread(np.eye(len(self.call.names)))
        # As in Wilson's interval, the variance is that at the other end of the interval.
        shift = quantile**2 * slope / (2 * analysis.independent)
        return self._widened(spread / analysis.independent, shift, quantile)

    def _widened(
        self, sampling: Floats | float, shift: Floats | float, quantile: float
    ) -> pd.DataFrame:
        """Return intervals for noise, a sampling variance, and rows that were clipped."""
        analysis = self._analysis
        squared = entry_sd(analysis.plain) ** 2 + sampling
        width = np.sqrt(quantile**2 * squared + np.square(shift))
        below, above = analysis.unclipped(width, quantile)
        unit = np.outer(self._unit, self._unit)
        return self._intervals((below - shift) * unit, (above + shift) * unit)

    def _intervals(self, below: Floats, above: Floats) -> pd.DataFrame:
        """Return intervals about the released entries; a variance below 0 is read as 0."""
        released = self.cov_released.to_numpy()
        floor = np.full_like(released, -np.inf)
        np.fill_diagonal(floor, 0.0)
        middle = np.maximum(released, floor)
        lower, upper = np.maximum(middle - below, floor), middle + above
        return self._pairs(cov=released, lower=lower, upper=upper)

    def _pairs(self, **matrices: Floats) -> pd.DataFrame:
        """Return the entries on and above the diagonal, one row a pair."""
        names = np.array(self.call.names, dtype=object)
        first, second = np.triu_indices(len(names))
        entries = {name: matrix[first, second] for name, matrix in matrices.items()}
        return pd.DataFrame({"column1": names[first], "column2": names[second], **entries})

    def _estimates(self) -> EstimateTable:
        matrices = {"cov": self.cov, "cor": self.cor, "noise_sd": self.noise_sd}
        matrices["released"] = self.cov_released
        table = self._pairs(**{name: matrix.to_numpy() for name, matrix in matrices.items()})
        index = pd.MultiIndex.from_frame(table[["column1", "column2"]])
        units = {name: unit_of(self.call.codebook, name) for name in self.call.names}
        return table_of_estimates(
            self,
            index,
            further={"cor": table["cor"], "released": table["released"]},
            labels={"label1": table["column1"], "label2": table["column2"]},
            unit=[product_unit(units[first], units[second]) for first, second in index],
            estimate=table["cov"],
            noise_sd=table["noise_sd"],
        )

    def _line(self) -> dict[str, object]:
        return {
            "nobs": self.nobs,
            "ncomplete": self.ncomplete,
            "ncolumns": len(self.call.names),
            "nweak": int(self.weak.sum()),
        }

    def to_xarray(self) -> Dataset:
        """Return the matrices with their noise, means and sds as one labelled dataset."""
        import xarray as xr

        parts = {name: getattr(self, name) for name in _PARTS}
        facts = {"formula": self.call.formula, "simulated": int(self.simulated)}
        available = {name: part for name, part in parts.items() if part is not None}
        return xr.Dataset(available, attrs={**facts, **release_facts(self.release)})

    def _size(self) -> str:
        return f"{len(self.call.names)} columns"

    @documented
    def plot(self, kind: str = "cor", ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw the matrix as a heat map.

        Parameters
        ----------
        kind : {"cor", "cov"}
            Correlations or covariances.
        """
        from dpmodels.plots import heat

        if kind == "cor":
            return heat(self.cor, label="Correlation", largest=1.0, **self._picture(ax, caption))
        if kind == "cov":
            return heat(self.cov, label="Covariance", **self._picture(ax, caption))
        raise ArgumentError(f'kind={quoted(kind)}: expected "cor" or "cov"')

    def pca(self, ncomp: int | None = None, scale: str | None = "range") -> PCAResult:
        """Return the principal components of this matrix, free of charge.

        Parameters
        ----------
        ncomp : int, optional
            Components to keep; all by default.
        scale : {"range", "sd", None}
            Divide columns by their public half-range, by their released
            standard deviations (correlation matrix), or not at all.

        Raises
        ------
        ArgumentError
            For a scale that the release does not have: ``"range"`` of one in
            natural units, None of rows on the unit sphere.
        """
        return self._derive(PCAResult, "pca", ncomp=ncomp, scale=scale)

    def _pca(self, ncomp: int | None, scale: str | None) -> Derivation:
        def result(call: MomentsCall, release: MomentsRelease) -> PCAResult:
            return PCAResult(call, release, self.coder)

        return Derivation(rescaled(self.call, ncomp, scale), result)

    derivations: ClassVar = {"pca": _pca}
    scores, fittedvalues, resid = per_row("pca().transform(newdata)")


def rescaled(call: MomentsCall, ncomp: int | None, scale: str | None) -> MomentsCall:
    """Return the call of components of a released matrix; ArgumentError if the scale is missing."""
    unscaled = call.unit_rows or call.scale is None
    free = {call.scale, "sd"} if unscaled else {"range", "sd", None}
    if not isinstance(scale, str | None) or scale not in free:
        names = (f'"{option}"' if option else "None" for option in sorted(free, key=str))
        options = " or ".join(names)
        raise ArgumentError(f"scale={quoted(scale)}: this release has scale={options}")
    return replace(call, ncomp=checked_ncomp(ncomp, len(call.names)), scale=scale)


NOTES = (
    "The test of 0 allows for noise and sampling, and is exact for independent columns, as R's "
    "cor.test.",
    "The noise variance is known: df may exceed the number of rows. Conf. intervals are Fisher's, "
    "for jointly normal columns, widened for the noise.",
    "noise int.: interval for the correlation of these rows, privacy noise only.",
)
_NAME: Final = "the name of a column, a text"


def cor_test(
    fit: Result, x: str, y: str | None, given: str | Sequence[str], level: float
) -> Estimates:
    """Return the test of one correlation."""
    call, release = fit.call, fit.release
    pair, conditions = _pair(call, text("x", x, _NAME), y), _conditions(call, given)
    repeated = sorted(set(pair) & set(conditions))
    if repeated:
        raise ArgumentError(f"given: {call.names[repeated[0]]!r} is one of the two tested columns")
    correlation = _correlation(call, release, equations(call, release), pair, conditions)
    row: dict[str, object] = {f"column{at + 1}": call.names[i] for at, i in enumerate(pair)}
    row |= {"estimate": correlation.estimate, "noise_sd": correlation.noise_sd}
    row |= dict(zip(("statistic", "df", "p_value"), correlation.test, strict=True))
    row |= dict(zip(("conf_low", "conf_high"), correlation.ends(level), strict=True))
    row |= dict(zip(("noise_low", "noise_high"), correlation.noise_ends(level), strict=True))
    row["identified"] = correlation.is_identified
    given_names = ", ".join(call.names[at] for at in conditions)
    title = f"Partial correlation given {given_names}" if conditions else "Correlation"
    return Estimates(fit, title, pd.DataFrame([row]), NOTES, level, test="t")


def pcor(call: MomentsCall, release: MomentsRelease, names: Sequence[str]) -> DataArray:
    """Return the correlation of each pair of columns given all others, nan where not identified."""
    positions = [call.names.index(name) for name in names]
    matrix = np.eye(len(names))
    joint = equations(call, release)
    for i, j in combinations(range(len(names)), 2):
        pair = [positions[i], positions[j]]
        conditions = [at for at in positions if at not in pair]
        matrix[i, j] = matrix[j, i] = _correlation(call, release, joint, pair, conditions).estimate
    return square(matrix, tuple(names), "pcor")


def equations(call: MomentsCall, release: MomentsRelease) -> NormalEquations:
    """Return the moments of all columns with their noise, as equations with a constant."""
    return released_equations(release, row_norm=call.row_norm, shift=None, layout=None)


def _correlation(
    call: MomentsCall,
    release: MomentsRelease,
    joint: NormalEquations,
    pair: list[int],
    conditions: list[int],
) -> Correlation:
    entries = np.eye(len(joint.moments))
    among = replace(joint, regressors=entries[:, [0, *(at + 1 for at in conditions)]])
    n_rows = release.count if release.rows is None else min(release.count, release.rows)
    freedom = (n_rows - 2 - len(conditions)) / release.adjacency.design_effect
    return correlation_of(among, entries[:, [at + 1 for at in pair]], freedom)


def _pair(call: MomentsCall, x: str, y: str | None) -> list[int]:
    texts = [x.removeprefix("~").strip()] if y is None else [x, text("y", y, _NAME)]
    positions = [at for column in texts for at in places_of(call, column)]
    if len(positions) != 2 or len(set(positions)) != 2:
        names = ", ".join(call.names[at] for at in positions)
        raise ArgumentError(
            f"x, y: expected two different columns, found {shorten(names)!r}; a category of more "
            'than two levels has a column for each but the first, such as "region[T.south]"'
        )
    return positions


def _conditions(call: MomentsCall, conditions: str | Sequence[str]) -> list[int]:
    texts = [conditions] if isinstance(conditions, str) else conditions
    if not isinstance(texts, list | tuple):
        raise ArgumentError(f'given={quoted(conditions)}: expected names, such as ["age", "sex"]')
    return sorted({at for name in texts for at in places_of(call, text("given", name, _NAME))})


# Some columns of a joint release, by formula or by name.


class Part(NamedTuple):
    """Some columns of a joint release, as if requested alone."""

    call: MomentsCall
    positions: list[int]
    joint: MomentsCall

    def take(self, release: MomentsRelease) -> MomentsRelease:
        """Return these columns of the joint release."""
        assert release.total is not None
        tails = release.tails
        if tails is not None and tails.about is not None:
            fourth = tails.fourth[np.ix_(self.positions, self.positions)]
            tails = replace(tails, fourth=fourth, about=tails.about[self.positions])
        total = release.total[self.positions]
        second = release.second[np.ix_(self.positions, self.positions)]
        ball = release.ball and replace(release.ball, centre=release.ball.centre[self.positions])
        columns = replace(release, tails=tails, total=total, second=second, ball=ball)
        return replace(columns, whole=origin(release))

    def named(self, call: MomentsCall, release: MomentsRelease) -> MomentsCall:
        """Return the call with a note on the joint release."""
        joint_digest = (release.whole or "")[:SHOWN]
        of = f"{len(self.joint.names)} columns ({self.joint.formula}), digest {joint_digest}"
        return replace(call, part_of=of)


def part(call: MomentsCall, coded: Design) -> Part:
    """Return the columns of a design; FormulaError if one is not in the joint release."""
    positions = _places(coded, call)
    facts = {name: getattr(coded, name) for name in ("formula", "codebook", "names")}
    scaling = ("lower", "upper", "origin", "divisor")
    arrays = {name: getattr(call, name)[positions] for name in scaling}
    return Part(replace(call, **facts, **arrays, ncomp=len(coded.names)), positions, call)


def columns_of(call: MomentsCall, formula: str | None) -> Design:
    """Code a formula, None for that of all columns; FormulaError if one was not released."""
    if formula is not None:
        check_variables(formula, call)
    return design(call.formula if formula is None else formula, call.codebook)


def places_of(call: MomentsCall, text: str) -> list[int]:
    """Find the columns of a column's or variable's name, or of a right-hand side without ``~``."""
    if text in call.names:
        return [call.names.index(text)]
    formula = f"~ {quote(text) if text in call.codebook else text}"
    check_variables(formula, call)
    return _places(design(formula, call.codebook), call)


def check_variables(formula: str, call: MomentsCall) -> None:
    """Refuse a formula, one- or two-sided, with variables that were not released."""
    parsed = parsed_formula(formula, call.codebook)
    terms = parsed.response + parsed.predictors
    used = dict.fromkeys(name for term in terms for code in term for name in variables_in(code))
    missing = [name for name in used if name not in call.codebook]
    if missing:
        raise FormulaError(_refusal(f"variable {shorten(missing[0])!r}", formula, call))


def _places(coded: Design, call: MomentsCall) -> list[int]:
    """Find columns by name and public range; interactions in any order of their factors."""
    positions = {column: place for place, column in enumerate(_columns(call))}
    columns = _columns(coded)
    pairs = zip(coded.names, columns, strict=True)
    missing = [name for name, column in pairs if column not in positions]
    if missing:
        raise FormulaError(_refusal(f"column {shorten(missing[0])!r}", coded.formula, call))
    return [positions[column] for column in columns]


def _columns(coded: Design | MomentsCall) -> list[tuple[tuple[str, ...], str, str]]:
    """Return the identity of columns; the order of products changes the last bits of a range."""
    parts = (tuple(sorted(name.split(":"))) for name in coded.names)
    low, high = ([f"{end:.9e}" for end in ends] for ends in (coded.lower, coded.upper))
    return list(zip(parts, low, high, strict=True))


def _refusal(what: str, formula: str, call: MomentsCall) -> str:
    names = shorten(", ".join(call.names), 200)
    return (
        f"{what} of {shorten(formula)!r} was not released; this release has the columns {names}. "
        "Name columns among these, or add it to the formula of a new release with dp.dp_moments"
    )
