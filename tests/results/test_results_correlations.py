"""cor_test and pcor of released moments, beside scipy's of the same rows."""

import numpy as np
import pytest
from scipy.stats import pearsonr

import dpmodels as dp
from dpmodels.errors import ArgumentError, FormulaError

BOOK = dp.codebook(x=(0, 10), y=(-5, 5), z=(0, 1), sex=["F", "M"], g=["a", "b", "c"])


def table(rows=3_000):
    rng = np.random.default_rng(1)
    x, z = rng.uniform(0, 10, rows), rng.uniform(0, 1, rows)
    y = np.clip(0.1 * x + z + rng.normal(size=rows), -5, 5)
    sex, g = rng.choice(["F", "M"], rows), rng.choice(["a", "b", "c"], rows)
    return {"x": x, "y": y, "z": z, "sex": sex, "g": g}


ROWS = table()


@pytest.fixture(scope="module")
def exact():
    with dp.simulation(seed=1):
        return dp.dp_moments("~ .", ROWS, codebook=BOOK, eps=1e15, delta=1e-6)


@pytest.fixture(scope="module")
def lost():
    with dp.simulation(seed=1):
        return dp.dp_moments("~ .", ROWS, codebook=BOOK, eps=0.01, delta=1e-6)


def test_a_huge_budget_gives_scipys_test(exact):
    reference = pearsonr(ROWS["x"], ROWS["y"])
    row = exact.cor_test("x", "y", level=0.9).tidy().iloc[0]
    ends = reference.confidence_interval(0.9)
    values = row[["estimate", "conf_low", "conf_high"]].astype(float)
    assert values.to_numpy() == pytest.approx([reference.statistic, *ends], abs=1e-6)
    assert row["p_value"] == pytest.approx(reference.pvalue, rel=1e-4)
    same = exact.cor_test("~ x + y", level=0.9).tidy().iloc[0]
    assert same["p_value"] == row["p_value"]


def test_partial_correlations_are_those_of_the_inverse(exact):
    columns = np.array([ROWS["x"], ROWS["y"], ROWS["z"], ROWS["sex"] == "M"], dtype=float)
    inverse = np.linalg.inv(np.corrcoef(columns))
    unit = np.sqrt(np.diagonal(inverse))
    expected = -inverse / np.outer(unit, unit)
    np.fill_diagonal(expected, 1.0)
    names = ["x", "y", "z", "sex[T.M]"]
    result = exact.pcor("~ x + y + z + sex").loc[names, names]
    assert result.to_numpy() == pytest.approx(expected, abs=1e-6)
    row = exact.cor_test("x", "sex", given=["y", "z"]).tidy().iloc[0]
    assert row["estimate"] == pytest.approx(expected[0, 3], abs=1e-6)
    assert row["column2"] == "sex[T.M]"
    assert row["df"] == pytest.approx(3_000 - 4)


def test_what_is_lost_says_so(lost):
    lost_test = lost.cor_test("x", "y")
    row = lost_test.tidy().iloc[0]
    assert not row["identified"]
    assert (row["noise_low"], row["noise_high"]) == (-1, 1)
    assert "not identified" in str(lost_test.summary())
    assert np.isnan(lost.pcor("~ x + y").to_numpy()[0, 1])


def test_the_report_has_both_intervals_and_the_stamp(exact):
    text = str(exact.cor_test("x", "y", given="g").summary())
    for words in ("given g[T.b], g[T.c]", "P>|t|", "noise", "conf.", "SIMULATION"):
        assert words in text


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("verb", "inputs", "error", "words"),
    [
        (("x", "g"), (), ArgumentError, "two different columns"),
        (("x", "x"), (), ArgumentError, "two different columns"),
        (("x",), (), ArgumentError, "two different columns"),
        (("x", 3), (), ArgumentError, "y=3"),
        ((3,), (), ArgumentError, "x=3"),
        (("x", "y"), ["y"], ArgumentError, "'y' is one of the two"),
        (("x", "y"), 3, ArgumentError, "given=3"),
        (("x", "y"), [3], ArgumentError, "given=3"),
        (("x", "q"), (), FormulaError, "was not released"),
    ],
)
def test_refusals_say_what_to_write(exact, verb, inputs, error, words):
    with pytest.raises(error, match=words.replace("'", ".")):
        exact.cor_test(*verb, given=inputs)


def test_columns_are_found_by_the_names_of_their_variables():
    book = dp.codebook({"a|b": (0, 1), "y": (0, 1)})
    rows = {"a|b": [0.1, 0.5, 0.9] * 300, "y": [0.2, 0.4, 0.9] * 300}
    with dp.simulation(seed=1):
        fit = dp.dp_moments('~ Q("a|b") + y', rows, codebook=book, eps=50.0, delta=1e-6)
    assert fit.cor_test("a|b", "y").tidy()["column1"].tolist() == ['Q("a|b")']
