"""A report as HTML: a fragment for notebooks, a whole page for files."""

import base64
import re
from collections.abc import Sequence
from html import escape

from dpmodels.errors import ArgumentError
from dpmodels.labels import plain
from dpmodels.report.bar import Bar
from dpmodels.report.layout import WIDEST, is_words, panels, words_width
from dpmodels.report.legend import placed
from dpmodels.report.style import HALVES, PAGE_STYLE, STEP, STYLE
from dpmodels.report.values import Report, Row, Section

_PNG = b"\x89PNG\r\n\x1a\n"

_BELOW = re.compile(r"\([^\s,]+\)|\[[^\s,]+\]")
_NUMBER = re.compile(r"(?:< ?)?[-+−]?[\d,]+((?:\.\d+)?(?:e[-+]\d+)?(?: ?[*†‡%])?)")
_WHOLE = re.compile(rf"{_NUMBER.pattern}|\w+ [*†‡]")


def as_html(report: Report) -> str:
    """Write the report as one self-contained fragment of HTML.

    All strings are escaped. Its style applies to nothing outside, and MathJax is
    told to leave it alone, since a variable name may hold a dollar sign.
    """
    return _fragment(report, "h3", STYLE)


def as_part(report: Report) -> str:
    """Write the report as a part of a page that has the style once."""
    return _fragment(report, "h3", "")


def as_page(report: Report, pictures: Sequence[tuple[str, bytes]] = ()) -> str:
    """Write the report as a complete document in one file.

    Pictures are pairs of the text that stands for one where it cannot be seen,
    and its PNG file. Nothing outside is linked.
    """
    title = report.title if report.stamp is None else f"{report.stamp}: {report.title}"
    figures = [picture(text, png) for text, png in pictures]
    return document(title, _fragment(report, "h1", STYLE, figures))


def document(title: str, body: str) -> str:
    """Return a complete document around a fragment, which links nothing."""
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escaped(title)}</title>",
        PAGE_STYLE,
        "</head>",
        "<body>",
        "<main>",
        body,
        "</main>",
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Return one line of text in which nothing acts."""
    return escape(plain(text), quote=True)


def picture(text: str, png: bytes) -> str:
    """Return a PNG file as a part of the page, with the text that stands for it."""
    if not png.startswith(_PNG):
        raise ArgumentError("a picture is not a PNG file: give the bytes of a PNG")
    if not plain(text):
        raise ArgumentError("a picture has no text: say in words what it shows")
    data = base64.b64encode(png).decode("ascii")
    return f'<figure><img alt="{escaped(text)}" src="data:image/png;base64,{data}"></figure>'


def _fragment(report: Report, heading: str, style: str, figures: Sequence[str] = ()) -> str:
    report = placed(report)
    stamp = [] if report.stamp is None else [f'<p class="stamp">{escaped(report.stamp)}</p>']
    lines = ['<div class="dpmodels-report tex2jax_ignore mathjax_ignore">', style, *stamp]
    lines += [f'<{heading} class="title">{escaped(report.title)}</{heading}>']
    lines += _facts(report.facts)
    for section in report.sections:
        for number, panel in enumerate(panels(section, WIDEST)):
            lines += _table(section, panel, number)
    if report.notes:
        lines += ['<ul class="notes">', *(f"<li>{escaped(n)}</li>" for n in report.notes), "</ul>"]
    return "\n".join([*lines, *figures, *stamp, "</div>"])


def _facts(facts: Sequence[tuple[str, str]]) -> list[str]:
    """Two pairs a row, as in the printed header."""
    if not facts:
        return []
    pairs = [f'<th scope="row">{escaped(a)}</th><td>{escaped(b)}</td>' for a, b in facts]
    rows = [f"<tr>{''.join(pairs[i : i + 2])}</tr>" for i in range(0, len(pairs), 2)]
    return ['<table class="facts">', "<tbody>", *rows, "</tbody>", "</table>"]


def _table(section: Section, panel: range, number: int) -> list[str]:
    """One panel; words beside labels stand in the first."""
    title = escaped(section.title) + (" (continued)" if number else "")
    kinds = {j: _kind(section, j) for j in panel}
    tails = {j: _tails(section, j) for j in panel}
    wide = words_width(section, panel)
    step = min(-(-wide // STEP) * STEP, WIDEST + STEP)
    names = {j: section.columns[j] for j in panel}
    heads = [f'<th scope="col"{_class(names[j], kinds[j])}>{escaped(names[j])}</th>' for j in panel]
    # A box that scrolls must take the keyboard's focus to be readable without a mouse.
    lines = [f'<div class="scroll" role="region" aria-label="{title}" tabindex="0">']
    lines += [f'<table class="w{step}">', f"<caption>{title}</caption>"]
    above = _above(section, panel)
    lines += [f"<thead>{above}<tr><td></td>{''.join(heads)}</tr></thead>"] if heads else []
    lines += ["<tbody>"]
    for place, row in enumerate(section.rows):
        if not row.label and not any(row.cells[j] for j in panel):
            continue
        blank = row.blank(panel)
        cells = [
            _cell(row.cells[j], kinds[j] or f"d{tails[j][place]}" * bool(tails[j][place]))
            for j in panel[blank:]
        ]
        lines.append(f"<tr>{_label(row, blank)}{''.join(cells)}</tr>")
    return [*lines, "</tbody>", "</table>", "</div>"]


def _above(section: Section, panel: range) -> str:
    """Set what stands above several columns in a row of its own."""
    cells = [
        f'<th scope="colgroup" class="spanner" colspan="{columns}">{escaped(text)}</th>'
        if text
        else f'<td colspan="{columns}"></td>'
        for text, columns in section.spans(panel)
    ]
    return f"<tr><td></td>{''.join(cells)}</tr>" if cells else ""


def _kind(section: Section, column: int) -> str:
    """Return what a column holds where it is no numbers."""
    if any(isinstance(row.cells[column], Bar) for row in section.rows):
        return "bars"
    return "words" if is_words(section, column) else ""


def _class(text: str, kind: str) -> str:
    """Say what a cell holds; a number, and a mark behind a word, stay on one line."""
    whole = " " in text and _WHOLE.fullmatch(plain(text))
    kinds = " ".join(filter(None, (kind, "whole" if whole else "")))
    return f' class="{kinds}"' if kinds else ""


def _cell(cell: str, kind: str) -> str:
    if not isinstance(cell, Bar):
        return f"<td{_class(cell, kind)}>{escaped(cell)}</td>"
    told = f"{100 * cell.share:.3g}% of the longest bar"
    bar = f'<div class="bar" role="img" title="{told}" aria-label="{told}"'
    return f'<td{_class(cell, kind)}>{bar} style="width: {100 * cell.share:.4g}%"></div></td>'


def _tails(section: Section, column: int) -> list[int]:
    """Return how many halves of a digit each number lacks, from its point on, of the longest."""
    found = [_NUMBER.fullmatch(plain(row.cells[column])) for row in section.rows]
    tails = [None if own is None else 2 * len(own[1]) - own[1].count(".") for own in found]
    most = max((tail for tail in tails if tail is not None), default=0)
    # Numbers in brackets below others have no place of their own to be brought to.
    known = most <= HALVES and not any(
        _BELOW.fullmatch(plain(r.cells[column])) for r in section.rows
    )
    return [most - tail if known and tail is not None else 0 for tail in tails]


def _label(row: Row, blank: int) -> str:
    """Set the words for a label behind it; levels below a heading stand further in."""
    shift = f' style="padding-left: {0.75 + 1.5 * row.indent}em"' if row.indent else ""
    words = f" &emsp;<em>{escaped(row.about[1])}</em>" if row.about else ""
    span = f' colspan="{blank + 1}"' if blank else ""
    return f'<th scope="row"{shift}{span}>{escaped(row.label)}{words}</th>'
