"""dp_hist by runs of bins, of one number and of two: estimates and intervals."""

import numpy as np
import pytest
from scipy import stats

import dpmodels as dp

ROWS = {"wage": np.append(np.full(900, 410.5), np.linspace(0, 100, 300)), "sex": ["F", "M"] * 600}
BOOK = dp.codebook(wage=(0, 1000), sex=["F", "M"])
INTERVALS = ["noise_low", "noise_high", "conf_low", "conf_high"]


@pytest.fixture(scope="module", params=["replace", "add-remove"])
def fit(request):
    words = {"codebook": BOOK, "eps": 2.0, "breaks": 1000, "adjacency": request.param}
    with dp.simulation(seed=4):
        return dp.dp_hist("~ wage", ROWS, **words, mechanism="partition")


def test_ranges_and_quantiles_have_estimates_and_intervals(fit):
    estimates = fit.between([0, 400, 500], [100, 420, 1000])
    assert estimates["count"].to_numpy() == pytest.approx([300, 900, 0], abs=40)
    assert estimates["released"].to_numpy() == pytest.approx(estimates["count"].to_numpy(), abs=2)
    assert estimates["noise_sd"].isna().all()
    assert fit.quantile(0.5)["estimate"].to_numpy() == pytest.approx(410.5, abs=0.5)
    for table in (estimates, fit.quantile(), fit.cdf(), fit.tidy()):
        ends = table[[name for name in INTERVALS if name in table]].to_numpy()
        assert (ends[:, ::2] <= ends[:, 1::2]).all()
    assert fit.noise_int().shape == fit.conf_int().shape == (1000, 2)


def test_a_part_of_a_run_may_have_none_and_all_of_its_rows(fit):
    runs = fit.group(0).runs
    widest = int(np.diff(runs.starts).argmax())
    start, stop = runs.starts[widest : widest + 2].tolist()
    assert stop - start > 8
    part, run = (fit.between(float(start), float(end)).iloc[0] for end in (stop - 1, stop))
    assert part["noise_low"] == 0
    assert part["noise_high"] == run["noise_high"]


def test_the_number_of_runs_is_printed(fit):
    assert 3 < fit.ordered.pools < 60
    printed = " ".join(str(fit.summary(notes="all")).split())
    assert "those of a part of a run reach from none to all of its rows" in printed
    assert "the biased estimates" in printed


@pytest.mark.product
@pytest.mark.parametrize("budget", [{"eps": 1.0}, {"budget": dp.ZCDP(0.1)}], ids=str)
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_intervals_cover_whatever_is_divided(budget, relation):
    """Binomial bounds with a false-alarm rate of 1e-7 each, of one range a release; in all 1e-6."""
    times, bins = 60, 128
    rng = np.random.default_rng(3)
    share = np.repeat([0.001, 0.3, 0.02, 0.6], 32) * rng.exponential(size=bins)
    share /= share.sum()
    hits = np.zeros(4)
    with dp.simulation(seed=5):
        for time in range(times):
            values = rng.choice(bins, 900, p=share)
            exact = np.bincount(values, minlength=bins)
            fit = dp.dp_hist(
                *("~ x", {"x": values + 0.5}),
                codebook={"x": (0, bins)},
                breaks=bins,
                mechanism="partition",
                adjacency=relation,
                **budget,
            )
            low, high = sorted(rng.choice(bins + 1, 2, replace=False).tolist())
            line = fit.between(low, high).iloc[0]
            hits[0] += line["noise_low"] <= exact[low:high].sum() <= line["noise_high"]
            hits[1] += line["conf_low"] <= share[low:high].sum() <= line["conf_high"]
            median = fit.quantile(0.5).iloc[0]
            hits[2] += median["noise_low"] <= np.median(values) + 0.5 <= median["noise_high"]
            bound = fit.noise_int().to_numpy()[time]
            hits[3] += bound[0] <= exact[time] <= bound[1]
    assert (hits >= stats.binom.ppf(1e-7, times, 0.95)).all()


@pytest.mark.parametrize("sides", [(64, 64), (20, 9), (3, 2)])
def test_rectangles_of_a_plane_are_covered(sides):
    """Eight rectangles: false alarms below 1e-6 at the level asked for."""
    rng = np.random.default_rng(8)
    rows = {name: np.clip(rng.normal(0.4, 0.1, 3_000), 0, 1) for name in "xy"}
    with dp.simulation(seed=2):
        fit = dp.dp_hist(
            *("~ x + y", rows),
            codebook={"x": (0, 1), "y": (0, 1)},
            eps=1.0,
            breaks=sides,
            mechanism="partition",
        )
    low = np.linspace(0, 0.7, 8)
    ends = (low, low + 0.3)
    estimates = fit.between(ends, ends, level=1 - 1e-7)
    inside = [
        sum((a < rows["x"]) & (rows["x"] <= b) & (a < rows["y"]) & (rows["y"] <= b))
        for a, b in zip(*ends, strict=True)
    ]
    assert (estimates["noise_low"] <= inside).all()
    assert (estimates["noise_high"] >= inside).all()
    assert fit.tidy()[INTERVALS].notna().all(axis=None)
    assert "may be 0" not in str(fit.summary())
    assert int(fit.counts.sum()) + fit.nincomplete == 3_000
    assert fit.plot().collections


def test_groups_are_pooled_by_themselves():
    with dp.simulation(seed=4):
        words = {"codebook": BOOK, "eps": 5.0, "breaks": 64, "mechanism": "partition"}
        fit = dp.dp_hist("wage ~ sex", ROWS, **words)
    assert fit.between(400, 420)["count"].to_numpy() == pytest.approx([450, 450], abs=60)
    assert int(fit.counts.sum()) + fit.nincomplete == 1200


def test_a_picture_has_bars_with_noise(fit):
    (bars,), (noise,) = fit.plot().patches, fit.plot().collections
    heights = bars.get_data().values
    assert 0 < (heights > 0).sum() < 1000
    assert noise.get_paths()
