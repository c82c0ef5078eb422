import base64

import pytest
from report_parsed import Tables
from report_samples import NASTY_REPORT, PCA_REPORT

from dpmodels.errors import ArgumentError
from dpmodels.report import Report, Section, as_html, as_page

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
    selectors = [part for rule in style.split("}")[:-1] for part in rule.split("{")[0].split(",")]
    assert selectors
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
