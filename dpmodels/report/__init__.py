"""Printed reports: table values, then text, HTML, LaTeX and Markdown.

Knows no model and no number's meaning: a caller formats its numbers with the
functions of ``layout``, puts the strings into a ``Report`` and prints it in
any of the four formats, which show the same cells.
"""

from dpmodels.report.html import as_html as as_html
from dpmodels.report.html import as_page as as_page
from dpmodels.report.latex import as_latex as as_latex
from dpmodels.report.layout import Bar as Bar
from dpmodels.report.layout import Fact as Fact
from dpmodels.report.layout import Report as Report
from dpmodels.report.layout import Row as Row
from dpmodels.report.layout import Section as Section
from dpmodels.report.layout import count as count
from dpmodels.report.layout import hundredth as hundredth
from dpmodels.report.layout import interval as interval
from dpmodels.report.layout import signif as signif
from dpmodels.report.layout import signif_uncertain as signif_uncertain
from dpmodels.report.layout import uncertain as uncertain
from dpmodels.report.text import Summary as Summary
from dpmodels.report.text import as_markdown as as_markdown
from dpmodels.report.text import as_text as as_text
