import base64
import math
import re

import pytest
from report_parsed import Tables, markdown_tables
from report_samples import NASTY_REPORT, PCA_REPORT

from dpmodels.errors import ArgumentError
from dpmodels.report import (
    Bar,
    Report,
    Row,
    Section,
    as_html,
    as_latex,
    as_markdown,
    as_page,
    as_text,
)

PNG = b"\x89PNG\r\n\x1a\n" + b"picture"


def test_names_do_not_become_tags():
    tags = {tag for tag, _ in Tables(as_html(NASTY_REPORT)).tags}
    table = {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert tags == table | {"div", "style", "p", "h3", "ul", "li"}


def test_names_do_not_leave_attributes():
    for tag, attributes in Tables(as_html(NASTY_REPORT)).tags:
        assert set(attributes) <= {"class", "scope", "role", "aria-label", "tabindex"}, tag
    table = Section('" onmouseover="alert(1)', ("a",), ())
    tags = Tables(as_html(Report("t", (), (table,), ()))).tags
    assert [k for _, a in tags for k in a if "alert" in (a[k] or "")] == ["aria-label"]


def test_heads_have_a_scope():
    parsed = Tables(as_html(PCA_REPORT))
    scopes = [attributes.get("scope") for tag, attributes in parsed.tags if tag == "th"]
    assert set(scopes) == {"row", "col"}
    assert scopes.count("col") == 2 * 4
    assert parsed.text["caption"] == [s.title for s in PCA_REPORT.sections]


def test_the_style_applies_to_the_fragment_only():
    source = as_html(PCA_REPORT)
    style = source[source.index("<style>") + 7 : source.index("</style>")]
    rules = re.findall(r"([^{}]+)\{[^{}]*\}", style)
    selectors = [part for rule in rules for part in rule.split(",")]
    assert len(rules) > 20
    assert all(selector.strip().startswith(".dpmodels-report") for selector in selectors)


def test_mathjax_is_told_to_stay_away():
    classes = (Tables(as_html(PCA_REPORT)).tags[0][1]["class"] or "").split()
    assert {"dpmodels-report", "mathjax_ignore", "tex2jax_ignore"} <= set(classes)


def test_html_shows_the_whole_formula():
    assert PCA_REPORT.facts[0][1] in as_html(PCA_REPORT)


def test_a_page_is_complete():
    page = as_page(PCA_REPORT, [('a "scree" plot', PNG)])
    tags = dict(Tables(page.removeprefix("<!DOCTYPE html>")).tags)
    assert page.startswith("<!DOCTYPE html>")
    assert tags["html"] == {"lang": "en"}
    assert '<meta charset="utf-8">' in page
    assert f"<title>{PCA_REPORT.title}</title>" in page
    assert tags["img"]["alt"] == 'a "scree" plot'
    data = (tags["img"]["src"] or "").removeprefix("data:image/png;base64,")
    assert base64.b64decode(data) == PNG
    assert page.count("<h1") == 1
    assert "http" not in page
    assert "<title>STAMP &amp; &lt;s&gt;: T &lt;u&gt;&amp;</title>" in as_page(NASTY_REPORT)


@pytest.mark.parametrize(("picture", "reason"), [(("a", b"GIF"), "PNG"), ((" ", PNG), "no text")])
def test_a_page_takes_png_with_words_only(picture, reason):
    with pytest.raises(ArgumentError, match=reason):
        as_page(PCA_REPORT, [picture])


def wide(columns):
    heads = tuple(f"variable_{j}" for j in range(columns))
    return Section("Covariances", heads, (Row("a", tuple(f"-{j}.125" for j in range(columns))),))


@pytest.mark.parametrize("render", [as_html, as_markdown])
def test_columns_beyond_a_page_stand_below_the_others_and_none_is_lost(render):
    section = wide(40)
    source = render(Report("t", (), (section,), ()))
    parsed = Tables(source).tables if render is as_html else markdown_tables(source)
    assert 4 <= len(parsed) <= 6
    assert [head for table in parsed for head in table[0][1:]] == list(section.columns)
    assert [cell for table in parsed for cell in table[1][1:]] == list(section.rows[0].cells)
    assert {table[1][0] for table in parsed} == {"a"}
    assert source.count("Covariances (continued)") == (len(parsed) - 1) * (1 + (render is as_html))


def test_letters_shrink_by_how_wide_a_table_is():
    style = as_html(Report("t", (), (), ()))
    for columns in (1, 4, 7):
        matches = re.findall(
            r'<table class="w(\d+)">', as_html(Report("t", (), (wide(columns),), ()))
        )
        assert matches == [f"{10 * math.ceil((26 + columns * (10 + 2)) / 10)}"]
        assert f".w{matches[0]} {{--dpm-wide: {matches[0]}}}" in style


def test_points_of_numbers_stand_below_each_other():
    cells = ("12,345", "0.25", "-7.1250 *", "< 0.0001", "[1.5, 2.5]", "-", "lost", "3.1e-07")
    table = Section("t", ("x",), tuple(Row("a", (cell,)) for cell in cells))
    result = re.findall(
        r'<td(?: class="(?:d(\d+))?(?: ?whole)?")?>', as_html(Report("t", (), (table,), ()))
    )[1:]
    # Halves of a digit behind the units: a point is one, a digit or a mark two.
    behind = {"12,345": 0, "0.25": 5, "-7.1250 *": 13, "< 0.0001": 9, "3.1e-07": 11}
    assert result == [str(13 - behind[c]) if behind.get(c, 13) < 13 else "" for c in cells]
    assert ".d13 {padding-right: calc(.6em + 6.5ch)}" in as_html(Report("t", (), (), ()))


def test_a_bar_is_drawn_in_its_exact_length_and_told_in_words():
    table = Section("t", ("rows", ""), (Row("a", ("3", Bar(0.3333))), Row("b", ("9", Bar(1.0)))))
    report = Report("t", (), (table,), ())
    values = [value for tag, value in Tables(as_html(report)).tags if value.get("class") == "bar"]
    assert [value["style"] for value in values] == ["width: 33.33%", "width: 100%"]
    assert values[0]["aria-label"] == values[0]["title"] == "33.3% of the longest bar"
    assert "###" not in as_html(report)
    assert "#######............." in as_text(report)
    assert [float(x) for x in re.findall(r"\\rule\{(.*?)em\}", as_latex(report))] == [3.0, 9.0]


def test_nothing_scrolls_on_paper():
    style = as_html(PCA_REPORT)
    paper = style[style.index("@media print") : style.index("</style>")]
    assert re.search(r"\.scroll \{overflow: visible", paper)
    assert "clamp" not in paper
    assert "table-header-group" in paper
