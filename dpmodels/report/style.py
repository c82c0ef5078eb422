"""The style of reports in HTML: on light and dark, in narrow columns, and on paper.

What is wider than its column first breaks its cells at spaces, then gets smaller letters, then
scrolls beside labels that stay; on paper letters get as small as it takes.
"""

from typing import Final

from dpmodels.report.layout import WIDEST

# Choices. Characters of a table's width, in steps that are classes of the style; decimals after
# which a column of numbers is no longer aligned, in halves of a digit, as a point is half of one.
STEP: Final = 10
HALVES: Final = 14

_LETTERS: Final = "100cqi / (var(--dpm-wide) * .6)"
_WIDTHS: Final = "\n".join(
    f".dpmodels-report .w{wide} {{--dpm-wide: {wide}}}"
    for wide in range(STEP, WIDEST + 2 * STEP, STEP)
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
.dpmodels-report .bars {{min-width: 8em; text-align: left}}
.dpmodels-report .bar {{height: 0; margin: .2em 0; border-bottom: .9em solid #3b82b8}}
.dpmodels-report .facts {{margin: 0 0 .9em 0}}
.dpmodels-report .facts th {{opacity: .8; min-width: 6em; overflow-wrap: normal}}
.dpmodels-report .facts td {{text-align: left; overflow-wrap: anywhere; max-width: 28em;
  min-width: 6em}}
.dpmodels-report .notes {{margin: 0 0 .9em 0; padding: 0; list-style: none; opacity: .85;
  max-width: 60em; overflow-wrap: anywhere}}
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
