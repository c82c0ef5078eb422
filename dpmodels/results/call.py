"""The public facts of a request, by kind of model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Final, Generic, TypeVar

import numpy as np
import pandas as pd

from dpmodels.codebook import Codebook
from dpmodels.errors import FrameError
from dpmodels.external_files import Amount, AmountOrNan, Bounded, one_of, require_text
from dpmodels.formula.tally import sampled_parts, stratum_size
from dpmodels.levels import Level
from dpmodels.released import Ball, HeldIn, MomentsRelease
from dpmodels.request import Request
from dpmodels.typing import DataArray, Floats, Numbers

INTERCEPT: Final = "Intercept"
LINKS = {
    "binomial": "logit link",
    "poisson": "log link",
    "multinomial": "logit link",
    "ordinal": "cumulative logit link",
}


@dataclass(frozen=True)
class MomentsCall:
    """A requested analysis of coded columns; arrays have the shape (columns,)."""

    formula: str
    codebook: Annotated[Codebook, Codebook.from_dict]  # the declarations that were used
    names: tuple[str, ...]  # coded columns
    lower: Annotated[Bounded, "variable"]  # their public ranges
    upper: Annotated[Bounded, "variable"]
    origin: Annotated[Bounded, "variable"]  # the public scaling (x - origin) / divisor
    divisor: Annotated[Bounded, "variable"]
    row_norm: Amount  # radius rows are clipped to, and the one implied by the codebook
    worst_case: Amount
    unit_rows: bool  # whether every scaled row was divided by its own norm
    center: bool  # whether the private mean is taken off
    scale: Annotated[str | None, one_of("range", "sd", None)]
    denoise: Annotated[str | None, one_of("auto", "invariant", "spiked", "psd", None)]
    ncomp: int  # components kept
    ledger: str = ""  # state of the ledger after the charge; empty without one
    reason: str = ""  # why this mechanism, where the choice was automatic
    part_of: str = ""  # the joint release this is a part of; empty without one
    # public points that numbers are centred at in the columns, by code; None where none is
    centres: tuple[tuple[str, float], ...] | None = None

    def held_in(self, ball: Ball | None) -> MomentsCall:
        """Return the call with the ball that its release clipped the rows to."""
        if ball is None:
            return self
        distance = float(np.linalg.norm((ball.centre - self.origin) / self.divisor))
        worst = max(self.worst_case + distance, ball.radius)
        return replace(self, origin=ball.centre, row_norm=ball.radius, worst_case=worst)

    @property
    def box(self) -> tuple[Floats, Floats]:
        """Public range of each scaled coordinate."""
        low, high = ((end - self.origin) / self.divisor for end in (self.lower, self.upper))
        if self.unit_rows:
            low, high = np.where(low < 0, -1.0, 0.0), np.where(high > 0, 1.0, 0.0)
        return low, high

    def scaled(self, coded: Floats) -> Floats:
        """Scale coded rows, shape (columns, rows), as those of the fit were."""
        scaled = (coded - self.origin[:, None]) / self.divisor[:, None]
        if self.unit_rows:
            norms = np.linalg.norm(scaled, axis=0)
            scaled /= np.where(norms > 0, norms, 1.0)
        return scaled


@dataclass(frozen=True)
class CoefficientsCall:
    """A requested linear predictor; the other fields are as in :class:`MomentsCall`."""

    formula: str
    codebook: Annotated[Codebook, Codebook.from_dict]
    names: tuple[str, ...]  # of the coefficients; the intercept first, where there is one
    response: str
    # of the response, the modelled one last, of several the reference first; empty where it is a
    # number
    levels: tuple[str, ...]
    family: Annotated[str, one_of(*LINKS, "svm")]
    # Turns coefficients in units of the ball into those of the coded columns.
    matrix: Annotated[Bounded, "coefficient", "coefficient_"]
    row_norm: Amount  # length above which scaled rows of the terms are shortened
    worst_case: Amount
    scale: Annotated[str | None, one_of("range", None)]
    clip: AmountOrNan  # bound on a residual in units of the response; nan where there is none
    ledger: str = ""
    reason: str = ""
    offset: str | None = None  # what the linear predictor has besides the terms

    def held_in(self, ball: Ball | None) -> CoefficientsCall:
        """Return the call in units of the ball that its release clipped the rows to."""
        if ball is None:
            return self
        n_intercepts = int(self.intercept)
        slopes = np.diag(self.matrix)[n_intercepts:] * (self.row_norm / ball.radius)
        matrix = np.diag(np.concatenate([np.diag(self.matrix)[:n_intercepts], slopes]))
        if ball.axes is not None:
            turned = np.linalg.inv(ball.axes).T
            matrix[n_intercepts:, n_intercepts:] = slopes[:, None] * turned
        if n_intercepts:
            matrix[0, 1:] = -ball.centre @ matrix[1:, 1:]
        return replace(self, matrix=matrix, row_norm=ball.radius)

    @property
    def blocks(self) -> int:
        """Linear predictors with coefficients: one, or one for each level but the reference."""
        return len(self.levels) - 1 if self.family == "multinomial" else 1

    @property
    def intercept(self) -> bool:
        """Whether the first coefficient is the intercept."""
        return self.names[:1] == (INTERCEPT,)


def level(plain: object) -> Level:
    """Return a level of a category; FrameError for other types."""
    if not isinstance(plain, Level):
        raise FrameError("expected a text, a number or a truth value")
    return require_text(plain, "a level") if isinstance(plain, str) else plain


@dataclass(frozen=True)
class SampledTable:
    """The design of a table of sampled units."""

    design: str  # in one line
    strata: int  # how many; 0 without
    population: tuple[float, ...]  # units in it: by stratum, or all; empty where not declared
    units: bool  # whether a unit has several rows
    uncapped: float  # the largest declared weight
    fitted: bool = False  # whether its values were fitted to those of several tables


@dataclass(frozen=True)
class TableCall:
    """One table of declared levels."""

    factors: tuple[str, ...]  # what rows are grouped by, as in the formula
    levels: tuple[tuple[Annotated[Level, level], ...], ...]  # of each
    measured: str = ""  # the number whose moments are requested; empty for counts
    lower: float = 0.0  # its public range
    upper: float = 1.0
    degree: int = 0  # highest power whose sums were released; 0 for counts
    step: Amount | None = None  # of its values, where they are declared in steps
    date: bool = False  # whether it is a day since 1970-01-01
    clustered: bool | None = None  # True of persons, who may be in several of its cells
    sampled: SampledTable | None = None  # under a survey design

    def held_in(self, limits: HeldIn | None) -> TableCall:
        """Return the table with the range that its release clipped the number to."""
        return self if limits is None else replace(self, lower=limits.lower, upper=limits.upper)

    @property
    def groups(self) -> TableCall:
        """The table of the groups: of all factors but the last."""
        return TableCall(self.factors[:-1], self.levels[:-1])

    @property
    def variable(self) -> str:
        """What is described: the measured number, or the last factor."""
        return self.measured.partition(" = ")[0] or self.factors[-1]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of levels of each factor."""
        return tuple(map(len, self.levels))

    @property
    def cells(self) -> int:
        """Number of combinations of levels; 1 without factors."""
        return math.prod(self.shape)

    @property
    def parts(self) -> int:
        """Counts released of each cell."""
        if self.sampled is not None:
            return sampled_parts(self.degree, units=self.sampled.units)
        return self.degree + 1 + 2 * bool(self.clustered)

    @property
    def size(self) -> int:
        """Counts released, the incomplete rows among them."""
        return self.cells * self.parts + 1

    @property
    def stratum_parts(self) -> int:
        """Sums by stratum of a survey design, over all of its strata."""
        strata = 0 if self.sampled is None else self.sampled.strata
        return strata * stratum_size(self.cells, self.parts, self.degree)

    @property
    def width(self) -> float:
        """Length of the measured number's public range; 1 where it is a point."""
        return self.upper - self.lower or 1.0

    @property
    def index(self) -> pd.Index:
        """Labels of the cells: levels, or ``(all)`` without factors."""
        # Cached, so that pandas recognises equal indexes by identity; a view has its own names.
        # Equal levels of different types, 1 and True, are different labels.
        return _index(self.factors, self.levels, repr(self.levels)).view()

    @property
    def labels(self) -> list[str]:
        """The same as text, one string a cell."""
        return joined(self.index)

    def by_cell(self, values: Numbers, name: str) -> DataArray:
        """Return values of all cells with their levels."""
        import xarray as xr

        levels = zip(self.factors, self.levels, strict=True)
        coords = {factor: np.array(labels, dtype=object) for factor, labels in levels}
        return xr.DataArray(values.reshape(self.shape), coords, self.factors, name)


@lru_cache(maxsize=64)
def _index(factors: tuple[str, ...], levels: tuple[tuple[Level, ...], ...], _: str) -> pd.Index:
    if not factors:
        return pd.Index(["(all)"], name="group")
    if len(factors) == 1:
        return pd.Index(levels[0], name=factors[0], dtype=object)
    return pd.MultiIndex.from_product(levels, names=factors)


def joined(index: pd.Index) -> list[str]:
    """Return the keys of an index as text, with slashes between the levels of one."""
    keys = index.to_list()
    return [" / ".join(map(str, key)) if isinstance(key, tuple) else str(key) for key in keys]


@dataclass(frozen=True)
class DescribedCall:
    """A requested description: rows are counted in `tables`.

    The other fields are as in :class:`MomentsCall`.
    """

    formula: str
    codebook: Annotated[Codebook, Codebook.from_dict]
    tables: tuple[TableCall, ...]
    ledger: str = ""
    reason: str = ""


@dataclass(frozen=True)
class ScreenCall:
    """Columns tested against one response; the other fields are as in :class:`MomentsCall`."""

    formula: str
    codebook: Annotated[Codebook, Codebook.from_dict]
    names: tuple[str, ...]  # coded columns, one a hypothesis
    response: str
    most: int  # how many were to be selected
    alternative: Annotated[str, one_of("two-sided", "larger", "smaller")]
    ledger: str = ""
    reason: str = ""


AnyCall = MomentsCall | CoefficientsCall | DescribedCall | ScreenCall


# The result of a request: its specification, before there is a release.

Result = TypeVar("Result", covariant=True)


def accept(release: object) -> None:
    """Accept any release."""


@dataclass(frozen=True, repr=False)
class Spec(Generic[Result]):
    """The public facts of a request, and the result that they give with a release."""

    request: Request | None
    call: AnyCall
    result: Callable[..., Result]  # From a call and a release
    # Sizes of the release's arrays that its call does not imply.
    sizes: Mapping[str, int] = field(default_factory=dict, kw_only=True)
    # Refuses a release from a file that this request cannot have.
    check: Callable[..., None] = field(default=accept, kw_only=True)
    # From a release to its specification, where released values determine the columns.
    adapted: Callable[..., Spec[Result]] | None = field(default=None, kw_only=True)

    def of(self, release: object, ledger: str = "", reason: str = "") -> Result:
        """Return the result of a release, with the ledger's state and the mechanism's reason."""
        if self.adapted is not None:
            return self.adapted(release).of(release, ledger, reason)
        call: object = replace(self.call, ledger=ledger, reason=reason)
        if isinstance(call, MomentsCall) and isinstance(release, MomentsRelease):
            call = call.held_in(release.ball)
        result = self.result(call, release)
        object.__setattr__(result, "request", self.request)
        return result
