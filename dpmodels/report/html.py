"""A report as HTML: a fragment for notebooks, a whole page for files."""

import base64
from collections.abc import Sequence
from html import escape

from dpmodels.errors import ArgumentError
from dpmodels.labels import plain
from dpmodels.report.layout import is_words
from dpmodels.report.legend import placed
from dpmodels.report.values import Report, Row, Section

_PNG = b"\x89PNG\r\n\x1a\n"

# Colours are inherited or translucent, so the table reads on light and dark.
_STYLE = """<style>
.dpmodels-report {font-size: .9em; line-height: 1.35; color: inherit; max-width: 100%}
.dpmodels-report .title {font-size: 1.15em; font-weight: 600; margin: .5em 0}
.dpmodels-report .scroll {overflow-x: auto}
.dpmodels-report table {border-collapse: collapse; border: 0; margin: 0 0 .9em 0;
  border-top: 2px solid currentColor; border-bottom: 1px solid currentColor; font-size: 1em}
.dpmodels-report caption {caption-side: top; text-align: left; font-weight: 600;
  padding: .2em 0; color: inherit}
.dpmodels-report tr {background: transparent !important}
.dpmodels-report th, .dpmodels-report td {border: 0; padding: .15em .75em; text-align: right;
  vertical-align: top; font-weight: 400; white-space: nowrap;
  font-variant-numeric: tabular-nums}
.dpmodels-report thead th, .dpmodels-report thead td {font-weight: 600;
  border-bottom: 1px solid currentColor; vertical-align: bottom}
.dpmodels-report .spanner {text-align: center}
.dpmodels-report th[scope=row], .dpmodels-report .words {text-align: left}
.dpmodels-report th[scope=row], .dpmodels-report .facts td {white-space: normal;
  overflow-wrap: anywhere; max-width: 28em; min-width: 6em}
.dpmodels-report th[scope=row] {min-width: 13em}
.dpmodels-report .facts th {opacity: .8; min-width: 6em}
.dpmodels-report .facts td {text-align: left}
.dpmodels-report .notes {margin: 0 0 .9em 0; padding: 0; list-style: none; opacity: .85}
.dpmodels-report .stamp {background: #a40000; color: #fff; font-weight: 700;
  letter-spacing: .1em; text-align: center; padding: .4em; margin: .4em 0}
</style>"""

_PAGE_STYLE = """<style>
:root {color-scheme: light dark}
body {font-family: system-ui, sans-serif; margin: 2em auto; max-width: 60em; padding: 0 1em}
img {max-width: 100%; height: auto; background: #fff}
</style>"""


def as_html(report: Report) -> str:
    """Write the report as one self-contained fragment of HTML.

    All strings are escaped. Its style applies to nothing outside, and MathJax is
    told to leave it alone, since a variable name may hold a dollar sign.
    """
    return _fragment(report, heading="h3")


def as_page(report: Report, pictures: Sequence[tuple[str, bytes]] = ()) -> str:
    """Write the report as a complete document in one file.

    Pictures are pairs of the text that stands for one where it cannot be seen,
    and its PNG file. Nothing outside is linked.
    """
    title = _text(report.title if report.stamp is None else f"{report.stamp}: {report.title}")
    figures = [_figure(text, png) for text, png in pictures]
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title>",
        _PAGE_STYLE,
        "</head>",
        "<body>",
        "<main>",
        _fragment(report, heading="h1", figures=figures),
        "</main>",
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    return escape(plain(text), quote=True)


def _figure(text: str, png: bytes) -> str:
    if not png.startswith(_PNG):
        raise ArgumentError("a picture is not a PNG file: give the bytes of a PNG")
    if not plain(text):
        raise ArgumentError("a picture has no text: say in words what it shows")
    data = base64.b64encode(png).decode("ascii")
    return f'<figure><img alt="{_text(text)}" src="data:image/png;base64,{data}"></figure>'


def _fragment(report: Report, heading: str, figures: Sequence[str] = ()) -> str:
    report = placed(report)
    stamp = [] if report.stamp is None else [f'<p class="stamp">{_text(report.stamp)}</p>']
    lines = ['<div class="dpmodels-report tex2jax_ignore mathjax_ignore">', _STYLE, *stamp]
    lines += [f'<{heading} class="title">{_text(report.title)}</{heading}>']
    lines += _facts(report.facts)
    lines += [line for section in report.sections for line in _table(section)]
    if report.notes:
        lines += ['<ul class="notes">', *(f"<li>{_text(n)}</li>" for n in report.notes), "</ul>"]
    return "\n".join([*lines, *figures, *stamp, "</div>"])


def _facts(facts: Sequence[tuple[str, str]]) -> list[str]:
    """Two pairs a row, as in the printed header."""
    if not facts:
        return []
    pairs = [f'<th scope="row">{_text(a)}</th><td>{_text(b)}</td>' for a, b in facts]
    rows = [f"<tr>{''.join(pairs[i : i + 2])}</tr>" for i in range(0, len(pairs), 2)]
    return ['<table class="facts">', "<tbody>", *rows, "</tbody>", "</table>"]


def _table(section: Section) -> list[str]:
    title = _text(section.title)
    kinds = [' class="words"' if is_words(section, j) else "" for j in range(len(section.columns))]
    heads = [
        f'<th scope="col"{kind}>{_text(head)}</th>'
        for head, kind in zip(section.columns, kinds, strict=True)
    ]
    # A box that scrolls must take the keyboard's focus to be readable without a mouse.
    lines = [f'<div class="scroll" role="region" aria-label="{title}" tabindex="0">', "<table>"]
    lines += [f"<caption>{title}</caption>"]
    above = _above(section, range(len(heads)))
    lines += [f"<thead>{above}<tr><td></td>{''.join(heads)}</tr></thead>"] if heads else []
    lines += ["<tbody>"]
    for row in section.rows:
        blank = row.blank(range(len(kinds)))
        cells = [
            f"<td{kind}>{_text(cell)}</td>"
            for cell, kind in zip(row.cells[blank:], kinds[blank:], strict=True)
        ]
        lines.append(f"<tr>{_label(row, blank)}{''.join(cells)}</tr>")
    return [*lines, "</tbody>", "</table>", "</div>"]


def _above(section: Section, panel: range) -> str:
    """Set what stands above several columns in a row of its own."""
    cells = [
        f'<th scope="colgroup" class="spanner" colspan="{columns}">{_text(text)}</th>'
        if text
        else f'<td colspan="{columns}"></td>'
        for text, columns in section.spans(panel)
    ]
    return f"<tr><td></td>{''.join(cells)}</tr>" if cells else ""


def _label(row: Row, blank: int) -> str:
    """Set the words for a label behind it; levels below a heading stand further in."""
    shift = f' style="padding-left: {0.75 + 1.5 * row.indent}em"' if row.indent else ""
    words = f" &emsp;<em>{_text(row.about[1])}</em>" if row.about else ""
    span = f' colspan="{blank + 1}"' if blank else ""
    return f'<th scope="row"{shift}{span}>{_text(row.label)}{words}</th>'
