"""``dp_table`` under a Pufferfish guarantee: what is asked, refused, charged, printed and saved."""

import importlib

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.errors import (
    ArgumentError,
    BudgetError,
    CodebookError,
    FormulaError,
    FrameError,
    LedgerError,
    NotAvailable,
)
from dpmodels.results.table import StatesResult

LEVELS = ["rest", "walk"]
CHAIN = dp.markov_chain(LEVELS, stay=(0.6, 0.8))
BUDGET = dp.Pufferfish(eps=1.0, model=CHAIN)
BOOK = dp.codebook(
    activity=dp.Categorical(LEVELS, label="what the watch says"),
    minute=dp.Integer(1, 200),
    zone=["a", "b"],
    age=(0, 100),
)
STATES = np.random.default_rng(3).integers(0, 2, (4, 200))
ROWS = pd.DataFrame(
    {
        "activity": np.array(LEVELS)[STATES.ravel()],
        "minute": np.tile(np.arange(1, 201), 4),
        "id": np.repeat(np.arange(4), 200),
    }
)
ASKED = {"codebook": BOOK, "time": "minute", "person": "id", "budget": BUDGET}


class Unread:
    """Data of which no row may be read."""

    columns = ("activity", "minute", "id")

    def __getattr__(self, name):
        raise AssertionError(name)


def fit(**words):
    return dp.dp_table("~ activity", ROWS, **{**ASKED, **words})


def test_counts_are_near_the_exact_ones_and_add_up():
    result = fit(budget=dp.Pufferfish(50.0, CHAIN))
    assert isinstance(result, StatesResult)
    exact = np.bincount(STATES.ravel())
    # Noise is beyond 30 scales with a chance of exp(-30) each.
    assert (
        np.abs(result.released.to_numpy() - exact).max() < 30 * result.scales["scale"]["quilt"] + 2
    )
    assert result.counts.sum() == result.ncomplete
    assert result.proportions().sum() == pytest.approx(1.0)
    assert result.steps == 200
    assert result.release.rows == 800


def test_the_report_says_what_it_is_and_what_it_is_not():
    text = str(fit(ledger=dp.Ledger(budget=BUDGET)).summary(notes="all"))
    for message in (
        "Private counts of states: Pufferfish (not differential privacy)",
        "the state at each minute",
        "symmetric chains of 2 states",
        "4 persons, 200 times each",
        "1.00 of 1.00 eps spent",
        "each time by itself",
        "all times together",
        "max-influence",
        "what the watch says",
    ):
        assert message in text
    assert "SIMULATION" not in text


def test_its_reading_is_of_states_and_of_those_who_believe_the_class():
    text = " ".join(str(fit().summary(reading=True)).split())
    assert "for anyone whose prior is in the class" in text
    assert "by a factor of 2.72 at the most" in text
    with pytest.raises(BudgetError, match="bounded by differential privacy alone"):
        dp.reading(BUDGET)


def test_the_three_scales_stand_side_by_side():
    result = fit()
    expected = [2.0, 2 * BUDGET.active(200).scale, 400.0]
    assert result.scales["scale"].tolist() == pytest.approx(expected)
    assert result.scales["ratio"].tolist() == pytest.approx([1, expected[1] / 2, 200])
    assert result.quilt == BUDGET.active(200)
    assert result.release.noise_sd == pytest.approx(np.sqrt(2) * expected[1], rel=1e-2)


def test_tables_have_the_columns_of_others():
    result = fit()
    table = result.tidy()
    assert table["activity"].tolist() == LEVELS
    assert (table["noise_low"] <= table["noise_high"]).all()
    assert (table["conf_low"] < table["conf_high"]).all()
    line = result.glance().iloc[0]
    assert line["unit"] == "Pufferfish: the state at each time"
    assert line["ntimes"] == 200
    assert line["nobs"] == result.nobs == 800
    assert line["scale"] == pytest.approx(result.scales["scale"]["quilt"])
    assert "Pufferfish (not differential privacy)" in repr(result)
    assert result.noise_int(0.5)["upper"].iloc[0] < result.noise_int()["upper"].iloc[0]


def test_states_may_be_listed_in_another_order():
    moves = [[0.7, 0.3], [0.5, 0.5]]
    turned = dp.markov_chain(["walk", "rest"], [[0.5, 0.5], [0.3, 0.7]])
    chain = dp.markov_chain(LEVELS, moves)
    ledger = dp.Ledger(budget=dp.Pufferfish(2.0, chain))
    result = fit(budget=dp.Pufferfish(1.0, turned), ledger=ledger)
    assert result.chain.states == tuple(LEVELS)
    assert result.chain.transition == chain.transition
    assert ledger.spent.amount == 1.0


def test_doubts_about_the_class_are_told_from_what_was_released():
    book = dp.codebook(activity=LEVELS, minute=dp.Integer(1, 200))
    rows = ROWS.assign(activity=np.where(np.arange(800) % 10 == 0, "walk", "rest"))
    wrong = dp.Pufferfish(20.0, dp.markov_chain(LEVELS, stay=0.6))
    table_fit = dp.dp_table("~ activity", rows, **{**ASKED, "codebook": book, "budget": wrong})
    assert "the class may not contain the true process" in " ".join(
        str(table_fit.summary()).split()
    )
    even = fit(budget=wrong)
    assert "may not contain the true process" not in str(even.summary())


def test_a_chain_that_does_not_forget_has_no_intervals_of_the_population():
    stuck = dp.markov_chain(LEVELS, [[1, 0], [0, 1]])
    result = fit(budget=dp.Pufferfish(1.0, stuck, quilt="trivial"))
    assert result.scales["scale"]["quilt"] == result.scales["scale"]["all times together"]
    text = " ".join(str(result.summary(notes="all")).split())
    assert "as for group privacy of a series (requested)" in text
    with pytest.raises(NotAvailable, match="several stationary distributions"):
        result.conf_int()
    assert result.tidy()["conf_low"].isna().all()


@pytest.mark.product
def test_a_saved_result_comes_back_the_same(tmp_path):
    for place, initial in enumerate(("any", "stationary", [0.5, 0.5])):
        chain = dp.markov_chain(LEVELS, [[0.7, 0.3], [1 / 3, 2 / 3]], initial=initial)
        result = fit(budget=dp.Pufferfish(1.0, chain))
        path = tmp_path / f"{place}.nc"
        result.save(path)
        again = dp.load(path)
        assert again.release.guarantee == result.release.guarantee
        assert again.release.events == result.release.events
        assert str(again.summary()) == str(result.summary())


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        ({"time": None}, ArgumentError, "time=None: a Pufferfish guarantee protects each person's"),
        ({"person": None}, ArgumentError, "person=None: a Pufferfish"),
        ({"person": False}, ArgumentError, "person=False: a Pufferfish"),
        ({"eps": 1.0}, ArgumentError, r"eps=1.0 does not apply to budget=dp.Pufferfish"),
        ({"delta": 1e-6}, ArgumentError, "delta=1e-06 does not apply"),
        ({"rows": 4}, ArgumentError, "rows=4 does not apply"),
        ({"subset": "age > 3"}, ArgumentError, "subset='age > 3' does not apply"),
        ({"adjacency": "add-remove"}, ArgumentError, "adjacency='add-remove' does not apply"),
        ({"mechanism": "geometric"}, ArgumentError, "'quilt'"),
        ({"time": "age"}, FormulaError, "has no order"),
        ({"time": "hour"}, CodebookError, "hour"),
        ({"codebook": dp.codebook(activity=LEVELS)}, CodebookError, "minute"),
        (
            {"budget": dp.Pufferfish(1.0, dp.markov_chain(["x", "y"], stay=0.6))},
            ArgumentError,
            "model= has the states 'x', 'y', and the formula's variable the levels 'rest', 'walk'",
        ),
        (
            {"codebook": dp.codebook(activity=LEVELS, minute=dp.Integer(0, 70_000))},
            ArgumentError,
            "at most 65,536 of a person",
        ),
        ({"budget": dp.PureDP(1.0)}, BudgetError, "time='minute' needs a Pufferfish guarantee"),
        ({"person": "nobody"}, FrameError, "nobody"),
    ],
)
def test_bad_words_are_refused_before_a_row_is_read(words, error, message):
    ledger = dp.Ledger(budget=BUDGET)
    with pytest.raises(error, match=message):
        dp.dp_table("~ activity", ROWS, **{**ASKED, "ledger": ledger, **words})
    assert ledger.entries == ()


@pytest.mark.parametrize(
    ("formula", "words", "message"),
    [
        ("~ activity", {"person": "activity"}, "person='activity' identifies the persons.* three"),
        ("~ activity", {"person": "minute"}, "person='minute' identifies the persons"),
        ("~ zone", {"time": "zone"}, "time='zone' is the time of the states"),
    ],
)
def test_the_number_of_persons_cannot_tell_of_states(formula, words, message):
    """Public is how many persons there are: were they states, so would be which states occur."""
    book = BOOK | {"zone": dp.Categorical(["a", "b"], ordered=True)}
    chain = CHAIN if formula == "~ activity" else dp.markov_chain(["a", "b"], stay=0.8)
    ledger, budget = dp.Ledger(budget=dp.Pufferfish(1.0, chain)), dp.Pufferfish(1.0, chain)
    options = {**ASKED, "codebook": book, "budget": budget, "ledger": ledger, **words}
    with pytest.raises(FormulaError, match=message):
        dp.dp_table(formula, Unread(), **options)
    assert ledger.entries == ()


@pytest.mark.parametrize("formula", ["~ activity + zone", "activity ~ zone", "~ age", "~ 1"])
def test_one_variable_is_counted(formula):
    with pytest.raises(FormulaError):
        dp.dp_table(formula, ROWS, **ASKED)


def test_sites_are_refused():
    with pytest.raises(ArgumentError, match=r"sites=.* does not apply"):
        dp.dp_table("~ activity", sites={"a": ROWS, "b": ROWS}, protocol="pooled", **ASKED)


def test_a_ledger_takes_releases_of_one_series_and_no_other(tmp_path):
    ledger = dp.Ledger.open(tmp_path / "own.ledger", budget=dp.Pufferfish(2.0, CHAIN), new=True)
    fit(ledger=ledger)
    fit(ledger=ledger, budget=dp.Pufferfish(0.5, CHAIN))
    assert ledger.spent.amount == 1.5
    assert ledger.unfinished() == ()
    assert set(ledger.register()["person"]) == {"Pufferfish: the state at each time"}
    shorter = BOOK | {"minute": dp.Integer(1, 100)}
    with pytest.raises(LedgerError, match="of another series"):
        fit(ledger=ledger, budget=dp.Pufferfish(0.1, CHAIN), codebook=dp.codebook(**shorter))
    with pytest.raises(LedgerError, match="another class of chains"):
        fit(ledger=ledger, budget=dp.Pufferfish(0.1, dp.markov_chain(LEVELS, stay=0.6)))
    with pytest.raises(LedgerError, match="is refused: it is differentially private"):
        dp.dp_table("~ activity", ROWS, codebook=BOOK, eps=0.1, person=False, ledger=ledger)
    with pytest.raises(LedgerError, match=r"Spent so far: eps = 1\.5 of 2"):
        fit(ledger=ledger)
    ledger.verify()


def test_a_ledger_of_differential_privacy_refuses_before_a_row_is_read():
    ledger = dp.Ledger(eps=5.0)
    with pytest.raises(LedgerError, match="has a Pufferfish guarantee"):
        fit(ledger=ledger)
    study = dp.session(ROWS, BOOK, eps=1.0, person="id")
    with pytest.raises(BudgetError, match="a session's calls are differentially private"):
        study.table("~ activity", time="minute", budget=BUDGET)
    assert study.spent.amount == 0


def test_missing_times_count_as_incomplete_and_nothing_tells_which():
    rows = ROWS[ROWS["minute"] % 2 == 0]
    result = fit(budget=dp.Pufferfish(100.0, CHAIN))
    half = dp.dp_table("~ activity", rows, **{**ASKED, "budget": dp.Pufferfish(100.0, CHAIN)})
    assert half.release.rows == result.release.rows == 800
    # Noise of scale .02 is hardly ever above 2: exp(-100).
    assert half.ncomplete == 400
    assert result.ncomplete == 800


def test_no_release_repeats():
    first, second = (fit().release.values for _ in range(2))
    assert (first != second).any()


@pytest.mark.product
@pytest.mark.parametrize("stay", [0.7, (0.6, 0.8)])
def test_pictures_are_drawn(stay):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot as plt

    result = fit(budget=dp.Pufferfish(1.0, dp.markov_chain(LEVELS, stay=stay)))
    draws = result.plot_scale()
    (line,) = (line for line in draws.lines if len(line.get_xdata()) > 2)
    assert (np.diff(line.get_ydata()) >= -1e-9).all()
    assert {text.get_text() for text in draws.texts} >= {"this release", "all times together"}
    assert result.plot() is not None
    plt.close("all")


def test_bars_of_states_are_as_long_as_their_noise(monkeypatch):
    result = fit()
    captured = []

    def capture(panels, **words):
        captured.extend(panels)
        return [None]

    monkeypatch.setattr(importlib.import_module("dpmodels.plots.bars"), "bars", capture)
    result.plot()
    (panel,) = captured
    ends = result.noise_int()
    assert np.asarray(panel.values).tolist() == result.counts.to_numpy().tolist()
    middle = (ends["lower"] + ends["upper"]).to_numpy() / 2
    assert panel.errors == pytest.approx(ends["upper"].to_numpy() - middle)
    # Of the three counts of a public total, in sds: normal noise has 1.96, a Laplace variable 2.12.
    sd = result.release.noise_sd * np.sqrt(2 / 3)
    assert (1.96 * sd <= panel.errors).all()
    assert (panel.errors <= 2.12 * sd).all()


@pytest.mark.parametrize("eps", [0.02, 0.2, 1.0])
def test_intervals_stay_within_the_public_number_of_times(eps):
    result = fit(budget=dp.Pufferfish(eps, CHAIN))
    counts, shares = result.noise_int(), result.conf_int()
    assert ((counts >= 0) & (counts <= 800)).to_numpy().all()
    assert ((shares >= 0) & (shares <= 1)).to_numpy().all()
    table = result.tidy()
    assert (table[["noise_high", "estimate"]].to_numpy() <= 800).all()
