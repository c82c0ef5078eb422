"""A printed summary in four formats."""

from __future__ import annotations

from dataclasses import dataclass

from dpmodels.report import Report, as_html, as_latex, as_markdown, as_page, as_text


@dataclass(frozen=True, repr=False)
class Summary:
    """A report that prints itself.

    Attributes
    ----------
    report : Report
        The tables, as strings.
    """

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

    def __str__(self) -> str:
        return self.as_text()

    def __repr__(self) -> str:
        return self.as_text()

    def _repr_html_(self) -> str:
        return self.as_html()
