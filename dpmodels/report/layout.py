"""Where the columns of a table stand, and numbers as strings that claim no more than is known.

Columns are measured in characters as a terminal shows them. Numbers have fixed notation from 1e-4
to 1e9, powers of ten outside; ``-`` for what does not exist, ``Inf`` for what has no end.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import groupby, pairwise
from typing import Final

from dpmodels.errors import ArgumentError
from dpmodels.labels import plain

# Where a word that fits no line is cut, the best places first: variables of an interaction, other
# signs, parts of a name.
_CUTS = tuple(re.compile(rf"[^{ends}]*[{ends}]*") for ends in (":*", r".,;/|)\]+&-", "_"))


def width(text: str) -> int:
    """Columns that a terminal gives: wide East Asian characters two, combining marks none."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(c) in ("W", "F") for c in text)
    combining = sum(unicodedata.category(c) in ("Mn", "Me") for c in text)
    return len(text) + wide - combining


def pad(text: str, columns: int, align: str) -> str:
    """``text`` filled with spaces to ``columns``; ``align`` is one of ``< > ^``."""
    spare = max(columns - width(text), 0)
    left = {"<": 0, ">": spare, "^": spare // 2}[align]
    return " " * left + text + " " * (spare - left)


def wrap(text: str, columns: int, indent: int = 0) -> tuple[str, ...]:
    """Lines of at most ``columns``, later ones indented; no character is lost.

    Breaks at spaces; a word longer than a line breaks after the sign between
    two variables, then after other punctuation, and only then inside.
    """
    lines = [""]
    for word in plain(text).split(" "):
        joint = " " if lines[-1].strip() else ""
        if width(lines[-1] + joint + word) <= columns:
            lines[-1] += joint + word
            continue
        lines += [" " * indent] * bool(joint)
        _fill(lines, word, columns, " " * indent)
    return tuple(lines)


def _fill(
    lines: list[str], word: str, columns: int, margin: str, cuts: Sequence[re.Pattern[str]] = _CUTS
) -> None:
    """Continue some lines with a word, on a line of its own where it is too long, or cut."""
    if width(lines[-1] + word) > columns and lines[-1].strip():
        lines.append(margin)
    if width(lines[-1] + word) <= columns or len(word) == 1:
        lines[-1] += word
        return
    for part in filter(None, cuts[0].findall(word) if cuts else word):
        _fill(lines, part, columns, margin, cuts[1:])


WIDTH = 78  # of a report that needs no more
LIMIT = 100  # of any line
WIDEST = 120  # of a table of which a page shows more than a terminal
GAP = 2  # spaces before a column
INDENT = "  "  # of a row below a heading
LABEL = 26  # a label longer than this wraps when space is short
_WIDE_LABEL = 44
_HEAD = 12  # a head may be as wide as this even over narrower cells
_SPANNER = 18  # a word above several columns, or above one, may be as wide
_CELL = 28
_COMFORT = 8  # short cells spread to this width where the line has space
_INTERVAL = re.compile(r"\[([^\s,]+), ([^\s,]+)\]")
_NUMBER_LETTERS = re.compile(r"Inf|nan|(?<=\d)[eE](?=[+-]?\d)")


@dataclass(frozen=True, slots=True)
class Layout:
    """Measures of a table in characters.

    `widths` leave out the gap before a column; `stacked` intervals stand on two
    lines; `panels` are the columns of each panel; `name` is the width of labels
    that have words beside them.
    """

    label: int
    widths: tuple[int, ...]
    stacked: bool
    panels: tuple[range, ...]
    name: int = 0

    def width(self, panel: range) -> int:
        """Return the width of the lines of one panel, in characters."""
        return self.label + sum(self.widths[j] + GAP for j in panel)


def lay_out(sections: Sequence[Section], limits: tuple[int, ...] = (WIDTH, LIMIT)) -> Layout:
    """Measure tables that have equal column heads.

    Tries, in this order, long labels on one line, labels wrapped where columns
    leave less, intervals stacked too, first within the first limit and then
    within the next; the last resort is the smallest number of panels that keeps
    lines within the last.
    """
    comfort = min(WIDTH, limits[0])
    widest = _WIDE_LABEL if sections[0].columns else limits[0]
    uncut = _measure(sections, widest, False, comfort)
    for limit in limits:
        cut = (
            _measure(sections, _label_width(sections, stacked, limit), stacked, comfort)
            for stacked in (False, True)
        )
        for layout in (uncut, *cut):
            if layout.width(layout.panels[0]) <= limit:
                return layout
    return _in_panels(_measure(sections, LABEL, True, comfort), limits[-1])


def _label_width(sections: Sequence[Section], stacked: bool, limit: int) -> int:
    """Characters of labels within a limit: the fewest that cut names and words no more often."""
    space = limit - sum(cells + GAP for cells in _widths(sections, stacked))
    widest = min(_WIDE_LABEL, max(LABEL, space))
    rows = [row for section in sections for row in section.rows if not row.heading]
    words = [max(map(width, row.label.split()), default=0) for row in rows]
    long = [row for row, word in zip(rows, words, strict=True) if row.about or word > LABEL]
    name = _name_width(long)

    def lines(columns: int) -> int:
        return sum(len(label_lines(row, columns, name)) for row in long)

    fewest = lines(widest)
    candidates = range(LABEL, widest)
    return LABEL + bisect_left(candidates, True, key=lambda columns: lines(columns) <= fewest)


def _name_width(rows: Iterable[Row]) -> int:
    """Characters of the longest label that has words beside it."""
    return max((width(plain(row.label)) for row in rows if row.about), default=0)


def fits(section: Section, alike: Sequence[Section], limits: tuple[int, ...]) -> bool:
    """Whether a table, and those with its columns, stay as narrow with words beside labels."""
    neighbours = [wordless(neighbour) for neighbour in alike if neighbour is not section]
    layout = lay_out([section, *neighbours], limits)
    before = lay_out([wordless(section), *neighbours], limits)
    wide, narrow = (candidate.width(candidate.panels[0]) for candidate in (layout, before))
    same = (layout.stacked, layout.panels) == (before.stacked, before.panels)
    rows = (row for row in section.rows if row.about and not row.heading)
    lines = (label_lines(row, layout.label, layout.name) for row in rows)
    return same and wide <= max(limits[0], narrow) and all(len(parts) == 1 for parts in lines)


def wordless(section: Section) -> Section:
    """Leave out the words beside labels."""
    return replace(section, rows=tuple(replace(row, about=None) for row in section.rows))


def label_lines(row: Row, columns: int, name: int = 0) -> tuple[str, ...]:
    """Lines of a label, indented; the words for it beside it, or below a label that is long."""
    shift = INDENT * row.indent
    label = wrap(row.label, columns - len(shift), indent=2)
    if row.about is None:
        return tuple(shift + line for line in label)
    words = plain(row.about[1])
    first = shift + pad(label[0], name, "<") + " " * GAP
    if len(label) > 1 or columns - width(first) < min(_HEAD, width(words)):
        return tuple(shift + line for line in (*label, *wrap(words, columns - len(shift))))
    wrapped = wrap(words, columns - width(first))
    return (first + wrapped[0], *(" " * width(first) + line for line in wrapped[1:]))


def cell_lines(cell: str, stacked: bool) -> tuple[str, ...]:
    """Lines of one cell; a stacked interval has its two ends on two lines."""
    text = plain(cell)
    ends = _INTERVAL.fullmatch(text) if stacked else None
    return (f"[{ends[1]},", f"{ends[2]}]") if ends else wrap(text, _CELL)


def head_lines(head: str, columns: int) -> tuple[str, ...]:
    """Lines of a column head over a column of the given width."""
    return wrap(head, max(columns, _HEAD))


def is_words(section: Section, column: int) -> bool:
    """Whether a column holds words or bars only, which stand at the left."""
    if any(isinstance(row.cells[column], Bar) for row in section.rows):
        return True
    cells = [plain(row.cells[column]) for row in section.rows]
    filled = [cell for cell in cells if cell not in ("", "-")]
    spelt = [any(c.isalpha() for c in _NUMBER_LETTERS.sub("", cell)) for cell in filled]
    return bool(filled) and all(spelt)


def words_width(section: Section, panel: range) -> int:
    """Characters of a table whose cells break at spaces, as narrow as it gets."""
    return LABEL + sum(_longest_word(section, j) + GAP for j in panel)


def panels(section: Section, limit: int) -> tuple[range, ...]:
    """Cut the columns of a table whose cells break at spaces into panels within a limit."""
    widths = tuple(_longest_word(section, j) for j in range(len(section.columns)))
    layout = Layout(LABEL, widths, stacked=True, panels=(range(len(widths)),))
    if layout.width(layout.panels[0]) > limit:
        layout = _in_panels(layout, limit)
    return layout.panels


def _longest_word(section: Section, column: int) -> int:
    texts = (section.columns[column], *(row.cells[column] for row in section.rows))
    return max((width(word) for text in texts for word in plain(text).split()), default=0)


def _measure(sections: Sequence[Section], label_width: int, stacked: bool, comfort: int) -> Layout:
    """One panel, as wide as it gets."""
    titles = [plain(s.title) for s in sections if width(plain(s.title)) <= LABEL]
    rows = [row for s in sections for row in s.rows]
    filled = [row for row in rows if not row.heading]
    name = _name_width(filled)
    labels = [line for row in filled for line in label_lines(row, label_width, name)]
    label = max(map(width, titles + labels), default=0)
    widths = _widths(sections, stacked)
    everything = (range(len(widths)),)
    for common in (max([_COMFORT, *widths]), max(widths, default=0)):
        even = Layout(label, (common,) * len(widths), stacked, everything, name)
        if even.width(everything[0]) <= comfort:
            return even
    return Layout(label, widths, stacked, everything, name)


def _widths(sections: Sequence[Section], stacked: bool) -> tuple[int, ...]:
    rows = [row for section in sections for row in section.rows]
    widths = []
    for column, head in enumerate(sections[0].columns):
        lines = (line for row in rows for line in cell_lines(row.cells[column], stacked))
        body = max(map(width, lines), default=0)
        widths.append(max([body, *map(width, head_lines(head, body))]))
    for section in sections:
        start = 0
        for text, columns in section.spans(range(len(widths))):
            across = sum(widths[start : start + columns]) + GAP * (columns - 1)
            longest = max(map(width, plain(text).split() or [""]))
            widths[start] += max(min(longest, _SPANNER) - across, 0)
            start += columns
    return tuple(widths)


def _in_panels(layout: Layout, limit: int) -> Layout:
    """Cut the columns into the fewest panels of nearly equal length."""
    columns = len(layout.widths)
    for number in range(2, columns + 1):
        cuts = [columns * i // number for i in range(number + 1)]
        panels = tuple(range(a, b) for a, b in pairwise(cuts))
        if all(layout.width(panel) <= limit for panel in panels):
            break
    return replace(layout, panels=panels)


# A cell that is a bar: characters where nothing better can be drawn.

# A choice: characters of the longest bar.
LONGEST: Final = 20


class Bar(str):
    """A share of the longest bar, from 0 to 1, as text of one width.

    >>> Bar(0.25), Bar(0.25).share
    ('#####...............', 0.25)
    """

    __slots__ = ("share",)
    share: float

    def __new__(cls, share: float) -> Bar:
        """Return the text of a share."""
        bar = super().__new__(cls, ("#" * round(LONGEST * share)).ljust(LONGEST, "."))
        bar.share = share
        return bar


# Labels of names: beside the name where they fit, else in a legend below.


def placed(report: Report, limits: tuple[int, ...] | None = None) -> Report:
    """Keep labels beside names where the table does not exceed its width limit with them.

    Labels are printed once. Those of other names in tables or header make a last table.
    """
    printed: set[tuple[str, str]] = set()
    sections = []
    for section in report.sections:
        fresh = {row.about for row in section.rows if row.about} - printed
        if fresh and (limits is None or fits(section, report.alike(section), limits)):
            printed |= fresh
            sections.append(section)
        else:
            sections.append(wordless(section))
    spoken = _spoken(report)
    rest = [entry for entry in report.legend if entry not in printed and _names(entry[0], spoken)]
    rows = tuple(Row(name, about=(name, words)) for name, words in rest)
    legend = (Section("Labels", (), rows),) if rows else ()
    return replace(report, sections=(*sections, *legend), legend=())


def _spoken(report: Report) -> str:
    """All texts of a report in which a name may stand."""
    texts = [value for label, value in report.facts if label != "Formula"]
    for section in report.sections:
        labels = (row.label for row in section.rows)
        texts += [section.title, *section.columns, *section.spanners, *labels]
    return "\n".join(texts)


def _names(name: str, spoken: str) -> bool:
    """Whether a text has a name as a word, which inside quotes is another's."""
    edge = r"[\w.\"']"
    word = f"(?<!{edge}){re.escape(name)}(?!{edge})"
    return name in spoken and bool(re.search(word, spoken))


# What a report is: cells that are already strings, and where they stand.

# A label and a value of the header.
Fact = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table.

    `about` is the name it is of and the words for that, which stand beside the label where they
    fit; the label of a heading takes the blank cells behind it too.
    """

    label: str
    cells: tuple[str, ...] = ()
    indent: int = 0
    heading: bool = False
    about: Fact | None = None

    def blank(self, columns: range) -> int:
        """How many of the first of some columns the label covers."""
        if not self.heading:
            return 0
        filled = (place for place, column in enumerate(columns) if self.cells[column])
        return next(filled, len(columns))

    def shown_in(self, panel: range) -> bool:
        """Whether there is anything to print in a panel: a label or a cell."""
        return bool(self.label) or any(self.cells[j] for j in panel)


@dataclass(frozen=True, slots=True)
class Section:
    """One table of a report.

    Sections of one report with equal heads are printed with equal widths. `spanners` are one a
    column, blank where it has none: what stands once above neighbours that share it.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    spanners: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.spanners and len(self.spanners) != len(self.columns):
            raise ArgumentError(
                f"{len(self.spanners)} spanners for {len(self.columns)} columns: write one a "
                'column, "" for a blank one'
            )
        for number, row in enumerate(self.rows, start=1):
            if len(row.cells) != len(self.columns):
                raise ArgumentError(
                    f"row {number} of a section has {len(row.cells)} cells for "
                    f'{len(self.columns)} columns: write one cell a column, "" for a blank one'
                )

    def spans(self, panel: range) -> tuple[tuple[str, int], ...]:
        """Return the spanners above some columns, each with its number of columns."""
        texts = [self.spanners[j] for j in panel] if self.spanners else []
        return tuple((text, len(list(same))) for text, same in groupby(texts)) if any(texts) else ()


@dataclass(frozen=True, slots=True)
class Report:
    """A printed result: title, facts, tables, notes, and a legend: words for names in it.

    Examples
    --------
    >>> from dpmodels.report import Report, Row, Section, as_text
    >>> rows = (Row("age", ("1.204", "0.031")), Row("educ", ("0.870", "0.112")))
    >>> table = Section("Coefficients", ("estimate", "noise sd"), rows)
    >>> facts = (("Formula", "wage ~ age + educ"), ("Guarantee", "eps = 1"))
    >>> print(as_text(Report("Private least squares", facts, (table,), ())))
                                Private least squares
    ==============================================================================
    Formula:  wage ~ age + educ   Guarantee: eps = 1
    ------------------------------------------------------------------------------
    Coefficients  estimate  noise sd
    age              1.204     0.031
    educ             0.870     0.112
    ==============================================================================
    """

    title: str
    facts: tuple[Fact, ...]
    sections: tuple[Section, ...]
    notes: tuple[str, ...]
    stamp: str | None = None
    legend: tuple[Fact, ...] = ()

    def alike(self, section: Section) -> list[Section]:
        """Return the sections with the column heads of one."""
        return [candidate for candidate in self.sections if candidate.columns == section.columns]


_MOST = 6  # significant digits printed however small the noise
_FULL = 17  # significant decimal digits of a float64


def signif(value: float, digits: int = 4) -> str:
    """``value`` to ``digits`` significant digits.

    Examples
    --------
    >>> signif(0.41268), signif(0.163), signif(123456.7), signif(3.2e-7)
    ('0.4127', '0.1630', '123500', '3.200e-07')
    >>> signif(float("nan")), signif(float("-inf")), signif(0)
    ('-', '-Inf', '0')
    """
    if not 1 <= digits <= _FULL:
        raise ArgumentError(f"digits = {digits}: write a number of digits from 1 to {_FULL}")
    if not math.isfinite(value) or value == 0:
        return _special(value)
    rounded = f"{value:.{digits - 1}e}"
    return f"{Decimal(rounded):f}" if _is_fixed(float(rounded)) else rounded


def signif_uncertain(value: float, sd: float, digits: int = 2) -> str:
    """``value`` to the digits that noise of standard deviation ``sd`` leaves.

    The last digit printed stands where the last of the ``digits`` of ``sd``
    stands, so a value lost in its noise prints as a zero, never as a string of digits.

    Examples
    --------
    >>> signif_uncertain(0.123456, 0.0123), signif_uncertain(12345.6, 320)
    ('0.123', '12350')
    >>> signif_uncertain(29336126827944404.0, 3e15), signif_uncertain(0.4, 57.0)
    ('2.93e+16', '0')
    """
    if sd < 0:
        raise ArgumentError("sd is negative: write a standard deviation, 0 or more")
    if math.isnan(sd) or math.isinf(sd) or not math.isfinite(value):
        return _special(math.nan if math.isfinite(value) else value)
    if sd == 0 or value == 0:
        return signif(value)
    place = max(_exponent(sd, digits) - digits + 1, _exponent(value, _MOST) - _MOST + 1)
    return _at_place(value, place, fixed=None)


def interval(low: float, high: float) -> str:
    """``[low, high]`` with equal decimals, enough for two digits of the width.

    Examples
    --------
    >>> interval(0.41234, 0.43119), interval(-12.3, 45.67), interval(0.5, math.inf)
    ('[0.412, 0.431]', '[-12, 46]', '[0.5000, Inf]')
    """
    if math.isnan(low) or math.isnan(high):
        return "-"
    if low > high:
        raise ArgumentError("the lower end lies above the upper end: write the lower end first")
    largest = max(abs(low), abs(high))
    spread = high - low
    if spread == 0 or not math.isfinite(spread):
        return f"[{signif(low)}, {signif(high)}]"
    place = max(_exponent(spread, 2) - 1, _exponent(largest, _FULL) - _FULL + 1)
    fixed = _is_fixed(largest)
    ends = [_at_place(end, place, fixed=fixed, signed=True) for end in (low, high)]
    return f"[{ends[0]}, {ends[1]}]"


def count(value: float) -> str:
    """Print a number of things, to the nearest one, with thousands marked.

    Examples
    --------
    >>> count(20190), count(-3.4), count(2.9e16), count(float("nan"))
    ('20,190', '-3', '2.900e+16', '-')
    """
    if not math.isfinite(value):
        return _special(value)
    return f"{round(value):,}" if abs(value) < 1e9 else signif(value)


def uncertain(values: Iterable[float], sds: Iterable[float]) -> tuple[str, ...]:
    """Print numbers to the digits their noise leaves, ``-`` for nan."""
    return tuple(
        "-" if math.isnan(value) else signif_uncertain(value, sd)
        for value, sd in zip(map(float, values), map(float, sds), strict=True)
    )


def hundredth(value: float) -> float:
    """Return the power of ten that leaves a number four digits as its noise.

    Examples
    --------
    >>> hundredth(512.0)
    1.0
    """
    return float(10.0 ** math.floor(math.log10(value)) / 100) if value > 0 else 0.0


def _special(value: float) -> str:
    """nan, the infinities and zero."""
    if math.isnan(value):
        return "-"
    return "0" if value == 0 else ("Inf" if value > 0 else "-Inf")


def _is_fixed(value: float) -> bool:
    return 1e-4 <= abs(value) < 1e9


def _exponent(value: float, digits: int) -> int:
    """Power of ten of the first digit once ``value`` is rounded to ``digits``."""
    return int(f"{value:.{digits - 1}e}".partition("e")[2])


def _at_place(value: float, place: int, *, fixed: bool | None, signed: bool = False) -> str:
    """``value`` to a multiple of 10**place, ties to even; ``signed`` keeps the sign of -0."""
    rounded = Decimal(value).quantize(Decimal(1).scaleb(place))
    if rounded == 0:
        sign = "-" if signed and value < 0 else ""
        return sign + (f"{0:.{-place}f}" if -5 <= place < 0 else "0")
    if fixed if fixed is not None else _is_fixed(float(rounded)):
        return f"{rounded:f}"
    power = rounded.adjusted()
    return f"{rounded.scaleb(-power):.{max(power - place, 0)}f}e{power:+03d}"
