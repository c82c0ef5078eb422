"""Numbers that are dates are printed as dates, and their errors in days."""

import numpy as np

import dpmodels as dp

BOOK = dp.codebook(d=dp.Date("2001-01-01", "2020-12-31"), k=dp.Integer(0, 9), s=["a", "b"])
DAYS = np.datetime64("2010-01-01") + np.arange(1001)
ROWS = {"d": DAYS, "k": np.arange(1001) % 10, "s": ["a"] * 1001}
HUGE = {"codebook": BOOK, "eps": 1e9}


def lines(fit):
    return [" ".join(line.split()) for line in str(fit.summary()).splitlines()]


def test_means_and_quantiles_of_dates_are_dates(tmp_path):
    mean = dp.dp_mean("~ d", ROWS, **HUGE, mechanism="geometric")
    assert any(line.startswith("(all) 1,001 2011-05-16 ") for line in lines(mean))
    assert "Values outside 2001-01-01 to 2020-12-31 (d)" in " ".join(lines(mean))
    assert "errors are in days" in " ".join(lines(mean))
    quantile = dp.dp_quantile("~ d", ROWS, **HUGE, probs=[0.5], level=None)
    assert "50% 2011-05-16" in lines(quantile)
    bought = dp.dp_quantile("~ d", ROWS, **HUGE, probs=[0.5], level=0.95)
    assert any(line.startswith("50% 2011-05-16 [2011-0") for line in lines(bought))
    for fit in (mean, quantile):
        fit.save(path := tmp_path / f"{type(fit).__name__}.nc")
        assert str(dp.load(path).summary()) == str(fit.summary())


def test_table_one_has_dates_and_whole_bounds():
    text = lines(dp.dp_summary("~ d + k", ROWS, **HUGE))
    assert any(line.startswith("mean (sd) 2011-05-16 (") for line in text)
    assert "0 to 9 (k)" in " ".join(text)
    assert "sd and noise are in days" in " ".join(text)
    fit = dp.dp_summary("~ k", ROWS, **HUGE)
    assert "days" not in str(fit.summary())


def test_a_range_that_was_found_is_one_of_dates():
    rows = {"d": np.resize(DAYS[:30], 20_000)}
    with dp.simulation(seed=1):
        fit = dp.dp_mean("~ d", rows, codebook=BOOK, eps=2.0, mechanism="rounds")
    note = " ".join(lines(fit))
    assert fit.release.held is not None
    assert "d: clipped to 20" in note


def test_differences_of_dates_are_days():
    fit = dp.dp_mean("~ I(d - '2010-01-01')", ROWS, **HUGE, mechanism="geometric")
    assert any(line.startswith("(all) 1,001 500") for line in lines(fit))
