"""A printed summary in four formats."""

from __future__ import annotations

from dataclasses import dataclass

from dpmodels.report.html import as_html, as_page
from dpmodels.report.latex import as_latex
from dpmodels.report.layout import Report
from dpmodels.report.text import as_markdown, as_text


@dataclass(frozen=True, repr=False)
class Summary:
    """A report that prints itself."""

    report: Report

    def as_text(self) -> str:
        """Return plain text, at most 100 characters wide."""
        return as_text(self.report)

    def as_html(self) -> str:
        """Return an HTML fragment."""
        return as_html(self.report)

    def as_page(self, pictures: tuple[tuple[str, bytes], ...] = ()) -> str:
        """Return a whole HTML document, with (description, PNG) pictures below."""
        return as_page(self.report, pictures)

    def as_latex(self) -> str:
        """Return LaTeX tables (booktabs)."""
        return as_latex(self.report)

    def as_markdown(self) -> str:
        """Return GitHub-flavoured Markdown."""
        return as_markdown(self.report)

    def __repr__(self) -> str:
        return self.as_text()

    def _repr_html_(self) -> str:
        return self.as_html()
