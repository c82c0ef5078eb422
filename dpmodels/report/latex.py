"""A report in LaTeX, with the rules of booktabs."""

import re
from collections.abc import Sequence

from dpmodels.labels import plain
from dpmodels.report.layout import (
    LABEL,
    Bar,
    Layout,
    Report,
    Row,
    Section,
    cell_lines,
    head_lines,
    is_words,
    lay_out,
    placed,
    width,
    wrap,
)

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"$\sim$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\char34}",
    "`": r"\textasciigrave{}",
    # After the end of a row these would be read as its options.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "ε": r"$\varepsilon$",
    "δ": r"$\delta$",
    "ρ": r"$\rho$",
}
_MINUS = re.compile(r"(?<![\w.)])-(?=\.?\d|Inf)")
_LIGATURE = re.compile(r"-(?=-)")
_LINE = 72  # characters of \small text on a page of the article class
_BAR = 9  # widths of an M of the longest bar
_PARAGRAPH = r">{\raggedright\arraybackslash}p{%s}"


def as_latex(report: Report) -> str:
    r"""Write the report as LaTeX, to be put into a document.

    Needs ``\usepackage{array, booktabs, longtable}``; tables break over pages,
    and columns over panels where the table would be wider than a column of text.
    """
    report = placed(report, (_LINE,))
    boxed = (
        rf"\begin{{center}}\fbox{{\Large\textbf{{{escaped(report.stamp or '')}}}}}\end{{center}}"
    )
    stamp = [] if report.stamp is None else [boxed]
    lines = [r"% Needs \usepackage{array, booktabs, longtable}", r"\begingroup\small", *stamp]
    lines += [rf"\begin{{center}}\textbf{{{escaped(report.title)}}}\end{{center}}"]
    lines += _facts(report.facts)
    for section in report.sections:
        layout = lay_out(report.alike(section), limits=(_LINE,))
        for panel in layout.panels:
            lines += _table(section, layout, panel)
    lines += [rf"\noindent {escaped(note)}\par" for note in report.notes]
    return "\n".join([*lines, *stamp, r"\endgroup"])


def escaped(text: str) -> str:
    """Return one line of text with special characters escaped."""
    safe = "".join(_SPECIAL.get(c, c) for c in _LIGATURE.sub("-\0", plain(text)))
    return _MINUS.sub("$-$", safe).replace("\0", "{}")


def _line(*cells: str) -> str:
    return " & ".join(cells) + r" \\"


def _facts(facts: Sequence[tuple[str, str]]) -> list[str]:
    if not facts:
        return []
    cells = [(escaped(label) + ":", escaped(value)) for label, value in facts]
    if len(cells) % 2:
        cells.append(("", ""))
    value = _PARAGRAPH % r"0.28\linewidth"
    rows = [_line(*left, *right) for left, right in zip(cells[0::2], cells[1::2], strict=True)]
    head = rf"\begin{{longtable}}{{@{{}}l{value}l{value}@{{}}}}"
    return [head, r"\toprule", *rows, r"\bottomrule", r"\end{longtable}"]


def _stack(lines: Sequence[str], align: str, level: str) -> str:
    """Set the lines of one cell above each other; ``level`` t or b stands in the row."""
    stack = r"\\".join(map(escaped, lines))
    if len(lines) == 1:
        return stack
    return rf"\begin{{tabular}}[{level}]{{@{{}}{align}@{{}}}}{stack}\end{{tabular}}"


def _table(section: Section, layout: Layout, panel: range) -> list[str]:
    rows = [row for row in section.rows if not row.heading]
    long = any(width(plain(row.label)) > LABEL for row in rows) or not section.columns
    aligns = {j: "l" if is_words(section, j) else "r" for j in panel}
    paragraph = _PARAGRAPH % ("16em" if section.columns else r"0.95\linewidth")
    spec = (paragraph if long else "l") + "".join(aligns.values())
    title = escaped(section.title)
    heads = [
        _stack(head_lines(section.columns[j], layout.widths[j]), aligns[j], "b") for j in panel
    ]
    above = []
    if heads and width(plain(section.title)) > LABEL:
        above, title = [rf"\multicolumn{{{len(heads) + 1}}}{{@{{}}l@{{}}}}{{{title}}} \\"], ""
    lines = [rf"\begin{{longtable}}{{@{{}}{spec}@{{}}}}", r"\toprule", *above]
    lines += _above(section, panel)
    lines += [_line(title, *heads), r"\midrule", r"\endhead"]
    visible = (row for row in section.rows if row.shown_in(panel))
    lines += [_row(row, layout, panel, aligns, long) for row in visible]
    return [*lines, r"\bottomrule", r"\end{longtable}"]


def _above(section: Section, panel: range) -> list[str]:
    spans, start = section.spans(panel), 2
    cells, rules = [""], ""
    for text, columns in spans:
        cells.append(rf"\multicolumn{{{columns}}}{{c}}{{{escaped(text)}}}")
        rules += rf"\cmidrule(lr){{{start}-{start + columns - 1}}}" * bool(text)
        start += columns
    return [_line(*cells), rules] if spans else []


def _cell(cell: str, layout: Layout, align: str) -> str:
    if isinstance(cell, Bar):
        return rf"\rule{{{_BAR * cell.share:.2f}em}}{{1.2ex}}"
    return _stack(cell_lines(cell, layout.stacked), align, "t")


def _row(row: Row, layout: Layout, panel: range, aligns: dict[int, str], long: bool) -> str:
    if row.heading:
        return _line(*_heading(row, panel))
    broken = long and not row.about
    label = r"\newline ".join(map(escaped, wrap(row.label, LABEL))) if broken else _label(row)
    return _line(label, *(_cell(row.cells[j], layout, aligns[j]) for j in panel))


def _label(row: Row) -> str:
    r"""Set the words for a label behind it; levels below a heading stand a ``\quad`` further in."""
    words = rf"\quad {{}}{escaped(row.about[1])}" if row.about else ""
    return r"\quad{}" * row.indent + escaped(row.label) + words


def _heading(row: Row, panel: range) -> list[str]:
    """Set a label over the blank cells behind it."""
    blank = row.blank(panel)
    text = _label(row)
    if blank == len(panel):
        # Of no width of its own, it widens no column.
        text = rf"\rlap{{\parbox[t]{{0.95\linewidth}}{{\raggedright {text}\strut}}}}"
    label = rf"\multicolumn{{{blank + 1}}}{{@{{}}l}}{{{text}}}"
    return [label, *(escaped(row.cells[j]) for j in panel[blank:])]
