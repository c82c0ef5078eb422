"""A report in GitHub's Markdown."""

import re

from dpmodels.labels import plain
from dpmodels.report.layout import WIDEST, is_words, panels
from dpmodels.report.legend import placed
from dpmodels.report.values import Report, Row, Section

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&^!@])")


def as_markdown(report: Report) -> str:
    r"""Write a heading, tables and a list of notes, by GFM 0.29, sections 2.4 and 4.10."""
    report = placed(report)
    stamp = [] if report.stamp is None else [f"**{escaped(report.stamp)}**"]
    blocks = [*stamp, f"### {escaped(report.title)}"]
    if report.facts:
        facts = [_line(escaped(label), escaped(value)) for label, value in report.facts]
        blocks.append("\n".join([_line("", ""), _line(":---", ":---"), *facts]))
    blocks += [
        _table(section, panel, number)
        for section in report.sections
        for number, panel in enumerate(panels(section, WIDEST))
    ]
    if report.notes:
        blocks.append("\n".join(f"- {escaped(note)}" for note in report.notes))
    return "\n\n".join([*blocks, *stamp])


def escaped(text: str) -> str:
    """Return one line of text in which nothing acts."""
    shown = _SPECIAL.sub(r"\\\1", plain(text))
    # A line that begins so would become a list item of its own.
    return re.sub(r"^([+-]|\d+[.)])(?=\s|$)", lambda m: f"{m[1][:-1]}\\{m[1][-1]}", shown)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _table(section: Section, panel: range, number: int) -> str:
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
