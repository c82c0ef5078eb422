"""What stands once above columns that share it."""

import pytest
from report_parsed import Tables

from dpmodels.errors import ArgumentError
from dpmodels.report import Report, Row, Section, as_html, as_latex, as_markdown, as_text

HEADS = ("(1)", "(2)", "PC1", "PC2")
ABOVE = ("wage", "wage", "", "<i>a_b")


def spanned(columns=HEADS, spanners=ABOVE, cell="1.00"):
    rows = (Row("age", (cell,) * len(columns)),)
    return Report("t", (), (Section("Estimates", columns, rows, spanners),), ())


def test_spanners_are_one_a_column():
    with pytest.raises(ArgumentError, match="1 spanners for 4 columns"):
        spanned(spanners=("wage",))


def test_neighbours_share_a_spanner_and_others_do_not():
    (section,) = spanned(spanners=("a", "b", "b", "a")).sections
    assert section.spans(range(4)) == (("a", 1), ("b", 2), ("a", 1))
    assert section.spans(range(2, 4)) == (("b", 1), ("a", 1))
    assert spanned(spanners=()).sections[0].spans(range(4)) == ()


def test_text_has_a_rule_as_wide_as_the_columns_below():
    reported, rule, heads, row = as_text(spanned()).splitlines()[2:6]
    start, end = rule.index("-"), rule.index(" ", rule.index("-"))
    assert reported[start:end].strip() == "wage"
    assert heads[start:end].split() == ["(1)", "(2)"]
    assert row[start:end].split() == ["1.00", "1.00"]
    assert rule.count("--  -") == 0
    assert "<i>a_b" in reported


def test_a_spanner_over_a_narrow_column_is_not_cut_inside_a_word():
    text = as_text(spanned(("model",), ("log1p(income)",), "5.78"))
    assert text.splitlines()[2].strip() == "log1p(income)"


def test_panels_repeat_what_is_above_their_own_columns():
    text = as_text(spanned(tuple(f"({j})" for j in range(12)), ("wage",) * 12, "[-0.4118, 0.4136]"))
    panels = text.count("wage")
    assert panels > 1
    assert panels == text.count("age  ") - text.count("wage  ")
    assert max(map(len, text.splitlines())) <= 100


def test_html_spans_columns_and_escapes():
    tags = Tables(as_html(spanned())).tags
    above = [value["colspan"] for tag, value in tags if value.get("scope") == "colgroup"]
    assert above == ["2", "1"]
    assert "&lt;i&gt;a_b</th>" in as_html(spanned())
    assert "colgroup" not in as_html(spanned(spanners=()))


def test_latex_spans_columns_with_rules():
    source = as_latex(spanned())
    assert r"\multicolumn{2}{c}{wage} & \multicolumn{1}{c}{} & " in source
    assert r"\cmidrule(lr){2-3}\cmidrule(lr){5-5}" in source
    assert r"\textless{}i\textgreater{}a\_b" in source


def test_markdown_has_one_row_of_heads():
    head = as_markdown(spanned()).splitlines()[2]
    assert head == r"| Estimates | wage (1) | wage (2) | PC1 | \<i\>a\_b PC2 |"


def test_numbers_with_brackets_below_stand_at_the_right():
    heads, values = ("(1)", "(2)"), ("1.204", "20,190")
    plain = tuple(Row(value, (value, value)) for value in values)
    below = (*plain, Row("", ("(0.031)", "[2]")))
    aligned, right = (
        as_html(Report("t", (), (Section("s", heads, rows),), ())).count('<td class="d')
        for rows in (plain, below)
    )
    assert (aligned > 0, right) == (True, 0)


def test_a_row_without_a_label_is_left_out_of_panels_that_it_leaves_blank():
    heads = tuple(f"({j})" for j in range(12))
    rows = (Row("age", ("[-0.4118, 0.4136]",) * 12), Row("", ("(0.03)", *("",) * 11)))
    report = Report("t", (), (Section("s", heads, rows),), ())
    assert "\n\n\n" not in as_text(report).replace(" ", "")
    lines = [line for line in as_latex(report).splitlines() if line.startswith(" &")]
    assert len(lines) == 1
