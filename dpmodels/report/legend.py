"""Where the words for a name stand: beside it where there is room, else in a legend below."""

import re
from dataclasses import replace

from dpmodels.report.layout import fits, wordless
from dpmodels.report.values import Report, Row, Section


def placed(report: Report, limits: tuple[int, ...] | None = None) -> Report:
    """Keep words beside names where a table stays with them within the first limit it is in.

    Words are told once. Those of names that the tables and the header speak of, and that stand
    beside none, make one more table, the last.
    """
    told: set[tuple[str, str]] = set()
    sections = []
    for section in report.sections:
        fresh = {row.about for row in section.rows if row.about} - told
        alike = [own for own in report.sections if own.columns == section.columns]
        if fresh and (limits is None or fits(section, alike, limits)):
            told |= fresh
            sections.append(section)
        else:
            sections.append(wordless(section))
    spoken = _spoken(report)
    rest = [own for own in report.legend if own not in told and _names(own[0], spoken)]
    rows = tuple(Row(name, about=(name, words)) for name, words in rest)
    legend = (Section("Labels", (), rows),) if rows else ()
    return replace(report, sections=(*sections, *legend), legend=())


def _spoken(report: Report) -> str:
    """Return all that a report names variables in."""
    texts = [value for label, value in report.facts if label != "Formula"]
    for section in report.sections:
        texts += [
            section.title,
            *section.columns,
            *section.spanners,
            *(row.label for row in section.rows),
        ]
    return "\n".join(texts)


def _names(name: str, spoken: str) -> bool:
    return name in spoken and bool(re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", spoken))
