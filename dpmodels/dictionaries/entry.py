"""Facts of one variable in a dictionary, and the texts in which people write them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from datetime import date
from typing import Any, Final, Literal, NoReturn

from dpmodels import variables
from dpmodels.codebook import brief
from dpmodels.dates import Date
from dpmodels.errors import CodebookError, FrameError, shorten
from dpmodels.external_files import conform
from dpmodels.levels import Level, as_number, said_missing
from dpmodels.typing import Plain

_KINDS: Final = {
    "numeric": "numeric number num float double real decimal continuous contin scale ratio",
    "integer": "integer int whole count long bigint smallint tinyint int8 int16 int32 int64 year",
    "date": "date datetime timestamp day",
    "boolean": "boolean bool logical truefalse",
    "categorical": "categorical category factor nominal ordinal enum radio dropdown ordered",
    "identifier": "identifier id key uuid guid",
    "text": "str string text character char varchar",
}
_KIND_OF: Final = {word: kind for kind, words in _KINDS.items() for word in words.split()}
_GROUPED: Final = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?")
_RANGE: Final = re.compile(r"(-?[\d.,]*\d)\s*(?:-|–|\.\.+|to|:)\s*(-?\d[\d.,]*)")
_BRACKETED: Final = re.compile(r"[\[(]\s*(-?[\d.]+)\s*[,;]\s*(-?[\d.]+)\s*[\])]")
# <= and >= belong to the level.
_CODED: Final = re.compile(r"\s*((?:[<>!]=|[^=:])*?)\s*(?<![<>!])[=:]\s*(.*\S)\s*", re.DOTALL)
_PAIRED: Final = re.compile(r"\s*([^,]*?)\s*,\s*(.*\S)\s*", re.DOTALL)
# A choice: longer ranges are not expanded into whole numbers.
_LONG: Final = 100
_NOTHING: Final = {"", "?", "-", "na", "n/a", "nan", "none", "null", "unknown", "not known"}


def one_line(text: object) -> str:
    """Return a text on one line, of printable characters; None gives an empty one."""
    printed = (
        character if character.isprintable() else " "
        for character in ("" if text is None else str(text))
    )
    return " ".join("".join(printed).split())


def cell_text(cell: object) -> str:
    """Return the text of a cell, empty if it stands for a missing entry.

    >>> cell_text("0 to  110 "), cell_text("unknown"), cell_text(None)
    ('0 to 110', '', '')
    """
    line = one_line(cell)
    return "" if line.casefold() in _NOTHING else line


def kind_in(text: str, *, ranged: bool = False) -> str:
    """Return the type that a word names; empty if it is not known.

    Text is a category, unless it has a range: then it holds numbers.

    >>> kind_in("Whole number"), kind_in("float64"), kind_in("text"), kind_in("F8.2")
    ('integer', 'numeric', 'categorical', '')
    """
    tokens = re.findall(r"[a-z]+\d*", text.casefold().replace("/", ""))
    kinds = [_KIND_OF[word] for word in tokens if word in _KIND_OF]
    stems = [_KIND_OF[stem] for word in tokens if (stem := word.rstrip("0123456789")) in _KIND_OF]
    kind = next(iter(kinds or stems), "")
    return kind if kind != "text" else "" if ranged else "categorical"


def number_in(text: str) -> float:
    """Return the number that a text spells, nan otherwise.

    >>> number_in("250,000"), number_in("-9"), number_in("1,5")
    (250000.0, -9.0, nan)
    """
    try:
        number = float(text.replace(",", "") if _GROUPED.fullmatch(text) else text)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def end_in(text: str, where: str) -> Any:
    """Return the bound that a text spells, a number or a day; None if it is empty."""
    if not text:
        return None
    number = number_in(text)
    if not math.isnan(number):
        return number
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        raise CodebookError(
            f"{where} is {shorten(repr(text))}, neither a number nor a date; write one such as 0, "
            "2.5 or 2001-12-31, or leave it empty"
        ) from None


def range_in(text: str) -> tuple[float, float] | None:
    """Return both bounds of a text such as ``0-110``, None if it is not a range.

    >>> range_in("0 - 110"), range_in("[-5, 5]"), range_in("low; high")
    ((0.0, 110.0), (-5.0, 5.0), None)
    """
    match = _RANGE.fullmatch(text.strip()) or _BRACKETED.fullmatch(text.strip())
    ends = [number_in(end) for end in match.groups()] if match else []
    return (ends[0], ends[1]) if ends and not any(map(math.isnan, ends)) else None


def level_in(text: str) -> Level:
    """Return the level that a text is: a whole number, another number, or itself.

    A text that is not the usual spelling of a number stays text.

    >>> level_in("2"), level_in("2.5"), level_in("02"), level_in("F")
    (2, 2.5, '02', 'F')
    """
    number = number_in(text)
    if number == number:
        level: Level = int(number) if number.is_integer() else number
        if str(level) == text:
            return level
    return text


def levels_in(text: str, where: str) -> dict[Level, str]:
    """Return levels with their labels, of ``1=low; 2=high`` or ``F; M``; empty labels where none.

    Items are separated by a new line, a semicolon, a bar or, without these, a
    comma.

    >>> levels_in("1 = low; 2 = high", ""), levels_in("1, Low | 2, High", ""), levels_in("F,M", "")
    ({1: 'low', 2: 'high'}, {1: 'Low', 2: 'High'}, {'F': '', 'M': ''})
    """
    separator = next((mark for mark in "\n;|" if mark in text.strip()), ",")
    items = [one_line(item) for item in text.split(separator) if item.strip()]
    for form in (_CODED, _PAIRED):
        matches = [form.fullmatch(item) for item in items]
        if items and all(matches):
            return once(((level_in(match[1]), match[2]) for match in matches if match), where)
        if any(matches) and form is _CODED:
            raise CodebookError(
                f"{where}: of the levels {shorten(repr(text), 100)} some have a label and some do "
                "not; write 1=low; 2=high, or low; high"
            )
    return once(((level_in(item), "") for item in items), where)


def codes_between(lower: float, upper: float, listed: Iterable[Level]) -> list[Level]:
    """Return the codes in a range of missing values.

    For a short range, its whole numbers; for a long or open one (nan, inf), those
    `listed`.

    >>> codes_between(-3, -1, []), codes_between(-math.inf, -1, [-9, 1])
    ([-3, -2, -1], [-9])
    """
    if upper - lower < _LONG:
        return list(range(math.ceil(lower), math.floor(upper) + 1))
    numbers = (code for code in listed if isinstance(code, int | float))
    return [code for code in numbers if not (code < lower or code > upper)]


def once(pairs: Iterable[tuple[Level, str]], where: str) -> dict[Level, str]:
    """Return levels with their labels; CodebookError where one has two."""
    labels: dict[Level, str] = {}
    for level, label in pairs:
        if labels.setdefault(level, label) != label:
            raise CodebookError(
                f"{where}: level {shorten(repr(level))} is labelled {shorten(repr(labels[level]))} "
                f"and {shorten(repr(label))}; keep one of them"
            )
    return labels


UNKNOWN: Final = "?"
# The types that a dictionary may name, and an example declaration of each.
TYPES: Final[dict[str, tuple[type[variables.Variable], str]]] = {
    "numeric": (variables.Numeric, "(lower, upper)"),
    "integer": (variables.Integer, "(lower, upper)"),
    "date": (Date, '("2001-01-01", "2020-12-31")'),
    "boolean": (variables.Boolean, "dp.Boolean()"),
    "categorical": (variables.Categorical, '["low", "high"]'),
}
_COMPARED: Final = ("lower", "upper", "step", "levels", "labels", "missing", "unit")
# The label of a variable whose bounds were read from public rows.
PUBLIC_ROWS: Final = "from a public sample"
_NUMBERS: Final = frozenset({"numeric", "integer"})


@dataclass(frozen=True)
class Entry:
    """Facts of a variable, named as in its declaration; None or empty means unknown."""

    kind: str = ""  # One of TYPES
    lower: Any = None  # A number, or a day; compared with those of its kind
    upper: Any = None
    step: float = 0.0
    levels: tuple[Level, ...] = ()
    labels: tuple[str, ...] = ()
    ordered: bool = False
    missing: tuple[Level, ...] = ()
    label: str = ""
    unit: str = ""

    @classmethod
    def of(cls, variable: variables.Variable) -> Entry:
        """Return the facts of a declared variable."""
        facts = {
            f.name: getattr(variable, f.name) for f in fields(cls) if hasattr(variable, f.name)
        }
        kinds = (
            kind for kind, (variable_class, _) in TYPES.items() if type(variable) is variable_class
        )
        return cls(**facts, kind=next(kinds))

    @property
    def is_complete(self) -> bool:
        """Whether all is known that a codebook needs."""
        if self.kind == "categorical":
            return len(self.levels) > 1
        return self.kind == "boolean" or (self.kind in TYPES and self.has_range)

    @property
    def skips_codes(self) -> bool:
        """Whether numbers between the first two labelled ones have no label."""
        numbers = sorted(number for number in map(as_number, self.levels) if number >= 0)
        return bool(self.labels) and len(numbers) > 1 and numbers[1] - numbers[0] > 1

    @property
    def has_range(self) -> bool:
        """Whether both bounds are known."""
        return self.lower is not None and self.upper is not None

    def variable(self, name: str) -> variables.Variable:
        """Return the declaration; CodebookError, by name, if it is incomplete or invalid."""
        if not self.is_complete:
            raise CodebookError(f"variable {name!r} is not known: {self.instead(name)}")
        variable_class, _ = TYPES[self.kind]
        init_names = {field.name for field in fields(variable_class) if field.init}
        arguments = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name in init_names
        }
        try:
            variable: variables.Variable = variable_class(**arguments)
        except CodebookError as error:
            raise CodebookError(f"variable {name!r}: {error}") from None
        return variable

    def describe(self, name: str) -> str:
        """Return the declared range or the first levels, with ``?`` for unknown facts."""
        if self.is_complete:
            return brief(self.variable(name))
        bounds = [_bound_text(end) for end in (self.lower, self.upper)]
        text = UNKNOWN if bounds == [UNKNOWN] * 2 else " to ".join(bounds)
        return text + said_missing(self.missing)

    def instead(self, name: str) -> str:
        """Return an example declaration, as a keyword of a call."""
        _, example = TYPES.get(self.kind, TYPES["numeric"])
        return f"{name}={example}" if name.isidentifier() else f"**{{{name!r}: {example}}}"

    def completed(self, name: str, declared: object) -> Entry:
        """Return the entry with a declaration in place of its range and levels."""
        entry = Entry.of(variables.as_variable(name, declared))
        if isinstance(declared, tuple) and (entry.kind, self.kind) == ("numeric", "integer"):
            entry = replace(entry, kind="integer", step=1.0)
        return replace(
            entry,
            label=entry.label or _without_sample_mark(self.label),
            unit=entry.unit or self.unit,
            missing=entry.missing or self.missing,
        )


_DEFAULTS: Final = {field.name: field.default for field in fields(Entry)}


def joined(name: str, left: Entry, right: Entry) -> Entry:
    """Merge two entries of one variable; CodebookError where they disagree.

    The first of two labels is kept, with the mark of bounds from public rows if either has it.
    """
    for word in _COMPARED:
        first, second = getattr(left, word), getattr(right, word)
        if _DEFAULTS[word] not in (first, second) and first != second:
            _disagree(name, word, first, second)
    facts = {field.name: getattr(left, field.name) for field in fields(Entry)}
    facts |= {
        word: getattr(right, word) for word, value in facts.items() if value == _DEFAULTS[word]
    }
    facts["kind"] = _kind(name, left, right)
    label = _without_sample_mark(left.label) or _without_sample_mark(right.label)
    sample = PUBLIC_ROWS if PUBLIC_ROWS in left.label + right.label else ""
    return settled(name, Entry(**{**facts, "label": "; ".join(filter(None, (label, sample)))}))


def settled(name: str, entry: Entry) -> Entry:
    """Return an entry with one type: a number has a range, a category levels.

    Missing codes are not levels. Labelled values of a number with a range are its levels if there
    is one for each whole number of the range; else those outside the range are missing values, as
    in surveys, where ``-9`` is labelled "refused". The range of a category stands for its whole
    numbers if it has no levels.
    """
    entry = _without_missing(entry)
    if entry.kind in ("boolean", "date"):
        return entry
    if not entry.levels:
        return _unlabelled(entry)
    if entry.kind in _NUMBERS and len(entry.levels) < 2 and not entry.has_range:
        return replace(entry, levels=(), labels=())
    return _labelled(name, entry)


def _without_missing(entry: Entry) -> Entry:
    positions = [
        position for position, level in enumerate(entry.levels) if level not in entry.missing
    ]
    levels = tuple(entry.levels[position] for position in positions)
    labels = tuple(entry.labels[position] for position in positions) if entry.labels else ()
    return replace(entry, levels=levels, labels=_unlike(levels, labels))


def _unlabelled(entry: Entry) -> Entry:
    """Return an entry without levels: a bound makes a number, the range of a category levels."""
    if entry.kind == "categorical" and entry.has_range:
        listed = tuple(codes_between(entry.lower, entry.upper, ()))
        return replace(entry, levels=listed, lower=None, upper=None)
    bounded = entry.lower is not None or entry.upper is not None
    return replace(entry, kind="numeric") if bounded and not entry.kind else entry


def _labelled(name: str, entry: Entry) -> Entry:
    """Return an entry with levels: a category, or a number with a range and missing codes."""
    category = replace(entry, kind="categorical", lower=None, upper=None)
    if not entry.has_range or not all(map(_is_number, entry.levels)):
        return category
    outside = tuple(level for level in entry.levels if not entry.lower <= level <= entry.upper)
    n_inside = len(entry.levels) - len(outside)
    if entry.kind == "categorical" or n_inside == entry.upper - entry.lower + 1:
        if outside:
            _disagree(name, "levels", entry.levels, f"a range {entry.describe(name)}")
        return category
    return replace(
        entry,
        kind=entry.kind or "numeric",
        levels=(),
        labels=(),
        missing=(*entry.missing, *outside),
    )


def plain_of(name: str, entry: Entry) -> dict[str, object]:
    """Return JSON values: those of a codebook, with ``"?"`` for unknown facts."""
    if entry.is_complete:
        return variables.to_plain(entry.variable(name))
    plain: dict[str, object] = {}
    if entry.kind not in ("numeric", "categorical"):
        plain["type"] = entry.kind or UNKNOWN
    if entry.kind == "categorical":
        plain["levels"] = UNKNOWN
    elif entry.kind:
        bounds = (entry.lower, entry.upper)
        plain["range"] = [
            UNKNOWN if end is None else str(end) if entry.kind == "date" else end for end in bounds
        ]
    unit = entry.unit if entry.kind in _NUMBERS else ""
    plain |= {"label": entry.label, "unit": unit, "missing": list(entry.missing)}
    return {word: value for word, value in plain.items() if value}


def entry_of(name: str, plain: Plain) -> Entry:
    """Read JSON values of a draft or of a codebook; CodebookError, by name, if they are neither."""
    is_draft = isinstance(plain, dict) and (
        UNKNOWN in (plain.get("type"), plain.get("levels"), plain.get("range"))
        or UNKNOWN in (plain.get("range") or ())
    )
    if not is_draft:
        return Entry.of(variables.from_plain(name, plain))
    try:
        values = conform({word: _SHAPES.get(word, _no_word) for word in plain}, plain, "")
    except FrameError as error:
        raise CodebookError(f"variable {name!r}: {error}") from None
    implied = "categorical" if "levels" in values else "numeric"
    kind = values.get("type", implied)
    bounds = values.get("range", UNKNOWN)
    lower, upper = (None, None) if bounds == UNKNOWN else (_end(name, kind, end) for end in bounds)
    return Entry(
        kind="" if kind == UNKNOWN else kind,
        lower=lower,
        upper=upper,
        **{word: values[word] for word in ("label", "unit", "missing") if word in values},
    )


def _no_word(plain: object) -> object:
    raise FrameError("is not a property of a variable")


_SHAPES: Final[dict[str, object]] = {
    "type": Literal["?", "numeric", "integer", "date", "boolean", "categorical"],
    "range": Literal["?"] | tuple[float | str, float | str],
    "levels": Literal["?"],
    "label": str,
    "unit": str,
    "missing": tuple[float | str, ...],
}


def _end(name: str, kind: str, plain: Plain) -> object:
    if plain == UNKNOWN:
        return None
    try:
        return date.fromisoformat(plain) if kind == "date" else float(plain)
    except (TypeError, ValueError):
        raise CodebookError(
            f"variable {name!r}: {shorten(repr(plain))} is not a valid bound; write a number, a "
            'date such as "2001-12-31", or "?" where it is not known'
        ) from None


def _without_sample_mark(label: str) -> str:
    return label.removesuffix(PUBLIC_ROWS).removesuffix("; ")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _unlike(levels: tuple[Level, ...], labels: tuple[str, ...]) -> tuple[str, ...]:
    """Return labels of levels; a blank or duplicate label is replaced by its level."""
    texts = tuple(map(str, levels))
    shown_labels = labels or texts
    counts = Counter([*shown_labels, *texts])
    pairs = zip(texts, shown_labels, strict=True)
    distinct = tuple(
        label if label.strip() and counts[label] == 1 else text for text, label in pairs
    )
    return () if distinct == texts else distinct


def _kind(name: str, left: Entry, right: Entry) -> str:
    """Return the one type of two entries, the narrower of two that fit."""
    kinds = {left.kind, right.kind} - {""}
    levels = left.levels or right.levels
    if len(kinds) < 2:
        return next(iter(kinds), "")
    if kinds == _NUMBERS:
        return "integer"
    if "boolean" in kinds and kinds <= {"boolean", "numeric", "integer", "categorical"}:
        return "categorical" if levels and "categorical" in kinds else "boolean"
    if "categorical" in kinds and "date" not in kinds and levels and all(map(_is_number, levels)):
        return "categorical"
    _disagree(name, "type", left.kind, right.kind)


def _disagree(name: str, word: str, first: object, second: object) -> NoReturn:
    values = (
        shorten(str(list(value) if isinstance(value, tuple) else value))
        for value in (first, second)
    )
    raise CodebookError(
        f"variable {name!r} has two entries that disagree: {word} {' and '.join(values)}; keep one "
        "of them, or correct the other"
    )


def _bound_text(end: object) -> str:
    return UNKNOWN if end is None else f"{end:,.10g}" if _is_number(end) else str(end)
