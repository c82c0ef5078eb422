import re

from report_samples import NASTY_REPORT

from dpmodels.report import Report, Row, Section, as_markdown


def test_every_row_has_the_same_number_of_cells():
    lines = [x for x in as_markdown(NASTY_REPORT).splitlines() if x.startswith("|")]
    bars = [len(re.findall(r"(?<!\\)\|", line)) for line in lines]
    assert bars == [3] * 3 + [4] * (2 + len(NASTY_REPORT.sections[0].rows))


def test_marks_are_escaped():
    table = Section("a*b", ("c_d",), (Row("e`f|<g>\n[h](i)", ("$x$",)),))
    lines = as_markdown(Report("#t", (), (table,), ())).splitlines()
    assert lines[0] == r"### \#t"
    assert lines[2] == r"| a\*b | c\_d |"
    assert lines[4] == r"| e\`f\|\<g\> \[h\](i) | \$x\$ |"


def test_notes_do_not_become_lists_of_lists():
    notes = ("- dash", "+ plus", "12. number", "* star", "-0.5 is a number")
    lines = as_markdown(Report("t", (), (), notes)).splitlines()[2:]
    assert lines == [
        r"- \- dash",
        r"- \+ plus",
        r"- 12\. number",
        r"- \* star",
        "- -0.5 is a number",
    ]


def test_columns_of_numbers_align_right_and_words_left():
    table = Section("t", ("unit", "low"), (Row("age", ("years", "-1")),))
    rule = as_markdown(Report("t", (), (table,), ())).splitlines()[3]
    assert rule == "| :--- | :--- | ---: |"


def test_the_stamp_is_bold_at_both_ends():
    lines = as_markdown(NASTY_REPORT).splitlines()
    assert lines[0] == lines[-1] == r"**STAMP \& \<s\>**"
