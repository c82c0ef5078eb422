"""What a report is: cells that are already strings, and where they stand."""

from dataclasses import dataclass
from itertools import groupby

from dpmodels.errors import ArgumentError

# A label and a value of the header.
Fact = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table.

    `about` is the name it is of and the words for that, which stand beside the label where there is
    room; the label of a heading takes the blank cells behind it too.
    """

    label: str
    cells: tuple[str, ...] = ()
    indent: int = 0
    heading: bool = False
    about: Fact | None = None

    def blank(self, columns: range) -> int:
        """How many of the first of some columns the label takes."""
        if not self.heading:
            return 0
        taken = (place for place, column in enumerate(columns) if self.cells[column])
        return next(taken, len(columns))


@dataclass(frozen=True, slots=True)
class Section:
    """One table of a report.

    Sections of one report with equal heads are printed with equal widths. `spanners` are one a
    column, blank where it has none: what stands once above neighbours that share it.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    spanners: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.spanners and len(self.spanners) != len(self.columns):
            raise ArgumentError(
                f"{len(self.spanners)} spanners for {len(self.columns)} columns: write one a "
                'column, "" where there is none'
            )
        for number, row in enumerate(self.rows, start=1):
            if len(row.cells) != len(self.columns):
                raise ArgumentError(
                    f"row {number} of a section has {len(row.cells)} cells for "
                    f'{len(self.columns)} columns: write one cell a column, "" for a blank one'
                )

    def spans(self, panel: range) -> tuple[tuple[str, int], ...]:
        """Return the spanners above some columns, each with how many it is above; none of none."""
        own = [self.spanners[j] for j in panel] if self.spanners else []
        return tuple((text, len(list(same))) for text, same in groupby(own)) if any(own) else ()


@dataclass(frozen=True, slots=True)
class Report:
    """A printed result: title, facts, tables, notes, and a legend: words for names in it.

    Examples
    --------
    >>> from dpmodels.report import Report, Row, Section, as_text
    >>> rows = (Row("age", ("1.204", "0.031")), Row("educ", ("0.870", "0.112")))
    >>> table = Section("Coefficients", ("estimate", "noise sd"), rows)
    >>> facts = (("Formula", "wage ~ age + educ"), ("Guarantee", "eps = 1"))
    >>> print(as_text(Report("Private least squares", facts, (table,), ())))
                                Private least squares
    ==============================================================================
    Formula:  wage ~ age + educ   Guarantee: eps = 1
    ------------------------------------------------------------------------------
    Coefficients  estimate  noise sd
    age              1.204     0.031
    educ             0.870     0.112
    ==============================================================================
    """

    title: str
    facts: tuple[Fact, ...]
    sections: tuple[Section, ...]
    notes: tuple[str, ...]
    stamp: str | None = None
    legend: tuple[Fact, ...] = ()
