"""Terms of printed tables: each is defined once, and a report lists those that it uses."""

import re
from pathlib import Path

import pytest

import dpmodels as dp
from dpmodels.report import Report, Row, Section, as_html
from dpmodels.report.notes import TERMS, glossary, terms_in

GLOSSARY = Path(__file__).parents[2] / "docs" / "glossary.md"
STORED = Path(__file__).parents[1] / "results" / "format_1"


def test_a_report_lists_the_terms_that_it_uses_and_no_others():
    section = Section("Means", ("estimate", "noise sd"), (Row("age", ("1.2", "0.1")),))
    report = Report("Private means", (("Row norm", "1.41"),), (section,), ("a was clipped.",))
    assert [term.name for term in terms_in(report)] == ["Row norm", "Clipped", "Noise sd"]
    assert terms_in(Report("Means", (), (), ())) == ()


def test_names_of_variables_are_not_terms():
    section = Section("Means", ("estimate",), (Row("ridge", ("1.2",)),))
    assert terms_in(Report("Means", (), (section,), ())) == ()


def test_html_defines_terms_in_a_box_that_text_does_not_have():
    report = Report("Means", (("Row norm", "1.41"),), (), ())
    assert "<details" in as_html(report)
    assert "<dt>Row norm</dt>" in as_html(report)
    assert "<details" not in as_html(Report("Means", (), (), ()))
    assert [note.split(":")[0] for note in glossary(report).notes] == ["Row norm"]


def test_the_page_of_the_documentation_has_the_same_definitions():
    page = re.sub(r"\s+", " ", GLOSSARY.read_text("utf-8"))
    assert [term.name for term in TERMS if f"{term.name} : {term.meaning}" not in page] == []
    assert len({term.name for term in TERMS}) == len(TERMS)


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.name)
def test_each_term_stands_in_a_table_of_the_package(term):
    printed = "\n".join(path.read_text("utf-8") for path in STORED.glob("*.txt"))
    assert re.search(term.pattern, printed, re.IGNORECASE)


def test_a_fit_explains_its_own_table():
    rows = {"x": [1, 2] * 50}
    fit = dp.dp_mean("~ x", rows, codebook=dp.codebook(x=(0, 3)), eps=1.0)
    text = str(fit.help())
    assert text.splitlines()[0].strip() == "Terms of: Private mean"
    assert "Noise sd: The standard deviation of the privacy noise" in text
