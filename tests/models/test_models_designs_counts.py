"""Tables, histograms and quantiles under a survey design: R's estimates and errors, and reports."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_models_designs import DESIGNS, HUGE, LEVELS, ROWS, book, linearised

import dpmodels as dp

FOLDER = Path(__file__).parent / "design_reference"
TABLE = pd.read_csv(FOLDER / "table.csv")
STORED = json.loads((FOLDER / "survey.json").read_text())
STRATA = sorted(TABLE["stratum"].unique())
POPULATION = TABLE.groupby("stratum")["psus"].first().astype(float).to_dict()
KINDS = {
    "weights": {},
    "strata": {"strata": "stratum"},
    "psus": {"psu": "psu"},
    "both": {"strata": "stratum", "psu": "psu"},
    "finite": {"strata": "stratum", "psu": "psu", "fpc": POPULATION},
}


def reference(kind):
    low, high = float(TABLE["w"].min()), float(TABLE["w"].max())
    design = dp.design(weights="w", bounds=(low, high), weights_are="design", **KINDS[kind])
    y = dp.Numeric(float(TABLE["y"].min()), float(TABLE["y"].max()), step=1)
    return dp.codebook(y=y, group=["a", "b", "c"], z=[0, 1], stratum=STRATA, design=design)


def errors(fit):
    """Sampling standard errors of totals and of shares, from the one release."""
    cells, cap = fit._cells, fit._cap
    shares, base, estimates = cells.shares(cells.single)
    return shares, cap * np.sqrt(cells.totals.sampling), np.sqrt(estimates.sampling) / base


@pytest.mark.parametrize("kind", KINDS)
def test_a_huge_budget_gives_the_tables_of_r(kind):
    """R: svytable, and svymean of a factor with its standard errors."""
    fit = dp.dp_table("~ group", TABLE, codebook=reference(kind), **HUGE)
    stored = STORED[kind]["proportions"]
    shares, _, error = errors(fit)
    np.testing.assert_allclose(shares, stored["estimate"], rtol=1e-8)
    variances = np.reshape(stored["covariance"], (3, 3)).diagonal()
    np.testing.assert_allclose(error, np.sqrt(variances), rtol=1e-8)
    crossed = dp.dp_table("~ group + z", TABLE, codebook=reference(kind), **HUGE)
    counts = crossed.counts.to_numpy().ravel(order="F")
    np.testing.assert_allclose(counts, STORED[kind]["counts"], rtol=1e-8)


@pytest.mark.parametrize("kind", ["weights", "strata"])
def test_a_huge_budget_gives_the_quantiles_of_r_to_the_grid(kind):
    expected, probs = reference(kind), [0.1, 0.25, 0.5, 0.75, 0.9]
    fit = dp.dp_quantile("~ y", TABLE, codebook=expected, probs=probs, **HUGE)
    np.testing.assert_array_equal(fit.params.to_numpy()[0], STORED[kind]["quantiles"])
    bins = int(expected["y"].upper - expected["y"].lower) + 1
    hist = dp.dp_hist("~ y", TABLE, codebook=expected, breaks=bins, **HUGE)
    quantiles = hist.quantile(probs)
    step = (expected["y"].upper - expected["y"].lower) / bins
    np.testing.assert_allclose(quantiles["estimate"], STORED[kind]["quantiles"], atol=2 * step)


@pytest.mark.parametrize("words", DESIGNS.values(), ids=DESIGNS)
def test_a_huge_budget_gives_totals_and_shares_of_cells_with_linearised_errors(words):
    fit = dp.dp_table("~ g + h", ROWS, codebook=book(**words), **HUGE)
    shares, of_totals, of_shares = errors(fit)
    table = fit.tidy()
    for at, (g, h) in enumerate(zip(table["g"], table["h"], strict=True)):
        is_inside = (ROWS["g"] == g) & (ROWS["h"] == h)
        inside, weight = ROWS["w"] * is_inside, ROWS["w"].sum()
        share = inside.sum() / weight
        assert table["estimate"][at] == pytest.approx(inside.sum(), rel=1e-8)
        assert shares[at] == pytest.approx(share, rel=1e-8)
        assert of_totals[at] == pytest.approx(linearised(inside, ROWS, **words), rel=1e-8)
        scores = ROWS["w"] * (is_inside - share) / weight
        assert of_shares[at] == pytest.approx(linearised(scores, ROWS, **words), rel=1e-8)


def test_a_huge_budget_gives_ranges_of_a_histogram_with_linearised_errors():
    """A range of several bins of one group, as a share of the group."""
    facts = book(strata="h")
    fit = dp.dp_hist("y ~ g", ROWS, codebook=facts, breaks=10, **HUGE)
    estimates = fit.between(20, 60, group="b")
    group = ROWS["w"] * (ROWS["g"] == "b")
    is_inside = (ROWS["y"] > 20) & (ROWS["y"] <= 60)
    share = float((group * is_inside).sum() / group.sum())
    assert estimates["released"].item() == pytest.approx((group * is_inside).sum(), rel=1e-8)
    assert estimates["proportion"].item() == pytest.approx(share, rel=1e-8)
    error = linearised(group * (is_inside - share) / group.sum(), ROWS, strata="h")
    factor = fit.table._cells._factor(0.95) * 1.959964
    half = (estimates["conf_high"] - estimates["conf_low"]).item() / 2
    assert half == pytest.approx(factor * error, rel=1e-6)
    density = fit.density.to_numpy()[1]
    assert density.sum() * 10 == pytest.approx(1, rel=1e-8)


def test_the_design_effect_is_that_of_r():
    """R: ``deff(svymean(~group, deff = "replace"))``, the variance over that of n rows."""
    fit = dp.dp_table("~ g", ROWS, codebook=book(), **HUGE)
    share = ROWS["w"] @ (ROWS["g"] == "a") / ROWS["w"].sum()
    error = linearised(ROWS["w"] * ((ROWS["g"] == "a") - share) / ROWS["w"].sum(), ROWS)
    simple = share * (1 - share) / (len(ROWS) - 1)
    assert fit.design["deff"]["a"] == pytest.approx(error**2 / simple, rel=1e-8)
    assert fit.design["weight"].sum() == pytest.approx(ROWS["w"].sum(), rel=1e-8)


def test_the_noise_of_a_cell_does_not_grow_with_their_number():
    """Twelve times as many cells; 4 % of the budget count the values of y beyond its bounds."""
    rows = pd.concat([ROWS] * 20)
    with dp.simulation(seed=3):
        few, many_rows = (
            dp.dp_table(formula, rows, codebook=book(fpc=None), budget=dp.ZCDP(0.1))
            for formula in ("~ g", "~ g + h + cut(y, [0, 30, 40, 50, 100])")
        )
    assert many_rows.release.noise_sd < 1.03 * few.release.noise_sd
    assert many_rows.noise_sd() < 2 * few.noise_sd()


@pytest.mark.product
@pytest.mark.parametrize("words", [{}, {"psu": "psu", "strata": "h"}], ids=["rows", "units"])
def test_noise_intervals_cover_the_weighted_table(words):
    """Of 60 tables of 6 cells 270 or more intervals: a false alarm in 1e9 at the coverage .93."""
    rows, truth = sample_of_units(), 0
    weights = rows.groupby(["g", "h"])["w"].sum().to_numpy()
    for seed in range(60):
        with dp.simulation(seed=seed):
            fit = dp.dp_table("~ g + h", rows, codebook=book(**words), eps=2.0, delta=1e-6)
        low, high = fit.noise_int().to_numpy().T
        truth += int(((low <= weights) & (weights <= high)).sum())
    assert truth >= 270


def sample_of_units():
    rng = np.random.default_rng(7)
    unit = np.repeat(np.arange(1_500), 4)
    return pd.DataFrame(
        {
            "w": np.clip(np.exp(rng.normal(1, 0.5, len(unit))), 1, 20),
            "g": rng.choice(LEVELS["g"], len(unit)),
            "h": np.array(LEVELS["h"])[unit % 3],
            "psu": unit,
        }
    )


def test_a_session_and_a_file_have_weighted_counts(tmp_path):
    plain = dp.codebook(y=(0, 100), **LEVELS)
    session = dp.session(ROWS, plain, eps=9.0, design=book(strata="h").design)
    fits = (
        session.table("~ g + h", eps=2.0),
        session.hist("y ~ g", eps=2.0, breaks=6),
        session.quantile("y ~ g", eps=2.0),
    )
    for number, fit in enumerate(fits):
        fit.save(tmp_path / f"{number}.json")
        again = dp.load(tmp_path / f"{number}.json")
        assert type(again) is type(fit)
        pd.testing.assert_frame_equal(again.tidy(), fit.tidy())
        assert "weights w (1 to 20), strata h" in " ".join(str(fit.summary()).split())
    table = fits[0]
    assert float(table.margins("g").sum()) == pytest.approx(table.ncomplete)
    assert float(table.proportions("g").sum()) == pytest.approx(2)
    assert np.isnan(table.nincomplete)
    assert np.isnan(table.chi2_test().pvalue)
    assert "no test of independence" in table.chi2_test().reason
    assert np.isnan(table.glance()["p_value"].item())


def test_a_mean_excess_that_noise_makes_negative_is_stored_as_zero(tmp_path):
    """Seed 69 is the first for which noise makes it negative."""
    plain = dp.codebook(y=(0, 100), **LEVELS)
    with dp.simulation(seed=69):
        session = dp.session(ROWS, plain, eps=9.0, design=book(strata="h").design)
        fit = session.table("~ g + h", eps=2.0)
    weights = fit.release.weights
    assert weights.mean_excess == 0
    assert weights.has_excess
    assert "were capped" in str(fit.summary())
    fit.save(tmp_path / "fit.json")
    assert dp.load(tmp_path / "fit.json").release.weights == weights


def test_histograms_of_units_leave_the_errors_of_ranges_out():
    units = book(psu="psu")
    fit = dp.dp_hist("~ y", ROWS, codebook=units, breaks=4, **HUGE)
    assert fit.conf_int().notna().all(axis=None)
    estimates = fit.between(0, 50)
    assert estimates[["conf_low", "conf_high"]].isna().all(axis=None)
    assert estimates[["noise_low", "noise_high"]].notna().all(axis=None)
    assert "person" not in str(fit.summary(notes="all"))


def test_too_many_cells_of_strata_are_refused():
    strata = [str(number) for number in range(300)]
    design = dp.design(strata="s")
    codebook = dp.codebook(y=(0, 1), s=strata, design=design)
    with pytest.raises(dp.errors.FormulaError, match="without strata="):
        dp.dp_hist("~ y", {"y": [0.5], "s": ["1"]}, codebook=codebook, breaks=5_000, eps=1)


def test_a_cell_hidden_by_noise_has_wide_intervals_and_no_quantile():
    rows = {name: ROWS[name].to_numpy()[:3] for name in ("y", "w", "g", "h")}
    with dp.simulation(seed=1):
        table = dp.dp_table("~ g", rows, codebook=book(), eps=0.01)
        quantiles = dp.dp_quantile("~ y", rows, codebook=book(), eps=0.01)
    assert (table.counts.to_numpy() >= 0).all()
    assert table.noise_int()["lower"].ge(0).all()
    assert quantiles.params.isna().all(axis=None)
    assert quantiles.conf_int()["upper"].eq(100).all()


@pytest.mark.parametrize("words", DESIGNS.values(), ids=DESIGNS)
def test_the_variance_of_a_sum_grows_with_the_square_of_its_weights(words):
    """The noise that is subtracted from squares of noisy sums is that of the same weights."""
    cells = dp.dp_table("~ g + h", ROWS, codebook=book(**words), eps=100.0)._cells
    inside, outside = np.random.default_rng(1).normal(size=(2, len(cells.counts)))
    once, twice = (cells.errors(cells.single, k * inside, k * outside) for k in (1, 2))
    np.testing.assert_allclose(twice.sampling, 4 * once.sampling, rtol=1e-9)
    np.testing.assert_allclose(twice.noise_sd, 2 * once.noise_sd, rtol=1e-9)
