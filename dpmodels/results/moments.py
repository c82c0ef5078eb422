"""The result of a joint release of moments: pay once, model many times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import ndtri

from dpmodels.arguments import truth
from dpmodels.digest import origin
from dpmodels.errors import FormulaError, shorten
from dpmodels.formula import Design, design
from dpmodels.formula.parse import parse, variables_in
from dpmodels.formula.response import two_sided
from dpmodels.privacy.lines import SHOWN
from dpmodels.released import MomentsRelease
from dpmodels.results.base import Result, checked_level, per_row
from dpmodels.results.call import MomentsCall
from dpmodels.results.cov import CovResult
from dpmodels.results.legend import labelled
from dpmodels.results.lm import LMResult
from dpmodels.results.lm_fit import LinearModel
from dpmodels.results.pca import PCAResult
from dpmodels.typing import Coder


@dataclass(frozen=True, repr=False)
class MomentsResult(Result):
    """Private moments of coded columns: released values and public facts only.

    Notes
    -----
    Every method takes a formula over the released variables, ``~ .`` for all
    of them, None for all released columns, and computes from the one release,
    at no further cost. Rows count if they are complete in all released
    columns, and were held in the ball of the joint release.
    """

    call: MomentsCall
    release: MomentsRelease
    coders: Callable[[Design], Coder] | None = field(default=None, repr=False)

    def _part(self, formula: str | None) -> Taken:
        return part(self.call, self.release, formula)

    def _coder(self, design: Design) -> Coder | None:
        return None if self.coders is None else self.coders(design)

    @cached_property
    def whole(self) -> CovResult:
        """All released columns."""
        return self.cov()

    def cov(self, formula: str | None = None) -> CovResult:
        """Return the covariance matrix of a formula's columns.

        Parameters
        ----------
        formula : str, optional
            A right-hand side; all released columns by default.

        Raises
        ------
        FormulaError
            If it codes to a column that was not released.
        """
        own = self._part(formula)
        return CovResult(own.call, own.release, self._coder(own.design))

    def cor(self, formula: str | None = None) -> xr.DataArray:
        """Return the correlations of a formula's columns, ``variable × variable_``; as `cov`."""
        return self.cov(formula).cor

    def mean(self, formula: str | None = None, level: float = 0.95) -> pd.DataFrame:
        """Return the means of a formula's columns with their noise.

        Parameters
        ----------
        formula : str, optional
            A right-hand side; all released columns by default.
        level : float
            Coverage of the noise intervals, in (0, 1).

        Returns
        -------
        DataFrame
            Per column, in its own unit: ``mean, noise_sd`` and the noise
            interval ``lower, upper`` for the non-private mean of these rows,
            within the public range.

        Raises
        ------
        FormulaError
            If it codes to a column that was not released.
        """
        width = float(ndtri((1 + checked_level(level)) / 2))
        fit = self.cov(formula)
        assert fit.center is not None
        assert fit.center_noise_sd is not None
        mean, sd = fit.center.to_numpy(), fit.center_noise_sd.to_numpy()
        table = {
            "mean": mean,
            "noise_sd": sd,
            "lower": np.maximum(mean - width * sd, fit.call.lower),
            "upper": np.minimum(mean + width * sd, fit.call.upper),
        }
        return pd.DataFrame(table, index=pd.Index(fit.call.names, name="variable"))

    def pca(
        self,
        formula: str | None = None,
        ncomp: int | None = None,
        center: bool = True,
        scale: str | None = "range",
    ) -> PCAResult:
        """Return the principal components of a formula's columns, as :meth:`CovResult.pca`.

        ``center=False`` does not take off the released means: it analyses the
        second moment about 0. The formula is as in :meth:`cov`.
        """
        truth("center", center)
        fit = self.cov(formula)
        return replace(fit, call=replace(fit.call, center=center)).pca(ncomp, scale)

    def lm(self, formula: str) -> LMResult:
        """Return the linear regression of one released column on others.

        Parameters
        ----------
        formula : str
            Such as ``"wage ~ educ + exper"``, over the released variables.

        Raises
        ------
        FormulaError
            If it has no response, or codes to a column that was not released.
        """
        check_variables(formula, self.call)
        both = two_sided(formula, self.call.codebook)
        own = part_of(self.call, self.release, both.joint)
        coder = self._coder(both.terms) if both.terms.names else None
        return LMResult(own.call, own.release, LinearModel(both.intercept), coder)

    @property
    def nobs(self) -> float:
        """Number of rows: the public one, or the released one where it is private."""
        return self.whole.nobs

    @property
    def ncomplete(self) -> float:
        """Released number of rows complete in all columns; noise sd ``release.noise.count``."""
        return self.whole.ncomplete

    def tidy(self) -> pd.DataFrame:
        """Return one row a column: ``column, mean, mean_noise_sd, sd, sd_noise_sd``."""
        fit = self.whole
        parts = {
            "mean": fit.center,
            "mean_noise_sd": fit.center_noise_sd,
            "sd": fit.sd,
            "sd_noise_sd": fit.sd_noise_sd,
        }
        values = {name: own.to_numpy() for name, own in parts.items() if own is not None}
        names = self.call.names
        table = pd.DataFrame({"column": list(names), **values})
        return labelled(table, self.call.codebook, label=names)

    def _line(self) -> dict[str, Any]:
        columns = len(self.call.names)
        return {"nobs": self.nobs, "ncomplete": self.ncomplete, "ncolumns": columns}

    @property
    def _size(self) -> str:
        return f"{len(self.call.names)} columns"

    _no_intervals = "write .cov(formula).conf_int(), .lm(formula).conf_int(), or .mean(formula)"
    scores, fittedvalues, resid = per_row("pca().transform(newdata)")


class Taken(NamedTuple):
    """Some columns of a release, as if they alone had been asked for."""

    call: MomentsCall
    release: MomentsRelease
    design: Design


def part(call: MomentsCall, release: MomentsRelease, formula: str | None) -> Taken:
    """Take the columns of a formula, None for all, out of a joint release; nothing is spent.

    FormulaError if the formula codes to a column that was not released.
    """
    text = call.formula if formula is None else formula
    if formula is not None:
        check_variables(formula, call)
    return part_of(call, release, design(text, call.codebook))


def part_of(call: MomentsCall, release: MomentsRelease, own: Design) -> Taken:
    """Take the columns of a design out of a joint release; FormulaError if one is not in it."""
    places, whole = _places(own, call), origin(release)
    chosen = replace(
        call,
        formula=own.formula,
        codebook=own.codebook,
        names=own.names,
        lower=call.lower[places],
        upper=call.upper[places],
        origin=call.origin[places],
        divisor=call.divisor[places],
        ncomp=len(own.names),
        part_of=f"{len(call.names)} columns ({call.formula}), digest {whole[:SHOWN]}",
    )
    assert release.total is not None
    taken = replace(
        release,
        total=release.total[places],
        second=release.second[np.ix_(places, places)],
        whole=whole,
    )
    return Taken(chosen, taken, own)


def check_variables(formula: str, call: MomentsCall) -> None:
    """Refuse a formula, one- or two-sided, with variables that were not released."""
    parsed = parse(formula, call.codebook)
    terms = parsed.response + parsed.predictors
    used = dict.fromkeys(name for term in terms for code in term for name in variables_in(code))
    missing = [name for name in used if name not in call.codebook]
    if missing:
        raise FormulaError(_refusal(f"variable {shorten(missing[0])!r}", formula, call))


def _places(own: Design, call: MomentsCall) -> list[int]:
    """Find columns by name and public range; interactions in any order of their factors."""
    known = {column: place for place, column in enumerate(_columns(call))}
    wanted = _columns(own)
    missing = [name for name, column in zip(own.names, wanted, strict=True) if column not in known]
    if missing:
        raise FormulaError(_refusal(f"column {shorten(missing[0])!r}", own.formula, call))
    return [known[column] for column in wanted]


def _columns(coded: Design | MomentsCall) -> list[tuple[tuple[str, ...], str, str]]:
    """Return what a column is known by; the order of products costs a range its last bits."""
    parts = (tuple(sorted(name.split(":"))) for name in coded.names)
    low, high = ([f"{end:.9e}" for end in ends] for ends in (coded.lower, coded.upper))
    return list(zip(parts, low, high, strict=True))


def _refusal(what: str, formula: str, call: MomentsCall) -> str:
    names = shorten(", ".join(call.names), 200)
    return (
        f"{what} of {shorten(formula)!r} was not released; this release holds the columns {names}. "
        "Name columns among these, or add it to the formula of a new release with dp.dp_moments"
    )
