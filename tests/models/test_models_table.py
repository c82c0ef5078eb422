"""dp_table: counts, margins that add up as printed, shares, the test, refusals."""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

import dpmodels as dp
from dpmodels.errors import ArgumentError, FormulaError, LedgerError, NotAvailable
from dpmodels.models.table import dp_table
from dpmodels.privacy import ZCDP
from tests.mines import Mine

BOOK = dp.codebook(
    age=(0, 100),
    sex=["F", "M"],
    g=["u", "v", "w"],
    far=["North and the islands of the far north", "S"],
    big=list(range(1001)),
)
HUGE = 1e9
BUDGETS = ({"eps": 0.5}, {"eps": 0.5, "delta": 1e-6}, {"budget": ZCDP(0.05)})


def rows(count=3000, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "age": rng.uniform(0, 100, count),
        "sex": rng.choice(["F", "M", "?"], count, p=[0.5, 0.4, 0.1]),
        "g": rng.choice(["u", "v", "w"], count, p=[0.6, 0.3, 0.1]),
        "far": rng.choice(["North and the islands of the far north", "S"], count),
    }


def test_a_huge_budget_gives_the_crosstab_and_its_test():
    data = rows()
    fit = dp_table("~ sex + g", data, codebook=BOOK, eps=HUGE)
    frame = pd.DataFrame(data)
    frame = frame[frame["sex"] != "?"]
    values = pd.crosstab(frame["sex"], frame["g"]).to_numpy()
    assert fit.counts.to_numpy().tolist() == values.tolist()
    assert fit.counts.dims == ("sex", "g")
    assert fit.counts.sel(sex="M", g="w").item() == values[1, 2]
    assert (fit.ncomplete, fit.nincomplete, fit.nobs) == (values.sum(), 3000 - values.sum(), 3000)
    plain = chi2_contingency(values, correction=False)
    test = fit.chi2_test()
    assert test.statistic == pytest.approx(plain.statistic, rel=1e-3)
    assert test.df == plain.dof
    assert test.pvalue == pytest.approx(plain.pvalue, rel=1e-2)
    assert test.smallest == pytest.approx(plain.expected_freq.min(), rel=1e-3)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("budget", BUDGETS)
def test_margins_add_up_and_nothing_is_negative(budget, adjacency):
    fit = dp_table("~ sex + g + far", rows(300), codebook=BOOK, adjacency=adjacency, **budget)
    counts = fit.counts.to_numpy()
    assert counts.dtype == np.int64
    assert (counts >= 0).all()
    assert fit.margins(["g", "sex"]).to_numpy().tolist() == counts.sum(axis=2).tolist()
    assert fit.margins("far").to_numpy().tolist() == counts.sum(axis=(0, 1)).tolist()
    assert fit.margins(()).item() == counts.sum() == fit.ncomplete
    if adjacency == "replace":
        assert fit.ncomplete + fit.nincomplete == 300
        assert fit.released.to_numpy().sum() + fit._counted.incomplete == pytest.approx(300)
    else:
        assert np.isnan(fit.nobs)
    assert fit.proportions().to_numpy().sum() == pytest.approx(1)
    within = fit.proportions("sex").sum(["g", "far"]).to_numpy()
    assert within == pytest.approx(np.ones(2))


@pytest.mark.parametrize("budget", BUDGETS)
def test_printed_margins_are_the_sums_of_the_printed_cells(budget):
    fit = dp_table("~ sex + g", rows(), codebook=BOOK, **budget)
    text = str(fit.summary()).replace(",", "")
    table = [
        list(map(int, re.findall(r"-?\d+", line)))
        for line in re.findall(r"^[FMT].*", text, re.M)
        if re.match(r"(F|M|Total) ", line)
    ]
    assert [len(row) for row in table] == [4, 4, 4]
    assert all(sum(row[:3]) == row[3] for row in table)
    assert np.array(table[:2]).sum(axis=0).tolist() == table[2]


@pytest.mark.product
@given(st.data())
def test_any_table_of_groups_has_counts_that_add_up(data):
    count = data.draw(st.integers(0, 40))
    sex = data.draw(
        st.lists(st.sampled_from(["F", "M", None, "x"]), min_size=count, max_size=count)
    )
    g = data.draw(st.lists(st.sampled_from(["u", "v", 3.5, None]), min_size=count, max_size=count))
    fit = dp_table("~ sex + g", {"sex": sex, "g": g}, codebook=BOOK, eps=0.7)
    assert fit.ncomplete + fit.nincomplete == count
    assert (fit.counts.to_numpy() >= 0).all()


def test_numbers_are_cut_and_else_refused_with_what_to_write():
    fit = dp_table("~ sex + cut(age, [0, 30, 100])", rows(), codebook=BOOK, eps=HUGE)
    assert fit.counts.sizes == {"sex": 2, "cut(age, [0, 30, 100])": 2}
    with pytest.raises(
        FormulaError, match=r"or cut it at public breaks: cut\(age, \[0, 10, 20\]\)"
    ):
        dp_table("~ age + sex", {"age": Mine()}, codebook=BOOK, eps=1.0)


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("formula", "words", "error", "message"),
    [
        ("~ 1", {}, FormulaError, "write '~ a . b'"),
        ("~ sex + big + C(big)", {}, FormulaError, "combinations of levels; at most 1,000,000"),
        ("~ cut(age, [0, 50])", {}, FormulaError, "at least 3 public numbers, increasing"),
        ("~ cut(age, [0, 60, 50])", {}, FormulaError, "increasing"),
        ("~ nope", {}, dp.errors.CodebookError, "nope"),
        ("~ sex", {"mechanism": "moments"}, ArgumentError, "expected one of 'auto'"),
        ("~ sex", {"ledger": dp.Ledger(0.5)}, LedgerError, "left"),
        ("~ sex", {"adjacency": "swap"}, ArgumentError, "adjacency='swap'"),
    ],
)
def test_what_is_wrong_is_said_before_a_row_is_read(formula, words, error, message):
    data = {name: Mine() for name in BOOK}
    with pytest.raises(error, match=message):
        dp_table(formula, data, codebook=BOOK, eps=1.0, **words)


ODD = (
    {"sex": [], "g": [], "age": []},
    {"sex": ["F"], "g": ["u"], "age": [1.0]},
    {"sex": ["F", "F"], "g": ["u", "u"], "age": [1.0, 1.0]},
    {"sex": ["F"] * 500, "g": ["u"] * 500, "age": [50.0] * 500},
    {"sex": [None, "other", 4], "g": [np.nan, "u", "u"], "age": [np.nan, np.inf, 1e300]},
)


@pytest.mark.parametrize("data", ODD)
@pytest.mark.parametrize("eps", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_no_row_makes_a_warning_and_every_table_prints(data, eps, adjacency):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for formula in ("~ sex", "~ sex + g", "~ sex + g + cut(age, [0, 2, 50])"):
            fit = dp_table(formula, data, codebook=BOOK, eps=eps, adjacency=adjacency)
            summary = fit.summary()
            for text in (str(summary), summary.as_html(), summary.as_markdown()):
                assert "ounts" in text
            for ends in (fit.noise_int(), fit.conf_int()):
                assert np.isfinite(ends.to_numpy()).all()
                # No cell is said to be empty, in these rows or in the population.
                assert (ends["upper"] > 0).all() or eps == 1e9
            assert len(fit.tidy()) == fit.counts.size
            assert len(fit.glance()) == 1


def test_no_test_where_a_level_is_lost_in_noise():
    few = {"sex": ["F", "M"] * 20, "g": ["u", "v"] * 20}
    fit = dp_table("~ sex + g", few, codebook=BOOK, eps=0.01)
    assert np.isnan(fit.chi2_test().pvalue)
    assert "No test: the total of a level is not distinguishable from 0" in str(fit.summary())
    with pytest.raises(NotAvailable, match="two factors or more"):
        dp_table("~ sex", few, codebook=BOOK, eps=1.0).chi2_test()


def test_long_names_wrap_and_wide_tables_stand_in_panels():
    text = str(dp_table("~ sex + far", rows(), codebook=BOOK, eps=1.0).summary())
    assert max(map(len, text.splitlines())) <= 90
    assert "the islands" in text
    wide = dp_table("~ sex + big", {"sex": ["F"], "big": [1]}, codebook=BOOK, eps=1.0)
    assert "1,962 more lines" in str(wide.summary())


def test_unknown_factors_are_refused():
    fit = dp_table("~ sex + g", rows(), codebook=BOOK, eps=1.0)
    with pytest.raises(ArgumentError, match="'age' is not in the table; it has 'sex', 'g'"):
        fit.margins("age")
    with pytest.raises(ArgumentError, match="is not in the table"):
        fit.proportions(["sex", 3])
    for level in (0, 1, 2, -0.5, "a", np.nan):
        with pytest.raises(ArgumentError):
            fit.conf_int(level)


def test_the_noise_of_sums_is_known():
    fit = dp_table("~ sex + g", rows(), codebook=BOOK, eps=0.5)
    noise_sd, parts = fit.release.noise_sd, 7
    assert fit.noise_sd() == pytest.approx(noise_sd * np.sqrt(1 - 1 / parts))
    assert fit.noise_sd(6) == pytest.approx(noise_sd * np.sqrt(6 * (1 - 6 / parts)))
    table_fit = dp_table("~ sex + g", rows(), codebook=BOOK, eps=0.5, adjacency="add-remove")
    assert table_fit.noise_sd(6) == pytest.approx(table_fit.release.noise_sd * np.sqrt(6))


def test_results_are_saved_and_pickled(tmp_path):
    fit = dp_table("~ sex + g", rows(), codebook=BOOK, eps=1.0)
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    assert str(again.summary()) == str(fit.summary())
    assert again.counts.equals(fit.counts)
    assert str(pickle.loads(pickle.dumps(fit)).summary()) == str(fit.summary())


def test_simulations_are_stamped():
    with dp.simulation(seed=1):
        fit = dp_table("~ sex", rows(), codebook=BOOK, eps=1.0)
        again = dp_table("~ sex", rows(), codebook=BOOK, eps=1.0)
    assert "SIMULATION" in str(fit.summary())
    assert fit.simulated
    # Each release of a simulation has noise of its own.
    assert isinstance(again.counts.to_numpy(), np.ndarray)


def test_groups_come_first_on_whichever_side_they_are_written():
    first, *alternatives = (
        dp_table(formula, rows(300), codebook=BOOK, eps=HUGE).counts
        for formula in ("~ sex + g", "g ~ sex", "~ g | sex")
    )
    assert first.dims == ("sex", "g")
    assert all(alternative.equals(first) for alternative in alternatives)
