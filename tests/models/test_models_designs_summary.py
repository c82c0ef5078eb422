"""Summaries, variances and quantiles under a survey design: R's values, one cap, reports."""

import numpy as np
import pandas as pd
import pytest
from test_models_designs import DESIGNS, HUGE, LEVELS, ROWS, book, linearised
from test_models_designs_counts import KINDS, STORED, TABLE, reference

import dpmodels as dp
from dpmodels.errors import NotAvailable

UNITS = {kind for kind in KINDS if "psu" in KINDS[kind]}
# Of units the divisor of a variance is the sum of weights, in R it has n/(n - 1) for n rows.
ROW_FACTOR = len(TABLE) / (len(TABLE) - 1)


@pytest.mark.expensive
@pytest.mark.parametrize("kind", KINDS)
def test_a_huge_budget_gives_the_variance_of_r_with_its_error(kind):
    """R: svyvar."""
    fit = dp.dp_var("~ y", TABLE, codebook=reference(kind), **HUGE)
    factor, stored = ROW_FACTOR if kind in UNITS else 1, STORED[kind]["variance"]
    assert factor * fit.params.item() == pytest.approx(stored["estimate"], rel=1e-8)
    error = np.sqrt(stored["covariance"])
    assert factor * fit.bse_sampling.item() == pytest.approx(error, rel=1e-8)


@pytest.mark.expensive
@pytest.mark.parametrize("kind", KINDS)
def test_a_huge_budget_gives_the_summary_of_r(kind):
    """R: svymean, svyvar, svyby of means and totals, svymean of a factor."""
    expected, stored = reference(kind), STORED[kind]
    fit = dp.dp_summary("~ y + group", TABLE, codebook=expected, **HUGE)
    means, shares = fit["y"], fit["group"]
    assert means.params.item() == pytest.approx(stored["mean"]["estimate"][0], rel=1e-8)
    variance = np.reshape(stored["mean"]["covariance"], (2, 2))[0, 0]
    assert means.bse_sampling.item() == pytest.approx(np.sqrt(variance), rel=1e-8)
    factor = ROW_FACTOR if kind in UNITS else 1
    spread = np.sqrt(stored["variance"]["estimate"] / factor)
    assert means.sd.item() == pytest.approx(spread, rel=1e-8)
    estimates, base, errors = shares._cells.shares(shares._cells.single)
    np.testing.assert_allclose(estimates, stored["proportions"]["estimate"], rtol=1e-8)
    variances = np.reshape(stored["proportions"]["covariance"], (3, 3)).diagonal()
    np.testing.assert_allclose(errors.sampling / base**2, variances, rtol=1e-8)
    # A cap has the least error, and with other noise it may exceed what a group weighs.
    with dp.simulation(seed=1):
        grouped = dp.dp_summary("y + z ~ group", TABLE, codebook=expected, **HUGE)
    np.testing.assert_allclose(grouped["y"].params, stored["means_by"]["estimate"], rtol=1e-8)
    np.testing.assert_allclose(grouped["y"].bse_sampling, stored["means_by"]["se"], rtol=1e-8)
    counts = grouped["z"].counts.to_numpy().ravel(order="F")
    np.testing.assert_allclose(counts, stored["counts"], rtol=1e-8)


@pytest.mark.parametrize("words", DESIGNS.values(), ids=DESIGNS)
def test_all_groups_together_have_the_mean_and_the_error_of_all_rows(words):
    """For units in several groups the error is a bound, at most √2 times that of two groups."""
    fit = dp.dp_summary("y + h ~ g", ROWS, codebook=book(**words), **HUGE)
    overall = fit.overall().set_index(["variable", "level"])
    mean = np.average(ROWS["y"], weights=ROWS["w"])
    line = overall.loc["y"].iloc[0]
    assert line["estimate"] == pytest.approx(mean, rel=1e-8)
    variance = np.average((ROWS["y"] - mean) ** 2, weights=ROWS["w"])
    assert line["sd"] == pytest.approx(np.sqrt(variance), rel=1e-3)
    error = linearised(ROWS["w"] * (ROWS["y"] - mean) / ROWS["w"].sum(), ROWS, **words)
    if "psu" in words:
        assert error < line["std_error"] < 2 * error
    else:
        assert line["std_error"] == pytest.approx(error, rel=1e-6)
    totals = ROWS.groupby("h")["w"].sum()
    np.testing.assert_allclose(overall.loc["h"]["count"], totals[LEVELS["h"]], rtol=1e-8)


@pytest.mark.parametrize("kind", sorted(UNITS))
def test_a_huge_budget_gives_the_quantiles_of_r_by_units(kind):
    expected, probs = reference(kind), [0.1, 0.25, 0.5, 0.75, 0.9]
    fit = dp.dp_quantile("~ y", TABLE, codebook=expected, probs=probs, **HUGE)
    np.testing.assert_array_equal(fit.params.to_numpy()[0], STORED[kind]["quantiles"])


@pytest.mark.parametrize("words", [{"psu": "psu"}, {"psu": "psu", "strata": "h"}])
def test_scores_of_quantiles_of_units_have_linearised_errors(words):
    """Of the weight of a group up to a cell, less p times that of the group (Woodruff 1952)."""
    rows = ROWS.assign(y=np.rint(ROWS["y"] / 10))
    codebook = dp.codebook(book(**words), y=dp.Numeric(0, 10, step=1))
    fit = dp.dp_quantile("y ~ g", rows, codebook=codebook, probs=[0.3], **HUGE)
    group = fit._groups[1]
    runs = group._running
    weights = np.full(11, 0.7), np.full(11, -0.3)
    errors = np.sqrt(group.weighted.errors(runs, *weights).sampling) * group.cap
    for cell in range(10):
        inside = (rows["g"] == "b") * rows["w"]
        scores = inside * ((rows["y"] <= cell) - 0.3)
        expected = linearised(scores, rows, **words)
        assert errors[cell] == pytest.approx(expected, rel=1e-6, abs=1e-4)


def test_a_summary_costs_the_root_of_its_variables():
    """Each table has the sums of one: √m times the noise, and products beside those of counts."""
    with dp.simulation(seed=1):
        first, four = (
            dp.dp_summary(formula, ROWS, codebook=book(fpc=None), budget=dp.ZCDP(0.1))
            for formula in ("~ y", "~ y + log(y + 1) + sqrt(y) + h")
        )
    norms = np.hypot(1, 0.5), np.sqrt(4 * 1.25 + 0.25)
    assert four.release.noise_sd / first.release.noise_sd == pytest.approx(
        norms[1] / norms[0], 1e-6
    )


def test_a_session_a_file_and_a_report_have_the_summary_of_a_design(tmp_path):
    plain = dp.codebook(y=(0, 100), **LEVELS)
    session = dp.session(ROWS, plain, eps=9.0, design=book(strata="h").design)
    fit = session.table_one("y + h ~ g", eps=4.0, tests=True)
    fit.save(tmp_path / "fit.json")
    again = dp.load(tmp_path / "fit.json")
    pd.testing.assert_frame_equal(again.tidy(), fit.tidy())
    pd.testing.assert_frame_equal(again.design, fit.design)
    fit["h"].save(tmp_path / "table.json")
    table = dp.load(tmp_path / "table.json")
    pd.testing.assert_frame_equal(table.design, fit["h"].design)
    text = " ".join(str(fit.summary(notes="all")).split())
    assert "weights w (1 to 20), strata h" in text
    assert "units of weight" in text
    assert "none for counts under a survey design" in text
    tests = fit.tests().set_index("variable")
    assert 0 <= tests["p_value"]["y"] <= 1
    assert np.isnan(tests["p_value"]["h"])
    assert "no test of independence" in tests["reason"]["h"]
    assert fit.design.loc["y"]["weight"].sum() == pytest.approx(float(fit["y"].counts.sum()))


@pytest.mark.expensive
def test_reports_of_units_name_no_person():
    words = {"codebook": book(psu="psu"), "eps": 4.0, "delta": 1e-6}
    fits = (
        dp.dp_summary("y + h ~ g", ROWS, **words),
        dp.dp_var("y ~ g", ROWS, **words),
        dp.dp_quantile("y ~ g", ROWS, **words),
    )
    for fit in fits:
        assert "person" not in str(fit.summary(notes="all"))


def test_a_summary_without_a_design_has_no_table_of_it():
    fit = dp.dp_summary("~ h", ROWS, codebook=dp.codebook(**LEVELS), eps=1)
    with pytest.raises(NotAvailable, match="no survey design"):
        assert fit.design.empty


@pytest.mark.product
@pytest.mark.parametrize("words", [{}, {"psu": "psu", "strata": "h"}], ids=["rows", "units"])
def test_noise_intervals_cover_the_weighted_summary(words):
    """Of 40 summaries of 2 means and 6 counts 270 or more of 320 intervals.

    Six standard deviations below .95 where every second interval is independent: 1e-9.
    """
    rows, hits = sample_of_units(), 0
    means = [np.average(rows["y"][rows["g"] == g], weights=rows["w"][rows["g"] == g]) for g in "ab"]
    truth = np.r_[means, rows.groupby(["g", "h"])["w"].sum()]
    for seed in range(40):
        with dp.simulation(seed=seed):
            fit = dp.dp_summary("y + h ~ g", rows, codebook=book(**words), eps=3.0, delta=1e-6)
        low, high = fit.noise_int().to_numpy().T
        hits += int(((low <= truth) & (truth <= high)).sum())
    assert hits >= 270


def sample_of_units():
    rng = np.random.default_rng(7)
    unit = np.repeat(np.arange(1_500), 4)
    return pd.DataFrame(
        {
            "y": np.clip(rng.normal(40, 10, 1_500)[unit] + rng.normal(0, 10, len(unit)), 0, 100),
            "w": np.clip(np.exp(rng.normal(1, 0.5, len(unit))), 1, 20),
            "g": rng.choice(LEVELS["g"], len(unit)),
            "h": np.array(LEVELS["h"])[unit % 3],
            "psu": unit,
        }
    )
