"""Words for names: beside them where there is room, else below; told once, whatever they are."""

import re
from dataclasses import replace

import pytest
from report_parsed import Tables, latex_tables, markdown_tables

from dpmodels.report import Report, Row, Section, as_html, as_latex, as_markdown, as_text
from dpmodels.report.layout import LIMIT, placed, width

AGE, INCOME = ("age", "Age at interview (years)"), ("income", "Household income (euro)")
HOSTILE = "\x1b[31m<b onclick=x>&amp; $x$ \\end{longtable} 5% a_b | ~^#`\n====\u202e | 0.001 |"


def report(*rows, columns=("coef",), legend=(AGE, INCOME), **extra):
    return Report("t", (), (Section("Coefficients", columns, rows),), (), legend=legend, **extra)


def named(name, cells=("1.0",), about=None):
    return Row(name, cells, about=about)


SHORT = report(named("age", about=AGE), named("income", about=INCOME), named("Intercept"))
WIDE = report(
    named("age", ("-1.234567",) * 7, AGE),
    named("log(income)", ("-1.234567",) * 7),
    columns=tuple("abcdefg"),
)


def test_words_stand_beside_names_where_there_is_room():
    lines = as_text(SHORT).splitlines()
    assert any(line.startswith("age     Age at interview (years)  ") for line in lines)
    assert any(line.startswith("income  Household income (euro)   ") for line in lines)
    assert "Labels" not in lines


def test_words_stand_below_where_there_is_none():
    text = as_text(WIDE)
    assert text.splitlines()[-4:-1] == [
        "Labels",
        "age     Age at interview (years)",
        "income  Household income (euro)",
    ]
    assert max(map(len, text.splitlines())) <= 90
    assert "Age at interview" in as_latex(WIDE).partition("Labels")[2]


def test_tables_of_equal_heads_leave_the_room_of_the_widest():
    heads = ("PC1", "PC2", "PC3", "PC4", "PC5")
    ends = Row("95% noise interval (sd)", ("[0.94373, 0.94901]",) * 5)
    loadings = Section("Loadings", heads, (named("age", ("0.5",) * 5, AGE), named("b", ("",) * 5)))
    report = Report("t", (), (Section("Importance", heads, (ends,)), loadings), (), None, (AGE,))
    text = as_text(report)
    assert "Labels" in text
    alone = replace(report, sections=(loadings,))
    assert "Labels" not in as_text(alone)


def test_names_that_are_not_printed_have_no_words():
    text = as_text(report(named("ageing"), named("x.age"), named("b", about=None)))
    assert "Labels" not in text
    assert as_text(report(named("age" * 40), named("age"))).splitlines()[-2] == (
        "age  Age at interview (years)"
    )
    hidden = replace(report(named("b")), facts=(("Formula", "~ age"), ("Variable", "income")))
    assert "Household" in as_text(hidden)
    assert "interview" not in as_text(hidden)


def test_words_are_told_once():
    rows = (named("age", about=AGE),)
    twice = Report(
        "t", (), (Section("a", ("x",), rows), Section("b", ("y",), rows)), (), None, (AGE,)
    )
    for text in (as_text(twice), as_html(twice), as_latex(twice), as_markdown(twice)):
        assert text.count("interview") == 1


def test_two_names_with_equal_words_are_both_told():
    second = ("wage", INCOME[1])
    result = report(named("income", about=INCOME), named("log(wage)"), legend=(INCOME, second))
    assert as_text(result).count("Household income") == 2


def test_a_heading_has_the_line_for_itself_and_rows_below_stand_in():
    long = ("age", "an age " + "of many words " * 4)
    result = report(
        Row("age", ("",), heading=True, about=long), Row("mean", ("1.0",), indent=1), legend=(long,)
    )
    lines = as_text(result).splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("age  an age of many"))
    assert lines[place + 1].startswith("  mean ")
    assert "padding-left" in as_html(result)
    assert r"\quad{}mean" in as_latex(result)
    assert "| &emsp;mean |" in as_markdown(result)


def test_the_label_of_a_heading_takes_the_blank_cells_behind_it():
    heads = ("first group", "second group", "p-value")
    head = Row("age", ("", "", "0.04"), heading=True, about=AGE)
    result = report(head, Row("mean", ("1", "2", ""), indent=1), columns=heads, legend=(AGE,))
    line = next(line for line in as_text(result).splitlines() if line.startswith("age"))
    assert re.fullmatch(r"age  Age at interview \(years\) +0\.04", line)
    assert 'colspan="3"' in as_html(result)
    assert r"\multicolumn{3}{@{}l}{age\quad {}Age at interview (years)} & 0.04" in as_latex(result)


@pytest.mark.parametrize("words", [HOSTILE, "a" * 2_000, "界" * 300, ""])
def test_whatever_words_are_no_line_is_forged(words):
    about = ("age", words)
    for value in (
        report(named("age", about=about), named("b"), legend=(about,)),
        report(
            Row("age", ("",), heading=True, about=about),
            Row("b", ("2.0",), indent=1),
            legend=(about,),
        ),
        report(named("log(age)"), legend=(about,)),
    ):
        text, html, latex, marked = (f(value) for f in (as_text, as_html, as_latex, as_markdown))
        for item in (text, html, latex, marked):
            assert not set(item) & set("\x1b\u202e")
        lines = text.splitlines()
        assert max(map(width, lines)) <= LIMIT
        assert sum(set(line) == {"="} for line in lines) == 2
        assert {tag for tag, _ in Tables(html).tags} <= {
            *("div", "style", "h3", "table", "caption", "thead", "tbody", "tr", "td", "th", "em")
        }
        for tables in (markdown_tables(marked), latex_tables(latex)):
            for table in tables:
                assert len({len(row) for row in table if len(row) > 1}) <= 1


def test_what_has_no_legend_is_printed_as_it_was():
    plain = report(named("age"), named("income"), legend=())
    assert placed(plain, (78,)) == plain
