"""dp_bounds: what is found, what the codebook becomes, and the message where nothing is."""

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, FormulaError, FrameError, NotAvailable
from dpmodels.models.bounds import dp_bounds
from dpmodels.plots.coefficients import ranges

ROWS = 6_000
BOOK = dp.codebook(
    wage=dp.Numeric(-5e4, 5e4, label="by hour", unit="euro"),
    visits=dp.Numeric(0, 2_000, step=1),
    sex=["F", "M"],
)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(4)
    wage = rng.lognormal(3, 0.5, ROWS)
    wage[:300] = np.nan
    return {"wage": wage, "visits": rng.poisson(3, ROWS), "sex": rng.choice(["F", "M"], ROWS)}


@pytest.fixture(scope="module")
def fit(table):
    with dp.simulation(seed=2):
        return dp_bounds("~ wage + visits", table, codebook=BOOK, eps=2.0)


@pytest.mark.product
def test_the_codebook_has_what_was_found_and_the_rest_as_it_was(fit, table):
    book = fit.codebook
    assert list(book) == list(BOOK)
    assert book["sex"] == BOOK["sex"]
    wage, visits = book["wage"], book["visits"]
    assert (wage.label, wage.unit, visits.step) == ("by hour", "euro", 1)
    assert np.nanquantile(table["wage"], 0.99) < wage.upper < 400
    assert -100 < wage.lower < np.nanquantile(table["wage"], 0.01)
    assert visits.lower == 0
    assert 8 <= visits.upper < 30
    assert visits.upper % 1 == 0
    mean = dp.dp_mean("~ wage", table, codebook=book, eps=1.0)
    assert float(mean.params.iloc[0]) == pytest.approx(np.nanmean(table["wage"]), rel=0.05)


def test_the_share_outside_is_told_with_its_noise(fit, table):
    bounds, ends = fit.params, fit.noise_int(0.999999)
    for name in ("wage", "visits"):
        values = np.asarray(table[name], dtype=float)
        values = values[~np.isnan(values)]
        value = bounds.loc[name]
        beyond = np.mean((values < value["lower"]) | (values > value["upper"]))
        # At least: cells that a bound cuts are not counted. One in a million.
        assert ends.loc[name, "lower"] <= beyond
        assert abs(fit.found[name].rows - len(values)) < 100
    assert fit.outside.index.tolist() == ["wage", "visits"]


def test_tables_say_what_was_found_and_what_declared(fit):
    text = str(fit.summary())
    assert "-50,000 to 50,000" in text
    assert "0 to 2,000 by 1" in text
    tidy = fit.tidy()
    assert tidy["identified"].all()
    assert tidy["declared_upper"].tolist() == [5e4, 2e3]
    assert fit.glance()["ntold"].item() == 2
    assert "2 variables" in repr(fit)
    with pytest.raises(NotAvailable, match="not known"):
        fit.conf_int()


def test_where_nothing_can_be_told_what_is_declared_stays(table):
    with dp.simulation(seed=1):  # noise alone may seem a range: a draw where it does not
        fit = dp_bounds("~ wage + visits", table, codebook=BOOK, eps=1e-3)
        empty = dp_bounds("~ wage", {"wage": []}, codebook=BOOK, eps=1.0, adjacency="add-remove")
    assert fit.codebook == BOOK
    assert "as declared" in str(fit.summary())
    assert "too few rows exceed the noise" in " ".join(str(fit.summary()).split())
    assert empty.codebook == BOOK


@pytest.mark.parametrize(
    ("values", "upper"), [([np.inf] * 500, 5e4), ([np.nan] * 500, 5e4), (["x"] * 500, 5e4)]
)
def test_cells_that_are_no_numbers_are_told_of_honestly(values, upper):
    """Infinite ones are at the bound, as everywhere; others are incomplete."""
    fit = dp_bounds("~ wage", {"wage": values}, codebook=BOOK, eps=5.0)
    assert fit.codebook["wage"].upper == upper


@pytest.mark.product
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_files_and_sites_give_the_same(table, tmp_path, relation):
    frame = pd.DataFrame(table)
    frame.to_parquet(tmp_path / "rows.parquet")
    words = {"codebook": BOOK, "eps": 1.0, "delta": 1e-6, "adjacency": relation}
    sites = {"A": frame[:100], "B": frame[100:]}
    recorded = []
    for source in ({"data": frame}, {"data": tmp_path / "rows.parquet"}, {"sites": sites}):
        options = {"protocol": "pooled"} if "sites" in source else {}
        with dp.simulation(seed=5):
            recorded.append(dp_bounds("~ wage", **source, **options, **words).params)
    assert recorded[0].equals(recorded[1])
    assert recorded[0].equals(recorded[2])


def test_rows_that_are_read_once_are_refused_for_free(table):
    ledger = dp.Ledger(1.0)
    with pytest.raises(FrameError, match="once"):
        dp_bounds("~ wage", iter([table]), codebook=BOOK, eps=1.0, ledger=ledger)
    assert ledger.entries == ()


def test_categories_are_refused():
    with pytest.raises(
        FormulaError, match=r"'sex' is not a numeric variable of the codebook.*leave it out, as in"
    ):
        dp_bounds("~ .", {}, codebook=BOOK, eps=1.0)


@pytest.mark.product
def test_what_is_saved_comes_back(fit, tmp_path):
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    assert str(again.summary()) == str(fit.summary())
    assert again.codebook == fit.codebook
    pd.testing.assert_frame_equal(again.tidy(), fit.tidy())


def test_a_picture_has_both_ranges(fit):
    ax = fit.plot(variable="visits")
    bounds = fit.params.loc["visits"].tolist()
    assert [line.get_xdata()[0] for line in ax.lines] == bounds
    assert "declared 0 to 2,000" in ax.get_title(loc="left")
    wide = ranges(np.arange(3.0), np.ones(2), 0.5, (0, 2), (0, 10_000_000), "x")
    assert "declared 0 to 10,000,000" in wide.get_title(loc="left")
    with pytest.raises(ArgumentError, match="variable="):
        fit.plot(variable="sex")


@pytest.mark.product
def test_a_session_tightens_its_bounds(table):
    session = dp.session(table, BOOK, eps=4.0)
    tightened = session.tighten("~ wage", eps=2.0)
    assert session.codebook == tightened.codebook
    assert session.codebook["wage"].upper < 5e4


def test_rows_outside_a_subset_do_not_count(table):
    fit = dp_bounds("~ visits", table, codebook=BOOK, eps=5.0, subset="sex == 'F'")
    assert fit.found["visits"].rows == pytest.approx((table["sex"] == "F").sum(), abs=60)
    assert fit.codebook["visits"].upper < 30


@pytest.mark.product
def test_whole_numbers_and_dates_stay_what_they_are():
    rng = np.random.default_rng(1)
    days = np.datetime64("2015-01-01") + rng.integers(0, 2_000, ROWS)
    book = dp.codebook(
        born=dp.Date("1000-01-01", "9000-12-31", label="day of birth"),
        kids=dp.Integer(0, 10_000, missing=[-9]),
    )
    rows = {"born": days, "kids": rng.poisson(2, ROWS)}
    fit = dp_bounds("~ born + kids", rows, codebook=book, eps=20.0)
    born, kids = fit.codebook["born"], fit.codebook["kids"]
    assert isinstance(born, dp.Date)
    assert 2005 < born.lower.year <= 2015 < 2020 <= born.upper.year < 2030
    assert born.label == "day of birth"
    assert isinstance(kids, dp.Integer)
    assert 6 <= kids.upper < 30
    assert "1000-01-01 to 9000-12-31" in str(fit.summary())


def test_rows_are_counted_whole_in_the_cells_of_a_range():
    """Noise in counts of whole rows is of whole rows."""
    rows = {"a": np.random.default_rng(1).normal(size=500)}
    fit = dp.dp_bounds("~ a", rows, codebook=dp.codebook(a=(-1000, 1000)), eps=1.0)
    values = np.asarray(fit.release.values)
    assert (values == np.rint(values)).all()
