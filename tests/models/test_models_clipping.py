"""Values beyond the declared bounds: their noisy counts, what these cost, and who is warned."""

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest
from verb_entry import BOOK as PEOPLE
from verb_entry import people
from verbs import forms

import dpmodels as dp
from dpmodels.errors import ArgumentError, DPModelsError, NotAvailable
from dpmodels.models.verb_spec import GAUSSIAN_SHARE, NOISE_FACTOR
from dpmodels.privacy import GaussianEvent
from dpmodels.sites import Parties, Witness

N = 4_000
LEVELS = np.array(["n", "s"])
ROWS = pd.DataFrame(
    {
        "age": np.linspace(18, 90, N),
        "visits": np.arange(N) % 8,
        "wage": np.linspace(0, 50, N) ** 1.2,
        "region": LEVELS[np.arange(N) % 2],
        "id": np.arange(N) // 2,
    }
)
# A third of the ages lie above, an eighth of the visits below; wages fit.
BOOK = dp.codebook(age=(18, 66), visits=dp.Integer(1, 7), wage=(0, 200), region=["n", "s"])
BUDGETS = [dp.PureDP(1.0), dp.ApproxDP(1.0, 1e-6), dp.ZCDP(0.02)]
CALLS = [
    (dp.dp_mean, "~ age", {}),
    (dp.dp_cov, "~ age + visits + wage", {}),
    (dp.dp_lm, "wage ~ age + region", {}),
    (dp.dp_glm, "I(wage > 20) ~ age", {}),
    (dp.dp_hist, "~ age", {"breaks": 6}),
    (dp.dp_quantile, "~ wage", {"probs": [0.5]}),
]


def exact_counts(rows, formula="~ age + visits", **words):
    """Return the exact counts beside a release of moments, and their plan."""

    class Watcher(Witness):
        def measured(self, joint, statistics):
            self.last = joint.strategy, statistics[0].cross()[0], joint.plan

    watcher = Watcher()
    dp.dp_cov(formula, Parties(("",), (rows,), witness=watcher), **words)
    return watcher.last


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize(("verb", "formula", "words"), CALLS)
def test_both_fit_the_budget(verb, formula, words, budget):
    for relation in ({}, {"rows": 2}, {"person": "id"}):
        ledger = dp.Ledger(budget=budget, **relation)
        fit = verb(formula, ROWS, codebook=BOOK, budget=budget, ledger=ledger, **words, **relation)
        assert ledger.entries[0].events == fit.release.events
        assert len(ledger.entries) == 1


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_the_noise_rises_by_two_percent(budget):
    noise = []
    mechanism = "laplace" if isinstance(budget, dp.PureDP) else "gauss"
    for clipping in (True, False):
        with dp.options(clipping=clipping):
            fit = dp.dp_cov("~ age + wage", ROWS, codebook=BOOK, budget=budget, mechanism=mechanism)
            noise.append(fit.release.noise.off)
        assert (fit.release.clipping is not None) == clipping
    assert noise[0] / noise[1] <= NOISE_FACTOR + 1e-9


def test_gaussian_parts_are_the_whole():
    fit = dp.dp_moments("~ age", ROWS, codebook=BOOK, eps=1.0, delta=1e-6, mechanism="gauss")
    charge, counts = fit.release.events
    multiplier = dp.privacy.gaussian_multiplier(dp.ApproxDP(1.0, 1e-6))
    assert charge.multiplier**-2 + counts.multiplier**-2 <= multiplier**-2
    assert counts == GaussianEvent(counts.multiplier)
    assert counts.multiplier == pytest.approx(multiplier / math.sqrt(GAUSSIAN_SHARE), rel=1e-6)


@pytest.mark.product
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_a_replaced_row_moves_the_counts_by_no_more_than_the_noise_is_for(budget):
    ages, visits = [-1e9, 0.0, 40.0, 1e9, math.nan], [-7, 4, 80, math.nan]
    rows = ROWS[["age", "visits"]].astype(float)
    vectors = []
    for age, visit in product(ages, visits):
        rows.loc[0, ["age", "visits"]] = age, visit
        strategy, exact, plan = exact_counts(rows, codebook=BOOK, budget=budget)
        vectors.append(exact.astype(float) / plan.units_per_row)
    values = np.array([left - right for left, right in product(vectors, vectors)])
    tables = plan.facts.tables
    assert np.abs(values).sum(axis=1).max() == 2 * tables
    scale = plan.scale / plan.units_per_row
    if strategy.info.name == "gaussian":
        needed = math.sqrt(2 * tables) * plan.events[0].multiplier
    else:
        needed = plan.events[0].multiplier
        assert plan.events[0].count == 2 * tables
    assert scale >= needed * (1 - 1e-12)


@pytest.mark.product
def test_the_shares_are_those_of_the_values():
    """The mean of 40 releases is within 5.5 of its standard errors: false alarm below 1e-6."""
    book = {**BOOK, "visits": dp.Integer(1, 7, missing=[0])}
    means = []
    for seed in range(40):
        with dp.simulation(seed=seed):
            fit = dp.dp_moments("~ age + visits", ROWS, codebook=book, eps=1.0, delta=1e-6)
        means.append(fit.clipped())
    noise = means[0]["noise_sd"] / math.sqrt(40)
    fractions = sum(table[["below", "above"]] for table in means) / 40
    frame = pd.DataFrame({"below": [0.0, 0.0], "above": [1 / 3, 0.0]}, index=["age", "visits"])
    assert (fractions - frame).abs().lt(5.5 * noise, axis=0).all(axis=None)
    assert means[0].loc["age", ["lower", "upper"]].tolist() == [18.0, 66.0]


@pytest.mark.parametrize("form", forms("planned").values(), ids=list(forms("planned")))
def test_bounds_that_are_far_too_narrow_are_told(form):
    narrow = dp.codebook({**PEOPLE, "height": (0, 2), "age": (0, 1), "wage": (0, 1)})
    try:
        fit = form.ask({**people(6_000), "height": np.ones(6_000)}, codebook=narrow)
    except DPModelsError:
        pytest.skip("the formula does not allow such bounds")
    if not {"age", "wage"} & set(fit.call.codebook) or form.verb.name in (
        "dp_bounds",
        "dp_survey",
        "dp_survfit",
    ):
        pytest.skip("nothing to clip")
    if not fit.release.adjacency.n_public or form.name in ("of sites", "lost"):
        pytest.skip("the number of rows is private, or the rows lie at sites, or noise is larger")
    facts, text = dict(fit._report().facts), fit.summary().as_text()
    assert "above" in facts["Clipped"]
    assert "Warning: values were clipped" in text


def test_where_they_are_not_counted():
    words = {"codebook": BOOK, "eps": 1.0, "delta": 1e-6}
    few = dp.dp_mean("~ age", ROWS[:100], **words)
    once = dp.dp_mean("~ age", iter([ROWS]), **words)
    private = dp.dp_mean("~ age", ROWS, adjacency="add-remove", **words)
    factor = dp.dp_table("~ region", ROWS, **words)
    with dp.options(clipping=False):
        off = dp.dp_mean("~ age", ROWS, **words)
    for fit in (few, once, private, factor, off):
        assert fit.release.clipping is None
        assert "Clipped" not in dict(fit._report().facts)
        with pytest.raises(NotAvailable, match=r"clipped\(\) is not available"):
            fit.clipped()


def test_whether_they_are_counted_depends_on_no_row():
    for rows in (ROWS, ROWS.assign(age=1e9), ROWS.assign(age=math.nan)):
        assert dp.dp_mean("~ age", rows, codebook=BOOK, eps=1.0, delta=1e-6).release.clipping


def test_a_table_without_values_and_one_within_the_bounds():
    words = {"codebook": BOOK, "eps": 1.0, "delta": 1e-6}
    with dp.simulation(seed=3):
        empty = dp.dp_mean("~ age", ROWS.assign(age=math.nan), **words)
        fitting = dp.dp_mean("~ wage", ROWS, **words)
    assert dict(empty._report().facts)["Clipped"] == "unknown, few values"
    assert empty.clipped()["above"].isna().all()
    assert dict(fitting._report().facts)["Clipped"].startswith("none detected")
    assert not any("Warning" in note for note in fitting._report().notes)


def test_variables_of_a_condition_are_not_counted():
    fit = dp.dp_mean("~ wage", ROWS, codebook=BOOK, eps=1.0, delta=1e-6, subset="age > 30")
    assert fit.release.clipping.variables == ("wage",)
    assert list(fit.clipped().index) == ["wage"]
    assert "Clipped" in fit.summary().as_text()


def test_a_part_of_a_release_tells_of_the_variables_of_its_formula():
    moments = dp.dp_moments("~ age + wage + region", ROWS, codebook=BOOK, eps=1.0, delta=1e-6)
    assert list(moments.clipped().index) == ["age", "wage"]
    model = moments.lm("wage ~ region")
    assert list(model.clipped().index) == ["wage"]
    assert "age" not in dict(model._report().facts)["Clipped"]
    assert dict(moments.lm("wage ~ age")._report().facts)["Clipped"].endswith("of age above")
    assert moments.pca("~ age").summary().as_text().count("Clipped") == 1


def test_pooled_sites_count_as_one_table():
    words = {"codebook": BOOK, "eps": 1.0, "delta": 1e-6, "mechanism": "gaussian"}
    sites = {"A": ROWS[:1_500], "B": ROWS[1_500:]}
    with dp.simulation(seed=1):
        fit = dp.dp_mean("~ age", ROWS, **words)
    with dp.simulation(seed=1):
        mean_fit = dp.dp_mean("~ age", sites=sites, protocol="pooled", **words)
    assert fit.release.clipping == mean_fit.release.clipping


def test_a_fit_with_counts_is_loaded_as_it_was(tmp_path):
    fit = dp.dp_lm("wage ~ age", ROWS, codebook=BOOK, eps=1.0, delta=1e-6)
    fit.save(tmp_path / "fit.nc")
    loaded = dp.load(tmp_path / "fit.nc")
    assert str(loaded) == str(fit)
    assert loaded.clipped().equals(fit.clipped())


def test_the_option_is_yes_or_no():
    with pytest.raises(ArgumentError, match="clipping"):
        dp.options(clipping="often")
    with dp.options(clipping=False):
        assert "clipping   False" in str(dp.options())
