"""A report in GitHub's Markdown."""

import re

from dpmodels.labels import plain
from dpmodels.report.layout import is_words
from dpmodels.report.legend import placed
from dpmodels.report.values import Report, Row, Section

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&^!@])")


def as_markdown(report: Report) -> str:
    r"""Write a heading, tables and a list of notes, by GFM 0.29, sections 2.4 and 4.10."""
    report = placed(report)
    stamp = [] if report.stamp is None else [f"**{_text(report.stamp)}**"]
    blocks = [*stamp, f"### {_text(report.title)}"]
    if report.facts:
        facts = [_line(_text(label), _text(value)) for label, value in report.facts]
        blocks.append("\n".join([_line("", ""), _line(":---", ":---"), *facts]))
    blocks += [_table(section) for section in report.sections]
    if report.notes:
        blocks.append("\n".join(f"- {_text(note)}" for note in report.notes))
    return "\n\n".join([*blocks, *stamp])


def _text(text: str) -> str:
    escaped = _SPECIAL.sub(r"\\\1", plain(text))
    # A line that begins so would become a list item of its own.
    return re.sub(r"^([+-]|\d+[.)])(?=\s|$)", lambda m: f"{m[1][:-1]}\\{m[1][-1]}", escaped)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _table(section: Section) -> str:
    columns = range(len(section.columns))
    rules = [":---", *(":---" if is_words(section, j) else "---:" for j in columns)]
    rows = [_line(_label(row), *map(_text, row.cells)) for row in section.rows]
    # A table has one row of heads.
    above = section.spanners or ("",) * len(columns)
    heads = [" ".join(own).strip() for own in zip(above, section.columns, strict=True)]
    return "\n".join([_line(*map(_text, (section.title, *heads))), _line(*rules), *rows])


def _label(row: Row) -> str:
    words = f" &emsp;{_text(row.about[1])}" if row.about else ""
    return "&emsp;" * row.indent + _text(row.label) + words
