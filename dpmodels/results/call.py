"""The public facts of a request, by kind of model, and what reports say of any release."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Any, Final, Generic, TypeVar

import numpy as np
import pandas as pd

from dpmodels.codebook import Codebook
from dpmodels.errors import FrameError, NotAvailable, shorten
from dpmodels.external_files import Amount, AmountOrNan, Bounded, one_of, require_text
from dpmodels.formula.tally import sampled_parts, stratum_size
from dpmodels.labels import plain
from dpmodels.levels import Level
from dpmodels.privacy import ZCDP, Adjacency, ApproxDP, PureDP, hidden_by
from dpmodels.privacy.register import UNPROVED
from dpmodels.privacy.trade_off import Curve, curve_of, odds_factor, power, shifted
from dpmodels.released import (
    AnswersFitRelease,
    AnswersRelease,
    AnyRelease,
    Ball,
    HeldIn,
    MomentsRelease,
)
from dpmodels.released.terms import CLEAR_SDS, Clipping, Released
from dpmodels.report import Report
from dpmodels.report.notes import Rank
from dpmodels.request import Request
from dpmodels.typing import DataArray, Floats, Numbers, TableColumns

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


# What reports say of any release: its guarantee and what that means, and how much it clipped.


_NAMED: Final = 3  # A choice: variables that a note names


def clipped_table(release: Released, codebook: Mapping[str, object]) -> pd.DataFrame:
    """Return shares of values beyond each declared bound, or say why they were not counted."""
    clipping = _of_formula(release, codebook)
    if clipping is None:
        raise NotAvailable(
            "clipped() is not available: values beyond the bounds are counted where the number of "
            "rows is public and large beside the noise, rows can be read twice, and "
            "dp.options(clipping=False) is not set"
        )
    table = pd.DataFrame(clipping.shares(), columns=["variable", "below", "above", "noise_sd"])
    for at, end in enumerate(("lower", "upper"), start=1):
        table.insert(at, end, [getattr(codebook[name], end, None) for name in table["variable"]])
    return table.set_index("variable")


def with_clipping(report: Report, release: Released, codebook: Mapping[str, object]) -> Report:
    """Add to a report which variables have many values beyond their bounds."""
    clipping = _of_formula(release, codebook)
    if clipping is None:
        return report
    fact = ("Clipped", _fact(clipping))
    much = clipping.much()
    if not much:
        return replace(report, facts=(*report.facts, fact))
    texts = [
        f"{share:.0%} of {shorten(plain(name), 30)} {side} "
        f"{getattr(codebook[name], 'lower' if side == 'below' else 'upper'):,.10g}"
        for name, side, share in much[:_NAMED]
    ]
    rest = f" and {len(much) - _NAMED} more" * (len(much) > _NAMED)
    note = f"Warning: values were clipped, about {', '.join(texts)}{rest}. Declare wider bounds."
    return replace(
        report, facts=(*report.facts, fact), notes=(*Rank.IDENTIFIED(note), *report.notes)
    )


def _of_formula(release: Released, codebook: Mapping[str, object]) -> Clipping | None:
    """Return the numbers of a formula's variables, which may be part of those of the release."""
    clipping = release.clipping and release.clipping.among(codebook)
    return clipping if clipping and clipping.variables else None


def _fact(clipping: Clipping) -> str:
    """Describe the largest share in a few words."""
    finite = [side for side in clipping.sides() if not math.isnan(side[2])]
    if not finite:
        return "unknown, few values"
    name, side, share, noise_sd = max(finite, key=lambda side: side[2])
    if share < CLEAR_SDS * noise_sd:
        return f"none detected (sd {100 * noise_sd:.2g}%)"
    return f"{100 * min(share, 1.0):.3g}% of {shorten(plain(name), 12)} {side}"


def guarantee_words(release: AnyRelease) -> str:
    """Return what a release satisfies, with :func:`convergence_words`."""
    return f"{release.guarantee.describe()} {convergence_words(release)}".strip()


def release_facts(release: AnyRelease) -> Mapping[str, str]:
    """Return the facts that every report has about a release."""
    return {
        "Guarantee": guarantee_words(release),
        "Mechanism": f"{release.info.name} ({release.info.numerics})",
        "Neighbours": neighbours_text(release),
    }


def neighbours_text(release: AnyRelease) -> str:
    """Describe the neighbours that a release protects."""
    return _of_units(release, release.adjacency.describe())


def _of_units(release: AnyRelease, text: str) -> str:
    """Name the persons of a survey design with sampling units as such units."""
    is_sampled = any(getattr(release, name, None) is not None for name in ("units", "weights"))
    if release.adjacency.person is None or not is_sampled:
        return text
    return text.replace("person", "sampling unit")


def caption_of(release: AnyRelease) -> str:
    """Return the caption of a picture: guarantee, neighbours and mechanism."""
    facts = release_facts(release)
    hidden = _of_units(release, hidden_by(release.guarantee, release.adjacency))
    mechanism = facts["Mechanism"]
    return f"Privacy: {facts['Guarantee']}; neighbours: {hidden}; noise: {mechanism}."


def n_public_rows(release: Released) -> int | None:
    """Return the public number of rows; None where only a maximum by person is public."""
    adjacency: Adjacency = release.adjacency
    n_rows: int | None = release.rows
    return n_rows if adjacency.person is None or adjacency.counts_persons else None


def release_row(release: AnyRelease) -> TableColumns:
    """Return the columns of glance() that describe a release."""
    guarantee = release.guarantee
    return {
        "eps": float("nan") if isinstance(guarantee, ZCDP) else guarantee.eps,
        "delta": guarantee.delta if isinstance(guarantee, ApproxDP) else 0.0,
        "rho": guarantee.rho if isinstance(guarantee, ZCDP) else float("nan"),
        "adjacency": release.adjacency.name,
        "unit": getattr(guarantee, "hidden", _of_units(release, release.adjacency.unit)),
        "mechanism": release.info.name,
        "simulated": release.simulated,
    }


# Conventions: the level of a test, and odds that are even.
ALPHA: Final = 0.05
PRIOR: Final = 0.5

NO_ROW: Final = "Reading: none, as nothing here was computed from private rows."
_SIMULATED: Final = (
    "Reading: none, as a simulation is not private: anyone with its seed can subtract the noise."
)


def is_local(release: object) -> bool:
    """Whether each respondent's answer was randomised before anybody saw it."""
    return isinstance(release, AnswersRelease | AnswersFitRelease)


def protected(adjacency: Adjacency, local: bool, units: int) -> str:
    """Return the protected unit of the guarantee, or several of them, as text."""
    if local and adjacency.rows is None:
        return "one respondent" if units == 1 else f"{units} respondents"
    if units == 1:
        return adjacency.unit
    if adjacency.person is None:
        return f"any {units * adjacency.places} rows"
    return f"{units} persons"


def closest(release: Any) -> Curve:
    """Return the curve of a release's guarantee, or of its own noise where that allows less."""
    guaranteed: Curve = release.guarantee
    noise_curve = curve_of(release.events) or guaranteed
    return min(guaranteed, noise_curve, key=lambda curve: power(curve, ALPHA))


def convergence_words(release: Released) -> str:
    """Return the caveat of a release whose guarantee holds in the limit of a Markov chain.

    A Markov chain of a public number of sweeps has no proved distance from its limit. Empty for
    all other releases.
    """
    return f"if {UNPROVED}" if getattr(release, "limit", "") else ""


def reading_line(release: Released) -> str:
    """Return bounds on the power of a test and on a posterior, given one release.

    >>> from types import SimpleNamespace
    >>> from dpmodels.privacy import LaplaceEvent
    >>> made = {"simulated": False, "adjacency": Adjacency("replace"), "guarantee": PureDP(1.0)}
    >>> print(reading_line(SimpleNamespace(**made, events=(LaplaceEvent(1.0),))))
    Reading: by this release alone, ... has power 0.136 at most, and a prior of 0.5 becomes 0.731...
    """
    if release.simulated:
        return _SIMULATED
    local = is_local(release)
    if not release.events and not local:
        return f"Reading: no row contributed to it; a test at level {ALPHA} has power {ALPHA}."
    curve = closest(release)
    posterior = shifted(PRIOR, odds_factor(curve, ALPHA))
    mostly = "" if isinstance(curve, PureDP) else f" with probability {1 - ALPHA:g} or more"
    who, caveat = protected(release.adjacency, local, 1), convergence_words(release)
    caveat = f", {caveat}" if caveat else ""
    source = "these answers" if local else "this release"
    what = f"the truth of {who} was one or another" if local else f"{who} contributed to it"
    return (
        f"Reading: by {source} alone, a test at level {ALPHA} of whether {what} has power "
        f"{power(curve, ALPHA):.3g} at most, and a prior of {PRIOR} becomes {posterior:.3g} at "
        f"most{mostly}{caveat}. Facts about the population can be learnt about anyone, in these "
        "rows or not."
    )
