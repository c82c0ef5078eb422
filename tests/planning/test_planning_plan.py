"""A whole analysis planned: every verb, divisions, what is solved for, and what is refused."""

import math

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from verbs import forms

import dpmodels as dp
from dpmodels.errors import (
    ArgumentError,
    BudgetError,
    DPModelsError,
    FormulaError,
    FrameError,
    NotAvailable,
)
from dpmodels.models.assumed_rows import assumed_rows
from dpmodels.planning.noise_curve import World, figures, released
from dpmodels.privacy import adjacency

BOOK = dp.codebook(
    age=(18, 90), wage=(0, 80), sex=["F", "M"], region=["a", "b", "c"], week=dp.Integer(1, 4)
)
# A call of every verb of a session.
CALLS = {
    form.verb.short: dp.call(form.verb.short, form.formula, **form.options)
    for form in forms("planned").values()
}
PAIR = {"wages": dp.call.mean("~ wage"), "model": dp.call.lm("wage ~ age + region")}


def planned(calls, **words):
    return dp.plan(calls, **{"codebook": BOOK, "n": 1_500, "eps": 1.0, **words})


@pytest.fixture(scope="module")
def both():
    return planned(PAIR)


@pytest.mark.product
def test_every_verb_of_a_session_has_a_call_and_its_result_figures():
    assert set(dir(dp.call)) == set(CALLS)
    world = World(assumed_rows(BOOK), BOOK, adjacency("replace"), 2_000, None)
    terms = world.terms()
    for name, call in CALLS.items():
        (fit,) = released(call, terms, dp.ApproxDP(50.0, 1e-6), 1)
        result = figures(fit)
        assert list(result) == ["value", "noise", "total"], name
        assert result["value"].notna().all(), name
        assert result.index.is_unique, name


def test_coefficients_without_a_standard_error_have_infinite_noise():
    rows = {"y": np.arange(400) % 7, "x": np.arange(400) % 5, "w": 1 + np.arange(400) % 2}
    options = {"codebook": {"y": (0, 6), "x": (0, 4), "w": (0, 2)}, "delta": 1e-6}
    fit = dp.dp_lm("y ~ x", rows, weights="w", adjacency="add-remove", eps=50.0, **options)
    assert np.isfinite(fit.bse_noise).all()
    with pytest.raises(NotAvailable, match="private number of rows"):
        fit.bse  # noqa: B018
    assert np.isinf(figures(fit)[["noise", "total"]]).all(axis=None)


@pytest.mark.slow
def test_all_verbs_are_planned_together_within_the_budget():
    result = planned(CALLS, n=20_000, eps=4.0, delta=1e-6)
    assert list(result.table["name"]) == list(CALLS)
    errors = result.table[["sampling", "noise", "total", "ratio"]]
    assert errors.notna().all(axis=None)
    # Correlations of independent columns, and a range where rows fill the bounds.
    lost = set(result.table["name"][~np.isfinite(errors).all(axis=1)])
    assert lost <= {"cca", "bounds"}
    ledger = dp.Ledger(4.0, 1e-6, pure=result.pure, rule="steps")
    rows = {"age": [40.0], "wage": [20.0], "sex": ["F"], "region": ["a"], "week": [1]}
    plan = dp.session(rows, BOOK, ledger=ledger).plan(result.calls)
    assert plan.fits
    assert ledger.entries == ()


@pytest.mark.product
def test_the_recommended_division_beats_equal_parts_where_the_optimum_is_known():
    # Equal noise by eps in both means, and sampling errors that are one to four: so are the parts.
    book = dp.codebook(wide=(0, 80), narrow=(0, 80))
    shape = {"wide": ("normal", 40, 8), "narrow": ("normal", 40, 2)}
    calls = {name: dp.call.mean(f"~ {name}", mechanism="geometric") for name in shape}
    plan = planned(calls, codebook=book, shape=shape, n=1_500, eps=1.0, best="worst")
    assert plan.table["sampling"].to_numpy() * 1_500**0.5 == pytest.approx([8, 2], rel=0.01)
    assert plan.table["share"].to_numpy() == pytest.approx([0.2, 0.8], rel=0.05)
    assert plan.table["ratio"].max() < 0.7 * plan.table["even"].max()
    mean = planned(calls, codebook=book, shape=shape, n=1_500, eps=1.0)
    lines = (np.log(mean.table[name]).sum() for name in ("ratio", "even"))
    assert next(lines) < next(lines) - 0.01


@pytest.mark.product
def test_what_is_named_is_identified_as_often_as_the_guess_tells_it_apart():
    calls = {"top": dp.call.select("~ region", k=1)}
    plan = planned(calls, shape={"region": [0.6, 0.3, 0.1]})
    assert plan.table["identified"].item() == 1
    close = planned(calls, shape={"region": [0.334, 0.333, 0.333]}, n=1_000, eps=0.05)
    assert close.table["identified"].item() < 0.8


@pytest.mark.product
def test_parts_compose_and_are_words_to_paste(both):
    plan = both
    assert sum(budget.eps for budget in plan.budgets.values()) <= 1.0
    assert sum(budget.eps for budget in plan.budgets.values()) > 0.998
    session = dp.session({"age": [40.0], "wage": [20.0], "region": ["a"]}, BOOK, eps=1.0)
    for call, written in zip(plan.calls, plan.words.values(), strict=True):
        assert repr(call) == written
    assert session.plan(plan.calls).fits


@pytest.mark.product
def test_concentrated_parts_are_written_as_they_are_said():
    plan = planned({"wages": PAIR["wages"]}, eps=None, budget=dp.ZCDP(0.05))
    assert plan.budgets["wages"].rho == pytest.approx(0.05, rel=1e-3)
    assert plan.words["wages"] == f"mean('~ wage', budget=dp.{plan.budgets['wages']})"


@pytest.mark.product
def test_what_no_release_identifies_has_what_the_other_calls_leave():
    mean_call, free = dp.call.mean("wage ~ sex", eps=0.9), dp.call.lm("wage ~ age")
    plan = dp.plan([mean_call, free], codebook=BOOK, n=60, eps=1.0)
    assert plan.budgets["mean"] == dp.PureDP(0.9)
    assert plan.budgets["lm"].eps == pytest.approx(0.1, rel=1e-3)
    average = dp.call.mean("wage ~ sex", eps=1.0)
    with pytest.raises(BudgetError, match="compose to 1, which leaves too little for the others"):
        dp.plan([average, free], codebook=BOOK, n=60, eps=1.0)


@pytest.mark.product
def test_a_call_that_says_its_budget_keeps_it():
    plan = planned({"wages": PAIR["wages"], "own": dp.call.mean("~ age", eps=0.3)})
    assert plan.budgets["own"] == dp.PureDP(0.3)
    assert sum(budget.eps for budget in plan.budgets.values()) == pytest.approx(1.0, rel=2e-3)
    model = {"model": dp.call.lm("wage ~ age"), "own": dp.call.cov("~ age + wage", eps=0.3)}
    kept = planned(model, delta=1e-6)
    assert kept.budgets["own"] == dp.ApproxDP(0.3, 1e-6)
    assert kept.table["share"].sum() == pytest.approx(1.0, rel=2e-3)
    with pytest.raises(BudgetError, match="compose to 3, more than eps = 1"):
        planned({"own": dp.call.mean("~ age", eps=3)})


@pytest.mark.product
def test_a_budget_that_is_left_out_is_the_least_that_meets_the_targets():
    calls = {"wages": PAIR["wages"]}
    plan = planned(calls, eps=None, targets={"noise": 0.5})
    eps = plan.request.guarantee.eps
    assert (plan.table["noise_share"] < 0.53).all()
    assert plan.table["noise_share"].max() > 0.4
    with pytest.raises(BudgetError, match="they need about eps = "):
        planned(calls, eps=0.7 * eps, targets={"noise": 0.5})
    with pytest.raises(BudgetError, match=r"without noise the standard error of wages is 0\.3"):
        planned(calls, eps=None, targets={"se": 0.01})


@pytest.mark.product
def test_a_number_of_rows_that_is_left_out_meets_the_targets():
    plan = planned({"wages": PAIR["wages"]}, n=None, targets={"wages": {"se": 0.4}})
    assert 0.38 < plan.table["total"].item() < 0.412
    fewer = planned({"wages": PAIR["wages"]}, n=plan.request.n_rows // 2)
    assert fewer.table["total"].item() > 0.5


@pytest.mark.product
def test_what_is_not_identified_is_said_with_what_would_identify_it():
    plan = planned(
        {"model": dp.call.glm("sex ~ age + wage"), "wages": PAIR["wages"]}, n=500, eps=0.3
    )
    line = plan.table.iloc[0]
    assert line["identified"] < 0.5
    assert math.isinf(line["total"])
    assert line["needs"] > 1
    assert "needs about eps = " in str(plan.summary())
    assert np.isfinite(plan.table["total"].iloc[1])


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("skewed", "tails", "narrow")]


@pytest.mark.product
@pytest.mark.parametrize("shape", ["zeros", *SLOW])
def test_predicted_errors_are_those_of_tables_that_are_drawn(shape):
    plan = planned({"wages": PAIR["wages"]}, shape=shape, n=2_000)
    world = World(assumed_rows(BOOK, shape), BOOK, adjacency("replace"), 2_000, None)
    # A variance of 60 draws: outside of these ends with a probability below 1e-6 for chi-square.
    terms = (world.terms(draw) for draw in range(60))
    results = [
        released(plan.lines[0].call, term, dp.PureDP(1.0), 1)[0].params.item() for term in terms
    ]
    assert 0.58 < np.std(results, ddof=1) / plan.table["total"].item() < 1.48


@pytest.mark.product
def test_neighbours_of_a_guessed_number_and_persons_are_planned_for():
    fewer = planned({"wages": PAIR["wages"]}, adjacency="add-remove")
    assert "1,500 (guessed)" in str(fewer.summary())
    persons = planned({"wages": PAIR["wages"]}, person="id", rows=4)
    assert persons.table["noise"].item() > 1.5 * fewer.table["noise"].item()


@pytest.mark.product
def test_nothing_is_charged_and_no_row_of_a_frame_is_shown():
    public = pd.DataFrame({"wage": [77.777, 12.345] * 300, "age": [31.313, 44.444] * 300})
    ledger = dp.Ledger(1.0)
    with dp.options(ledger=ledger):
        plan = planned({"wages": PAIR["wages"]}, shape=public)
    assert ledger.entries == ()
    text = str(plan.summary()) + repr(plan) + plan.table.to_string() + repr(plan.request)
    assert not any(cell in text for cell in ("77.77", "12.34", "31.31", "44.44"))


@pytest.mark.product
def test_curves_fall_and_are_drawn(both):
    plan = both
    budget, rows = plan.curve(), plan.curve("n")
    for table, across in ((budget, "eps"), (rows, "n")):
        for _, value in table.groupby("name"):
            assert value[across].is_monotonic_increasing
            assert (value["ratio"].diff().dropna() < 0).all()
        ax = plan.plot("n" if across == "n" else "budget")
        assert ax.get_ylabel() == "standard error over that without privacy"
        assert [text.get_text() for text in ax.get_legend().get_texts()] == list(PAIR)
        plt.close(ax.figure)
    with pytest.raises(ArgumentError, match="along"):
        plan.curve("eps")


REFUSED = [
    ({"n": 0}, ArgumentError, "n=0"),
    ({"calls": []}, ArgumentError, "0 calls"),
    ({"calls": "mean"}, ArgumentError, "calls of type str"),
    ({"calls": [("foo", "y ~ x")]}, NotAvailable, "expected a verb"),
    ({"calls": [("mean", "~ nothing")]}, FormulaError, "'nothing' is not in the codebook"),
    ({"calls": [dp.call.mean("~ wage", share=0.2)]}, BudgetError, "leave the share out"),
    ({"calls": [dp.call.levels("~ region")], "delta": 1e-6}, BudgetError, "write delta=1e-08"),
    ({"eps": None, "n": None}, BudgetError, "neither n nor a budget"),
    ({"eps": None}, ArgumentError, 'write targets={"noise": 0.5}'),
    ({"targets": {"wages": {"se": 1e-4}}}, BudgetError, "more rows are needed"),
    ({"targets": {"noise": 2}}, ArgumentError, "noise=2"),
    ({"targets": {"nobody": {"se": 1}}}, ArgumentError, "'nobody' is not a call"),
    ({"targets": {"wages": 3}}, ArgumentError, "write targets="),
    ({"weights": {"wages": 0}}, ArgumentError, "a positive number by call"),
    ({"best": "all"}, ArgumentError, "best"),
    ({"shape": pd.DataFrame({"age": [40.0]})}, FrameError, "shape= does not fit mean"),
    ({"shape": "round"}, ArgumentError, "shape"),
    ({"person": "id", "shape": pd.DataFrame({"wage": [40.0]})}, ArgumentError, "person=False"),
]


@pytest.mark.parametrize(("words", "kind", "reported"), REFUSED)
def test_what_cannot_be_planned_says_what_to_write(words, kind, reported):
    words = dict(words)
    with pytest.raises(kind, match=reported) as raised:
        planned(words.pop("calls", {"wages": PAIR["wages"]}), **words)
    assert isinstance(raised.value, DPModelsError)


@pytest.mark.product
def test_a_session_with_the_planned_share_makes_the_planned_calls():
    plan = planned({**PAIR, "counts": dp.call.table("~ sex")}, delta=1e-6)
    rows = {"age": [40.0] * 1_500, "wage": [20.0] * 1_500}
    rows |= {"sex": ["F"] * 1_500, "region": ["a"] * 1_500}
    session = dp.session(rows, BOOK, eps=1.0, delta=1e-6, pure=plan.pure or None)
    priced = session.plan(plan.calls)
    assert priced.fits
    lines = {line.name: line.mechanism for line in plan.lines}
    assert sorted(lines.values()) == sorted(priced.table["mechanism"])


@pytest.mark.product
def test_persons_whose_mean_counts_have_the_errors_of_single_rows():
    rows = planned({"wages": PAIR["wages"]}, eps=0.5)
    persons = planned({"wages": PAIR["wages"]}, eps=0.5, person="id")
    assert persons.table["mechanism"].item() == rows.table["mechanism"].item()
    assert persons.table["identified"].item() == 1
    assert 0.7 < persons.table["total"].item() / rows.table["total"].item() < 1.5


@pytest.mark.product
def test_sampling_errors_do_not_depend_on_a_budget_that_a_call_states():
    free = planned({"wages": PAIR["wages"]}).table["sampling"].item()
    for budget in ({"eps": 0.1}, {"eps": 0.1, "delta": 1e-9}):
        stated = planned({"wages": dp.call.mean("~ wage", **budget)}, delta=1e-6)
        assert stated.table["sampling"].item() == pytest.approx(free, rel=0.02)
