"""What a release will very likely not tell, told before the charge, by public facts alone."""

import time
import warnings

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.design.rows import Rows
from dpmodels.errors import BudgetWarning, DPModelsError, NotAvailable
from dpmodels.models import predictor
from dpmodels.models.assumed_rows import assumed_rows, assumed_variances, enlarged
from dpmodels.models.glm import glm_spec
from dpmodels.models.lm import lm_spec
from dpmodels.models.mean import mean_spec
from dpmodels.models.moments import pca_spec
from dpmodels.models.predictor import (
    assumed_private,
    estimates_of,
    identified_share,
    predict,
    simulated_fits,
)
from dpmodels.models.verb_spec import planned
from dpmodels.noise import simulating
from dpmodels.privacy import GaussianEvent
from dpmodels.request import requested
from dpmodels.sites import parties

BOOK = dp.codebook(
    y=(0, 100), x=(0, 10), z=(-5, 5), case=["no", "yes"], g=[f"c{number}" for number in range(40)]
)
ROWS = 400
HOPELESS = {
    "lm": lambda data, **extra: dp.dp_lm("y ~ x + z", data, **{"eps": 0.3, **extra}),
    "lm g": lambda data, **extra: dp.dp_lm("y ~ g", data, **{"eps": 0.3, **extra}),
    "glm": lambda data, **extra: dp.dp_glm("case ~ x + z", data, **{"eps": 1.0, **extra}),
    "svm": lambda data, **extra: dp.dp_svm("case ~ x + z", data, **{"eps": 0.02, **extra}),
    "mean": lambda data, **extra: dp.dp_mean("y ~ g", data, **{"eps": 0.2, **extra}),
    "ttest": lambda data, **extra: dp.dp_ttest("y ~ case", data, **{"eps": 0.002, **extra}),
    "pca": lambda data, **extra: dp.dp_pca("~ x + y + z", data, **{"eps": 0.1, **extra}),
    "cov": lambda data, **extra: dp.dp_cov("~ x + y + z", data, **{"eps": 0.1, **extra}),
}


def table(kind="normal", rows=ROWS):
    rng = np.random.default_rng(3)
    columns = {
        "y": rng.normal(50, 16, rows),
        "x": rng.normal(5, 1.6, rows),
        "z": rng.normal(0, 1.6, rows),
        "case": rng.choice(["no", "yes"], rows),
        "g": rng.choice([f"c{number}" for number in range(40)], rows),
    }
    if kind == "canaries":
        columns = {**columns, "y": [1e300, -77777.0] * (rows // 2), "case": ["canary"] * rows}
    if kind == "missing":
        columns = {name: [None] * rows for name in columns}
    return pd.DataFrame(columns)


def told(call, **options):
    """The texts of the package's warnings, under the filter that shows all."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        call(options.pop("data", table()), codebook=BOOK, **options)
    return [(warning.category, str(warning.message), warning.filename) for warning in warned]


@pytest.mark.parametrize("name", HOPELESS)
def test_a_hopeless_call_warns_once_for_the_line_of_the_user(name):
    ((category, text, where),) = told(HOPELESS[name])
    assert category is BudgetWarning
    assert where == __file__
    assert "very likely" in text
    assert "n = 400: about eps = " in text
    assert "would be needed if" in text


def test_a_hopeless_variance_is_not_called_a_mean():
    ((_, text, _),) = told(lambda data, **words: dp.dp_var("y ~ g", data, eps=0.2, **words))
    assert "very likely hardly any group will have an estimate at eps" in text


def test_a_line_of_a_loop_warns_once_though_filters_change_between_its_calls(monkeypatch):
    """A notebook takes the memory away after every cell, so that a cell warns each time it runs."""
    messages = []
    monkeypatch.delitem(globals(), "__warningregistry__", raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = lambda *words, **options: messages.append(words)
        for cell in (1, 2):
            for _ in range(3):
                HOPELESS["lm"](table(), codebook=BOOK)
                with warnings.catch_warnings():  # As within pandas: Python forgets what it printed
                    warnings.simplefilter("ignore")
            assert len(messages) == cell
            del globals()["__warningregistry__"]
    assert len({str(told(HOPELESS["lm"])) for _ in range(2)} - {"[]"}) == 1


@pytest.mark.guarding
@pytest.mark.parametrize("name", HOPELESS)
def test_the_warning_is_the_same_for_any_rows(name):
    kinds = ("normal", "canaries", "missing")
    assert len({str(told(HOPELESS[name], data=table(kind))) for kind in kinds}) == 1


@pytest.mark.guarding
@pytest.mark.parametrize("name", HOPELESS)
def test_as_an_error_it_stops_before_a_row_is_read_and_before_the_charge(name, monkeypatch):
    ledger = dp.Ledger(eps=5.0)

    def refuse(self, *args, **words):
        raise AssertionError("read")

    monkeypatch.setattr(Rows, "parts", refuse)
    with warnings.catch_warnings():
        warnings.simplefilter("error", BudgetWarning)
        with pytest.raises(BudgetWarning) as stopped:
            HOPELESS[name](table(), codebook=BOOK, ledger=ledger)
    assert isinstance(stopped.value, DPModelsError)
    assert not ledger.entries
    with pytest.raises(AssertionError, match="read"):
        HOPELESS[name](table(), codebook=BOOK, ledger=ledger)
    assert len(ledger.entries) == 1


def test_its_category_silences_it():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", BudgetWarning)
        HOPELESS["lm"](table(), codebook=BOOK)


def test_where_nobody_knows_n_or_nothing_is_spent_it_is_silent():
    call = HOPELESS["lm"]
    assert told(call, adjacency="add-remove") == []
    with dp.simulation(seed=1):
        assert told(call) == []
    assert told(call, data=table().assign(id=range(ROWS)), person="id", rows=1) == []
    # Too few to say anything of.
    assert told(call, data=table(rows=0)) == []


def test_of_several_rows_that_neighbours_differ_in_the_noise_is_theirs():
    assert told(HOPELESS["lm"], eps=4.0) == []
    ((_, text, _),) = told(HOPELESS["lm"], eps=4.0, rows=20)
    assert "n = 400" in text
    assert told(HOPELESS["lm"], eps=80.0, rows=20) == []


def test_what_a_call_would_cost_is_asked_in_silence():
    session = dp.session(table(), codebook=BOOK, budget=dp.PureDP(5.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session.plan([session.call.lm("y ~ x + z", eps=0.3)])
        with pytest.raises(BudgetWarning):
            session.lm("y ~ x + z", eps=0.3)


def test_one_site_of_several_says_nothing_and_all_together_do():
    halves = {"a": table(rows=200), "b": table(rows=200)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(BudgetWarning, match="n = 400"):
            dp.dp_lm("y ~ x + z", sites=halves, protocol="pooled", codebook=BOOK, eps=0.3)


def plans(verb, formula, rows, **budget):
    """The specification of a call with its plan, for a public number of rows."""
    ways = {"lm": lm_spec, "glm": glm_spec, "mean": mean_spec, "pca": pca_spec}
    words = {
        "lm": {"weights": None, "row_norm": None, "vcov": "iid"},
        "glm": {"family": "binomial", "inference": True, "clip": None, "scale": "range"},
        "pca": {"denoise": "auto", "center": True, "scale": "range"},
        "mean": {},
    }[verb] | ({} if verb == "mean" else {"row_norm": None})
    budget = {"eps": None, "delta": 0.0, "budget": None, **budget}
    way = ways[verb](requested(verb, formula, BOOK, *budget.values(), "replace", **words))
    return way, chosen(way).plan(way.facts, way.request.guarantee)


def chosen(way):
    """The strategy of a way's verb, of one release."""
    names = {"lm": "moments", "glm": "objective", "mean": "geometric", "pca": "gauss"}
    return way.choose(names[way.request.verb], [way.private])[0]


@pytest.mark.parametrize(
    ("verb", "formula"),
    [("lm", "y ~ x + z + g"), ("glm", "case ~ x + z"), ("mean", "y ~ g"), ("pca", "~ x + y + z")],
)
def test_strength_is_in_proportion_to_rows_and_the_budget_that_is_named_suffices(verb, formula):
    for budget in ({"eps": 0.2}, {"budget": dp.ZCDP(1e-4)}, {"eps": 0.05, "delta": 1e-6}):
        if verb == "pca" and "delta" not in budget:
            continue
        way, plan = plans(verb, formula, ROWS, **budget)
        first, ten = (way.law(plan, rows) for rows in (20, 200))
        assert ten.strength == pytest.approx(10 * first.strength)
        rows_needed = first.clear_from / first.strength
        wider = enlarged(way.request.guarantee, plan.events, rows_needed)
        enough = chosen(way).plan(way.facts, wider)
        # Two digits are printed; a pure guarantee with a delta is divided otherwise.
        assert way.law(enough, 20).strength == pytest.approx(first.clear_from, rel=0.06)


def test_the_guess_is_a_sixth_of_the_range_and_equal_levels():
    way, _ = plans("lm", "y ~ x + case", ROWS, eps=1.0)
    private = way.private
    half = np.array([1.0, 1.0]) / private.scaling.row_norm
    expected = dict(zip(("x", "case[T.yes]"), half**2 * np.array([1 / 9, 1.0]), strict=True))
    variances = dict(zip(private.public.names, assumed_variances(private), strict=True))
    for name, value in expected.items():
        assert variances[name] == pytest.approx(value)


def test_a_whole_number_of_two_values_is_taken_for_levels():
    book = dp.codebook(y=(0, 1), whole=dp.Integer(0, 1), number=(0, 1))
    way = lm_spec(
        requested(
            *("lm", "y ~ whole + number", book, 1.0, 0.0, None, "replace"),
            **{"weights": None, "row_norm": None, "vcov": "iid"},
        )
    )
    combined, number, _ = assumed_variances(way.private)
    assert combined == pytest.approx(9 * number)


def test_enlarged_budgets_have_so_much_less_noise():
    gaussian = (GaussianEvent(1.0),)
    assert enlarged(dp.ZCDP(0.01), gaussian, 3.0) == dp.ZCDP(0.09)
    assert enlarged(dp.ApproxDP(0.5, 1e-6), (), 3.0) == dp.ApproxDP(1.5, 1e-6)
    assert 1.3 < enlarged(dp.ApproxDP(0.5, 1e-6), gaussian, 3.0).eps < 1.8


def test_a_foresight_takes_less_than_a_millisecond():
    way, plan = plans("lm", "y ~ x * z + case", ROWS, eps=0.2, delta=1e-6)
    way.law(plan, 20)
    recorded = []
    for _ in range(20):
        begun = time.perf_counter()
        way.law(plan, 20)
        recorded.append(time.perf_counter() - begun)
    assert min(recorded) < 1e-3


@pytest.mark.product
def test_a_repeated_call_warns_again_without_simulating(monkeypatch):
    monkeypatch.setattr(predictor, "REMEMBERED", 1_000)
    simulate, asked = predictor._simulations_identify, []

    def counting(*arguments):
        asked.append(arguments)
        return simulate(*arguments)

    monkeypatch.setattr(predictor, "_simulations_identify", counting)
    first = told(HOPELESS["mean"])
    # These rows, four among 13 doublings of them by bisection, and the same with a delta.
    assert 2 <= len(asked) <= 7
    asked.clear()
    assert told(HOPELESS["mean"]) == first
    assert not asked
    told(HOPELESS["mean"], eps=0.21)
    assert asked
    asked.clear()
    other = dp.codebook(BOOK, y=(0, 90))
    with pytest.warns(BudgetWarning):
        dp.dp_mean("y ~ g", table(), codebook=other, eps=0.2)
    assert asked


@pytest.mark.product
def test_a_warning_says_where_a_delta_would_suffice():
    call = FITS["lm"]
    ((_, text, _),) = told(call, data=table(rows=2_000), eps=0.3)
    assert "n = 2,000: delta = 1e-06, or about eps = " in text
    assert told(call, data=table(rows=2_000), eps=0.3, delta=1e-6) == []
    ((_, text, _),) = told(call, data=table(rows=400), eps=0.3)
    assert "delta = 1e-06" not in text


@pytest.mark.product
def test_a_warning_that_is_simulated_leaves_no_seed_behind():
    call = HOPELESS["lm g"]
    fits = []
    for _ in range(2):
        with pytest.warns(BudgetWarning):
            fits.append(call(table(), codebook=BOOK, eps=2.0))
        assert not simulating()
    assert not any(fit.simulated for fit in fits)
    first, second = (fit.params.to_numpy() for fit in fits)
    assert (first != second).all()


def test_simulated_releases_are_outside_the_simulation_of_their_noise():
    way, _ = plans("lm", "y ~ x + z", ROWS, eps=1.0)
    private = assumed_private(way, ROWS)
    for fit in simulated_fits(way, planned(way, parties({}), "auto", [private]), private, 2):
        assert fit.simulated
        assert not simulating()


FITS = {
    "lm": lambda data, **extra: dp.dp_lm("y ~ x + z", data, **extra),
    "mean": lambda data, **extra: dp.dp_mean("y ~ case", data, **extra),
    "summary": lambda data, **extra: dp.dp_summary("y + x ~ case", data, **extra),
    "pca": lambda data, **extra: dp.dp_pca("~ x + y + z", data, **extra),
}


@pytest.mark.product
@pytest.mark.parametrize("name", FITS)
def test_other_budgets_are_predicted_from_public_facts_and_agree_with_the_fit(name):
    """Half of eps about doubles noise, by laws of all mechanisms here, within a factor of 2."""
    with dp.simulation(seed=4):
        fit = FITS[name](table(rows=20_000), codebook=BOOK, eps=1.0)
        at_budgets = fit.at_budgets()
    assert list(at_budgets) == ["eps = 1", "eps = 0.5", "eps = 2", "eps = 1, delta = 1e-06"]
    now = estimates_of(fit)["noise_sd"]
    np.testing.assert_allclose(at_budgets["eps = 1"], now, rtol=1e-9)
    for budget, factor in {"eps = 0.5": 2.0, "eps = 2": 0.5}.items():
        ratio = (at_budgets[budget] / at_budgets["eps = 1"]).median()
        assert factor / 2 < ratio < factor * 2
    again = fit.at_budgets()
    pd.testing.assert_frame_equal(at_budgets, again)
    note = str(fit.summary(budgets=True))
    assert "Predicted noise: " in note
    assert "see fit.at_budgets()" in " ".join(note.split())
    assert "at_budgets" not in str(fit.summary(notes="all"))


@pytest.mark.product
@pytest.mark.parametrize("psu", [None, "unit"])
@pytest.mark.parametrize("name", ["mean", "lm"])
def test_other_budgets_are_predicted_under_a_design(monkeypatch, name, psu):
    """Half of eps about doubles noise, also where rows or units are assumed one by one."""
    design = dp.design(weights="w", bounds=(1, 9), weights_are="design", psu=psu)
    data = table(rows=3_000).assign(w=np.random.default_rng(2).integers(1, 9, 3_000))
    data["unit"] = np.arange(3_000)
    with dp.simulation(seed=4):
        fit = FITS[name](data, codebook=BOOK, eps=1.0, delta=1e-6, design=design)
    made = fit.at_budgets()
    now = estimates_of(fit)["noise_sd"]
    np.testing.assert_allclose(made.iloc[:, 0], now, rtol=1e-9)
    for column, factor in {1: 2.0, 2: 0.5}.items():
        ratio = (made.iloc[:, column] / made.iloc[:, 0]).median()
        assert factor / 2 < ratio < factor * 2
    monkeypatch.setattr("dpmodels.models.predictor.MOST_WEIGHTED", 2_999)
    if name == "lm":
        with pytest.raises(NotAvailable, match="up to 2,999 rows"):
            fit.at_budgets()


@pytest.mark.product
def test_other_budgets_keep_delta_and_rho():
    with dp.simulation(seed=4):
        data = table(rows=5_000)
        gaussian = FITS["mean"](data, codebook=BOOK, eps=1.0, delta=1e-5)
        concentrated = FITS["mean"](data, codebook=BOOK, budget=dp.ZCDP(0.1))
    delta = "delta = 1e-05"
    assert list(gaussian.at_budgets()) == [f"eps = {eps}, {delta}" for eps in ("1", "0.5", "2")]
    assert [name.partition(" (")[0] for name in concentrated.at_budgets()] == [
        "rho = 0.1",
        "rho = 0.05",
        "rho = 0.2",
    ]


@pytest.mark.product
def test_other_budgets_need_a_public_number_of_rows_and_one_row_a_person():
    with dp.simulation(seed=4):
        data = table(rows=5_000).assign(id=np.arange(5_000) // 2)
        private = FITS["mean"](data, codebook=BOOK, eps=1.0, adjacency="add-remove")
        persons = FITS["mean"](data, codebook=BOOK, eps=1.0, person="id", rows=2)
    for fit in (private, persons):
        with pytest.raises(NotAvailable, match="public number of rows"):
            fit.at_budgets()
    with pytest.raises(NotAvailable, match="at_budgets"):
        dp.Ledger(eps=1.0).describe() and dp.power(
            "y ~ x", codebook=BOOK, n=2_000, eps=1.0, effect=1.0
        ).summary(budgets=True)


@pytest.mark.product
def test_what_is_predicted_is_what_releases_of_such_rows_have():
    """The medians of 8 and of 24 releases; of equal rows the noise differs by less than half."""
    rows = assumed_rows(BOOK.select(("y", "x", "z"))).rows(5_000, 3)
    with dp.simulation(seed=5):
        fits = [dp.dp_lm("y ~ x + z", rows, codebook=BOOK, eps=1.0) for _ in range(24)]
    real = pd.concat([estimates_of(fit)["noise_sd"] for fit in fits], axis=1).median(axis=1)
    way = lm_spec(fits[0].request)
    private = assumed_private(way, 5_000)
    predicted = predict(way, planned(way, parties({}), "auto", [private]), 5_000)
    assert identified_share(predicted) == 1
    np.testing.assert_allclose(predicted["noise_sd"], real, rtol=0.5)


# Rows as guessed. Where at most a tenth of releases have a standard error, 9 or more of 12 have one
# with probability below 3e-7; where at least nine tenths, 3 or fewer with one below 3e-7.
@pytest.mark.product
@pytest.mark.parametrize("verb", ["lm", "glm"])
def test_warned_calls_have_no_standard_errors_and_others_have(verb):
    for rows, eps, hopeless in ((400, 0.3, True), (10_000, 4.0, False)):
        result = 0
        for seed in range(12):
            with dp.simulation(seed=seed):
                data = table(rows=rows)
                fit = (
                    dp.dp_lm("y ~ x + z", data, codebook=BOOK, eps=eps)
                    if verb == "lm"
                    else dp.dp_glm("case ~ x + z", data, codebook=BOOK, eps=eps)
                )
            result += bool(fit.identified.iloc[1:].any())
        call = HOPELESS[verb]
        assert bool(told(call, data=table(rows=rows), eps=eps)) == hopeless
        assert result < 9 if hopeless else result > 3


def test_a_number_of_rows_that_is_noise_is_not_predicted_for():
    words = {"codebook": dp.codebook(a=(0, 1), b=(0, 1)), "adjacency": "add-remove"}
    rows = {"a": [0.2, 0.9, 0.4], "b": [0.1, 0.7, 0.5]}
    with dp.simulation(seed=3):
        fit = dp.dp_lm("b ~ a", rows, eps=1e-10, mechanism="moments", **words)
    assert fit.nobs > 1e8
    with pytest.raises(NotAvailable, match="up to 100,000,000 rows"):
        fit.at_budgets()
