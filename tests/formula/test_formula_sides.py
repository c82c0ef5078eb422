"""Both sides of a descriptive formula, and what is refused by name."""

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import CodebookError, FormulaError, UnknownVariable
from dpmodels.formula.response import two_sided
from dpmodels.formula.sides import grouping, measured, one_measured, parse_sides, positions

BOOK = dp.codebook(age=(0, 100), sex=["F", "M"], g=["u", "v", "w"], z=(5, 7))


def codes(values):
    return [value.code for value in values]


@pytest.mark.parametrize(
    ("formula", "described", "groups"),
    [
        ("~ age", ["age"], []),
        ("age ~ sex + g", ["age"], ["sex", "g"]),
        ("~ sex * g", ["sex", "g"], []),
        ("~ sex:g + sex", ["sex", "g"], []),
        ("age + z ~ sex + g", ["age", "z"], ["sex", "g"]),
        ("log1p(age) ~ cut(z, [5, 6, 7])", ["log1p(age)"], ["cut(z, [5, 6, 7])"]),
        ("age ~ 1", ["age"], []),
        ("~ age + z | sex * g", ["age", "z"], ["sex", "g"]),
        ("age + z|sex", ["age", "z"], ["sex"]),
        ("~ . | sex", ["age", "g", "z"], ["sex"]),
        (". ~ sex + g", ["age", "z"], ["sex", "g"]),
        ("~ . - z | sex + g", ["age"], ["sex", "g"]),
        ("~ (age > 3) | (z > 6)", ["age > 3"], ["z > 6"]),
        ("~ I((age > 3) | (z > 6)) | g", ["I((age > 3) | (z > 6))"], ["g"]),
        ("~ age | h == 'a|b~'", ["age"], ["h == 'a|b~'"]),
    ],
)
def test_every_form_says_what_is_described_and_what_groups(formula, described, groups):
    sides = parse_sides(formula, BOOK | {"h": ["a|b~", "c"]} if "h ==" in formula else BOOK)
    assert (codes(sides.described), codes(sides.groups)) == (described, groups)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("sex ~ age + z", r"groups rows by 'age'.*write 'age \+ z ~ sex' or '~ age \+ z \| sex'"),
        ("age ~ z", r"cut it at public breaks: cut\(z"),
        ("~ age | z", r"cut it at public breaks: cut\(z"),
        ("age ~ g | sex", "more than one place"),
        ("~ age | g | sex", "more than one place"),
        ("age ~ g ~ sex", "more than one place"),
        ("~ age |", "names no group after '|'"),
        (". ~ .", "'.', names no variable"),
        ("age + sex ~ sex", "'sex' on both sides"),
        (None, "is of type NoneType"),
    ],
)
def test_what_cannot_be_read_says_what_to_write(formula, message):
    with pytest.raises(FormulaError, match=message):
        parse_sides(formula, BOOK)


def test_errors_of_other_verbs_point_to_the_one_that_describes_by_groups():
    for formula in ("age + z ~ sex", "age ~ z | sex"):
        with pytest.raises(FormulaError, match="dp_summary"):
            two_sided(formula, BOOK)


def test_only_the_variables_used_are_kept():
    assert set(parse_sides("age ~ sex", BOOK).codebook) == {"age", "sex"}


def test_what_rows_are_grouped_by():
    assert grouping(parse_sides("~ sex", BOOK).described[0]).levels == ("F", "M")
    assert grouping(parse_sides("~ age > 30", BOOK).described[0]).levels == (False, True)
    with pytest.raises(FormulaError, match=r"cut it at public breaks: cut\(age"):
        grouping(parse_sides("~ age", BOOK).described[0])


def test_what_is_measured():
    assert measured(parse_sides("~ sex", BOOK).described[0]).code == "sex = M"
    assert measured(parse_sides("~ age > 30", BOOK).described[0]).upper == 1.0
    with pytest.raises(FormulaError, match="compare it with one, g == 'u'"):
        measured(parse_sides("~ g", BOOK).described[0])
    with pytest.raises(FormulaError, match="several columns"):
        measured(parse_sides("~ poly(age, 2)", BOOK).described[0])


def test_one_number_is_measured():
    number, factors = one_measured(parse_sides("age ~ sex + g", BOOK), "dp_mean")
    assert (number.code, codes(factors)) == ("age", ["sex", "g"])
    for formula in ("~ age + z", "age + z ~ sex", "~ age + z | sex", "~ 1"):
        with pytest.raises(FormulaError, match=r"dp_mean takes one variable.*dp_summary"):
            one_measured(parse_sides(formula, BOOK), "dp_mean")


def test_what_is_not_declared_is_refused():
    with pytest.raises(UnknownVariable, match="nope"):
        parse_sides("~ nope", BOOK)
    with pytest.raises(CodebookError):
        parse_sides("~ age", None)


def test_positions_are_clipped_to_the_declared_range():
    z = measured(parse_sides("~ z", BOOK).described[0])
    result = positions(z, {"z": np.array([-1.0, 5.5, 8.0, np.nan])})
    assert result.tolist()[:3] == [0.0, 0.25, 1.0]
    assert np.isnan(result[3])


def test_a_range_of_one_point_has_all_rows_at_its_lower_end():
    point = measured(parse_sides("~ I(age * 0)", BOOK).described[0])
    result = positions(point, {"age": np.array([3.0, np.nan])})
    assert result[0] == 0.0
    assert np.isnan(result[1])
