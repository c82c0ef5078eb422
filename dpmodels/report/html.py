"""A report as HTML: a fragment for notebooks, a whole page for files."""

import base64
import re
from collections.abc import Sequence
from typing import Final

from dpmodels.errors import ArgumentError
from dpmodels.labels import plain
from dpmodels.report import layout
from dpmodels.report.notes import terms_in

_PNG = b"\x89PNG\r\n\x1a\n"

_BELOW = re.compile(r"\([^\s,]+\)|\[[^\s,]+\]")
_NUMBER = re.compile(r"(?:< ?)?[-+−]?[\d,]+((?:\.\d+)?(?:e[-+]\d+)?(?: ?[*†‡%])?)")
_WHOLE = re.compile(rf"{_NUMBER.pattern}|\w+ [*†‡]")


def as_html(report: layout.Report) -> str:
    """Write the report as one self-contained fragment of HTML.

    All strings are escaped. Its style applies to nothing outside, and MathJax ignores it, since a
    variable name may contain a dollar sign.
    """
    return _fragment(report, "h3", STYLE, terms=terms_box([report]))


def as_part(report: layout.Report) -> str:
    """Write the report as a part of a page that has the style once."""
    return _fragment(report, "h3", "")


def as_page(report: layout.Report, pictures: Sequence[tuple[str, bytes]] = ()) -> str:
    """Write the report as a complete document in one file.

    Pictures are pairs of the text that stands for one where it cannot be seen,
    and its PNG file. Nothing outside is linked.
    """
    title = report.title if report.stamp is None else f"{report.stamp}: {report.title}"
    figures = [picture(text, png) for text, png in pictures]
    return document(title, _fragment(report, "h1", STYLE, figures, terms_box([report])))


def document(title: str, body: str) -> str:
    """Return a complete document around a fragment, which links nothing."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escaped(title)}</title>
{PAGE_STYLE}
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def escaped(text: str) -> str:
    """Return one line of text with special characters escaped."""
    from html import escape

    return escape(plain(text), quote=True)


def picture(text: str, png: bytes) -> str:
    """Return a PNG file as a part of the page, with the text that stands for it."""
    if not png.startswith(_PNG):
        raise ArgumentError("a picture is not a PNG file: give the bytes of a PNG")
    if not plain(text):
        raise ArgumentError("a picture has no text: describe what it shows")
    data = base64.b64encode(png).decode("ascii")
    return f'<figure><img alt="{escaped(text)}" src="data:image/png;base64,{data}"></figure>'


def _fragment(
    report: layout.Report,
    heading: str,
    style: str,
    figures: Sequence[str] = (),
    terms: Sequence[str] = (),
) -> str:
    report = layout.placed(report)
    stamp = [] if report.stamp is None else [f'<p class="stamp">{escaped(report.stamp)}</p>']
    lines = ['<div class="dpmodels-report tex2jax_ignore mathjax_ignore">', style, *stamp]
    lines += [f'<{heading} class="title">{escaped(report.title)}</{heading}>']
    lines += _facts(report.facts)
    for section in report.sections:
        for number, panel in enumerate(layout.panels(section, layout.WIDEST)):
            lines += _table(section, panel, number)
    if report.notes:
        lines += ['<ul class="notes">', *(f"<li>{escaped(n)}</li>" for n in report.notes), "</ul>"]
    return "\n".join([*lines, *figures, *terms, *stamp, "</div>"])


def terms_box(reports: Sequence[layout.Report]) -> list[str]:
    """Return a box that a reader opens, with the definitions of the terms that reports use."""
    terms = ((escaped(term.name), escaped(term.meaning)) for term in terms_in(*reports))
    definitions = [f"<dt>{name}</dt><dd>{meaning}</dd>" for name, meaning in terms]
    head = '<details class="terms"><summary>Terms used here</summary>'
    return [head, "<dl>", *definitions, "</dl></details>"] if definitions else []


def _facts(facts: Sequence[tuple[str, str]]) -> list[str]:
    if not facts:
        return []
    pairs = [f'<th scope="row">{escaped(a)}</th><td>{escaped(b)}</td>' for a, b in facts]
    rows = [f"<tr>{''.join(pairs[i : i + 2])}</tr>" for i in range(0, len(pairs), 2)]
    return ['<table class="facts">', "<tbody>", *rows, "</tbody>", "</table>"]


def _table(section: layout.Section, panel: range, number: int) -> list[str]:
    title = escaped(section.title) + (" (continued)" if number else "")
    kinds = {j: _kind(section, j) for j in panel}
    tails = {j: _tails(section, j) for j in panel}
    wide = layout.words_width(section, panel)
    step = min(-(-wide // STEP) * STEP, layout.WIDEST + STEP)
    names = {j: section.columns[j] for j in panel}
    heads = [f'<th scope="col"{_class(names[j], kinds[j])}>{escaped(names[j])}</th>' for j in panel]
    # A box that scrolls must take the keyboard's focus to be readable without a mouse.
    lines = [f'<div class="scroll" role="region" aria-label="{title}" tabindex="0">']
    lines += [f'<table class="w{step}">', f"<caption>{title}</caption>"]
    above = _above(section, panel)
    lines += [f"<thead>{above}<tr><td></td>{''.join(heads)}</tr></thead>"] if heads else []
    lines += ["<tbody>"]
    for place, row in enumerate(section.rows):
        if not row.shown_in(panel):
            continue
        blank = row.blank(panel)
        cells = [
            _cell(row.cells[j], kinds[j] or f"d{tails[j][place]}" * bool(tails[j][place]))
            for j in panel[blank:]
        ]
        lines.append(f"<tr>{_label(row, blank)}{''.join(cells)}</tr>")
    return [*lines, "</tbody>", "</table>", "</div>"]


def _above(section: layout.Section, panel: range) -> str:
    cells = [
        f'<th scope="colgroup" class="spanner" colspan="{columns}">{escaped(text)}</th>'
        if text
        else f'<td colspan="{columns}"></td>'
        for text, columns in section.spans(panel)
    ]
    return f"<tr><td></td>{''.join(cells)}</tr>" if cells else ""


def _kind(section: layout.Section, column: int) -> str:
    if any(isinstance(row.cells[column], layout.Bar) for row in section.rows):
        return "bars"
    return "words" if layout.is_words(section, column) else ""


def _class(text: str, kind: str) -> str:
    """Return the class attribute of a cell; a number, or a word with a mark, stays on one line."""
    unbroken = " " in text and _WHOLE.fullmatch(plain(text))
    kinds = " ".join(filter(None, (kind, "whole" if unbroken else "")))
    return f' class="{kinds}"' if kinds else ""


def _cell(cell: str, kind: str) -> str:
    if not isinstance(cell, layout.Bar):
        return f"<td{_class(cell, kind)}>{escaped(cell)}</td>"
    description = f"{100 * cell.share:.3g}% of the longest bar"
    bar = f'<div class="bar" role="img" title="{description}" aria-label="{description}"'
    return f'<td{_class(cell, kind)}>{bar} style="width: {100 * cell.share:.4g}%"></div></td>'


def _tails(section: layout.Section, column: int) -> list[int]:
    """Return how many halves of a digit each number lacks, from its point on, of the longest."""
    texts = [plain(row.cells[column]) for row in section.rows]
    ends = [match and match[1] for match in map(_NUMBER.fullmatch, texts)]
    tails = [None if end is None else 2 * len(end) - end.count(".") for end in ends]
    longest = max((tail for tail in tails if tail is not None), default=0)
    # Numbers in brackets below others are not aligned.
    is_aligned = longest <= HALVES and not any(map(_BELOW.fullmatch, texts))
    return [longest - tail if is_aligned and tail is not None else 0 for tail in tails]


def _label(row: layout.Row, blank: int) -> str:
    """Set the words for a label behind it; levels below a heading stand further in."""
    shift = f' style="padding-left: {0.75 + 1.5 * row.indent}em"' if row.indent else ""
    words = f" &emsp;<em>{escaped(row.about[1])}</em>" if row.about else ""
    span = f' colspan="{blank + 1}"' if blank else ""
    return f'<th scope="row"{shift}{span}>{escaped(row.label)}{words}</th>'


# The style of reports in HTML: on light and dark, in narrow columns, and on paper.
#
# What is wider than its column first breaks its cells at spaces, then gets smaller letters, then
# scrolls beside labels that stay; on paper letters get as small as it takes.

# Choices. Characters of a table's width, in steps that are classes of the style; decimals after
# which a column of numbers is no longer aligned, in halves of a digit, as a point is half of one.
STEP: Final = 10
HALVES: Final = 14

_LETTERS: Final = "100cqi / (var(--dpm-wide) * .6)"
_WIDTHS: Final = "\n".join(
    f".dpmodels-report .w{wide} {{--dpm-wide: {wide}}}"
    for wide in range(STEP, layout.WIDEST + 2 * STEP, STEP)
)
_DECIMALS: Final = "\n".join(
    f".dpmodels-report .d{half} {{padding-right: calc(.6em + {half / 2:g}ch)}}"
    for half in range(1, HALVES + 1)
)

# Colours are inherited or translucent. Labels that stay need what is behind them: the colour of
# the notebook or site where it is known by name, else that of the page.
STYLE: Final = f"""<style>
.dpmodels-report {{font-size: .9em; line-height: 1.35; color: inherit; max-width: 100%;
  container-type: inline-size; contain-intrinsic-inline-size: 45em;
  --dpm-paper: var(--jp-layout-color0, var(--vscode-editor-background,
  var(--pst-color-background, var(--colab-primary-surface-color, Canvas))))}}
.dpmodels-report .title {{font-size: 1.15em; font-weight: 600; margin: .5em 0}}
.dpmodels-report .scroll {{overflow-x: auto; margin: 0 0 .9em 0; background:
  linear-gradient(to left, var(--dpm-paper) 1em, transparent) right / 3em 100% no-repeat local,
  linear-gradient(to left, #8886, transparent) right / .8em 100% no-repeat scroll}}
.dpmodels-report .scroll::-webkit-scrollbar {{height: .5em}}
.dpmodels-report .scroll::-webkit-scrollbar-thumb {{background: #8889; border-radius: .25em}}
.dpmodels-report table {{border-collapse: collapse; table-layout: auto; border: 0; margin: 0;
  border-top: 2px solid currentColor; border-bottom: 1px solid currentColor; font-size: 1em}}
.dpmodels-report .scroll table {{font-size: clamp(.8em, {_LETTERS}, 1em)}}
.dpmodels-report caption {{caption-side: top; text-align: left; font-weight: 600;
  padding: .2em 0; color: inherit; position: sticky; left: 0; max-width: 100cqi}}
.dpmodels-report tr {{background: transparent !important}}
.dpmodels-report th, .dpmodels-report td {{border: 0; padding: .15em .6em; text-align: right;
  vertical-align: top; font-weight: 400; white-space: normal;
  font-variant-numeric: tabular-nums}}
.dpmodels-report thead th, .dpmodels-report thead td {{font-weight: 600;
  border-bottom: 1px solid currentColor; vertical-align: bottom}}
.dpmodels-report .spanner {{text-align: center}}
.dpmodels-report th[scope=row], .dpmodels-report .words {{text-align: left}}
.dpmodels-report .whole {{white-space: nowrap}}
.dpmodels-report th[scope=row] {{overflow-wrap: anywhere}}
.dpmodels-report .scroll th:first-child, .dpmodels-report .scroll td:first-child {{
  position: sticky; left: 0; background: var(--dpm-paper); min-width: min(13em, 36cqi)}}
.dpmodels-report .scroll th[scope=row]:not([colspan]) {{max-width: min(28em, 80cqi)}}
.dpmodels-report .scroll th[scope=row]:only-child {{max-width: min(60em, 100cqi)}}
.dpmodels-report .bars {{min-width: 8em; text-align: left}}
.dpmodels-report .bar {{height: 0; margin: .2em 0; border-bottom: .9em solid #3b82b8}}
.dpmodels-report .facts {{margin: 0 0 .9em 0}}
.dpmodels-report .facts th {{opacity: .8; min-width: 6em; overflow-wrap: normal}}
.dpmodels-report .facts td {{text-align: left; overflow-wrap: anywhere; max-width: 28em;
  min-width: 6em}}
.dpmodels-report .notes {{margin: 0 0 .9em 0; padding: 0; list-style: none; opacity: .85;
  max-width: 60em; overflow-wrap: anywhere}}
.dpmodels-report .terms {{max-width: 60em; margin: 0 0 .9em 0}}
.dpmodels-report .terms dt {{font-weight: 600}}
.dpmodels-report .terms dd {{margin: 0 0 .3em 1.2em}}
.dpmodels-report .stamp {{background: #a40000; color: #fff; font-weight: 700;
  letter-spacing: .1em; text-align: center; padding: .4em; margin: .4em 0}}
{_WIDTHS}
{_DECIMALS}
@container (max-width: 36em) {{
  .dpmodels-report .facts tr {{display: grid; grid-template-columns: 8em minmax(0, 1fr)}}
}}
@media print {{
  .dpmodels-report {{color: #000; --dpm-paper: transparent}}
  .dpmodels-report .scroll {{overflow: visible; background: none; break-inside: avoid}}
  .dpmodels-report .scroll table {{font-size: min(1em, {_LETTERS})}}
  .dpmodels-report .scroll th:first-child, .dpmodels-report .scroll td:first-child,
  .dpmodels-report caption {{position: static}}
  .dpmodels-report .facts {{break-inside: avoid}}
  .dpmodels-report thead {{display: table-header-group}}
  .dpmodels-report tr, .dpmodels-report caption, .dpmodels-report .title {{break-inside: avoid;
  break-after: auto}}
  .dpmodels-report caption, .dpmodels-report .title {{break-after: avoid}}
  .dpmodels-report .stamp {{background: none; color: #000; border: 2px solid #000}}
}}
</style>"""

PAGE_STYLE: Final = """<style>
:root {color-scheme: light dark}
body {font-family: system-ui, sans-serif; margin: 2em auto; max-width: 76em; padding: 0 1em}
figure {margin: 1em 0}
img {max-width: 100%; height: auto; background: #fff}
@page {margin: 15mm}
@media print {
  :root {color-scheme: light}
  body {margin: 0; padding: 0; max-width: none; font-size: 10pt}
  figure {break-inside: avoid}
}
</style>"""
