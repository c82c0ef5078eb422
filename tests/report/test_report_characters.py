from hypothesis import given, settings
from hypothesis import strategies as st

from dpmodels.report.layout import pad, plain, width, wrap

examples = settings(deadline=None, database=None, max_examples=200)


@examples
@given(st.text())
def test_plain_text_is_one_printable_line(text):
    assert plain(text).isprintable()
    assert len(plain(text).splitlines()) <= 1


@examples
@given(st.text(), st.integers(6, 40), st.integers(0, 2))
def test_wrapping_keeps_every_character_and_the_width(text, columns, indent):
    lines = wrap(text, columns, indent)
    assert all(width(line) <= columns for line in lines)
    assert "".join("".join(lines).split()) == "".join(plain(text).split())


def test_labels_of_interactions_are_cut_between_variables_before_names_are():
    label = "sex[T.Female]:marital_status[T.Married-civ-spouse]"
    assert wrap(label, 40, indent=2) == ("sex[T.Female]:", "  marital_status[T.Married-civ-spouse]")
    assert wrap(label, 26, indent=2) == (
        "sex[T.Female]:",
        "  marital_status[T.",
        "  Married-civ-spouse]",
    )
    assert wrap("household_income_before_tax", 20, indent=2) == (
        "household_income_",
        "  before_tax",
    )
    assert wrap("a b", 2) == ("a", "b")


def test_wrapping_prefers_spaces_then_punctuation():
    assert wrap("one two three", 8) == ("one two", "three")
    assert wrap("C(region,Treatment)[T.north]", 12, indent=2) == (
        "C(region,",
        "  Treatment)",
        "  [T.north]",
    )
    assert wrap("abcdefghij", 6, indent=2) == ("abcdef", "  ghij")


def test_wide_and_combining_characters_are_measured():
    assert width("年齢") == 4
    assert width("a\u0301") == 1
    assert pad("年", 4, ">") == "  年"
    assert pad("ab", 5, "^") == " ab  "
