"""A report as plain text, in the look of statsmodels' summaries."""

from dpmodels.labels import plain
from dpmodels.report.characters import pad, width, wrap
from dpmodels.report.facts import fact_lines
from dpmodels.report.layout import GAP, WIDTH, Layout, cell_lines, head_lines, is_words, lay_out
from dpmodels.report.values import Report, Row, Section


def as_text(report: Report) -> str:
    """Print the report as lines of 78 characters, up to 100 where it needs them.

    Tables too wide for that are cut into panels, one under the other. Long
    formulas of the header lose their middle terms; nothing else is left out.

    Parameters
    ----------
    report : Report
        What to print.

    Returns
    -------
    str
        Lines without trailing spaces, without a final line break.

    Examples
    --------
    >>> from dpmodels.report import Report, Row, Section
    >>> table = Section("Means", ("mean", "noise sd"), (Row("age", ("41.2", "0.3")),))
    >>> print(as_text(Report("Private means", (), (table,), ("Noise only.",))))
                                    Private means
    ==============================================================================
    Means      mean  noise sd
    age        41.2       0.3
    ==============================================================================
    Noise only.
    """
    layouts = {
        section.columns: lay_out([s for s in report.sections if s.columns == section.columns])
        for section in report.sections
    }
    facts = fact_lines(report.facts)
    tables = [_table(section, layouts[section.columns]) for section in report.sections]
    columns = max([WIDTH, *map(width, facts), *(width(line) for t in tables for line in t)])
    blocks = [facts] if facts else []
    for section, table in zip(report.sections, tables, strict=True):
        title = () if _shares_line(section, layouts[section.columns]) else (section.title,)
        blocks.append([line for x in title for line in wrap(x, columns, indent=2)] + table)
    lines = [pad(line, columns, "^") for line in wrap(report.title, columns)]
    for number, block in enumerate(blocks):
        lines += [("-" if number else "=") * columns, *block]
    lines += ["=" * columns]
    lines += [line for note in report.notes for line in wrap(note, columns, indent=2)]
    stamp = _stamp(report.stamp, columns)
    return "\n".join(line.rstrip() for line in [*stamp, *lines, *stamp])


def _stamp(stamp: str | None, columns: int) -> list[str]:
    """Set the warning between asterisks from edge to edge."""
    if stamp is None:
        return []
    shown = [f" {line} " for line in wrap(stamp, columns - 8)]
    sides = [(columns - width(line)) // 2 for line in shown]
    return [
        "*" * side + line + "*" * (columns - side - width(line))
        for side, line in zip(sides, shown, strict=True)
    ]


def _shares_line(section: Section, layout: Layout) -> bool:
    """Whether the title fits left of the column heads."""
    return bool(section.columns) and width(plain(section.title)) <= layout.label


def _table(section: Section, layout: Layout) -> list[str]:
    """Heads and rows, one panel after another."""
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
            lines += _lines(first, raised, panel, layout, aligns)
        for row in section.rows:
            lines += _row(row, panel, layout, aligns)
    return lines


def _row(row: Row, panel: range, layout: Layout, aligns: list[str]) -> list[str]:
    """Set one row; its cells stand beside the last line of a long label."""
    label = wrap(row.label, layout.label, indent=2)
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
    """Blocks of lines side by side, each padded to its column."""
    height = max(map(len, [label, *cells]))
    lines = [pad(part, layout.label, "<") for part in _filled(label, height)]
    for j, cell in zip(panel, cells, strict=True):
        parts = [pad(x, layout.widths[j], aligns[j]) for x in _filled(cell, height)]
        lines = [line + " " * GAP + part for line, part in zip(lines, parts, strict=True)]
    return lines


def _filled(lines: tuple[str, ...], height: int) -> tuple[str, ...]:
    return lines + ("",) * (height - len(lines))
