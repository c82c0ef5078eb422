"""The dots of a sum of numbered names: which names they stand for, and what is refused."""

import pytest

import dpmodels as dp
from dpmodels.errors import CodebookError, FormulaError, FrameError
from dpmodels.formula.parse import parsed_formula


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("~ x1 + ... + x5", "~ x1 + x2 + x3 + x4 + x5"),
        ("~ x1 + x2 + ... + x5", "~ x1 + x2 + x3 + x4 + x5"),
        ("~x1+...+x3", "~x1 + x2 +x3"),
        ("y ~ x01 + ... + x12", "y ~ " + " + ".join(f"x{i:02d}" for i in range(1, 13))),
        ("y ~ x8 + ... + x11 + z", "y ~ x8 + x9 + x10 + x11 + z"),
        ("y ~ a + x1 + ... + x3 - x2", "y ~ a + x1 + x2 + x3 - x2"),
        ("y ~ q1_pre + ... + q3_pre", "y ~ q1_pre + q2_pre + q3_pre"),
        ("y ~ x1 + ... + x3 + ... + x5", "y ~ x1 + x2 + x3 + x4 + x5"),
        ("y ~ (x1 + ... + x3):z", "y ~ (x1 + x2 + x3):z"),
        ("y ~ I(x1 + ... + x3)", "y ~ I(x1 + x2 + x3)"),
    ],
)
def test_the_dots_are_the_names_between(short, long):
    names = ["y", "z", *(f"x{i}" for i in range(12))]
    assert parsed_formula(short, names) == parsed_formula(long, names)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("~ x1 + ... + y5", "one name with two numbers"),
        ("~ x + ... + x5", "one name with two numbers"),
        ("~ a1 + ... + a5b", "one name with two numbers"),
        ("~ x5 + ... + x1", "above the first"),
        ("~ x1 + ... + x1", "above the first"),
        ("~ x1 + ... + x99999999", "by less than 5,000"),
        ("~ x01 + ... + x100", "as many digits"),
        ("~ x1 + ...", "between two numbered names"),
        ("~ ... + x5", "between two numbered names"),
        ("~ x1 * ... * x5", "between two numbered names"),
        ("~ z:x1 + ... + x5", "between two numbered names"),
        ("~ x1 + ... + x5:z", "between two numbered names"),
    ],
)
def test_dots_that_do_not_say_which_names_are_refused(formula, message):
    with pytest.raises(FormulaError, match=message):
        parsed_formula(formula, ["x1"])


def test_a_quoted_name_with_dots_is_left_alone():
    assert parsed_formula('~ Q("a1 + ... + a3")', ()).predictors == (('Q("a1 + ... + a3")',),)


def test_missing_columns_are_refused_before_a_charge():
    book = dp.codebook.uniform([f"x{i}" for i in range(1, 6)], (0, 1))
    rows = {f"x{i}": [0.5] * 100 for i in (1, 2, 4, 5)}
    ledger = dp.Ledger(eps=1.0)
    with pytest.raises(FrameError, match="'x3'"):
        dp.dp_pca("~ x1 + ... + x5", rows, codebook=book, eps=1.0, ledger=ledger)
    with pytest.raises(CodebookError, match="'x6'"):
        dp.dp_pca("~ x1 + ... + x6", rows, codebook=book, eps=1.0, ledger=ledger)
    assert ledger.charges == 0


def test_the_table_lists_every_name():
    book = dp.codebook.uniform([f"x{i}" for i in range(1, 4)], (0, 1))
    rows = {f"x{i}": [0.2, 0.8] * 500 for i in (1, 2, 3)}
    fit = dp.dp_pca("~ x1 + ... + x3", rows, codebook=book, eps=1.0, delta=1e-6)
    assert fit.loadings["variable"].values.tolist() == ["x1", "x2", "x3"]
