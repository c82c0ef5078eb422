"""A table of results side by side as one of great_tables, which escapes what it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from dpmodels.errors import NotAvailable
from dpmodels.labels import plain
from dpmodels.report import Report

if TYPE_CHECKING:
    from great_tables import GT


def great_table(report: Report) -> GT:
    """Return the one table of a report: parts as groups of rows, notes below, the stamp above.

    NotAvailable where great_tables is not installed.
    """
    try:
        from great_tables import GT
    except ImportError:
        raise NotAvailable(
            "as_gt() needs great_tables: pip install 'dpmodels[tables]', or write as_html()"
        ) from None
    (section,) = report.sections
    part, lines = "", []
    for row in section.rows:
        if row.heading:
            part = plain(row.label)
        else:
            lines.append((part, plain(row.label), *map(plain, row.cells)))
    names = [f"column {at}" for at in range(len(section.columns))]
    made = GT(
        pd.DataFrame(lines, columns=["part", "row", *names]),
        rowname_col="row",
        groupname_col="part",
    ).cols_label(dict(zip(names, map(plain, section.columns), strict=True)))
    start = 0
    for text, columns in section.spans(range(len(names))):
        own = names[start : start + columns]
        made = made.tab_spanner(plain(text), own, id=f"above {start}") if text else made
        start += columns
    made = made.tab_header(plain(report.title), report.stamp).cols_align("right", names)
    for label, told in report.facts:
        made = made.tab_source_note(plain(f"{label}: {told}"))
    for note in (*report.notes, *((report.stamp,) if report.stamp else ())):
        made = made.tab_source_note(plain(note))
    return made
