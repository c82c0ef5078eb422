"""dp_hist by runs of bins: what is told of them, and what is not."""

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import NotAvailable

ROWS = {"wage": np.append(np.full(900, 410.5), np.linspace(0, 100, 300)), "sex": ["F", "M"] * 600}
BOOK = dp.codebook(wage=(0, 1000), sex=["F", "M"])
INTERVALS = ["noise_sd", "noise_low", "noise_high", "conf_low", "conf_high"]


@pytest.fixture(scope="module", params=["replace", "add-remove"])
def fit(request):
    words = {"codebook": BOOK, "eps": 2.0, "breaks": 1000, "adjacency": request.param}
    with dp.simulation(seed=4):
        return dp.dp_hist("~ wage", ROWS, **words, mechanism="partition")


def test_ranges_and_quantiles_have_estimates_and_no_intervals(fit):
    found = fit.between([0, 400, 500], [100, 420, 1000])
    assert found["count"].to_numpy() == pytest.approx([300, 900, 0], abs=40)
    assert found["released"].to_numpy() == pytest.approx(found["count"].to_numpy(), abs=2)
    assert found[INTERVALS].isna().all(axis=None)
    assert fit.quantile(0.5)["estimate"].to_numpy() == pytest.approx(410.5, abs=0.5)
    for table in (fit.quantile(), fit.cdf()):
        assert table[[name for name in INTERVALS if name in table]].isna().all(axis=None)
    assert fit.tidy()[INTERVALS].isna().all(axis=None)


def test_what_is_missing_is_told_with_the_number_of_runs(fit):
    runs = f"the bins were pooled into {fit.ordered.pools:,} runs"
    assert 3 < fit.ordered.pools < 60
    for intervals in (fit.noise_int, fit.conf_int):
        with pytest.raises(NotAvailable, match=runs):
            intervals()
    printed = " ".join(str(fit.summary(notes="all")).split())
    assert f"No intervals: {runs}" in printed
    assert "the biased estimates" in printed
    assert "[0, 0" not in printed


def test_few_bins_are_printed_without_intervals():
    fit = dp.dp_hist("~ wage", ROWS, codebook=BOOK, eps=5.0, breaks=10, mechanism="partition")
    (line,) = (line for line in str(fit.summary()).splitlines() if line.startswith("(400, 500]"))
    assert line.split()[3] == "-"
    assert len(line.split()[4].partition(".")[2]) == 1


def test_groups_are_pooled_by_themselves():
    with dp.simulation(seed=4):
        words = {"codebook": BOOK, "eps": 5.0, "breaks": 64, "mechanism": "partition"}
        both = dp.dp_hist("wage ~ sex", ROWS, **words)
    assert both.between(400, 420)["count"].to_numpy() == pytest.approx([450, 450], abs=60)
    assert int(both.counts.sum()) + both.nincomplete == 1200


def test_a_picture_has_bars_without_noise(fit):
    (bars,), (noise,) = fit.plot().patches, fit.plot().collections
    heights = bars.get_data().values
    assert 0 < (heights > 0).sum() < 1000
    assert not noise.get_paths()
