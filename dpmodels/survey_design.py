"""Survey designs: the columns of weights, strata and sampling units, declared before any rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from dpmodels.arguments import finite
from dpmodels.errors import ArgumentError, CodebookError, quoted
from dpmodels.levels import check_writable
from dpmodels.typing import Plain

# A choice: weights this many times as large as the smallest are beyond any use.
WIDEST_RATIO: Final = 1e6
_WRITE: Final = 'write dp.design(weights="w", bounds=(1, 50), weights_are="design")'
_COLUMNS: Final = ("weights", "strata", "psu")


@dataclass(frozen=True)
class SurveyDesign:
    """Declare how the rows of a table were sampled.

    Parameters
    ----------
    weights : str, optional
        The column of design weights; without it every row has the weight 1.
    strata : str, optional
        The column of strata, a variable with declared levels.
    psu : str, optional
        The column of primary sampling units. The unit of protection is then the sampling unit with
        all of its rows; without it the row.
    fpc : float or mapping, optional
        The number of units in the population, in all or by level of `strata`: errors then have the
        finite population correction.
    bounds : (float, float), optional
        The smallest and the largest weight, public and positive; by default those of the codebook.
        A row whose weight is missing or outside does not count.
    weights_are : {"design"}
        States that weights depend on no other sampled row, such as inverse inclusion probabilities.
        Required with `weights`: weights that were calibrated, raked or trimmed on the same sample
        depend on all of its rows, so that no guarantee for one row covers them.

    Raises
    ------
    ArgumentError, CodebookError
        If a column is not a name, the bounds are not positive and increasing, or `weights_are` is
        not stated.

    Notes
    -----
    A frozen value: a part of a codebook, ``dp.codebook(cb, design=dp.design(...))``, of a session
    or of a call. Estimates are Hájek means and Horvitz-Thompson totals, with errors of the usual
    linearisation, sampling units drawn with replacement.

    Examples
    --------
    >>> import dpmodels as dp
    >>> dp.design(weights="w", psu="school", bounds=(1, 50), weights_are="design").describe()
    'weights w (1 to 50), sampling units school'
    """

    weights: str | None = None
    strata: str | None = None
    psu: str | None = None
    fpc: float | Mapping[str, float] | tuple[tuple[str, float], ...] | None = None
    bounds: tuple[float, float] | None = None
    weights_are: Literal["design"] | None = None

    def __post_init__(self) -> None:
        for option in _COLUMNS:
            _check_column(option, getattr(self, option))
        if len(set(self.columns)) < len(self.columns):
            raise CodebookError("design: weights=, strata= and psu= name different columns")
        if not self.columns:
            raise ArgumentError(f"a design names a column of weights, strata or units: {_WRITE}")
        if self.weights is not None and self.weights_are != "design":
            raise ArgumentError(
                f"weights_are={quoted(self.weights_are)}: weights that were calibrated, raked or "
                "trimmed on this sample depend on all of its rows, and are refused; state "
                'weights_are="design" where each weight depends on its own row and public facts'
            )
        object.__setattr__(self, "bounds", _bounds(self.weights, self.bounds))
        object.__setattr__(self, "fpc", _fpc(self.strata, self.fpc))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of weights, strata and sampling units."""
        return tuple(filter(None, (self.weights, self.strata, self.psu)))

    @property
    def population(self) -> Mapping[str, float]:
        """Units in the population by stratum, "" for all of them together; empty without fpc."""
        if self.fpc is None:
            return {}
        return {"": self.fpc} if isinstance(self.fpc, float) else dict(self.fpc)

    def describe(self) -> str:
        """Return the design in one line."""
        low, high = self.bounds or (math.nan, math.nan)
        limits = "" if self.bounds is None else f" ({low:g} to {high:g})"
        parts = [
            f"weights {self.weights}{limits}" if self.weights else "",
            f"strata {self.strata}" if self.strata else "",
            f"sampling units {self.psu}" if self.psu else "",
            "finite population" if self.fpc is not None else "",
        ]
        return ", ".join(filter(None, parts))

    def to_plain(self) -> dict[str, Plain]:
        """Return JSON values."""
        fpc = dict(self.fpc) if isinstance(self.fpc, tuple) else self.fpc
        entry = {name: getattr(self, name) for name in (*_COLUMNS, "weights_are")}
        entry |= {"bounds": None if self.bounds is None else list(self.bounds), "fpc": fpc}
        return {name: value for name, value in entry.items() if value is not None}

    @classmethod
    def from_plain(cls, entry: object) -> SurveyDesign:
        """Read what :meth:`to_plain` wrote."""
        known = (*_COLUMNS, "fpc", "bounds", "weights_are")
        if not isinstance(entry, Mapping) or not set(entry) <= set(known):
            raise CodebookError(f"design: expected an object with {', '.join(known)}")
        try:
            return cls(**entry)
        except ArgumentError as error:
            raise CodebookError(f"design: {error}") from None


def as_design(design: object) -> SurveyDesign | None:
    """Return a design as users give it; ArgumentError for other types."""
    if design is None or isinstance(design, SurveyDesign):
        return design
    if isinstance(design, Mapping):
        return SurveyDesign.from_plain(design)
    raise ArgumentError(f"design={quoted(design)}: expected a design; {_WRITE}")


# A design among the declarations of a codebook, as a part of the entry of its first column.


def without_design(declared: Mapping[str, object]) -> tuple[dict[str, object], SurveyDesign | None]:
    """Return the entries of variables, and the design that one of them has."""
    entries, designs = dict(declared), list[SurveyDesign]()
    for name, entry in declared.items():
        if isinstance(entry, Mapping) and "design" in entry:
            designs.append(SurveyDesign.from_plain(entry["design"]))
            entries[name] = {word: value for word, value in entry.items() if word != "design"}
            if not entries[name]:
                del entries[name]
    if len(designs) > 1:
        raise CodebookError('"design" is stated by two variables; keep one of them')
    return entries, next(iter(designs), None)


def with_design(declared: dict[str, Plain], design: SurveyDesign | None) -> dict[str, Plain]:
    """Return the plain values of variables, with the design at its first column."""
    if design is None:
        return declared
    name = design.columns[0]
    return {**declared, name: {**declared.get(name, {}), "design": design.to_plain()}}


def joined_design(left: SurveyDesign | None, right: SurveyDesign | None) -> SurveyDesign | None:
    """Return the design of two codebooks, at least one of which may lack it."""
    if left is not None and right is not None and left != right:
        raise CodebookError("codebooks with different designs cannot be combined")
    return left if right is None else right


def of_design(design: SurveyDesign | None) -> list[tuple[str, ...]]:
    """Return the line of a design among those of variables."""
    return [] if design is None else [("(design)", "survey design", design.describe(), "", "")]


def _check_column(option: str, name: object) -> None:
    if isinstance(name, list | tuple) and option == "weights":
        raise ArgumentError(
            f"weights={quoted(name)} lists several columns: replicate weights are not supported; "
            "name the column of base weights, with strata= and psu= for the errors"
        )
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise ArgumentError(f"{option}={quoted(name)}: expected the name of a column; {_WRITE}")
    if name is not None:
        check_writable(option, name)


def _bounds(weights: str | None, bounds: object) -> tuple[float, float] | None:
    if bounds is None:
        return None
    if weights is None:
        raise ArgumentError("bounds= are those of weights=, which is not given: leave it out")
    if not isinstance(bounds, list | tuple) or len(bounds) != 2:
        raise ArgumentError(f"bounds={quoted(bounds)}: expected the smallest and largest weight")
    low, high = (finite("bounds", end) for end in bounds)
    if not 0 < low <= high or high / low > WIDEST_RATIO:
        raise ArgumentError(
            f"bounds=({low:g}, {high:g}): expected 0 < smallest <= largest, at most "
            f"{WIDEST_RATIO:,.0f} times the smallest; {_WRITE}"
        )
    return low, high


def _fpc(strata: str | None, fpc: object) -> float | tuple[tuple[str, float], ...] | None:
    if fpc is None:
        return None
    if isinstance(fpc, str):
        raise ArgumentError(
            f"fpc={quoted(fpc)}: expected public numbers of units, not a column; write fpc=12_000, "
            'or fpc={"north": 900, "south": 400} by stratum'
        )
    if isinstance(fpc, Mapping) or (isinstance(fpc, tuple) and fpc):
        if strata is None:
            raise ArgumentError("fpc= by stratum needs strata=; write one number, fpc=12_000")
        return tuple(sorted((str(level), _size(size)) for level, size in dict(fpc).items()))
    return _size(fpc)


def _size(size: object) -> float:
    number = finite("fpc", size)
    if number < 1:
        raise ArgumentError(f"fpc={quoted(size)}: expected a number of units in the population")
    return number
