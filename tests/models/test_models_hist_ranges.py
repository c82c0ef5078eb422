"""dp_hist by sums of bins: mechanisms, ranges, distribution function, quantiles, pictures."""

import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, NotAvailable
from dpmodels.models.table import dp_hist
from dpmodels.privacy import ZCDP, GaussianEvent, LaplaceEvent
from tests.mines import Mine

BOOK = dp.codebook(
    x=(0, 100), k=dp.Integer(0, 999), d=dp.Date("2001-01-01", "2020-12-31"), sex=["F", "M"]
)
HUGE = 1e9
WAYS = ("flat", "tree", "wavelet")


def rows(count=2000, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "x": rng.gamma(2, 12, count),
        "k": rng.integers(0, 1000, count),
        "d": (np.datetime64("2001-01-01") + rng.integers(0, 7000, count)).astype(str),
        "sex": rng.choice(["F", "M"], count),
    }


def fitted(formula="~ x", mechanism="tree", breaks=200, **words):
    words = {"eps": HUGE} | words
    with dp.simulation(seed=4):
        return dp_hist(formula, rows(), codebook=BOOK, breaks=breaks, mechanism=mechanism, **words)


@pytest.mark.parametrize("mechanism", WAYS)
@pytest.mark.parametrize("formula", ["~ x", "x ~ sex"])
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_a_huge_budget_gives_the_rows_however_they_are_counted(mechanism, formula, adjacency):
    fit, data = fitted(formula, mechanism, 37, adjacency=adjacency), pd.DataFrame(rows())
    x = data["x"].clip(0, 100)
    keys = ["F", "M"] if "sex" in formula else [None]
    parts = [x if key is None else x[data["sex"] == key] for key in keys]
    values = np.array([np.histogram(part, fit.breaks)[0] for part in parts])
    assert fit.counts.to_numpy().reshape(values.shape).tolist() == values.tolist()
    assert fit.released.to_numpy().reshape(values.shape) == pytest.approx(values, abs=1e-3)
    ends = fit.breaks[[3, 0, 20]], fit.breaks[[9, 37, 21]]
    estimates = fit.between(*ends)
    assert list(estimates.columns[: len(keys) - 1]) == ["sex"] * (len(keys) - 1)
    pairs = list(zip(*ends, strict=True))
    inside = [((part > low) & (part <= high)).sum() for part in parts for low, high in pairs]
    inside[1 :: len(ends[0])] = [len(part) for part in parts]
    assert estimates["count"].tolist() == inside
    assert (estimates["noise_low"] <= estimates["count"]).all()
    assert (
        estimates["noise_high"] - estimates["noise_low"] < 1e-2 + 2 * estimates["noise_sd"] * 4
    ).all()
    assert (
        (estimates["conf_low"] < estimates["proportion"]) | (estimates["proportion"] == 1)
    ).all()
    cdf = fit.cdf()["cdf"].to_numpy().reshape(values.shape)
    assert cdf == pytest.approx(np.cumsum(values, axis=1) / values.sum(axis=1, keepdims=True))
    for part, (_, quantile) in zip(parts, fit.quantile([0.3]).iterrows(), strict=True):
        assert quantile["noise_low"] <= np.quantile(part, 0.3) <= quantile["noise_high"]
        assert quantile["noise_high"] - quantile["noise_low"] == pytest.approx(100 / 37)


@pytest.mark.parametrize(
    ("cells", "budget", "name"),
    [
        (10, {"eps": 0.1}, "geometric"),
        (40, {"budget": ZCDP(0.1)}, "gaussian"),
        (128, {"eps": 1.0}, "geometric"),
        (64, {"budget": ZCDP(0.1), "adjacency": "add-remove"}, "wavelet"),
        (128, {"budget": ZCDP(0.1)}, "factorisation"),
        pytest.param(
            *(32_768, {"budget": ZCDP(0.1), "adjacency": "add-remove"}, "factorisation"),
            marks=pytest.mark.product,
        ),
        (32_769, {"budget": ZCDP(0.1), "adjacency": "add-remove"}, "wavelet"),
        (1024, {"eps": 0.1, "adjacency": "add-remove"}, "tree"),
        (1024, {"eps": 1.0, "delta": 1e-6, "adjacency": "add-remove"}, "tree"),
        (1024, {"eps": 0.1}, "partition"),
        (32_769, {"budget": ZCDP(0.1)}, "partition"),
    ],
)
def test_few_bins_are_flat_and_many_made_of_sums(cells, budget, name):
    fit = dp_hist("~ x", rows(), codebook=BOOK, breaks=cells, **budget)
    assert fit.release.info.name == name
    if name == "partition":
        assert f"there are few rows for noise in each of {cells:,} cells" in fit.call.reason
    elif name not in ("geometric", "gaussian"):
        assert f"with {cells:,} bins, sums of ranges matter most" in fit.call.reason
    flat = dp_hist("~ x", rows(), codebook=BOOK, breaks=cells, mechanism="flat", **budget)
    assert flat.release.info.name in ("geometric", "gaussian")
    assert flat.call.reason == ""


def test_the_law_is_that_of_the_budget():
    for mechanism in ("tree", "wavelet"):
        pure, zcdp = (
            fitted(mechanism=mechanism),
            fitted(mechanism=mechanism, eps=None, budget=ZCDP(1)),
        )
        assert isinstance(pure.release.events[-1], LaplaceEvent)
        assert isinstance(zcdp.release.events[-1], GaussianEvent)


def test_an_end_inside_a_bin_widens_the_interval_by_what_the_bin_may_hold():
    fit = fitted(breaks=100, eps=1.0)
    inner, second, outer = (
        fit.between(low, high).iloc[0] for low, high in ((11, 20), (10.5, 20.25), (10, 21))
    )
    assert inner["count"] <= second["count"] <= outer["count"]
    counts = fit.counts.to_numpy()
    assert second["count"] == pytest.approx(counts[10] / 2 + counts[11:20].sum() + counts[20] / 4)
    assert second["noise_low"] == inner["noise_low"]
    assert second["noise_high"] == outer["noise_high"]
    assert (second["conf_low"], second["conf_high"]) == (inner["conf_low"], outer["conf_high"])
    within = fit.between(10.25, 10.5).iloc[0]
    assert within["noise_low"] == 0
    assert within["noise_high"] == fit.between(10, 11)["noise_high"].iloc[0]


def test_a_range_near_one_break_is_inside_its_bins_and_may_hold_their_rows():
    """A hundredth of a bin beside 0, where a third of the rows are: all may be in it."""
    zeros = {"x": [0.0] * 500 + list(np.linspace(1, 99, 1000))}
    with dp.simulation(seed=4):
        fit = dp_hist("~ x", zeros, codebook=BOOK, breaks=10, mechanism="tree", eps=HUGE)
    estimates = fit.between([0, 49.99], [0.04, 50.01])
    assert (estimates["low"] < estimates["high"]).all()
    assert estimates["noise_high"].tolist() == pytest.approx([591, 204], abs=2)
    assert (estimates["conf_high"] > [0.3, 0.1]).all()
    with pytest.raises(ArgumentError, match="outside the bins"):
        fit.between(-0.04, -0.01)


def test_ends_as_the_names_of_bins_have_them_are_breaks():
    fit = fitted(breaks=[0, 100 / 3, 50, 100], mechanism="flat")
    name = fit.counts["x"].to_numpy()[0]
    high = float(name[1:-1].split(", ")[1])
    row = fit.between(0, high).iloc[0]
    assert row["high"] == 100 / 3
    assert row["count"] == fit.counts.to_numpy()[0]


def test_whole_numbers_and_days_have_both_ends_in_a_range():
    fit, k = fitted("~ k", breaks=1000), rows()["k"]
    estimates = fit.between([3, 5], [5, 5])
    assert estimates["count"].tolist() == [((k >= 3) & (k <= 5)).sum(), (k == 5).sum()]
    assert estimates[["low", "high"]].to_numpy().tolist() == [[3, 5], [5, 5]]
    quantile = fit.quantile([0, 0.5, 1])
    assert (
        quantile["estimate"].tolist() == np.quantile(k, [0, 0.5, 1], method="inverted_cdf").tolist()
    )
    days = fitted("~ d", breaks=240)
    year = days.between("2003-01-01", "2003-12-31")
    cells = pd.to_datetime(rows()["d"])
    total = ((cells >= year["low"][0]) & (cells <= year["high"][0])).sum()
    assert abs(year["count"][0] - total) < 0.01 + 2 * days.counts.to_numpy().max()
    assert str(days.quantile(0.5)["estimate"][0])[:2] == "20"


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("formula", "ends", "message"),
    [
        ("~ x", (40, 20), r"between\(40, 20\): the range has no width; write its lower end first"),
        ("~ x", (20, 20), "no width"),
        ("~ x", (-1, 20), "part of the range is outside the bins.*'x' reach from 0.0 to 100.0"),
        ("~ x", (20, 100.5), "part of the range is outside the bins"),
        ("~ x", (np.nan, 20), "lo=nan: expected a finite number.*reach from"),
        ("~ x", (0, np.inf), "hi=inf: expected a finite number"),
        ("~ x", ("a", 20), "lo='a': expected a finite number"),
        ("~ x", (True, 20), "lo=True: expected a finite number"),
        ("~ x", ([1, 2], [3, 4, 5]), "2 lower and 3 upper ends"),
        ("~ x", ([], []), "0 lower and 0 upper ends"),
        ("~ k", (3.2, 3.4), "one of the ranges contains no whole number"),
        ("~ d", (3, "2003-01-01"), "lo=3: expected a day; .* 2001-01-01 to 2020-12-31"),
        ("~ d", ("2003-01-01", "2002-01-01"), r'between\("2003-01-01", "2002-01-01"\)'),
    ],
)
def test_ranges_that_are_none_are_refused(formula, ends, message):
    with pytest.raises(ArgumentError, match=message):
        fitted(formula).between(*ends)


@pytest.mark.parametrize("words", [{"level": 95}, {"level": 0}, {"group": "F"}])
def test_what_is_wrong_is_said_of_all_three(words):
    fit = fitted()
    for ask in (
        lambda: fit.between(1, 2, **words),
        lambda: fit.cdf(**words),
        lambda: fit.quantile(**words),
    ):
        with pytest.raises(ArgumentError, match=next(iter(words))):
            ask()
    with pytest.raises(ArgumentError, match=r"probs=1.5: expected a number from 0 to 1"):
        fit.quantile(1.5)
    with pytest.raises(ArgumentError, match=r"probs=ndarray: expected a number from 0 to 1"):
        fit.quantile(np.array(0.5))
    with pytest.raises(ArgumentError, match=r"lo=ndarray: expected a finite number"):
        fit.between(np.array(0.5), 1)
    with pytest.raises(ArgumentError, match="there are groups of sex; write one of them, such as"):
        fitted("x ~ sex").plot()
    with pytest.raises(ArgumentError, match="group=list is not one of the groups of sex"):
        fitted("x ~ sex").cdf(group=["F"])
    with pytest.raises(ArgumentError, match="group='X' is not one of the groups of sex"):
        fitted("x ~ sex").cdf(group="X")


@pytest.mark.guarding
@pytest.mark.parametrize("mechanism", ["tree", "wavelet"])
def test_refusals_come_before_a_row_is_read(mechanism):
    ledger = dp.Ledger(1.0)
    for breaks in (1, 10**7):
        with pytest.raises(ArgumentError, match="a number of bins from 2"):
            dp_hist(
                *("~ x", {"x": Mine()}),
                **{"codebook": BOOK, "eps": 1.0, "breaks": breaks},
                mechanism=mechanism,
                ledger=ledger,
            )
    assert ledger.entries == ()


@pytest.mark.parametrize("mechanism", ["tree", "wavelet"])
@pytest.mark.parametrize("formula", ["~ x", "x ~ sex"])
def test_sums_are_saved_and_read_alike(mechanism, formula, tmp_path):
    fit = fitted(formula, mechanism, 70, eps=1.0)
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    assert str(again.summary()) == str(fit.summary())
    pd.testing.assert_frame_equal(again.tidy(), fit.tidy())
    pd.testing.assert_frame_equal(again.between(3, 40), fit.between(3, 40))
    for frame in (fit.noise_int(), fit.conf_int(), fit.tidy()):
        assert len(frame) == fit.counts.size
    with pytest.raises(NotAvailable, match="released sums of bins"):
        fit.table  # noqa: B018


@pytest.mark.parametrize("mechanism", WAYS)
def test_many_bins_are_printed_in_runs_with_quantiles(mechanism):
    fit = fitted(mechanism=mechanism, breaks=1000, eps=1.0)
    text = str(fit.summary())
    assert "1,000 bins, shown in runs of 32" in text
    lines = text.splitlines()
    first = next(line for line in lines if line.startswith("[0, 3.2]"))
    assert f" {fit.counts.to_numpy()[:32].sum():,} " in first
    assert "Quantiles of x" in text
    stated = re.search(r"Range noise: +sd (\S+), at most (\S+):", text).groups()
    assert 0 < float(stated[0]) < float(stated[1])
    assert all(len(number.replace(".", "").strip("0")) <= 2 for number in stated)
    assert max(map(len, lines)) <= 90
    grouped = str(fitted("x ~ sex", mechanism, 1000, eps=1.0).summary())
    assert len(grouped.splitlines()) < 60


def test_printed_quantiles_have_the_digits_that_their_intervals_leave():
    rng = np.random.default_rng(1)
    rows = {"x": rng.exponential(1e4, 4000), "k": rng.poisson(300, 4000)}
    book = dp.codebook(x=(0, 1e6), k=dp.Integer(0, 1000))
    with dp.simulation(seed=1):
        number = dp_hist("~ x", rows, codebook=book, eps=1.0, breaks=4096)
        fit = dp_hist("~ k", rows, codebook=book, eps=1.0, breaks=1001)
    _, _, text = str(number.summary()).partition("Quantiles of x")
    median = re.search(r"50%\s+(\d+)\s+\[(\d+), (\d+)\]", text)
    # Intervals are 1,500 wide: their ends have two digits of that, and estimates the tens.
    assert [int(value) % 10 for value in median.groups()] == [0, 0, 0]
    assert [int(value) % 100 for value in median.groups()[1:]] == [0, 0]
    _, _, text = str(fit.summary()).partition("Quantiles of k")
    low, high = fit.quantile(0.5)[["noise_low", "noise_high"]].iloc[0]
    assert f"[{low}, {high}]" in text


def test_long_ticks_do_not_run_into_each_other():
    plt = pytest.importorskip("matplotlib.pyplot")
    with dp.simulation(seed=4):
        fit = dp_hist("~ x", {"x": [5e4]}, codebook={"x": (0, 400_000)}, breaks=100, eps=1.0)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for ax, draw in zip(axes, (fit.plot, fit.plot_cdf), strict=True):
        draw(ax=ax)
    figure.canvas.draw()
    for ax in axes:
        boxes = [tick.get_window_extent() for tick in ax.get_xticklabels()]
        assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
    plt.close(figure)


def test_the_reason_has_no_powers_of_ten():
    with dp.simulation(seed=4):
        summary = fitted(mechanism="auto", breaks=4096, eps=0.01, adjacency="add-remove").summary(
            notes="all"
        )
    assert re.search(r"\(geometric: [\d,]+\), in a single bin", " ".join(str(summary).split()))


def test_pictures_of_many_bins_are_steps_with_a_band():
    from matplotlib.figure import Figure

    fit = fitted(breaks=1000, eps=1.0)
    ax = fit.plot(ax=Figure().subplots())
    (stairs,) = [patche for patche in ax.patches if hasattr(patche, "get_data")]
    data = stairs.get_data()
    assert len(data.values) == 200
    assert data.values.sum() == fit.ncomplete
    (line,) = fit.plot_cdf(ax=Figure().subplots()).lines
    assert line.get_xydata()[-1].tolist() == [100.0, 1.0]
    assert (np.diff(line.get_ydata()) >= 0).all()
    few = fitted(breaks=20, mechanism="flat", eps=1.0)
    assert len(few.plot(ax=Figure().subplots()).patches) == 20
    with pytest.raises(ArgumentError, match="group="):
        fitted("x ~ sex").plot_cdf(ax=Figure().subplots())


@pytest.mark.parametrize("eps", [1e-4, 1.0, 1e9])
@pytest.mark.parametrize("data", [[], [50.0], [np.nan, None]])
@pytest.mark.parametrize("mechanism", WAYS)
def test_no_row_makes_a_warning(mechanism, data, eps):
    fit = dp_hist("~ x", {"x": data}, codebook=BOOK, eps=eps, breaks=70, mechanism=mechanism)
    for frame in (fit.between(0, 33.3), fit.cdf(), fit.quantile([0, 0.5, 1])):
        assert len(frame) >= 1
    assert "istogram" in str(fit.summary())
    assert fit.noise_int().notna().all(axis=None)
    shares = fit.conf_int().to_numpy()
    assert ((shares >= 0) & (shares <= 1)).all()


@pytest.mark.slow
def test_a_million_bins_are_counted_printed_and_drawn():
    from matplotlib.figure import Figure

    data = {"x": np.random.default_rng(0).gamma(2, 12, 10**6)}
    words = {"codebook": BOOK, "eps": 1.0, "breaks": 10**6}
    fit = dp_hist("~ x", data, **words, adjacency="add-remove")
    assert fit.release.info.name == "tree"
    assert dp_hist("~ x", data, **words).release.info.name == "partition"
    assert "1,000,000 bins" in str(fit.summary())
    estimates = fit.between(np.arange(0, 50), np.arange(50, 100))
    assert estimates["noise_sd"].max() < 1_000
    assert len(fit.plot(ax=Figure().subplots()).patches) == 1
