"""Estimates under a survey design: R's survey at a huge budget, the cap, refusals, reports."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpmodels as dp
from dpmodels.errors import ArgumentError, CodebookError, NotAvailable
from dpmodels.mechanisms.protocol import CountFacts
from dpmodels.mechanisms.sampled.capped import Capped
from dpmodels.privacy import ZCDP, Adjacency

HUGE = {"eps": 1e12}
LEVELS = {"g": ["a", "b"], "h": ["n", "s", "w"]}


def sample(n_rows=900, units=60, seed=1):
    rng = np.random.default_rng(seed)
    unit = rng.integers(0, units, n_rows)
    y = 40 + 15 * rng.normal(size=units)[unit] / 2 + 12 * rng.normal(size=n_rows)
    return pd.DataFrame(
        {
            "y": np.clip(np.round(y, 3), 0, 100),
            "w": np.clip(np.round(np.exp(rng.normal(1, 0.7, n_rows)), 3), 1, 20),
            "g": rng.choice(LEVELS["g"], n_rows),
            "h": np.array(LEVELS["h"])[unit % 3],
            "psu": unit,
        }
    )


ROWS = sample()


def book(**words):
    design = dp.design(**{"weights": "w", "bounds": (1, 20), "weights_are": "design"} | words)
    return dp.codebook(y=(0, 100), **LEVELS, design=design)


def linearised(scores, rows, strata=None, psu=None, fpc=None):
    """Standard errors of sums of scores, by the formula of R's svytotal."""
    units = rows["psu"] if psu else pd.Series(range(len(rows)), index=rows.index)
    strata = rows["h"] if strata else pd.Series(0, index=rows.index)
    sums = scores.groupby([strata, units]).sum()
    variance = 0.0
    for level, of_stratum in sums.groupby(level=0):
        n = len(of_stratum)
        left = 1 - n / fpc[level] if fpc else 1.0
        variance += left * n / (n - 1) * ((of_stratum - of_stratum.mean()) ** 2).sum()
    return variance**0.5


DESIGNS = {
    "rows": {},
    "strata": {"strata": "h"},
    "units": {"psu": "psu"},
    "units by strata": {"psu": "psu", "strata": "h"},
    "populations": {"strata": "h", "fpc": {"n": 900, "s": 500, "w": 2000}},
}


@pytest.mark.parametrize("words", DESIGNS.values(), ids=DESIGNS)
def test_a_huge_budget_gives_hajek_means_and_their_linearised_errors(words):
    fit = dp.dp_mean("y ~ g", ROWS, codebook=book(**words), **HUGE)
    for level in LEVELS["g"]:
        domain = ROWS["w"] * (ROWS["g"] == level)
        mean = float((domain * ROWS["y"]).sum() / domain.sum())
        assert fit.params[level] == pytest.approx(mean, rel=1e-8)
        scores = domain * (ROWS["y"] - mean) / domain.sum()
        assert fit.bse_sampling[level] == pytest.approx(linearised(scores, ROWS, **words), rel=1e-8)


@pytest.mark.parametrize("words", DESIGNS.values(), ids=DESIGNS)
def test_a_huge_budget_gives_totals_and_their_linearised_errors(words):
    fit = dp.dp_total("y ~ g", ROWS, codebook=book(**words), **HUGE)
    for level in LEVELS["g"]:
        scores = ROWS["w"] * ROWS["y"] * (ROWS["g"] == level)
        assert fit.params[level] == pytest.approx(float(scores.sum()), rel=1e-8)
        assert fit.bse_sampling[level] == pytest.approx(linearised(scores, ROWS, **words), rel=1e-8)


def test_a_huge_budget_gives_the_variance_of_r():
    """R: ``svyvar``, of all rows."""
    fit = dp.dp_var("~ y", ROWS, codebook=book(), **HUGE)
    w, y, n = ROWS["w"], ROWS["y"], len(ROWS)
    squares = (y - (w * y).sum() / w.sum()) ** 2 * n / (n - 1)
    variance = float((w * squares).sum() / w.sum())
    assert fit.params.item() == pytest.approx(variance, rel=1e-8)
    error = linearised(w * (squares - variance) / w.sum(), ROWS)
    assert fit.bse_sampling.item() == pytest.approx(error, rel=1e-8)


UNITS = ({"psu": "psu"}, {"psu": "psu", "strata": "h"})


# Variances have no sampling units.
@pytest.mark.parametrize(
    ("verb", "words"),
    [*product(("mean", "total"), UNITS), *product(("mean", "total", "var"), ({},))],
)
def test_intervals_are_students_by_the_effective_number_of_units(verb, words):
    rows = sample(n_rows=300, units=12)
    fit = getattr(dp, f"dp_{verb}")("~ y", rows, codebook=book(**words), **HUGE)
    units = rows.groupby("psu" if words else rows.index)["w"].sum()
    n_strata = 3 if "strata" in words else 1
    freedom = min(units.sum() ** 2 / (units**2).sum() - 1, len(units) - n_strata)
    half = np.diff(fit.conf_int().to_numpy()).item() / 2
    expected = stats.t(freedom).ppf(0.975) * fit.bse_sampling.item()
    assert half == pytest.approx(expected, rel=1e-6)


def test_one_public_population_corrects_all_errors():
    plain, finite = (
        dp.dp_mean("~ y", ROWS, codebook=book(fpc=size), **HUGE) for size in (None, 1800)
    )
    ratio = finite.bse_sampling.item() / plain.bse_sampling.item()
    assert ratio == pytest.approx(0.5**0.5, rel=1e-8)


def test_weights_are_not_capped_where_noise_is_nothing():
    fit = dp.dp_mean("~ y", ROWS, codebook=book(), **HUGE)
    table = fit.design.iloc[0]
    assert table["weight"] == pytest.approx(ROWS["w"].sum(), rel=1e-8)
    assert abs(table["capped"]) < 1e-6
    assert abs(table["shift"]) < 1e-6


def test_the_cap_costs_little_where_the_declared_bound_costs_much():
    """The figures of 20,000 rows of cv 1, bounds to 50 and rho = .02.

    Noise of 1.2 sampling errors (1.3 here, as sampling errors are estimated): more than 2 in a
    fortieth of the releases, and in half of eleven with probability 2e-7. Estimates are within six
    of their errors: a false alarm in 5e7.
    """
    rng = np.random.default_rng(1)
    weights = np.exp(rng.normal(0, 0.83, 20_000))
    weights = np.clip(3 * weights / weights.mean(), 1, 50)
    y = np.clip(rng.normal(40, 20, 20_000) + 3 * np.log(weights), 0, 100)
    design = dp.design(weights="w", bounds=(1, 50), weights_are="design")
    codebook = dp.codebook(y=(0, 100), design=design)
    rows, truth = {"y": y, "w": weights}, (weights * y).sum() / weights.sum()
    budget = dp.ZCDP(0.02)
    fits = [dp.dp_mean("~ y", rows, codebook=codebook, budget=budget) for _ in range(11)]
    ratios = [fit.bse_noise.item() / fit.bse_sampling.item() for fit in fits]
    assert np.median(ratios) < 2
    for fit in fits:
        assert 5 < fit.release.weights.cap < 35
        assert abs(fit.params.item() - truth) < 6 * fit.bse_noise.item()
        low, high = fit.conf_int().loc["(all)"]
        assert low < fit.params.item() < high


def test_a_test_of_two_means_allows_for_the_cap():
    # A cap at the declared bound cuts nothing off, so the draws are fixed.
    with dp.simulation(seed=1):
        fit = dp.dp_ttest("y ~ g", ROWS, codebook=book(), eps=2.0)
    moments = fit.means._moments
    extra = 100 * np.sqrt((moments.shift_sd**2).sum())
    assert extra > 0
    assert fit.bse_noise >= extra
    half = np.diff(fit.noise_int().to_numpy()).item() / 2
    assert half >= 1.9 * extra


@pytest.mark.product
def test_a_session_a_file_and_a_call_have_the_same_design(tmp_path):
    design = book(psu="psu").design
    plain = dp.codebook(y=(0, 100), **LEVELS)
    session = dp.session(ROWS, plain, eps=4.0, delta=1e-6, design=design)
    assert session.codebook.design == design
    assert session.ledger.adjacency.person == "psu"
    fit = session.mean("y ~ g", eps=2.0, delta=5e-7)
    fit.save(tmp_path / "fit.json")
    again = dp.load(tmp_path / "fit.json")
    pd.testing.assert_frame_equal(again.tidy(), fit.tidy())
    pd.testing.assert_frame_equal(again.design, fit.design)
    assert again.request.codebook.design == design
    alone = dp.dp_mean("~ y", ROWS, codebook=plain, eps=1.0, design=design)
    assert alone.release.adjacency.person == "psu"
    unweighted = session.mean("~ y", eps=0.5, delta=1e-7, design=False)
    assert unweighted.release.weights is None
    assert unweighted.release.adjacency.person == "psu"


REFUSED = {
    "another verb": (lambda: dp.dp_pca("~ y", ROWS, codebook=book(), eps=1), "dp_pca takes no"),
    "synthetic rows": (
        lambda: dp.dp_synth("~ g + h", ROWS, codebook=book(), eps=1, delta=1e-6),
        "dp_synth takes no survey",
    ),
    "planes": (
        lambda: dp.dp_hist("~ y + log(y + 1)", ROWS, codebook=book(), eps=1, breaks=(4, 4)),
        "of two numbers takes no",
    ),
    "another unit": (
        lambda: dp.dp_mean("~ y", ROWS, codebook=book(), eps=1, person="psu"),
        "the row, not one person",
    ),
    "rows of a unit": (
        lambda: dp.dp_mean("~ y", ROWS, codebook=book(psu="psu"), eps=1, rows=3),
        "sampling unit, not",
    ),
    "few in the population": (
        lambda: dp.dp_mean("~ y", ROWS, codebook=book(fpc=500), eps=1),
        "less than the 900 rows",
    ),
    "sites": (
        lambda: dp.dp_mean(
            "~ y",
            sites={"a": ROWS[:400], "b": ROWS[400:].copy()},
            protocol="pooled",
            codebook=book(),
            eps=1,
        ),
        "one table",
    ),
    "another mechanism": (
        lambda: dp.dp_mean("~ y", ROWS, codebook=book(), eps=1, mechanism="geometric"),
        "'capped'",
    ),
    "precision weights": (
        lambda: dp.dp_lm("y ~ g", ROWS, codebook=book(), eps=1, weights="w"),
        "dp_lm takes no|precision weights",
    ),
}


@pytest.mark.guarding
@pytest.mark.parametrize(("call", "text"), REFUSED.values(), ids=REFUSED)
def test_what_a_design_cannot_be_used_with_is_refused_before_the_charge(call, text):
    ledger = dp.Ledger(eps=5)
    with dp.options(ledger=ledger), pytest.raises(ArgumentError, match=text):
        call()
    assert ledger.charges == 0


def test_levels_of_fpc_have_to_be_strata():
    with pytest.raises(CodebookError, match="not a level"):
        dp.dp_mean("~ y", ROWS, codebook=book(strata="h", fpc={"north": 99}), eps=1)


def test_without_a_design_there_is_no_table_of_it():
    fit = dp.dp_mean("~ y", ROWS, codebook=dp.codebook(y=(0, 100)), eps=1)
    with pytest.raises(NotAvailable, match="no survey design"):
        assert fit.design.empty


def test_the_report_says_what_was_capped_and_what_a_unit_is():
    fit = dp.dp_total("y ~ g", ROWS, codebook=book(psu="psu", strata="h"), eps=60.0, delta=1e-6)
    text = str(fit.summary(notes="all"))
    assert "sampling units psu" in text
    assert "Units of weight above" in text
    assert "person" not in text
    assert "linearised over sampling units" in " ".join(text.split())
    assert fit.glance()["unit"].iloc[0] == "one sampling unit (all rows)"
    assert "sampling unit" in str(dp.etable(fit, fit).summary())


@pytest.mark.parametrize("eps", [0.05, 1.0])
@pytest.mark.parametrize("verb", [dp.dp_mean, dp.dp_var])
def test_what_noise_hides_of_the_cap_is_not_a_percentage(verb, eps):
    with dp.simulation(seed=7):
        fit = verb("y ~ g", ROWS, codebook=book(psu="psu"), eps=eps, delta=1e-6)
    text = " ".join(str(fit.summary(notes="all")).split())
    assert "nan" not in text
    assert "Noise hides how much of the weight this cut off" in text


def test_totals_without_a_design_are_those_of_the_rows():
    codebook = dp.codebook(y=(0, 100), **LEVELS)
    fit = dp.dp_total("y ~ g", ROWS, codebook=codebook, eps=1e6)
    np.testing.assert_allclose(fit.params, ROWS.groupby("g")["y"].sum(), rtol=1e-4)
    scores = ROWS["y"] * (ROWS["g"] == "a")
    assert fit.bse_sampling["a"] == pytest.approx(linearised(scores, ROWS), rel=1e-2)


@pytest.mark.parametrize("verb", [dp.dp_mean, dp.dp_total])
def test_bounds_that_are_far_too_wide_are_searched(verb):
    """A range is released where the number of rows is public; it has nearly all of them."""
    rng = np.random.default_rng(4)
    rows = pd.DataFrame(
        {"y": rng.normal(40, 5, 20_000).clip(0, 100), "w": rng.choice([2.0, 5.0], 20_000)}
    )
    design = dp.design(weights="w", bounds=(1, 20), weights_are="design")
    fits = []
    with dp.simulation(seed=3):
        for upper in (100, 10_000):
            words = {"codebook": dp.codebook(y=(0, upper)), "design": design}
            fits.append(verb("~ y", rows, eps=1.0, delta=1e-6, **words))
        private = verb("~ y", rows, eps=1.0, delta=1e-6, adjacency="add-remove", **words)
    narrow, wide = fits
    assert wide.release.held is not None
    assert wide.release.held.lower < 25 < 55 < wide.release.held.upper < 200
    assert float(wide.bse_noise.iloc[0]) < 3 * float(narrow.bse_noise.iloc[0])
    exact = np.average(rows["y"], weights=rows["w"])
    if verb is dp.dp_total:
        exact *= rows["w"].sum()
    assert abs(float(wide.params.iloc[0]) - exact) < 6 * float(wide.bse_noise.iloc[0])
    assert "a range released first" in str(wide.summary())
    assert private.release.held is None


@pytest.mark.parametrize("verb", [dp.dp_mean, dp.dp_total])
def test_the_range_of_a_sum_is_searched_by_noise_that_grows_as_its_length(verb, monkeypatch):
    powers = []
    monkeypatch.setattr(
        "dpmodels.mechanisms.sampled.capped.found_range",
        lambda edges, counts, noise, price, power: powers.append(power),
    )
    design = dp.design(weights="w", bounds=(1, 20), weights_are="design")
    rows = pd.DataFrame({"y": np.arange(400.0), "w": 2.0})
    words = {"codebook": dp.codebook(y=(0, 10_000)), "design": design, "eps": 1.0}
    with dp.simulation(seed=3):
        verb("~ y", rows, mechanism=Capped(ranged=True), **words)
    assert powers == [1]


def test_a_range_and_weights_are_charged_as_two_tables():
    facts = CountFacts(1, 7, True, Adjacency("replace"), side_tables=1)
    first = Capped(ranged=True).plan(facts, ZCDP(0.1)).first
    assert first is not None
    # A row moves two numbers of each table: 2 = sqrt(4), of a tenth of the budget.
    assert first.noise_sd == pytest.approx(2 / np.sqrt(2 * 0.01), rel=1e-3)
    assert first.noise_sd >= 2 / np.sqrt(2 * 0.01)


@pytest.mark.expensive
def test_no_variance_exceeds_that_of_rows_at_both_ends_of_the_range():
    """Half of the rows are at each end: half of the noisy estimates would be above that."""
    rows = pd.DataFrame({"y": [0.0, 100.0] * 100, "w": 1.0})
    largest, narrow = 50**2 * 200 / 199 * (1 + 1e-9), book(bounds=(1, 1.5))
    with dp.simulation(seed=1):
        fits = [dp.dp_var("~ y", rows, codebook=narrow, eps=1.0) for _ in range(8)]
    estimates = np.array([fit.params.to_numpy() for fit in fits])
    assert estimates.max() == pytest.approx(largest)
    for fit in fits:
        assert max(fit.conf_int().to_numpy().max(), fit.noise_int().to_numpy().max()) <= largest


REFERENCE = Path(__file__).parent / "design_reference"
STORED = json.loads((REFERENCE / "survey.json").read_text())
TWO_STAGES = {
    "weights": {},
    "strata": {"strata": "stratum"},
    "psus": {"psu": "psu"},
    "both": {"psu": "psu", "strata": "stratum"},
    "finite": {
        "psu": "psu",
        "strata": "stratum",
        "fpc": {"north": 12, "south": 9, "east": 40, "west": 8},
    },
}


@pytest.mark.parametrize(("kind", "words"), TWO_STAGES.items(), ids=TWO_STAGES)
def test_the_design_effect_and_degrees_of_freedom_are_those_of_r(kind, words):
    """R: ``deff(svymean(~y, design, deff = TRUE))`` and ``degf``.

    R divides by the variance of n rows drawn without replacement, here rows are drawn with it.
    """
    rows, stored = pd.read_csv(REFERENCE / "table.csv"), STORED[kind]
    book = dp.codebook(y=(0, 100), group=["a", "b", "c"], stratum=[*TWO_STAGES["finite"]["fpc"]])
    design = dp.design(weights="w", bounds=(1, 50), weights_are="design", **words)
    options = {"codebook": book, "design": design, **HUGE}
    of_mean = dp.dp_mean("~ y", rows, **options).design.iloc[0]
    shares = dp.dp_table("~ group", rows, **options).design
    assert shares["df"].to_numpy() == pytest.approx(stored["degrees"], rel=1e-8)
    weights = rows.groupby("psu" if "psu" in words else rows.index)["w"].sum()
    kish = weights.sum() ** 2 / (weights**2).sum()
    assert of_mean["df"] == pytest.approx(min(kish - 1, stored["degrees"]), rel=1e-8)
    if "psu" in words:
        assert np.isnan(of_mean["deff"])
        return
    of_r = stored["effect"] * (1 - len(rows) / rows["w"].sum())
    assert of_mean["deff"] == pytest.approx(of_r, rel=1e-8)
    assert of_mean["effective_n"] == pytest.approx(len(rows) / of_r, rel=1e-8)
    errors = np.diag(np.reshape(stored["proportions"]["covariance"], (3, 3)))
    proportions = np.array(stored["proportions"]["estimate"])
    simple = proportions * (1 - proportions) / (len(rows) - 1)
    assert shares["deff"].to_numpy() == pytest.approx(errors / simple, rel=1e-8)


def test_a_table_without_units_is_answered_by_noise():
    """Their number is public, and no share of a budget finds a cap for none."""
    rows = {"y": [], "g": [], "u": [], "w": []}
    design = dp.design(psu="u", weights="w", bounds=(1, 8), weights_are="design")
    book = dp.codebook(y=(0, 10), g=["a", "b"], design=design)
    assert len(dp.dp_mean("y ~ g", rows, codebook=book, eps=3.0, delta=1e-6).params) == 2
