"""``codebook="private"``: bounds and levels are released first, from the budget of the call."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpmodels as dp
from dpmodels.errors import (
    ArgumentError,
    BudgetError,
    CodebookError,
    FormulaError,
    FrameError,
    LedgerError,
)
from dpmodels.frames import open_rows
from dpmodels.models.drafting import divided, formula_variables
from dpmodels.privacy import (
    ZCDP,
    ApproxDP,
    ApproxEvent,
    GaussianEvent,
    PureDP,
    gaussian_multiplier,
    total_eps,
)

USUAL = {"eps": 1.0, "delta": 1e-6}
TYPES = dp.private_codebook(x="numeric", k="integer", g="categorical", t="boolean")
N = 6_000


def columns(n=N):
    rng = np.random.default_rng(4)
    return {
        "x": rng.normal(50, 10, n),
        "k": rng.poisson(3, n),
        "g": rng.choice(["a", "b", "c"], n),
        "t": rng.random(n) < 0.3,
    }


@pytest.fixture(scope="module")
def table():
    return columns()


@pytest.fixture(scope="module")
def fit(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pl.DataFrame(table).write_parquet(path)
    with dp.simulation(seed=1):
        return dp.dp_pca("~ x + k + g", path, codebook="private", **USUAL)


# The budget.

TOTALS = (ApproxDP(1.0, 1e-6), ApproxDP(0.1, 1e-9), ApproxDP(8.0, 1e-4))


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("numbers", [(1, 0), (0, 2), (3, 2)], ids=str)
@pytest.mark.parametrize("total", TOTALS, ids=str)
def test_stages_add_up_to_the_budget(total, numbers, gaussian):
    for share in (0.01, 0.15, 0.9):
        stages = divided(total, share, *numbers, gaussian=gaussian)
        eps, delta = (
            sum(getattr(part, name, 0.0) for part in (stages.levels, stages.bounds))
            for name in ("eps", "delta")
        )
        left = ApproxDP(total.eps - eps, total.delta - delta)
        assert stages.rest.delta == pytest.approx(left.delta)
        if stages.gaussian:
            events = tuple(
                GaussianEvent(gaussian_multiplier(part)) for part in (stages.bounds, stages.rest)
            )
            assert 1 - 1e-6 < total_eps(events, left.delta) / left.eps <= 1
            assert 2 * stages.bounds.rho * gaussian_multiplier(left) ** 2 == pytest.approx(
                share * numbers[0] / sum(numbers)
            )
        else:
            assert stages.rest.eps == pytest.approx(left.eps)


def test_pure_and_concentrated_budgets_add_up():
    assert divided(PureDP(1.0), 0.25, 2, 0, gaussian=True)[::2] == (PureDP(0.25), PureDP(0.75))
    assert divided(ZCDP(1.0), 0.25, 2, 0, gaussian=True)[::2] == (ZCDP(0.25), ZCDP(0.75))
    assert divided(ZCDP(1.0), 0.25, 0, 0, gaussian=True).rest == ZCDP(1.0)


CALLS = {
    "pca": ("~ x + k", {}),
    "lm": ("x ~ k + C(g)", {}),
    "mean": ("x ~ g", {}),
    "table": ("~ g + t", {}),
    "quantile": ("x ~ t", {}),
    "survfit": ("Surv(x, t) ~ 1", {}),
}


@pytest.mark.guarding
@pytest.mark.product
@pytest.mark.parametrize("verb", CALLS)
def test_all_charges_are_those_of_the_budget_and_the_file_replays_them(verb, table, tmp_path):
    formula, words = CALLS[verb]
    ledger = dp.Ledger(**USUAL)
    with dp.simulation(seed=3):
        fit = getattr(dp, f"dp_{verb}")(
            formula, table, codebook=TYPES, ledger=ledger, **USUAL, **words
        )
    assert 0.999 < ledger.spent.amount <= 1 + 1e-9
    assert fit.release.guarantee == ApproxDP(**USUAL)
    assert total_eps(fit.release.events, 1e-6) <= 1 + 1e-9
    charged = [event for entry in ledger.entries for event in entry.events]
    assert list(fit.release.events) == charged
    assert ledger.entries[-1].label.startswith(f"dp_{verb} ")
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    assert str(again.summary(notes="all")) == str(fit.summary(notes="all"))
    assert "private (15 % of the budget)" in str(fit.summary())
    assert again.request.codebook == fit.request.codebook


@pytest.mark.guarding
@pytest.mark.product
@pytest.mark.parametrize("budget", [{"eps": 1.0}, {"budget": ZCDP(0.1)}], ids=str)
def test_budgets_without_delta_release_bounds_and_refuse_levels(budget, table):
    ledger = dp.Ledger(**budget)
    with pytest.raises(BudgetError, match=r"delta=1e-6, or declare the levels"):
        dp.dp_mean("x ~ g", table, codebook=TYPES, ledger=ledger, **budget)
    assert not ledger.entries
    types = dp.private_codebook(x="numeric", g=["a", "b", "c"])
    with dp.simulation(seed=5):
        fit = dp.dp_mean("x ~ g", table, codebook=types, ledger=ledger, **budget)
    assert ledger.spent.amount == pytest.approx(budget.get("eps", 0.1))
    assert fit.request.codebook["x"].upper < 200


def test_a_ledger_with_too_little_is_charged_nothing(table):
    ledger = dp.Ledger(eps=0.9, delta=1e-6)
    with pytest.raises(LedgerError, match="nothing is charged"):
        dp.dp_mean("x ~ g", table, codebook=TYPES, ledger=ledger, **USUAL)
    assert not ledger.entries


# What is released.


@pytest.mark.product
def test_bounds_and_levels_are_found_and_free_for_later_calls(fit, table):
    book = fit.request.codebook
    assert book["g"].levels == ("a", "b", "c")
    assert -50 < book["x"].lower < 30
    assert 70 < book["x"].upper < 150
    assert isinstance(book["k"], dp.Integer)
    assert book["k"].upper < 30
    with dp.simulation(seed=2):
        later = dp.dp_mean("x ~ g", table, codebook=book, eps=1.0)
    assert "private (" not in str(later.summary())


@pytest.mark.expensive
def test_declarations_are_kept_and_cost_nothing(table):
    types = dp.private_codebook(dp.codebook(x=dp.Numeric(0, 100, label="score")))
    with dp.simulation(seed=6):
        fit = dp.dp_mean("x ~ C(g)", table, codebook=types, **USUAL)
    assert fit.request.codebook["x"] == dp.Numeric(0, 100, label="score")
    assert isinstance(fit.release.events[0], ApproxEvent)
    with dp.simulation(seed=6):
        mean_fit = dp.dp_mean("~ x", table, codebook=types, **USUAL)
    with dp.simulation(seed=6):
        plain = dp.dp_mean("~ x", table, codebook=types.declared, **USUAL)
    assert mean_fit.params.equals(plain.params)
    assert mean_fit.release.events == plain.release.events


@pytest.mark.product
def test_drafts_are_completed(table):
    draft = dp.codebook.draft({"x": "float64", "k": "int64"}) | dp.codebook(g=["a", "b", "c"])
    with dp.simulation(seed=7):
        fit = dp.dp_mean("x ~ g", table, codebook=dp.private_codebook(draft), **USUAL)
    assert fit.request.codebook["g"] == dp.Categorical(("a", "b", "c"))
    assert fit.request.codebook["x"].upper < 200


@pytest.mark.product
@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e6])
def test_bounds_are_found_at_any_scale(scale):
    rows = {"x": np.random.default_rng(8).gamma(2.0, scale, 20_000)}
    with dp.simulation(seed=8):
        fit = dp.dp_mean("~ x", rows, codebook=dp.private_codebook(x="numeric"), **USUAL)
    book = fit.request.codebook["x"]
    assert -5 * scale <= book.lower <= scale
    assert 4 * scale < book.upper < 40 * scale


@pytest.mark.product
def test_what_was_found_is_not_lost_with_the_call(table):
    with dp.simulation(seed=9), pytest.raises(ArgumentError) as caught:
        dp.dp_hist("~ x", table, codebook=TYPES, breaks=[0, 200, 1_000], **USUAL)
    assert "Released and charged, free for later calls:\nvariable  type" in str(caught.value)


@pytest.mark.product
def test_a_search_that_finds_nothing_says_so_and_leaves_the_rest():
    ledger = dp.Ledger(**USUAL)
    with dp.simulation(seed=10), pytest.raises(BudgetError, match="'g', 'x' were found"):
        dp.dp_mean("x ~ g", columns(60), codebook=TYPES, ledger=ledger, **USUAL)
    assert ledger.spent.amount < 0.5


# What is public.


@pytest.mark.parametrize(
    "kind", ["pandas", "numpy", "polars", "lazy", "arrow", "csv", "list", "parquet of pandas"]
)
def test_types_that_are_inferred_from_cells_have_to_be_written(kind, table, tmp_path):
    frame, typed = pd.DataFrame(table), pl.DataFrame(table)
    data = {
        "pandas": frame,
        "numpy": table,
        "polars": typed,
        "lazy": typed.lazy(),
        "arrow": typed.to_arrow(),
        "list": [typed],
    }.get(kind)
    if kind == "csv":
        data = tmp_path / "rows.csv"
        frame.to_csv(data, index=False)
    elif data is None:
        data = tmp_path / "rows.parquet"
        frame.to_parquet(data)
    ledger = dp.Ledger(**USUAL)
    with pytest.raises(CodebookError) as caught:
        dp.dp_mean("x ~ g", data, codebook="private", ledger=ledger, **USUAL)
    assert 'dp.private_codebook(x="numeric", g="numeric"), with "categorical"' in str(caught.value)
    with pytest.raises(CodebookError, match=r"type of 'x' is not public"):
        dp.dp_mean("x ~ C(g)", data, codebook="private", ledger=ledger, **USUAL)
    assert not ledger.entries


@pytest.mark.product
def test_whole_numbers_are_levels_where_the_formula_says_so(tmp_path):
    frame = pl.DataFrame({"x": np.linspace(0, 9, 3_000), "g": np.arange(3_000) % 2})
    frame.write_parquet(tmp_path / "rows.parquet")
    for data, types in (
        (tmp_path / "rows.parquet", "private"),
        (frame, dp.private_codebook(x="numeric")),
    ):
        fit = dp.dp_mean("x ~ C(g)", data, codebook=types, **USUAL)
        assert fit.request.codebook["g"].levels == (0, 1)


def test_declared_types_are_read_from_the_container(table, tmp_path):
    frame = pl.DataFrame(table)
    frame.write_parquet(tmp_path / "rows.parquet")
    record = np.array([(1.0, 2, "u")], dtype=[("x", "f8"), ("k", "i4"), ("g", "U1")])
    kinds = [
        [open_rows(source).kind(name).declares for name in ("x", "k", "g")]
        for source in (tmp_path / "rows.parquet", frame, frame.to_arrow(), record)
    ]
    assert kinds == [["numeric", "integer", "categorical"], *[["", "", ""]] * 3]


@pytest.mark.guarding
@pytest.mark.product
@pytest.mark.parametrize("cell", ["b", 7.0, None, "999999999999", float("nan"), (1, 2)], ids=str)
def test_no_cell_decides_what_is_released_or_refused(cell, table):
    """Neighbours by one cell of any type have the same stages, events and errors."""
    outcomes = []
    for value in (50.0, cell):
        rows = {**table, "x": [value, *table["x"][1:].tolist()]}
        ledger, message = dp.Ledger(**USUAL), ""
        with dp.simulation(seed=11):
            try:
                dp.dp_mean("x ~ g", pd.DataFrame(rows), codebook="private", ledger=ledger, **USUAL)
            except CodebookError as error:
                message = str(error)
            fit = dp.dp_mean("x ~ g", pd.DataFrame(rows), codebook=TYPES, ledger=ledger, **USUAL)
        outcomes.append((message, fit.release.events, [entry.events for entry in ledger.entries]))
    assert outcomes[0] == outcomes[1]


@pytest.mark.product
def test_errors_show_no_cell():
    canary = "canary-8213"
    rows = {"x": [canary, *columns(59)["x"]], "g": [canary, *columns(59)["g"]]}
    for codebook in ("private", TYPES):
        with pytest.raises((BudgetError, CodebookError)) as caught:
            dp.dp_mean("x ~ g", pd.DataFrame(rows), codebook=codebook, **USUAL)
        assert canary not in str(caught.value)


@pytest.mark.product
@pytest.mark.parametrize("words", [{"person": "id"}, {"adjacency": "add-remove"}, {"rows": 2}])
def test_persons_and_neighbours_are_those_of_every_stage(words, table):
    rows = {**table, "id": np.arange(N) // 2}
    with dp.simulation(seed=12):
        fit = dp.dp_mean("x ~ g", rows, codebook=TYPES, **USUAL, **words)
    assert total_eps(fit.release.events, 1e-6) <= 1 + 1e-9
    assert fit.release.adjacency == fit.request.adjacency
    assert fit.request.codebook["x"].upper < 200


REFUSED = {
    "all variables": (FormulaError, {"formula": "~ ."}),
    "sites": (CodebookError, {"sites": {"a": {"x": [1.0]}}, "protocol": "pooled", "data": None}),
    "read once": (FrameError, {"data": iter([{"x": [1.0], "g": ["a"]}])}),
    "no such column": (FrameError, {"formula": "z ~ g", "codebook": "private"}),
    "undeclared subset": (FormulaError, {"subset": "x > 5"}),
    "no such mechanism": (ArgumentError, {"mechanism": "nonsense"}),
    "no budget": (BudgetError, {"eps": None, "delta": 0.0}),
}


@pytest.mark.guarding
@pytest.mark.parametrize("case", REFUSED)
def test_refusals_cost_nothing(case, table):
    error, words = REFUSED[case]
    ledger = dp.Ledger(**USUAL)
    words = {"formula": "x ~ g", "data": table, "codebook": TYPES, **USUAL, **words}
    with pytest.raises(error):
        dp.dp_mean(words.pop("formula"), words.pop("data"), ledger=ledger, **words)
    assert not ledger.entries


@pytest.mark.guarding
@pytest.mark.parametrize("verb", ["bounds", "levels"])
def test_verbs_that_find_codebooks_refuse_a_private_one(verb, table):
    with pytest.raises(CodebookError, match="releases what a private codebook would"):
        getattr(dp, f"dp_{verb}")("~ x", table, codebook="private", **USUAL)


def test_places_without_rows_refuse_a_private_codebook():
    with pytest.raises(CodebookError, match="draft_codebook"):
        dp.plan([dp.call.mean("~ x", eps=1.0)], codebook="private", eps=1.0, n=100)


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("words", "match"),
    [
        ({"share": 0}, "share"),
        ({"share": 1.0}, "share"),
        ({"limit": -1}, "limit"),
        ({"x": "text"}, "'text' is not a type"),
        ({"x": (1, 0)}, "equal or reversed"),
    ],
)
def test_a_wrong_word_is_refused(words, match):
    with pytest.raises((ArgumentError, CodebookError), match=match):
        dp.private_codebook(**words)


def test_variables_of_formulas():
    assert formula_variables("y + z ~ C(g) + Q('a b'):x", ()) == (
        {"g"},
        ("y", "z", "g", "a b", "x"),
    )
    assert formula_variables("Surv(t, d) ~ x1 + ... + x3", ())[1] == ("t", "d", "x1", "x2", "x3")
    assert formula_variables("~ . - b", ("a", "b"))[1] == ("a",)


# Sessions.


@pytest.mark.product
def test_a_session_drafts_its_codebook_once(table):
    study = dp.session(table, "private", eps=3.0, delta=1e-6)
    with dp.simulation(seed=13):
        book = study.draft_codebook("~ x + g", TYPES, eps=0.3)
        fit = study.mean("x ~ g", eps=0.5)
    assert list(book) == list(study.codebook)
    assert book["g"].levels == ("a", "b", "c")
    assert len(study.results) == 3
    assert fit.release.guarantee == ApproxDP(0.5, 1e-6)
    labels = [entry.label for entry in study.ledger.entries]
    assert labels == ["dp_levels ~ g", "dp_bounds ~ x", "dp_mean x ~ g"]
    drafted = [event for entry in study.ledger.entries[:2] for event in entry.events]
    assert total_eps(drafted, 1e-7) <= 0.3 * (1 + 1e-9)
    with pytest.raises(CodebookError, match="private"):
        study.draft_codebook("~ k", (0, 1), eps=0.1)
