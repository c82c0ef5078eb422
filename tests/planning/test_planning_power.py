"""``dp.power`` as it is used, and what it refuses."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError, CodebookError, NotAvailable
from dpmodels.planning.verbs import POWERS
from dpmodels.results.plan import PowerResult

BOOK = dp.codebook(wage=(0, 80), age=(18, 80), sex=["F", "M"], edu=["low", "mid", "high"])
USUAL = {"verb": "ttest", "codebook": BOOK, "n": 2_000, "eps": 1.0, "effect": 2.0}


@pytest.fixture(scope="module", autouse=True)
def _few_runs():
    """Forty releases of each, enough where nothing is tested statistically."""
    powers = dict(POWERS)
    POWERS.update({kind: plan._replace(runs=40, extra_runs=0) for kind, plan in powers.items()})
    yield
    POWERS.update(powers)


@pytest.fixture(scope="module")
def plan(_few_runs):
    return dp.power("wage ~ sex", **USUAL)


def test_a_plan_says_what_it_assumes(plan):
    text = plan.summary().as_text()
    for name in ("dp_ttest", "n = 2,000, eps = 1", "normal, 3 sd", "Mechanism: ", "price"):
        assert name in text
    assert plan.n == 2_000
    assert plan.eps == 1.0
    assert repr(plan) == "<PowerResult of ttest 'wage ~ sex': n=2,000, eps=1, nothing spent>"
    assert plan.glance()["power"].item() == plan.power.item()
    assert plan.bse.item() == plan.tidy()["std_error"].item()
    assert plan.effect.item() == pytest.approx(2.0, rel=0.01)


def test_noise_costs_power_and_rows(plan):
    line = plan.table.iloc[0]
    assert line["power"] < line["without_noise"]
    assert line["price"] == pytest.approx((line["std_error"] / line["sampling_se"]) ** 2)
    assert line["price"] > 1


def test_nothing_is_charged_and_nothing_read():
    ledger = dp.Ledger(eps=1.0)
    with dp.options(ledger=ledger):
        dp.power("wage ~ edu", **{**USUAL, "verb": "mean", "n": 100})
    assert ledger.entries == ()


@pytest.mark.product
def test_plans_repeat(plan):
    again = dp.power("wage ~ sex", **USUAL)
    pd.testing.assert_frame_equal(plan.table, again.table)


@pytest.mark.product
def test_several_numbers_of_rows_are_a_curve(plan):
    words = {**USUAL, "n": [200, 800, 3_000]}
    several = dp.power("wage ~ sex", **words)
    assert several.cells == 3
    assert several.table["power"].is_monotonic_increasing
    ax = several.plot()
    assert ax.get_xlabel() == "rows"
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), several.table["power"])
    with pytest.raises(NotAvailable, match="3 cells"):
        several.power  # noqa: B018
    with pytest.raises(NotAvailable, match="list several of them"):
        plan.plot()


@pytest.mark.parametrize("n_eps", [1, 2])
def test_each_curve_of_power_is_named_by_its_term_and_what_else_varies(n_eps, monkeypatch):
    lines = {}
    monkeypatch.setattr(
        "dpmodels.plots.curves.curves", lambda labelled, **_: lines.update(labelled)
    )
    cells = [
        (term, n, eps, 0.5, n * eps, n + 1.0, n + 2.0)
        for term in ("age", "sex[T.M]")
        for eps in (1.0, 2.0)[:n_eps]
        for n in (3_000, 1_000)
    ]
    names = ["term", "n", "eps", "effect", "power", "without_noise", "identified"]
    PowerResult.plot(SimpleNamespace(table=pd.DataFrame(cells, columns=names)))
    labels = {1: ["age", "sex[T.M]"], 2: [f"{term}, eps {eps}" for term in ("age", "sex[T.M]")
                                         for eps in (1.0, 2.0)]}  # fmt: skip
    assert list(lines) == labels[n_eps]
    n_rows = np.array([1_000.0, 3_000.0])
    for label, line in lines.items():
        eps = 2.0 if label.endswith("2.0") else 1.0
        np.testing.assert_array_equal(line, [n_rows, n_rows * eps, n_rows + 1, n_rows + 2])


def test_a_public_sample_is_planned_with_and_none_of_it_is_shown():
    rng = np.random.default_rng(4)
    sample = pd.DataFrame({"age": rng.uniform(20, 70, 900).round(3)})
    sample["wage"] = 10 + 0.4 * sample["age"] + rng.normal(0, 4, 900)
    plan = dp.power("wage ~ age", codebook=BOOK, shape=sample, n=3_000, eps=3.0, effect="sample")
    assert plan.effect["age"] == pytest.approx(0.4, abs=0.05)
    text = plan.summary().as_text() + repr(plan) + repr(plan.request)
    assert "public sample of 900" in text
    assert str(sample["age"][0]) not in text


def test_neighbours_and_budgets_are_those_of_the_verb():
    words = {**USUAL, "eps": None, "budget": dp.ZCDP(0.1), "adjacency": "add-remove"}
    text = dp.power("wage ~ sex", **words).summary().as_text()
    assert "rho" in text
    assert "add or remove" in text


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("changed", "reported"),
    [
        ({"power": 0.8}, "left out: none of them; leave out exactly one of n, eps"),
        ({"n": None, "eps": None}, "left out: n, eps"),
        ({"effect": None}, "left out: effect, power"),
        ({"effect": None, "diference": 1}, "diference= is not expected"),
        ({"n": 0}, r"n=0: expected a whole number from 10"),
        ({"n": []}, "an empty list"),
        ({"n": list(range(10, 200))}, "190 cells"),
        ({"effect": 0}, "other than 0"),
        ({"effect": {"sex": 1}}, "the terms are 'F - M'"),
        ({"effect": {}}, "names no term; write one of 'F - M'"),
        ({"n": None, "power": 0.8, "effect": {}}, "names no term"),
        ({"verb": "table", "time": "edu"}, "time= is not expected"),
        ({"effect": None, "power": 0.05}, "between alpha=0.05 and 1"),
        ({"effect": None, "power": 1.0}, "between alpha=0.05 and 1"),
        ({"alpha": 0}, "alpha=0"),
        ({"verb": "pca"}, "verb='pca': expected one of 'glm', 'hist', 'lm', 'margins', 'mean'"),
        ({"verb": "series"}, "dp_series needs time="),
        ({"person": "id"}, "number of persons as n"),
        ({"weights": "w"}, "weights= is not expected"),
        ({"shape": "gauss"}, "shape='gauss'"),
        ({"shape": pd.DataFrame({"wage": [1.0]})}, "lacks the column 'sex'"),
    ],
)
def test_what_is_no_plan_is_refused(changed, reported):
    with pytest.raises(ArgumentError, match=reported):
        dp.power("wage ~ sex", **{**USUAL, **changed})


@pytest.mark.product
def test_where_there_are_no_standard_errors_the_eps_is_said_that_gives_some():
    words = {"codebook": BOOK, "n": 1_000, "effect": 0.05}
    plan = dp.power("wage ~ age", eps=0.1, **words)
    assert plan.table["identified"].item() < 0.5
    assert np.isnan(plan.table["price"].item())
    assert 0.2 <= plan.request.enough <= 2
    assert f"about eps = {plan.request.enough:.2g} is needed" in plan.summary().as_text()
    enough = dp.power("wage ~ age", eps=plan.request.enough, **words)
    assert enough.table["identified"].item() > 0.5
    assert np.isnan(enough.request.enough)


@pytest.mark.product
def test_a_level_without_rows_has_no_price():
    words = {**USUAL, "verb": "table", "effect": 0.1, "shape": {"sex": [1.0, 0.0]}}
    table = dp.power("~ sex", **words).table.set_index("term")
    assert table.loc["M", "sampling_se"] == 0
    assert np.isinf(table.loc["M", "price"])
    assert "Inf x" not in dp.power("~ sex", **words).summary().as_text()


def test_answers_of_rows_for_themselves_are_not_planned():
    words = {**USUAL, "verb": "table", "effect": 0.1, "mechanism": "randomized_response"}
    with pytest.raises(ArgumentError, match='write "auto", "geometric"'):
        dp.power("~ sex + edu", **words)


def test_errors_of_codebooks_and_budgets_are_the_verbs():
    with pytest.raises(CodebookError):
        dp.power("income ~ sex", **USUAL)
    with pytest.raises(BudgetError):
        dp.power("wage ~ sex", **{**USUAL, "eps": -1.0})
    with pytest.raises(BudgetError):
        dp.power("wage ~ sex", **{**USUAL, "budget": dp.ZCDP(0.1)})


@pytest.mark.product
@pytest.mark.parametrize(
    ("verb", "formula", "words"),
    [
        ("var", "wage ~ sex", {}),
        ("hist", "~ wage", {}),
        ("quantile", "wage ~ sex", {"probs": [0.5]}),
        ("summary", "wage + edu ~ sex", {}),
        ("survfit", "Surv(age, sex) ~ 1", {"breaks": 20}),
    ],
)
def test_a_verb_with_intervals_has_power_for_its_estimates(verb, formula, words):
    """The effect of power 0.8 has about this power; more rows, more power."""
    common = {"verb": verb, "codebook": BOOK, "eps": 2.0, **words}
    solved = dp.power(formula, n=4_000, power=0.8, **common)
    power = solved.table["power"].dropna()
    assert len(power) > 0
    assert power.between(0.6, 0.95).mean() > 0.7
    assert (solved.table["std_error"] >= 0.9 * solved.table["sampling_se"]).all()
    effect = solved.table.dropna(subset="power").set_index("term")["effect"].to_dict()
    few, second = (
        dp.power(formula, n=n, effect=effect, **common).table["power"].mean()
        for n in (1_000, 16_000)
    )
    assert few < power.mean() < second
