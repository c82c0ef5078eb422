"""dp_series: what is counted, for whom, and what is refused before a row is read."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpmodels as dp
from dpmodels.errors import ArgumentError, FormulaError, FrameError
from tests.mines import Mine

FIRST, LAST = "2024-01-01", "2024-04-30"
BOOK = dp.codebook(
    day=dp.Date(FIRST, LAST, label="Day of admission"),
    ward=["medicine", "surgery", "children"],
    acute=dp.Boolean(),
    stay=dp.Integer(0, 60),
    person="id",
)
DAYS = pd.date_range(FIRST, LAST)
LONG = BOOK | {"day": dp.Date("0001-01-01", "9999-12-31")}
CENTURIES = BOOK | {"day": dp.Date("1000-01-01", "2024-12-31")}
MINES = {name: Mine() for name in (*BOOK, "id")}
EXACT = {"codebook": BOOK, "person": False, "budget": dp.ZCDP(1e9)}


def admissions(rows=4_000, seed=0):
    rng = np.random.default_rng(seed)
    weights = 2 + np.cos(np.arange(len(DAYS)) / 20) - 0.8 * (DAYS.day_of_week.to_numpy() > 4)
    table = pd.DataFrame(
        {
            "day": rng.choice(DAYS, rows, p=weights / weights.sum()),
            "ward": rng.choice(["medicine", "surgery", "children"], rows, p=[0.6, 0.3, 0.1]),
            "acute": rng.random(rows) < 0.3,
            "stay": rng.integers(0, 61, rows),
            "id": rng.integers(0, 900, rows),
        }
    )
    table.loc[:40, "day"] = pd.NaT
    table.loc[41:60, "day"] = pd.Timestamp("2023-12-31")
    return table


TABLE = admissions()
INSIDE = TABLE[TABLE["day"] >= FIRST]


def asked(formula, table=TABLE, by=None, **words):
    with dp.simulation(seed=4):
        return dp.dp_series(formula, table, time="day", by=by, **{**EXACT, **words})


@pytest.mark.parametrize("mechanism", ["tree", "factorisation"])
def test_a_huge_budget_gives_the_counts_of_every_group_and_period(mechanism):
    fit = asked("~ ward", mechanism=mechanism)
    expected = pd.crosstab(INSIDE["ward"], INSIDE["day"]).reindex(BOOK["ward"].levels)
    np.testing.assert_array_equal(fit.counts, expected)
    np.testing.assert_array_equal(fit.totals, expected.cumsum(axis=1))
    np.testing.assert_allclose(fit.released, expected, atol=1e-3)
    np.testing.assert_array_equal(fit.counts["day"], DAYS.to_numpy().astype("datetime64[s]"))
    assert fit.nincomplete == 61
    weeks = expected.T.rolling(7).sum().dropna().T.to_numpy()
    np.testing.assert_array_equal(fit.window(7)["count"], weeks.ravel())
    march = INSIDE[(INSIDE["day"] >= "2024-03-01") & (INSIDE["day"] <= "2024-03-31")]
    n_visits = fit.between("2024-03-01", "2024-03-31")["count"]
    assert n_visits.to_dict() == march["ward"].value_counts().to_dict()


@pytest.mark.parametrize("by", ["week", "month", "quarter", 10])
def test_periods_add_up(by):
    fit, days = asked("~ 1 | ward", by=by), asked("~ 1 | ward")
    place = np.searchsorted(fit.periods.times, DAYS.to_numpy(), side="right") - 1
    expected = days.counts.to_pandas().T.groupby(place).sum().T
    np.testing.assert_array_equal(fit.counts, expected)


@pytest.mark.parametrize(
    ("formula", "event"),
    [("~ acute", "acute"), ("~ (stay > 30)", "stay > 30"), ("~ 1", "stay >= 0")],
)
def test_events_are_rows_of_which_it_is_true(formula, event):
    fit = asked(formula, by="month")
    expected = INSIDE.query(event).groupby(INSIDE["day"].dt.month).size()
    assert fit.counts.to_numpy().tolist() == expected.tolist()
    assert fit.ncomplete + fit.nincomplete == len(TABLE)
    grouped = asked(f"{formula} | ward", by="month")
    assert grouped.counts.sum("ward").to_numpy().tolist() == expected.tolist()


@pytest.mark.product
def test_intervals_hold_the_noise_that_was_drawn():
    """Over 20 releases of each law; false alarms at most one in a million."""
    truth = INSIDE.groupby("day").size().to_numpy()
    place = np.cumsum(np.append(0, truth))
    for words in ({"budget": dp.ZCDP(0.05)}, {"budget": None, "eps": 0.5}):
        noises = {"window": [], "running": [], "between": []}
        for seed in range(20):
            with dp.simulation(seed=seed):
                fit = dp.dp_series("~ 1", TABLE, time="day", **{**EXACT, **words})
            week = fit.window(7).iloc[50]
            noises["window"].append((week["released"] - place[57] + place[50]) / week["noise_sd"])
            total = fit.running().iloc[60]
            noises["running"].append((total["released"] - place[61]) / total["noise_sd"])
            row = fit.between("2024-02-01", "2024-03-01").iloc[0]
            noises["between"].append((row["released"] - place[61] + place[31]) / row["noise_sd"])
        for name, noise in noises.items():
            # A Laplace variable is up to 1.8 times as likely near 0, and 12 sds away with 2e-8.
            ends = stats.chi2.ppf([1e-13, 1 - 1e-8], len(noise)) / len(noise)
            assert ends[0] < np.mean(np.square(noise)) < 2 * ends[1], name


def test_persons_are_protected_with_all_their_events():
    words = {"codebook": BOOK, "time": "day", "budget": dp.ZCDP(0.1), "by": "week"}
    with dp.simulation(seed=1):
        series_fit = dp.dp_series("~ 1", TABLE, person=False, **words)
        five = dp.dp_series("~ 1", TABLE, rows=5, **words)
        mean = dp.dp_series("~ 1", TABLE, rows="mean", **words)
    assert five.release.noise_sd == pytest.approx(5 * series_fit.release.noise_sd)
    assert mean.release.noise_sd == pytest.approx(series_fit.release.noise_sd)
    assert "one event (a row)" in _flat(series_fit)
    assert "one person, at most 5 events" in _flat(five)
    assert "one person, as one event" in _flat(mean)
    shorter, longer = (
        (fit.window(4)["conf_high"] - fit.window(4)["conf_low"]).mean()
        for fit in (series_fit, five)
    )
    assert longer > 2 * shorter


def _flat(fit):
    return fit.summary().as_text()


def test_whole_totals_rise_to_the_number_of_rows():
    fit = dp.dp_series("~ ward", TABLE, time="day", codebook=BOOK, person=False, eps=0.05)
    totals = fit.totals.to_numpy()
    assert (np.diff(totals, axis=1) >= 0).all()
    assert totals.min() >= 0
    assert totals[:, -1].sum() + fit.nincomplete == fit.nobs == len(TABLE)
    np.testing.assert_array_equal(np.cumsum(fit.counts, axis=1), totals)


def test_one_table_tells_all_of_it():
    fit = asked("~ ward", by="month", budget=dp.ZCDP(0.1))
    tidy = fit.tidy()
    assert list(tidy[["ward", "day"]].iloc[4]) == ["surgery", pd.Timestamp(FIRST)]
    assert tidy["total"].iloc[3] == tidy["estimate"].iloc[:4].sum()
    np.testing.assert_allclose(tidy["noise_low"], fit.noise_int()["lower"])
    np.testing.assert_allclose(tidy["conf_high"], fit.conf_int()["upper"])
    row = fit.glance().iloc[0]
    assert (row["nperiods"], row["ngroups"], row["nobs"]) == (4, 3, len(TABLE))
    text = _flat(fit)
    for sentence in ("day by month, 4 periods", "2024-01", "medicine", "Day of admission"):
        assert sentence in text
    long = _flat(asked("~ 1"))
    assert "2024-01-01 .. 2024-01-05" in long
    assert "Each line is 5 periods" in long


def test_pictures_are_of_one_group():
    fit = asked("~ ward", by="week", budget=dp.ZCDP(0.1))
    ax = fit.plot(group="surgery", periods=4)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("day, surgery", "events in 4 periods")
    windows = fit.window(4).loc["surgery"]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), windows["released"])
    total = fit.plot_totals(group="children")
    assert total.get_ylabel() == "events, running total"
    for group in (None, "laundry"):
        with pytest.raises(ArgumentError, match="groups of ward; write one of them"):
            fit.plot(group=group)
    with pytest.raises(ArgumentError, match="has no groups"):
        asked("~ 1", by="month").plot_totals(group="surgery")
    plt.close("all")


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        ("2024-03-01", "2024-02-29", "the end is before the start"),
        ("2024-03-02", "2024-03-31", "no period begins there"),
        ("2024-03-01", "2024-05-31", "no period ends there"),
    ],
)
def test_time_that_goes_backwards_is_refused(start, end, message):
    with pytest.raises(ArgumentError, match=message):
        asked("~ 1", by="month").between(start, end)


@pytest.mark.parametrize("periods", [0, 5, 2.5, "2", None])
def test_windows_are_of_periods_that_there_are(periods):
    with pytest.raises(ArgumentError, match="expected a whole number from 1 to 4"):
        asked("~ 1", by="month").window(periods)


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("formula", "words", "kind", "message"),
    [
        ("~ stay", {}, FormulaError, "is a number.*write a condition"),
        ("~ ward + acute", {}, FormulaError, "one kind of event"),
        ("~ day", {}, FormulaError, "is the time"),
        ("~ 1 | day", {}, FormulaError, "a number and has no levels"),
        ("~", {}, FormulaError, "formula"),
        ("~ 0", {}, FormulaError, "names nothing to count"),
        ("~ 1", {"by": 1_000}, ArgumentError, "one period"),
        ("~ 1", {"mechanism": "geometric"}, ArgumentError, "'tree', 'factorisation'"),
        ("~ 1", {"mechanism": dp.mechanisms.Wavelet()}, ArgumentError, "counts no running totals"),
        ("~ 1", {"mechanism": dp.mechanisms.Geometric()}, ArgumentError, "write one of 'tree'"),
        ("~ ward", {"codebook": LONG}, ArgumentError, "3,652,059 periods"),
        ("~ ward", {"codebook": CENTURIES}, FormulaError, "combinations of levels; at most"),
    ],
)
def test_what_cannot_be_counted_is_refused_before_a_row_is_read(formula, words, kind, message):
    ledger = dp.Ledger(budget=dp.ZCDP(1.0))
    options = {"codebook": BOOK, "person": False, "budget": dp.ZCDP(0.1), "time": "day"} | words
    with pytest.raises(kind, match=message):
        dp.dp_series(formula, MINES, ledger=ledger, **options)
    assert ledger.entries == ()


def test_sites_count_as_one_table():
    words = {"time": "day", "by": "month", "protocol": "pooled", **EXACT}
    with dp.simulation(seed=4):
        fit = dp.dp_series("~ ward", sites={"a": TABLE[:1_500], "b": TABLE[1_500:]}, **words)
    np.testing.assert_array_equal(fit.counts, asked("~ ward", by="month").counts)
    with pytest.raises(ArgumentError, match="pooled"):
        dp.dp_series(
            "~ ward",
            sites={"a": TABLE[:1_500], "b": TABLE[1_500:]},
            **{**words, "protocol": "full"},
        )


def test_a_session_has_it_as_a_method():
    with dp.simulation(seed=2):
        study = dp.session(TABLE, BOOK, budget=dp.ZCDP(1.0), person=False)
        fit = study.series("~ acute", time="day", by="month", share=0.5)
    assert fit.counts.sizes == {"day": 4}
    assert study.spent.describe() == "rho = 0.5"


def test_a_tree_of_other_nodes_may_be_asked_for():
    fit = asked("~ 1", mechanism=dp.mechanisms.Tree(fanout=2), budget=dp.ZCDP(1.0))
    assert fit.release.fanout == 2
    assert fit.call.reason == ""


def test_a_file_of_other_sums_is_refused(tmp_path):
    fit = asked("~ 1", by="month", mechanism="tree")
    fit.save(tmp_path / "fit.nc")
    assert dp.load(tmp_path / "fit.nc").summary().as_text() == fit.summary().as_text()
    object.__setattr__(fit, "release", replace(fit.release, sums="wavelet"))
    with pytest.raises(FrameError, match=r"release\.sums"):
        fit.save(tmp_path / "other.nc")
