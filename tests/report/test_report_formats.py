from collections import Counter

import pytest
from report_parsed import Tables, latex_tables, markdown_tables
from report_samples import NASTY_REPORT, PCA_REPORT

from dpmodels.report import as_html, as_latex, as_markdown, as_text
from dpmodels.report.layout import plain


def cells(report):
    """Per table: the rows of label and cells, as every format should show them."""
    return [[[plain(r.label), *map(plain, r.cells)] for r in s.rows] for s in report.sections]


@pytest.fixture(params=[PCA_REPORT, NASTY_REPORT], ids=["pca", "nasty"])
def report(request):
    return request.param


def test_html_has_every_cell(report):
    parsed = Tables(as_html(report)).tables
    assert [table[1:] for table in parsed[1:]] == cells(report)
    assert [c for row in parsed[0] for c in row] == [plain(x) for f in report.facts for x in f]
    assert [table[0][1:] for table in parsed[1:]] == [list(s.columns) for s in report.sections]


def test_markdown_has_every_cell(report):
    parsed = markdown_tables(as_markdown(report))
    assert [table[1:] for table in parsed[1:]] == cells(report)
    assert parsed[0][1:] == [list(map(plain, fact)) for fact in report.facts]
    heads = [[s.title, *s.columns] for s in report.sections]
    assert [table[0] for table in parsed[1:]] == heads


def test_latex_has_every_cell(report):
    parsed = latex_tables(as_latex(report))
    # A long label breaks over lines, within a word where it must.
    values = [[["".join(row[0].split()), *row[1:]] for row in table[1:]] for table in parsed[1:]]
    assert values == [[["".join(r[0].split()), *r[1:]] for r in table] for table in cells(report)]
    assert [table[0][1:] for table in parsed[1:]] == [list(s.columns) for s in report.sections]


def test_text_has_every_cell(report):
    body = as_text(report).split("-" * 78 + "", 1)[1]
    body = body[: body.index("=" * 78)].replace("--------", "")
    words = [
        x
        for s in report.sections
        for x in (s.title, *s.columns, *(c for r in s.rows for c in (r.label, *r.cells)))
    ]
    joined = Counter("".join(body.split()).replace("-", ""))
    assert joined == Counter("".join("".join(map(plain, words)).split()).replace("-", ""))


def test_every_format_shows_stamp_and_notes():
    for render in (as_text, as_html, as_latex, as_markdown):
        assert render(NASTY_REPORT).count("STAMP") == 2
        assert render(PCA_REPORT).count("privacy noise only") == 1
