"""Printed reports: table values, then text, HTML, LaTeX and Markdown.

Knows no model and no number's meaning: a caller formats its numbers with the
functions of ``numbers``, puts the strings into a ``Report`` and prints it in
any of the four formats, which show the same cells.
"""

from dpmodels.report.html import as_html, as_page
from dpmodels.report.latex import as_latex
from dpmodels.report.markdown import as_markdown
from dpmodels.report.numbers import aligned, count, interval, signif, signif_uncertain
from dpmodels.report.text import as_text
from dpmodels.report.values import Report, Row, Section

__all__ = [
    "Report",
    "Row",
    "Section",
    "aligned",
    "as_html",
    "as_latex",
    "as_markdown",
    "as_page",
    "as_text",
    "count",
    "interval",
    "signif",
    "signif_uncertain",
]
