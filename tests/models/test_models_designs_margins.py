"""Margins under a survey design: R's values, agreement of margins, missing levels, reports."""

import numpy as np
import pandas as pd
import pytest
from test_models_designs import HUGE, LEVELS, ROWS, book
from test_models_designs_counts import KINDS, STORED, TABLE, reference

import dpmodels as dp
from dpmodels.errors import ArgumentError
from dpmodels.postprocess.residuals import rebuilt
from dpmodels.results.weighted_margins import WeightedMarginsResult

FORMULA = "~ g*h + h:k"
DESIGNS = {"rows": {}, "units": {"psu": "psu"}}


def known(**words):
    return dp.codebook(book(**words), k=["u", "v"])


def incomplete():
    rows = ROWS.assign(k=np.where(np.arange(len(ROWS)) % 3, "v", "u"))
    rows.loc[::17, "g"] = None
    rows.loc[::23, "h"] = None
    return rows


@pytest.mark.expensive
@pytest.mark.parametrize("kind", KINDS)
def test_a_huge_budget_gives_the_margins_of_r(kind):
    """R: svytable, and svymean of a factor."""
    fit = dp.dp_margins("~ group*z", TABLE, codebook=reference(kind), **HUGE)
    counts = fit.table("group", "z").counts.to_numpy().ravel(order="F")
    np.testing.assert_allclose(counts, STORED[kind]["counts"], rtol=1e-8)
    cells = fit.table("group")._cells
    estimates, base, errors = cells.shares(cells.single)
    stored = STORED[kind]["proportions"]
    np.testing.assert_allclose(estimates, stored["estimate"], rtol=1e-8)
    variances = np.reshape(stored["covariance"], (3, 3)).diagonal()
    np.testing.assert_allclose(errors.sampling / base**2, variances, rtol=1e-8)


@pytest.mark.product
@pytest.mark.parametrize("words", DESIGNS.values(), ids=DESIGNS)
def test_each_margin_is_that_of_its_table_whatever_is_missing(words):
    rows = incomplete()
    fit = dp.dp_margins(FORMULA, rows, codebook=known(**words), **HUGE)
    for term in fit.terms:
        margin = fit.table(term)
        factors = list(margin.call.tables[0].factors)
        exact = rows.groupby(factors)["w"].sum()
        np.testing.assert_allclose(margin.counts.to_numpy().ravel(), exact, rtol=1e-8)
        table = dp.dp_table("~ " + " + ".join(factors), rows, codebook=known(**words), **HUGE)
        columns = ["std_error", "proportion"]
        np.testing.assert_allclose(margin.tidy()[columns], table.tidy()[columns], rtol=1e-6)


@pytest.mark.parametrize("words", DESIGNS.values(), ids=DESIGNS)
def test_margins_agree_with_those_of_missing_levels(words):
    fit = dp.dp_margins(FORMULA, incomplete(), codebook=known(**words), eps=2.0, delta=1e-6)
    sizes = (3, 4, 3)
    for parts in fit._fits:
        alone = rebuilt((1,), parts, sizes)
        for term, axis in (((0, 1), 0), ((1, 2), 1)):
            table = rebuilt(term, parts, sizes)
            np.testing.assert_allclose(table.sum(axis=axis), alone, atol=1e-9)
    counts = rebuilt((0, 1), fit._fits[0], sizes)[:-1, :-1]
    weights = fit.table("g", "h").release.values[:-1]
    np.testing.assert_allclose(weights, counts.ravel(), atol=1e-9)


def test_a_margin_of_rows_has_the_noise_of_the_smallest_table_that_it_is_a_sum_of():
    fit = dp.dp_margins(FORMULA, incomplete(), codebook=known(), eps=2.0, delta=1e-6)
    ratio = fit.table("g").release.noise_sd / fit.release.noise_sd
    assert ratio == pytest.approx(np.sqrt(4))
    assert fit.table("h").release.noise_sd / fit.release.noise_sd == pytest.approx(np.sqrt(3))
    weights = fit.table("g").release.weights
    assert weights.capped_sd / fit.release.weights.capped_sd == pytest.approx(2)


@pytest.mark.product
def test_a_session_a_file_and_a_report_have_the_margins_of_a_design(tmp_path):
    plain = dp.codebook(k=["u", "v"], **LEVELS)
    session = dp.session(incomplete(), plain, eps=9.0, design=book(strata="h").design)
    fit = session.margins(FORMULA, eps=4.0)
    assert isinstance(fit, WeightedMarginsResult)
    fit.save(tmp_path / "fit.json")
    again = dp.load(tmp_path / "fit.json")
    pd.testing.assert_frame_equal(again.tidy(), fit.tidy())
    pd.testing.assert_frame_equal(again.design, fit.design)
    fit.table("h").save(tmp_path / "table.json")
    table = dp.load(tmp_path / "table.json")
    pd.testing.assert_frame_equal(table.tidy(), fit.table("h").tidy())
    assert fit.glance()["nmargins"].item() == 4
    assert fit.plot("h", "k") is not None
    text = " ".join(str(fit.summary(notes="all")).split())
    assert "agree across margins" in text
    units = dp.dp_margins(FORMULA, incomplete(), codebook=known(psu="psu"), eps=4.0)
    assert "person" not in str(units.summary(notes="all"))


def test_other_margins_are_refused_by_name():
    units = dp.dp_margins("~ g:h", incomplete(), codebook=known(psu="psu"), eps=2.0)
    with pytest.raises(ArgumentError, match="'h' was not requested"):
        units.table("h")
    rows = dp.dp_margins("~ g:h", incomplete(), codebook=known(), eps=2.0)
    assert rows.table("h").release.noise_sd > rows.release.noise_sd
    with pytest.raises(ArgumentError, match="in no margin"):
        rows.table("k")
    with pytest.raises(ArgumentError, match="capped"):
        dp.dp_margins("~ g:h", incomplete(), codebook=known(), eps=2.0, mechanism="residual")


@pytest.mark.product
@pytest.mark.parametrize("words", DESIGNS.values(), ids=DESIGNS)
def test_noise_intervals_cover_the_weighted_margins(words):
    """Of 40 releases of 17 cells 600 or more of 680 intervals.

    At .95 the mean is 646; of 40 releases whose cells move together by a half, the standard
    deviation is below 9.5, and 600 is 4.9 of them below: a false alarm in 2e6.
    """
    rng, hits = np.random.default_rng(5), 0
    rows = pd.concat([incomplete()] * 8, ignore_index=True)
    rows["psu"] = rows["psu"] + 60 * np.repeat(np.arange(8), len(ROWS))
    rows["k"] = rng.choice(["u", "v"], len(rows))
    terms = (["g"], ["h"], ["g", "h"], ["h", "k"])
    truth = np.concatenate([rows.groupby(term)["w"].sum() for term in terms])
    for seed in range(40):
        with dp.simulation(seed=seed):
            fit = dp.dp_margins(FORMULA, rows, codebook=known(**words), eps=3.0, delta=1e-6)
        low, high = fit.noise_int().to_numpy().T
        hits += int(((low <= truth) & (truth <= high)).sum())
    assert hits >= 600
