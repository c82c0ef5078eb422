"""A report as plain text, in the look of statsmodels' summaries, and a summary in four formats."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from dpmodels.labels import plain
from dpmodels.report.html import as_html, as_page
from dpmodels.report.latex import as_latex
from dpmodels.report.layout import (
    GAP,
    LIMIT,
    WIDEST,
    WIDTH,
    Fact,
    Layout,
    Report,
    Row,
    Section,
    cell_lines,
    head_lines,
    is_words,
    label_lines,
    lay_out,
    pad,
    panels,
    placed,
    width,
    wordless,
    wrap,
)

_VALUE = 32  # a value longer than this is shortened or wrapped
_NARROW_VALUE = 22
_LABEL = 24
_BETWEEN = "   "


def as_text(report: Report) -> str:
    """Print the report as lines of 78 characters, up to 100 where it needs them.

    Tables too wide for that are cut into panels, one under the other. Long
    formulas of the header lose their middle terms; nothing else is left out.
    """
    report = placed(report, (WIDTH, LIMIT))
    facts = fact_lines(report.facts)
    layouts = _layouts(report)
    tables = [_table(section, layouts[section.columns]) for section in report.sections]
    columns = max([WIDTH, *map(width, facts), *(width(line) for t in tables for line in t)])
    blocks = [facts] if facts else []
    for section, table in zip(report.sections, tables, strict=True):
        shared = _shares_line(section, layouts[section.columns])
        title = () if shared else wrap(section.title, columns, indent=2)
        blocks.append([*title, *table])
    lines = [pad(line, columns, "^") for line in wrap(report.title, columns)]
    for number, block in enumerate(blocks):
        lines += [("-" if number else "=") * columns, *block]
    lines += ["=" * columns]
    lines += [line for note in report.notes for line in wrap(note, columns, indent=2)]
    stamp = _stamp(report.stamp, columns)
    return "\n".join(line.rstrip() for line in [*stamp, *lines, *stamp])


def _layouts(report: Report, line: int = WIDTH) -> dict[tuple[str, ...], Layout]:
    """How each table stands, by its column heads, on lines of that many characters.

    Where one table needs a longer line, the labels of the others have it too.
    """
    alike = {section.columns: report.alike(section) for section in report.sections}
    layouts = {columns: lay_out(tables, (line, LIMIT)) for columns, tables in alike.items()}
    widths = [layout.width(panel) for layout in layouts.values() for panel in layout.panels]
    longest = min(max(widths, default=0), LIMIT)
    return _layouts(report, longest) if longest > line else layouts


def _stamp(stamp: str | None, columns: int) -> list[str]:
    if stamp is None:
        return []
    lines = [f" {line} " for line in wrap(stamp, columns - 8)]
    spare = [columns - width(line) for line in lines]
    stars = [("*" * (n // 2), "*" * (n - n // 2)) for n in spare]
    return [line.join(pair) for line, pair in zip(lines, stars, strict=True)]


def _shares_line(section: Section, layout: Layout) -> bool:
    """Whether the title fits left of the column heads."""
    return bool(section.columns) and width(plain(section.title)) <= layout.label


def _table(section: Section, layout: Layout) -> list[str]:
    title = plain(section.title) if _shares_line(section, layout) else ""
    aligns = ["<" if is_words(section, j) else ">" for j in range(len(section.columns))]
    lines: list[str] = []
    for number, panel in enumerate(layout.panels):
        heads = [head_lines(section.columns[j], layout.widths[j]) for j in panel]
        height = max(map(len, heads), default=0)
        raised = [("",) * (height - len(head)) + head for head in heads]
        lines += [""] if number else []
        if section.columns:
            first = ("",) * (height - 1) + ("" if number else title,)
            lines += _spanned(section.spans(panel), panel, layout)
            lines += _lines(first, raised, panel, layout, aligns)
        for row in section.rows if not number else wordless(section).rows:
            if row.shown_in(panel):
                lines += _row(row, panel, layout, aligns)
    return lines


def _spanned(spans: Sequence[tuple[str, int]], panel: range, layout: Layout) -> tuple[str, ...]:
    """Set what stands above several columns in their middle, with a rule below."""
    start, blocks = panel.start, []
    for text, columns in spans:
        across = layout.width(range(start, start + columns)) - layout.label - GAP
        wrapped = wrap(text, across)
        blocks.append([pad(line, across, "^") for line in (*wrapped, "-" * across * bool(text))])
        start += columns
    height = max(map(len, blocks), default=0)
    raised = [[" " * len(block[0])] * (height - len(block)) + block for block in blocks]
    gap = " " * GAP
    return tuple(" " * layout.label + gap + gap.join(parts) for parts in zip(*raised, strict=True))


def _row(row: Row, panel: range, layout: Layout, aligns: list[str]) -> list[str]:
    if row.heading:
        blank = row.blank(panel)
        columns = max(layout.width(panel[:blank]), 0 if panel[blank:] else WIDTH)
        layout, panel = replace(layout, label=columns, name=0), panel[blank:]
    label = label_lines(row, layout.label, layout.name)
    cells = [cell_lines(row.cells[j], layout.stacked) for j in panel]
    above = ("",) * (len(label) - max(map(len, cells), default=0))
    return _lines(label, [above + cell for cell in cells], panel, layout, aligns)


def _lines(
    label: tuple[str, ...],
    cells: list[tuple[str, ...]],
    panel: range,
    layout: Layout,
    aligns: list[str],
) -> list[str]:
    widths = [layout.label, *(layout.widths[j] for j in panel)]
    sides = ["<", *(aligns[j] for j in panel)]
    return [
        (" " * GAP).join(map(pad, parts, widths, sides))
        for parts in zip_longest(label, *cells, fillvalue="")
    ]


def fact_lines(facts: Sequence[Fact]) -> list[str]:
    """Lines of the header, filled row by row; long formulas are shortened, long values wrapped."""
    lines = _two_columns(facts, _VALUE)
    wide = max(map(width, lines), default=0) > LIMIT
    return _two_columns(facts, _NARROW_VALUE) if wide else lines


def shorten(formula: str, max_width: int) -> str:
    """Leave out middle terms of a formula, to at most ``most`` characters.

    The first and the last term always stay, so the result can have more.
    """
    terms = _terms(formula)
    if width(formula) <= max_width or len(terms) < 3:
        return formula
    best = " + ".join([terms[0], "...", terms[-1]])
    head, tail = 1, 1
    for turn in range(len(terms) - 3):
        grown = (head + 1, tail) if turn % 2 == 0 else (head, tail + 1)
        text = " + ".join([*terms[: grown[0]], "...", *terms[-grown[1] :]])
        if width(text) > max_width:
            break
        best, (head, tail) = text, grown
    return best if width(best) < width(formula) else formula


def _terms(formula: str) -> list[str]:
    terms, depth = [""], 0
    for character in formula:
        depth += (character in "([{") - (character in ")]}")
        if character == "+" and depth == 0:
            terms.append("")
        else:
            terms[-1] += character
    return [term.strip() for term in terms]


def _block(facts: Sequence[Fact], max_width: int, gap: int) -> list[tuple[str, ...]]:
    """One column of the header: each pair as lines of equal width."""
    labels = [wrap(label + ":", _LABEL, indent=2) for label, _ in facts]
    texts = [plain(value) for _, value in facts]
    texts = [shorten(text, max_width) if "~" in text else text for text in texts]
    values = [wrap(text, max_width) for text in texts]
    label_width = max((width(line) for lines in labels for line in lines), default=0) + gap
    value_width = max((width(line) for lines in values for line in lines), default=0)
    lines = (zip_longest(*pair, fillvalue="") for pair in zip(labels, values, strict=True))
    widths = (label_width, value_width)
    return [tuple("".join(map(pad, parts, widths, "<<")) for parts in block) for block in lines]


def _two_columns(facts: Sequence[Fact], max_width: int) -> list[str]:
    left, right = _block(facts[0::2], max_width, gap=2), _block(facts[1::2], max_width, gap=1)
    blank = " " * max((width(block[0]) for block in left), default=0)
    return [
        (_BETWEEN.join([a or blank, b]) if b else a).rstrip()
        for pair in zip_longest(left, right, fillvalue=())
        for a, b in zip_longest(*pair, fillvalue="")
    ]


# A report in GitHub's Markdown.

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&^!@])")


def as_markdown(report: Report) -> str:
    r"""Write a heading, tables and a list of notes, by GFM 0.29, sections 2.4 and 4.10."""
    report = placed(report)
    stamp = [] if report.stamp is None else [f"**{escaped(report.stamp)}**"]
    blocks = [*stamp, f"### {escaped(report.title)}"]
    if report.facts:
        facts = [_line(escaped(label), escaped(value)) for label, value in report.facts]
        blocks.append("\n".join([_line("", ""), _line(":---", ":---"), *facts]))
    for section in report.sections:
        parts = enumerate(panels(section, WIDEST))
        blocks += [_markdown_table(section, panel, number) for number, panel in parts]
    if report.notes:
        blocks.append("\n".join(f"- {escaped(note)}" for note in report.notes))
    return "\n\n".join([*blocks, *stamp])


def escaped(text: str) -> str:
    """Return one line of text with special characters escaped."""
    safe = _SPECIAL.sub(r"\\\1", plain(text))
    # A line that begins so would become a list item of its own.
    return re.sub(r"^([+-]|\d+[.)])(?=\s|$)", lambda m: f"{m[1][:-1]}\\{m[1][-1]}", safe)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_table(section: Section, panel: range, number: int) -> str:
    title = f"{section.title} (continued)" if number else section.title
    # A table has one row of heads.
    above = section.spanners or ("",) * len(section.columns)
    heads = [f"{above[j]} {section.columns[j]}".strip() for j in panel]
    rules = [":---", *(":---" if is_words(section, j) else "---:" for j in panel)]
    rows = [_line(_label(row), *(escaped(row.cells[j]) for j in panel)) for row in section.rows]
    return "\n".join([_line(*map(escaped, (title, *heads))), _line(*rules), *rows])


def _label(row: Row) -> str:
    words = f" &emsp;{escaped(row.about[1])}" if row.about else ""
    return "&emsp;" * row.indent + escaped(row.label) + words


@dataclass(frozen=True, repr=False)
class Summary:
    """A report that prints itself."""

    report: Report

    def as_text(self) -> str:
        """Return plain text, at most 100 characters wide."""
        return as_text(self.report)

    def as_html(self) -> str:
        """Return an HTML fragment."""
        return as_html(self.report)

    def as_page(self, pictures: tuple[tuple[str, bytes], ...] = ()) -> str:
        """Return a whole HTML document, with (description, PNG) pictures below."""
        return as_page(self.report, pictures)

    def as_latex(self) -> str:
        """Return LaTeX tables (booktabs)."""
        return as_latex(self.report)

    def as_markdown(self) -> str:
        """Return GitHub-flavoured Markdown."""
        return as_markdown(self.report)

    def __repr__(self) -> str:
        return self.as_text()

    def _repr_html_(self) -> str:
        return self.as_html()
