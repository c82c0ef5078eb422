from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_samples import NASTY_REPORT, PCA_REPORT

from dpmodels.report import Report, Row, Section, as_text
from dpmodels.report.layout import width
from dpmodels.report.text import fact_lines, shorten

GOLDEN = Path(__file__).parent / "golden"
examples = settings(deadline=None, database=None, max_examples=200)
words = st.text(max_size=60)


def report(*sections: Section, **fields) -> Report:
    return Report(
        fields.get("title", "Title"),
        fields.get("facts", ()),
        sections,
        fields.get("notes", ()),
        fields.get("stamp"),
    )


def many(columns: int, cell: str = "[0.4118, 0.4136]") -> Section:
    heads = tuple(f"PC{j + 1}" for j in range(columns))
    names = ("C(region, Treatment('north west'))[T.south-east]:log(income + 1)", "disea")
    rows = (Row(names[0], (cell,) * columns), Row(names[1], ("-0.707",) * columns))
    return Section("Importance of components", heads, rows)


def test_the_principal_components_report():
    assert as_text(PCA_REPORT) + "\n" == (GOLDEN / "pca.txt").read_text()


def test_twelve_components_stand_in_panels():
    text = as_text(report(many(12), stamp="SIMULATION - NOT PRIVATE"))
    assert text + "\n" == (GOLDEN / "panels.txt").read_text()


def test_no_table_at_all():
    assert as_text(report()).splitlines() == ["Title".center(78).rstrip(), "=" * 78]


def test_a_table_without_rows_keeps_its_heads():
    lines = as_text(report(Section("Empty", ("a", "b"), ()))).splitlines()
    assert lines[2].split() == ["Empty", "a", "b"]
    assert len(lines) == 4


def test_a_table_without_columns_is_a_list():
    lines = as_text(report(Section("List", (), (Row("one"), Row("two"))))).splitlines()
    assert lines[2:5] == ["List", "one", "two"]


def test_one_cell():
    lines = as_text(report(Section("Mean", ("age",), (Row("mean", ("41.2",)),)))).splitlines()
    assert lines[2:4] == ["Mean       age", "mean      41.2"]


def test_equal_heads_give_equal_columns_in_every_table():
    narrow = Section("A", ("x", "y"), (Row("a", ("1", "2")),))
    wide = Section("B", ("x", "y"), (Row("a longer label", ("1.23456789", "2")),))
    lines = as_text(report(narrow, wide)).splitlines()
    heads = [line for line in lines if line.endswith("y")]
    assert heads[0][1:] == heads[1][1:]


def test_words_stand_left_and_numbers_right():
    table = Section("T", ("unit", "low"), (Row("age", ("years", "0")), Row("w", ("kg", "10"))))
    lines = as_text(report(table)).splitlines()
    assert lines[3].index("years") == lines[4].index("kg")
    assert lines[3].endswith(" 0")
    assert lines[4].endswith("10")


def test_labels_of_a_table_take_the_space_that_another_needs_for_columns():
    label = "sex[T.Female]:marital_status[T.Separated]"
    cells = ("0.12345678",) * 6
    wide = Section("Wide", tuple("abcdef"), (Row("age", cells), Row(label, cells)))
    narrow = Section("Narrow", tuple("abcd"), (Row(label, cells[:4]),))
    assert "sex[T.Female]:\n  marital_status[T.Separated]  0.12345678" in as_text(report(narrow))
    assert f"\n{label}  0.12345678" in as_text(report(wide, narrow))


def test_distinct_long_names_stay_distinct():
    stem = "a_very_long_variable_name_that_goes_on_and_on_"
    rows = tuple(Row(stem + end, ("1.0",)) for end in ("left_side_x", "left_side_y"))
    text = as_text(report(Section("T", ("estimate",), rows)))
    joined = "".join(text.split())
    assert joined.count(stem + "left_side_x") == 1
    assert joined.count(stem + "left_side_y") == 1


def test_the_stamp_is_first_and_last():
    lines = as_text(report(many(2), notes=("n",), stamp="SIMULATION - NOT PRIVATE")).splitlines()
    assert lines[0] == lines[-1]
    assert " SIMULATION - NOT PRIVATE " in lines[0]
    assert set(lines[0].replace(" SIMULATION - NOT PRIVATE ", "")) == {"*"}
    assert len(lines[0]) == 78


def test_long_notes_wrap_and_are_kept_whole():
    note = "word " * 60
    lines = as_text(report(notes=(note,))).splitlines()
    assert max(map(len, lines)) == 78
    assert " ".join(lines[2:]).split() == note.split()


def test_escape_sequences_do_not_reach_the_terminal():
    text = as_text(NASTY_REPORT)
    assert "\x1b" not in text
    assert r"\x1b[31m\u202e" in text


@pytest.mark.parametrize("columns", [1, 2, 5, 9, 10, 40])
@pytest.mark.parametrize("cell", ["-0.1", "[0.4118, 0.4136]", "[-1.234e+07, 1.234e+07]", ""])
def test_no_line_is_longer_than_100(columns, cell):
    text = as_text(report(many(columns, cell)))
    assert max(map(len, text.splitlines())) <= 100
    assert text.split().count("-0.707") == columns


@pytest.mark.product
@examples
@given(words, st.lists(st.tuples(words, words), max_size=5), words, words, words, words)
def test_no_text_makes_a_line_longer_than_100(title, facts, head, label, cell, note):
    table = Section(title, (head, head, head), (Row(label, (cell, "1", cell)),) * 2)
    result = report(table, title=title, facts=tuple(facts), notes=(note,), stamp=note)
    lines = as_text(result).splitlines()
    assert max(map(width, lines)) <= 100
    assert all(line == line.rstrip() for line in lines)


def test_formulas_are_shortened_at_a_term():
    formula = "log(wage) ~ age + poly(x, degree = 2 + 1) + c + d + last"
    assert shorten(formula, 40) == "log(wage) ~ age + ... + last"
    assert shorten(formula, 60) == formula
    assert shorten("~ a + b + c", 5) == "~ a + b + c"
    long = "~ a + " + "b" * 30 + " + c"
    assert shorten(long, 40) == long
    assert shorten("a" * 30 + " + c", 5) == "a" * 30 + " + c"
    assert shorten("~ one_long_name + another_long_name", 10).endswith("another_long_name")


def test_facts_fill_rows_from_left_to_right():
    lines = fact_lines([("A", "1"), ("B", "2"), ("Long", "3")])
    assert lines == ["A:     1   B: 2", "Long:  3"]


def test_long_facts_wrap_and_are_kept_whole():
    value = "several words that do not fit into one column of the header at all"
    lines = fact_lines([("A", value), ("B", value)])
    assert max(map(len, lines)) <= 100
    assert " ".join(lines).count("several words") == 2
    assert "".join(lines).split().count("all") == 2


def test_very_long_words_in_facts_are_broken():
    label = "a label as long as it may be"
    lines = fact_lines([(label, "x" * 90), (label, "y" * 90)])
    assert max(map(len, lines)) <= 100
    assert "".join(lines).count("x") == 90
    assert "".join(lines).count("y") == 92  # and one in each "may"
