"""dp_hist: bins, groups, labels, intervals, pictures, refusals."""

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpmodels as dp
from dpmodels.errors import ArgumentError, CodebookError, FormulaError, LedgerError
from dpmodels.formula.functions import interval_names
from dpmodels.formula.tally import _ends
from dpmodels.models.table import dp_hist
from dpmodels.privacy import ZCDP
from tests.mines import Mine

BOOK = dp.codebook(age=(0, 100), sex=["F", "M"], g=["u", "v", "w"])
HUGE = 1e9


def rows(count=2000, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "age": rng.uniform(0, 100, count),
        "sex": rng.choice(["F", "M"], count),
        "g": rng.choice(["u", "v", "w"], count),
    }


@pytest.mark.parametrize("breaks", [7, [0, 18, 40, 65, 100], [20, 30, 90], np.array([0, 1, 100.0])])
def test_a_huge_budget_gives_numpys_histogram(breaks):
    data = rows()
    fit = dp_hist("~ age", data, codebook=BOOK, eps=HUGE, breaks=breaks)
    ends = np.linspace(0, 100, 8) if isinstance(breaks, int) else np.array(breaks, dtype=float)
    expected, _ = np.histogram(data["age"], ends)
    assert fit.breaks.tolist() == ends.tolist()
    assert fit.counts.to_numpy().tolist() == expected.tolist()
    # numpy's last bin alone is closed above; no age here lies on an end.
    density = expected / expected.sum() / np.diff(ends)
    assert fit.density.to_numpy() == pytest.approx(density)
    assert fit.mids == pytest.approx((ends[1:] + ends[:-1]) / 2)
    assert fit.counts.dims == ("age",)
    assert fit.released.to_numpy() == pytest.approx(expected)


def test_groups_are_the_declared_levels():
    data = rows()
    fit = dp_hist("age ~ sex + g", data, codebook=BOOK, eps=HUGE, breaks=4)
    frame = pd.DataFrame(data).assign(bin=pd.cut(data["age"], [0, 25, 50, 75, 100]))
    expected = frame.groupby(["sex", "g", "bin"], observed=False).size()
    assert fit.counts.dims == ("sex", "g", "age")
    assert fit.counts.to_numpy().ravel().tolist() == expected.tolist()
    masses = fit.density.to_numpy().sum(axis=-1) * 25
    assert masses == pytest.approx(1.0)


def test_values_outside_the_bounds_are_clipped_and_outside_the_breaks_incomplete():
    data = {"age": [-5.0, 0.0, 30.0, 30.1, 99.0, 1e300, np.nan, np.inf]}
    fit = dp_hist("~ age", data, codebook=BOOK, eps=HUGE, breaks=[0, 30, 100])
    assert fit.counts.to_numpy().tolist() == [3, 4]
    inner = dp_hist("~ age", data, codebook=BOOK, eps=HUGE, breaks=[10, 30, 90])
    assert inner.counts.to_numpy().tolist() == [1, 1]
    assert inner.table.nincomplete == 6


@pytest.mark.product
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=9, unique=True).map(sorted),
)
def test_bins_have_different_names_that_are_close_to_their_ends(ends):
    narrowest = np.diff(ends).min()
    if narrowest < 1e-6:
        return
    names = interval_names(ends)
    assert len(set(names)) == len(ends) - 1
    read = [float(text) for name in names for text in name[1:-1].split(", ")]
    exact = [end for pair in pairwise(ends) for end in pair]
    assert np.abs(np.array(read) - exact).max() <= 0.006 * narrowest + 1e-12 * max(map(abs, ends))


def test_names_of_round_ends_are_as_one_writes_them():
    assert interval_names((0, 18, 40.5, 100)) == ("[0, 18]", "(18, 40.5]", "(40.5, 100]")
    assert interval_names((0, 250_000 / 3, 250_000))[0] == "[0, 83300]"
    assert interval_names((0, 1e-6, 2e-6)) == ("[0, 1e-06]", "(1e-06, 2e-06]")


BAD_BREAKS = (
    (1, "expected a number of bins from 2"),
    (10**7, "expected a number of bins from 2"),
    (True, "expected a number of bins or their ends"),
    (2.5, "expected a number of bins or their ends"),
    ("10", "expected a number of bins or their ends"),
    (None, "expected a number of bins or their ends"),
    (np.array(10), "expected a number of bins or their ends"),
    ([], "three ends or more"),
    ([50], "three ends or more"),
    ([0, 100], "three ends or more"),
    ([0, 50, 50, 100], "increasing"),
    ([100, 50, 0], "increasing"),
    ([0, np.nan, 100], "a finite number"),
    ([0, 50, np.inf], "a finite number"),
    ([0, "a", 100], "a finite number"),
    ([-1, 50, 100], "outside the declared range of 'age', 0 to 100"),
    ([0, 50, 100.5], "outside the declared range"),
)


@pytest.mark.guarding
@pytest.mark.parametrize(("breaks", "message"), BAD_BREAKS)
def test_bad_breaks_are_refused_before_a_row_is_read(breaks, message):
    ledger = dp.Ledger(1.0)
    with pytest.raises(ArgumentError, match=message):
        dp_hist("~ age", {"age": Mine()}, codebook=BOOK, eps=1.0, breaks=breaks, ledger=ledger)
    assert ledger.entries == ()


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("formula", "words", "error", "message"),
    [
        ("~ sex", {}, FormulaError, "'sex' is a category"),
        ("~ age > 30", {}, FormulaError, "is a category"),
        ("sex ~ age", {}, FormulaError, "write 'age ~ sex' or '~ age"),
        ("age ~ age", {}, FormulaError, "'age' on both sides"),
        ("~ age + sex", {}, FormulaError, "takes one variable"),
        ("~ I(age * 0)", {}, ArgumentError, "is the point 0"),
        ("~ height", {}, CodebookError, "height"),
        ("~ age", {"mechanism": "noise"}, ArgumentError, "mechanism='noise'"),
        (
            "~ age",
            {"ledger": "mine"},
            ArgumentError,
            r"write dp\.Ledger\.open",
        ),
        ("~ age", {"ledger": dp.Ledger(0.5)}, LedgerError, "left"),
    ],
)
def test_what_is_wrong_is_said_before_a_row_is_read(formula, words, error, message):
    with pytest.raises(error, match=message):
        dp_hist(formula, {"age": Mine(), "sex": Mine()}, codebook=BOOK, eps=1.0, **words)


ODD = (
    {"age": [], "sex": [], "g": []},
    {"age": [50.0], "sex": ["F"], "g": ["u"]},
    {"age": [50.0, 51.0], "sex": ["F", "F"], "g": ["u", "u"]},
    {"age": [np.nan, np.inf, -np.inf], "sex": [None, "?", "M"], "g": ["x"] * 3},
)


@pytest.mark.parametrize("data", ODD)
@pytest.mark.parametrize("eps", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_no_row_makes_a_warning_and_every_table_prints(data, eps, adjacency):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for formula in ("~ age", "age ~ sex", "age ~ sex + g"):
            fit = dp_hist(
                formula, data, codebook=BOOK, eps=eps, breaks=[0, 1, 100], adjacency=adjacency
            )
            summary = fit.summary()
            for text in (str(summary), summary.as_html(), summary.as_latex()):
                assert "istogram" in text
            assert np.isfinite(fit.noise_int().to_numpy()).all()
            ends = fit.conf_int().to_numpy()
            assert ((ends >= 0) & (ends <= 1)).all()
            assert len(fit.tidy()) == fit.counts.size
            assert len(fit.glance()) == 1
            fit.density  # noqa: B018


@pytest.mark.parametrize("budget", [{"eps": 1.0}, {"budget": ZCDP(0.1)}])
@pytest.mark.parametrize("breaks", [12, [0, 18, 19, 65.5, 100]])
def test_the_printed_table_shows_each_bin_on_a_line_of_its_own(budget, breaks):
    fit = dp_hist("~ age", rows(), codebook=BOOK, breaks=breaks, **budget)
    lines = str(fit.summary()).splitlines()
    assert max(map(len, lines)) <= 86
    counts = fit.counts.to_numpy().tolist()
    names = fit.counts["age"].to_numpy().tolist()
    for name, count in zip(names, counts, strict=True):
        (line,) = [line for line in lines if line.startswith(name)]
        assert f" {count:,} " in line
    bars = [line.count("#") for line in lines if line.endswith((".", "#")) and "##" in line]
    assert max(bars) == 20
    assert ("Bars: rows per unit" in str(fit.summary())) == isinstance(breaks, list)


def test_groups_stand_side_by_side_with_totals_that_add_up():
    fit = dp_hist("age ~ sex", rows(), codebook=BOOK, eps=0.3, breaks=3)
    lines = [line.replace(",", "").split() for line in str(fit.summary()).splitlines()]
    ends = [line[-3:] for line in lines if len(line) >= 4 and all(map(str.isdigit, line[-3:]))]
    table = [list(map(int, end)) for end in ends]
    assert len(table) == 4
    assert all(row[0] + row[1] == row[2] for row in table)
    assert np.array(table)[:-1].sum(axis=0).tolist() == table[-1]


def test_pictures_have_a_bar_and_an_interval_a_bin():
    from matplotlib.figure import Figure

    fit = dp_hist("age ~ sex", rows(), codebook=BOOK, eps=1.0, breaks=[0, 10, 50, 100])
    ax = fit.plot(ax=Figure().subplots(), group="M")
    heights = [bar.get_height() for bar in ax.patches]
    expected = fit.counts.sel(sex="M").to_numpy() / [10, 40, 50]
    assert heights == pytest.approx(expected)
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("rows per unit", "age, M")
    alone = dp_hist("~ age", rows(), codebook=BOOK, eps=1.0, breaks=5)
    ax = alone.plot(ax=Figure().subplots())
    assert [bar.get_height() for bar in ax.patches] == pytest.approx(alone.counts.to_numpy())
    assert ax.get_ylabel() == "rows"
    with pytest.raises(ArgumentError, match="group='F'"):
        fit.plot(ax=Figure().subplots())
    with pytest.raises(ArgumentError, match="has no groups"):
        alone.plot(ax=Figure().subplots(), group="F")


def test_results_are_saved_and_pickled(tmp_path):
    fit = dp_hist("age ~ sex", rows(), codebook=BOOK, eps=1.0, breaks=[0, 33.3, 100])
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    assert str(again.summary()) == str(fit.summary())
    assert again.counts.equals(fit.counts)
    assert again.breaks.tolist() == fit.breaks.tolist()
    assert str(pickle.loads(pickle.dumps(fit)).summary()) == str(fit.summary())


def test_ends_of_a_number_of_bins_are_equal_parts_of_the_declared_range():
    from dpmodels.formula.sides import parse_sides

    number = parse_sides("~ age", BOOK).described[0]
    assert _ends(np.int64(4), number) == (0.0, 25.0, 50.0, 75.0, 100.0)
    assert _ends((value for value in (0, 1, 2)), number) == (0.0, 1.0, 2.0)


WHOLE = dp.codebook(
    k=dp.Integer(0, 15, missing=[-9]),
    n=dp.Numeric(-2, 4, step=1),
    h=dp.Numeric(0.5, 10.5, step=1),
    d=dp.Date("2001-01-01", "2020-12-31"),
    sex=["F", "M"],
)


@pytest.mark.parametrize(
    ("formula", "breaks", "names"),
    [
        ("~ k", 16, tuple(map(str, range(16)))),
        ("~ k", 100, tuple(map(str, range(16)))),
        ("~ k", 5, ("0 to 3", "4 to 7", "8 to 11", "12 to 15")),
        ("~ k", 6, ("0 to 2", "3 to 5", "6 to 8", "9 to 11", "12 to 14", "15")),
        ("~ k", [0, 2, 3, 15], ("0 to 2", "3", "4 to 15")),
        ("~ k", [0.5, 2.2, 14], ("1 to 2", "3 to 14")),
        ("~ n", 3, ("-2 to 0", "1 to 3", "4")),
        ("~ n", [-2, -1, 4], ("-2 to -1", "0 to 4")),
        ("~ h", [0.5, 5.5, 10.5], ("[0.5, 5.5]", "(5.5, 10.5]")),
        ("~ I(k + 0.5)", [0.5, 5, 15.5], ("[0.5, 5]", "(5, 15.5]")),
        ("~ year(d)", 5, tuple(f"{y} to {y + 3}" for y in range(2001, 2020, 4))),
        (
            "~ d",
            ["2001-01-01", "2010-12-31", np.datetime64("2020-12-31")],
            ("2001-01-01 to 2010-12-31", "2011-01-01 to 2020-12-31"),
        ),
        ("~ d", 2, ("2001-01-01 to 2011-01-01", "2011-01-02 to 2020-12-31")),
    ],
)
def test_whole_numbers_and_days_have_bins_of_their_own(formula, breaks, names):
    data = {"k": [0, 3], "n": [0, 3], "h": [0.5, 9], "d": ["2001-01-01", "2011-01-01"]}
    fit = dp_hist(formula, data, codebook=WHOLE, eps=HUGE, breaks=breaks)
    assert fit.counts[fit.variable].to_numpy().tolist() == list(names)


def test_each_whole_number_is_in_the_bin_that_is_named_after_it(tmp_path):
    cells = np.arange(16).repeat(np.arange(16))
    fit = dp_hist("~ k", {"k": [*cells, -9]}, codebook=WHOLE, eps=HUGE, breaks=[1, 3, 4, 12])
    assert fit.counts.to_numpy().tolist() == [6, 4, sum(range(5, 13))]
    tidy = fit.tidy()
    assert tidy[["bin", "low", "high"]].to_numpy().tolist() == [
        ["1 to 3", 1, 3],
        ["4", 4, 4],
        ["5 to 12", 5, 12],
    ]
    assert tidy["density"].tolist() == pytest.approx(tidy["proportion"] / [3, 1, 8])
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    assert str(again.summary()) == str(fit.summary())
    pd.testing.assert_frame_equal(again.tidy(), tidy)


def test_days_are_counted_from_any_kind_of_cell_and_drawn_as_dates():
    from matplotlib.figure import Figure

    cells = [np.datetime64("2001-01-01"), "2010-12-31", pd.Timestamp("2011-01-02"), "1990-01-01", 5]
    fit = dp_hist("~ d", {"d": cells}, codebook=WHOLE, eps=HUGE, breaks=2)
    assert fit.counts.to_numpy().tolist() == [3, 1]
    assert fit.tidy()["high"].astype(str).tolist() == ["2011-01-01", "2020-12-31"]
    ax = fit.plot(ax=Figure().subplots())
    assert ax.xaxis.get_major_formatter()(14610.0).startswith("2010")


@pytest.mark.parametrize(
    ("formula", "breaks", "message"),
    [
        ("~ k", [0, 3.2, 3.4, 15], "is integer-valued, and one bin contains no integer"),
        ("~ d", [0, 5, 10], 'is a date; write days, such as "2001-01-01"'),
        ("~ d", ["2001-01-01", "soon", "2002-01-01"], "is a date; write days"),
        ("~ d", ["1999-01-01", "2005-01-01", "2006-01-01"], "'d', 2001-01-01 to 2020-12-31"),
        ("~ k", ["2001-01-01", "2002-01-01", "2003-01-01"], "a finite number"),
    ],
)
def test_bad_breaks_of_whole_numbers_and_days(formula, breaks, message):
    with pytest.raises(ArgumentError, match=message):
        dp_hist(formula, {"k": Mine(), "d": Mine()}, codebook=WHOLE, eps=1.0, breaks=breaks)
