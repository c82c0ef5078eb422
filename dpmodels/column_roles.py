"""Columns with a role, declared before any rows: those of survey designs, and ids of persons."""

from __future__ import annotations

import datetime as dt
import math
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from typing import Any, Final, Literal, NamedTuple, SupportsFloat, SupportsInt
from uuid import UUID

import numpy as np

from dpmodels.arguments import checked_fields, finite
from dpmodels.errors import ArgumentError, CodebookError, quoted
from dpmodels.levels import check_texts, check_writable, said_missing, sequence
from dpmodels.typing import Plain

# A choice: weights this many times as large as the smallest are beyond any use.
WIDEST_RATIO: Final = 1e6
_WRITE: Final = 'write dp.design(weights="w", bounds=(1, 50), weights_are="design")'
_COLUMNS: Final = ("weights", "strata", "psu")


@checked_fields("dp.design")
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
            name = getattr(self, option)
            if isinstance(name, list | tuple) and option == "weights":
                raise ArgumentError(
                    f"weights={quoted(name)} lists several columns: replicate weights are not "
                    "supported; name the column of base weights, with strata= and psu= for the "
                    "errors"
                )
            if name is not None and (not isinstance(name, str) or not name.strip()):
                raise ArgumentError(
                    f"{option}={quoted(name)}: expected the name of a column; {_WRITE}"
                )
            if name is not None:
                check_writable(option, name)
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
        if not isinstance(entry, Mapping) or not all(isinstance(key, str) for key in entry):
            listed = ", ".join((*_COLUMNS, "fpc", "bounds", "weights_are"))
            raise CodebookError(f"design: expected an object with {listed}")
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


# The columns that identify persons, as declared, written and read, and their canonical ids, which
# follow from the cell alone, whichever software read the file: see Identifier. Besides, complex
# numbers are their real part if they have no other, and integers beyond 2**15 bits hexadecimal.

# White space, byte order marks and control characters.
_ENDS: Final = "\ufeff" + "".join(
    char for char in map(chr, range(0x3001)) if char.isspace() or unicodedata.category(char) == "Cc"
)
# Whole floats from here on stand for several whole numbers.
EXACT: Final = 2**53
# A choice: decimals of larger exponents are not written out.
_LARGEST_EXPONENT: Final = 10_000
# Python refuses to print longer integers.
_PRINTED_BITS: Final = 2048
# Choices: beyond these the time, which grows with the square of the length, would tell of a cell.
_LONGEST_NORMALISED: Final = 1_000
_LONGEST_DECIMAL_BITS: Final = 2**15


def canonical_id(cell: object) -> str:
    """Return the canonical id of a cell, empty where it is missing or cannot be an id.

    It never raises.

    >>> canonical_id(7), canonical_id(7.0), canonical_id(" 7"), canonical_id("007")
    ('7', '7', '7', '007')
    >>> canonical_id(1.5), canonical_id("NA"), canonical_id(" "), canonical_id(float("nan"))
    ('1.5', 'NA', '', '')
    """
    kind = type(cell)
    if cell is None:
        return ""
    try:
        for base, read in _READERS:
            if type.__subclasscheck__(base, kind):
                return read(cell)
    except Exception:
        return ""
    return ""


def canonical_texts(texts: list[str]) -> list[str]:
    """Return the canonical ids of texts."""
    together = "".join(texts)
    if together.isascii() and together.isprintable():
        return [text.strip(" ") for text in texts] if " " in together else texts
    return [_of_text(text) for text in texts]


def _of_text(text: str) -> str:
    is_normal = text.isascii() or len(text) > _LONGEST_NORMALISED
    return (text if is_normal else unicodedata.normalize("NFC", text)).strip(_ENDS)


def _of_integer(cell: SupportsInt) -> str:
    number = int(cell)
    n_bits = number.bit_length()
    if n_bits > _LONGEST_DECIMAL_BITS:
        return hex(number)
    return str(number) if n_bits < _PRINTED_BITS else str(Decimal(number))


def _of_float(cell: SupportsFloat) -> str:
    value = float(cell)
    if value.is_integer() and abs(value) < EXACT:
        return str(int(value))
    return repr(value) if value == value else ""


def _of_complex(cell: complex | np.complexfloating) -> str:
    return "" if cell.imag else _of_float(cell.real)


def _of_decimal(cell: Decimal) -> str:
    if not cell.is_finite():
        return "" if cell.is_nan() else repr(float(cell))
    # The context of the thread would round.
    exact = Context(prec=len(cell.as_tuple().digits), Emin=MIN_EMIN, Emax=MAX_EMAX)
    short = cell.normalize(exact)
    if not short:
        return "0"
    return f"{short:f}" if abs(short.adjusted()) < _LARGEST_EXPONENT else str(short)


def _of_fraction(cell: Fraction) -> str:
    numerator = _of_integer(cell.numerator)
    return numerator if cell.denominator == 1 else f"{numerator}/{_of_integer(cell.denominator)}"


def _of_time(cell: dt.datetime | np.datetime64) -> str:
    import pandas as pd

    time: Any = pd.Timestamp(cell)
    return "" if time is pd.NaT else time.tz_localize(None).isoformat().removesuffix("T00:00:00")


# Order matters: bool is a type of int, numpy.timedelta64 of numpy.integer, datetime of date.
_READERS: Final[tuple[tuple[type, Callable[[Any], str]], ...]] = (
    (str, lambda cell: _of_text(str.__str__(cell))),
    (bool, bool.__repr__),
    (int, lambda cell: _of_integer(int.__int__(cell))),
    (float, lambda cell: _of_float(float.__float__(cell))),
    (bytes, lambda cell: _of_text(bytes.decode(cell, "utf-8", "surrogateescape"))),
    (np.bool_, lambda cell: repr(bool(cell))),
    (np.timedelta64, lambda _: ""),
    (np.integer, _of_integer),
    (np.floating, _of_float),
    (complex, _of_complex),
    (np.complexfloating, _of_complex),
    (np.datetime64, _of_time),
    (Decimal, _of_decimal),
    (Fraction, _of_fraction),
    (UUID, UUID.__str__),
    (dt.datetime, _of_time),
    (dt.date, dt.date.isoformat),
    (dt.time, dt.time.isoformat),
)


_TYPE: Final = "identifier"


@checked_fields("dp.Identifier")
@dataclass(frozen=True)
class Identifier:
    """A column of ids, and which of them are missing values.

    Parameters
    ----------
    missing : sequence of str or int, optional
        Ids that count as missing, such as ``["NA", -9]``, besides nulls, NaN and empty text. They
        are kept as canonical ids.
    label : str, optional
        What the column is, for printing.

    Raises
    ------
    CodebookError
        If `missing` is not a list of ids, or the label is not text that can be printed.

    Notes
    -----
    The declaration says how ids are read. It does not protect persons: ``person="id"`` does, in the
    codebook or in the call. An identifier is not a variable: formulas cannot use it, ``.`` leaves
    it out, and it is listed in ``codebook.identifiers``.

    Two records belong to one person if and only if their *canonical ids* are equal, and the printed
    number of persons counts those:

    - Whole numbers of any type, and floats that are whole and below 2**53, are their decimal
      digits. Other floats are their ``repr``.
    - Text is in Unicode's normal form C (up to 1,000 characters), without white space, byte order
      marks and control characters at the ends. Case and leading zeros are kept: ``7``, ``7.0`` and
      ``"7"`` are one id; ``"007"``, ``"7.0"``, ``"1.10"``, ``"12E007"`` and ``"NA"`` are others.
      Bytes are read as UTF-8, and UUIDs as text.
    - Logical values are ``"True"`` and ``"False"``, dates and times are ISO 8601 text.

    Rows whose id is missing, or of another type (a list, a duration), belong to nobody and do not
    count.

    Software that guesses types may merge ids before they come here: readers of pandas, polars and
    Arrow give ``007`` as 7, long whole numbers beside a decimal or an empty cell as floats, which
    have 53 bits, and pandas ``NA`` as missing. Read ids as text, ``dtype={"id": str}`` with
    ``keep_default_na=False`` or ``schema_overrides={"id": pl.String}``, or give the path of the
    file.

    Examples
    --------
    >>> import dpmodels as dp
    >>> print(dp.codebook(age=(0, 100), id=dp.Identifier(missing=["NA", -9]), person="id"))
    variable  type        declared
    age       numeric     0 to 100
    id        identifier  person; missing: NA, -9
    """

    missing: tuple[str, ...] = ()
    label: str = ""

    def __post_init__(self) -> None:
        check_texts(self.label)
        codes = sequence("missing", self.missing)
        ids = tuple(map(canonical_id, codes))
        for code, canonical in zip(codes, ids, strict=True):
            if not canonical:
                raise CodebookError(
                    f"missing= lists {quoted(code)}, which is not an id: expected text or whole "
                    "numbers; nulls, NaN and empty text are always missing"
                )
            check_writable("missing id", canonical)
        object.__setattr__(self, "missing", tuple(dict.fromkeys(ids)))

    def to_plain(self) -> dict[str, object]:
        """Return JSON values."""
        entry = {"type": _TYPE, "missing": list(self.missing), "label": self.label}
        return {key: value for key, value in entry.items() if value}

    @classmethod
    def from_plain(cls, name: str, entry: Mapping[str, Plain]) -> Identifier:
        """Read what :meth:`to_plain` wrote."""
        options = {key: value for key, value in entry.items() if key != "type"}
        if not set(options) <= {"missing", "label"}:
            raise CodebookError(f'variable {name!r}: an identifier has "missing" and "label" alone')
        try:
            return cls(**options)
        except CodebookError as error:
            raise CodebookError(f"variable {name!r}: {error}") from None


def without_identifiers(
    declared: Mapping[str, object],
) -> tuple[dict[str, object], dict[str, Identifier]]:
    """Return the declarations of variables, and those of identifiers."""
    identifiers = {
        name: entry if isinstance(entry, Identifier) else Identifier.from_plain(name, entry)
        for name, entry in declared.items()
        if isinstance(entry, Identifier)
        or (isinstance(entry, Mapping) and entry.get("type") == _TYPE)
    }
    variables = {name: entry for name, entry in declared.items() if name not in identifiers}
    return variables, identifiers


def checked_person(person: object) -> str | None:
    """Return the name of the column of persons; a variable of that name is a frequent mistake."""
    if person is None:
        return None
    if not isinstance(person, str) or not person.strip():
        raise CodebookError(
            f"person={quoted(person)}: expected the name of the column of person ids, such as "
            'person="id"; a variable that is called person is declared by '
            'dp.codebook({"person": (0, 9)})'
        )
    check_writable("person", person)
    return person


# What columns are besides variables, as a codebook or a draft declares and writes it.


class Roles(NamedTuple):
    """The column of persons, the columns of ids, and how the rows were sampled."""

    person: str | None
    identifiers: Mapping[str, Identifier]
    design: SurveyDesign | None

    @classmethod
    def of(cls, declared: object) -> Roles:
        """Return the roles of a codebook or draft, none of other declarations."""
        person, design = (getattr(declared, name, None) for name in ("person", "design"))
        return cls(person, getattr(declared, "identifiers", {}), design)

    def joined(self, other: Roles) -> Roles:
        """Return the roles of two codebooks, of which one may lack the person or the design."""
        if None not in (self.person, other.person) and self.person != other.person:
            raise CodebookError(
                f"codebooks with person={self.person!r} and person={other.person!r} cannot be "
                "combined: rows have one column of person ids"
            )
        if None not in (self.design, other.design) and self.design != other.design:
            raise CodebookError("codebooks with different designs cannot be combined")
        identifiers = {**self.identifiers, **other.identifiers}
        return Roles(self.person or other.person, identifiers, self.design or other.design)

    def beside(self, variables: Mapping[str, Plain]) -> dict[str, Plain]:
        """Return the plain values of variables with the roles: the design at its first column."""
        declared = dict(variables)
        declared |= {name: identifier.to_plain() for name, identifier in self.identifiers.items()}
        if self.person is not None:
            declared[self.person] = {**declared.get(self.person, {}), "person": True}
        if self.design is not None:
            name = self.design.columns[0]
            declared[name] = {**declared.get(name, {}), "design": self.design.to_plain()}
        return declared

    def lines(self) -> list[tuple[str, ...]]:
        """Return the lines of ids, persons and design among those of variables."""
        lines = list[tuple[str, ...]]()
        for name, declared in self.identifiers.items():
            role = "person" if name == self.person else "identifies rows"
            lines.append((name, _TYPE, role + said_missing(declared.missing), "", declared.label))
        if self.person is not None and self.person not in self.identifiers:
            lines.append((self.person, "person", "identifies persons", "", ""))
        if self.design is not None:
            lines.append(("(design)", "survey design", self.design.describe(), "", ""))
        return lines


def without_roles(declared: Mapping[str, object]) -> tuple[dict[str, object], Roles]:
    """Return the plain entries of variables, and the roles that :meth:`Roles.beside` wrote."""
    entries, stated = _without_word("design", declared)
    designs = [SurveyDesign.from_plain(plain) for plain in stated.values()]
    if len(designs) > 1:
        raise CodebookError('"design" is stated by two variables; keep one of them')
    entries, marks = _without_word("person", entries)
    for number, (name, mark) in enumerate(marks.items()):
        if mark is not True or number:
            raise CodebookError(f'{name!r}: "person" must be true, and at one column only')
    variables, identifiers = without_identifiers(entries)
    return variables, Roles(next(iter(marks), None), identifiers, next(iter(designs), None))


def _without_word(
    word: str, declared: Mapping[str, object]
) -> tuple[dict[str, object], dict[str, object]]:
    """Return entries without a word, dropped if they have no other, and its values by name."""
    entries, values = dict(declared), dict[str, object]()
    for name, entry in declared.items():
        if isinstance(entry, Mapping) and word in entry:
            values[name] = entry[word]
            entries[name] = {other: value for other, value in entry.items() if other != word}
            if not entries[name]:
                del entries[name]
    return entries, values
