"""Divisions of a budget tried in simulation."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.models.split import TENTHS
from dpmodels.noise import source
from dpmodels.noise.entropy import simulating
from dpmodels.privacy import ApproxDP, GaussianEvent, PureEvent, gaussian_multiplier

COLUMNS = ["score", "score_se", "behind", "behind_se", "best", "near"]


def spend(stage, gaussian=False):
    """Charge all of a stage, as a verb would; return its eps or rho."""
    budget = stage["budget"]
    if gaussian:
        event = GaussianEvent(gaussian_multiplier(budget))
    else:
        event = PureEvent(getattr(budget, "eps", 0) or (2 * budget.rho) ** 0.5)
    stage["ledger"].charge([event], adjacency="replace", label="made up")
    return getattr(budget, "eps", 0) or budget.rho


def error(rows, first, second):
    """A sum of two errors, of which the first is the harder."""
    noise = float(source().words(1)[0] % 1000) / 1e6
    return 4 / spend(first) + 1 / spend(second) + noise


def tried(recipe=error, **words):
    return dp.split_budget(recipe, None, **{"eps": 1.0, "best": "smallest", "repeats": 3, **words})


def test_the_best_division_of_a_known_error():
    trials = tried()
    # 4/s + 1/(1 - s) is least at s = 2/3; of the tenths at 0.7.
    assert trials.best == {"first": 0.7, "second": pytest.approx(0.3)}
    assert list(trials.table) == ["first", "second", *COLUMNS]
    np.testing.assert_allclose(trials.table["first"], TENTHS)
    np.testing.assert_allclose(
        trials.table["behind"], trials.table["score"] - trials.table["score"].min(), atol=1e-12
    )
    # All divisions meet the same random words, so the noise of the differences is none.
    assert trials.table["behind_se"].max() < 1e-12 < trials.table["score_se"].min()
    assert trials.near["first"].tolist() == [0.7]
    assert trials.budgets == {"first": dp.PureDP(0.7), "second": dp.PureDP(1 - 0.7)}


def test_the_largest_score_is_best_by_default():
    split = dp.split_budget(lambda rows, a, b: -error(rows, a, b), None, eps=1.0, repeats=2)
    assert split.best["a"] == 0.7
    assert (split.table["behind"] >= 0).all()


def test_equal_scores_are_not_told_apart_and_the_most_even_division_is_named():
    def same(rows, a, b):
        spend(a), spend(b)
        return 1

    trials = tried(same)
    assert trials.table["near"].all()
    assert trials.best["a"] == 0.5
    assert "separate no divisions" in " ".join(str(trials.summary()).split())


@pytest.mark.parametrize(
    ("budget", "parts"),
    [
        ({"eps": 2.0}, lambda s: (2 * s, 2 - 2 * s)),
        ({"budget": dp.ZCDP(0.5)}, lambda s: (s / 2, 0.5 - s / 2)),
        ({"eps": 2.0, "delta": 1e-6}, lambda s: (2 * s, 2 - 2 * s)),
    ],
)
def test_shares_add_up(budget, parts):
    trials = tried(**{"eps": None, **budget})
    for share, division in zip(trials.shares[:, 0], trials.divisions, strict=True):
        amounts = [getattr(part, "eps", 0) or part.rho for part in division]
        np.testing.assert_allclose(amounts, parts(share))


def test_gaussian_stages_are_found_and_divide_the_multiplier():
    def both(rows, a, b):
        return spend(a, gaussian=True) + spend(b, gaussian=True)

    trials = tried(both, delta=1e-6, shares=[0.2])
    total = gaussian_multiplier(ApproxDP(1.0, 1e-6)) ** -2
    squares = [gaussian_multiplier(division) ** -2 for division in trials.divisions[0]]
    np.testing.assert_allclose(squares, [0.2 * total, 0.8 * total], rtol=1e-7)
    assert "1/m^2" in str(trials.summary(notes="all"))


def test_a_stage_whose_noise_turns_out_otherwise_starts_the_trial_again():
    def turning(rows, a, b):
        later = a["budget"].eps > 0.45
        return spend(a, gaussian=not later) + spend(b, gaussian=True)

    trials = tried(turning, delta=1e-6, shares=[0.2, 0.6])
    sums = [sum(budget.eps for budget in budgets) for budgets in trials.divisions]
    np.testing.assert_allclose(sums, 1.0)


def test_three_stages_take_rows_of_shares():
    def three(rows, a, b, c, weight=2.0):
        return 1 / spend(a) + weight / spend(b) + 4 / spend(c)

    shares = [(0.2, 0.3, 0.5), (0.1, 0.1, 0.8), (0.6, 0.2, 0.2)]
    trials = tried(three, shares=shares)
    assert trials.best == {"a": 0.2, "b": 0.3, "c": 0.5}
    assert "0.2 : 0.3 : 0.5 *" in str(trials.summary())
    plt.close(trials.plot().figure)
    with pytest.raises(ArgumentError, match="which divisions to try"):
        tried(three)


@pytest.mark.product
def test_the_real_pipeline_is_stamped_and_leaves_no_trace():
    rng = np.random.default_rng(1)
    z = rng.normal(size=1500)
    rows = {f"x{i}": np.tanh(z + rng.normal(size=1500)) for i in range(4)}
    rows["y"] = np.where(z > 0, "b", "a")
    book = dp.codebook.uniform(list(rows)[:4], (-1, 1)) | dp.codebook(y=["a", "b"])
    recorded = []

    def recipe(data, pca, svm):
        recorded.append(simulating())
        fit = dp.dp_pca("~ . - y", data, codebook=book, ncomp=1, **pca)
        assert fit.simulated
        pcs = fit.components
        machine = dp.dp_svm(
            "y ~ PC1",
            pcs.predict(data).assign(y=data["y"]),
            codebook=pcs.codebook | book.select(["y"]),
            row_norm=pcs.row_norm(),
            **svm,
        )
        return np.mean(machine.predict(pcs.predict(data), clip=True) == data["y"])

    words = {"eps": 1.0, "delta": 1e-6, "shares": [0.3, 0.7], "repeats": 2}
    split = dp.split_budget(recipe, rows, **words)
    assert all(recorded)
    assert len(recorded) == 5
    assert not simulating()
    assert split.table["score"].between(0.6, 1).all()
    assert split.simulated
    pd.testing.assert_frame_equal(split.table, dp.split_budget(recipe, rows, **words).table)


def test_what_is_printed():
    trials = tried(shares=[0.3, 0.5])
    for text in (trials.summary().as_text(), trials.summary().as_latex(), trials._repr_html_()):
        assert "SIMULATION - NOT PRIVATE" in text
        assert "nothing spent" in text
    long = trials.tidy()
    assert list(long) == ["division", "stage", "share", "eps", *COLUMNS]
    assert long["share"].tolist() == pytest.approx([0.3, 0.7, 0.5, 0.5])
    assert trials.glance()["best_first"].item() == 0.5
    assert "first : second = 0.5 : 0.5" in repr(trials)
    axes = trials.plot()
    assert axes.get_xlabel() == "share of first"
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0.3", "0.5"]
    plt.close(axes.figure)


def failing(rows, a, b):
    raise KeyError("a cell of the rows")


def silent(rows, a, b):
    return spend(a)


def greedy(rows, a, b):
    spend(a)
    return spend({"budget": dp.PureDP(b["budget"].eps * 2), "ledger": b["ledger"]})


def returning(score):
    def recipe(rows, a, b):
        spend(a), spend(b)
        return score

    return recipe


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        (failing, "raised KeyError with shares a : b = 0.1 : 0.9"),
        (silent, "spent nothing of stage 'b' with shares"),
        (greedy, "raised LedgerError with shares a : b = 0.1 : 0.9: The release"),
        (returning(float("nan")), "returned nan with shares a : b = 0.1 : 0.9"),
        (returning(np.inf), "returned inf"),
        (returning("0.5"), "returned str"),
        (returning(True), "returned True"),
        (returning(None), "returned NoneType"),
        (returning(np.ones(2)), "returned ndarray"),
        (lambda rows: 1.0, "has the stages none"),
        (lambda rows, budget: 1.0, "has the stages budget"),
        (lambda rows, *stages: 1.0, "expected two parameters"),
        (lambda rows, score, b: 1.0, "'score' has the name of a column"),
        ("recipe", "not a function"),
    ],
)
def test_recipes_that_cannot_be_tried(recipe, words):
    with pytest.raises(ArgumentError, match=words) as raised:
        tried(recipe)
    assert "a cell" not in str(raised.value)
    assert not simulating()


def test_stages_may_not_cost_more_than_the_whole_together():
    def three(rows, a, b, c):
        # Each keeps to its eps at so large a delta; three of them do not.
        for stage in (a, b, c):
            stage["ledger"].charge([PureEvent(0.2)], adjacency="replace")
        return 1.0

    with pytest.raises(ArgumentError, match="stages cost more than the budget with shares a : b"):
        tried(three, eps=0.03, delta=0.1, shares=[(0.3, 0.3, 0.4)])


@pytest.mark.parametrize(
    "shares",
    [0.5, [], [0.0], [1.0], [-0.1], [1.2], [np.nan], ["a"], [[0.5, 0.6]], [0.3, 0.3], [[1, 2, 3]]],
)
def test_shares_that_are_none(shares):
    with pytest.raises(ArgumentError, match="shares"):
        tried(shares=shares)


def test_other_bad_words():
    for words in ({"repeats": 1}, {"repeats": 2.0}, {"repeats": True}, {"best": "least"}):
        with pytest.raises(ArgumentError, match=next(iter(words))):
            tried(**words)
    with pytest.raises(ArgumentError, match="adjacency"):
        tried(adjacency="other")
    with pytest.raises(BudgetError):
        tried(eps=-1.0)
    with pytest.raises(BudgetError):
        dp.split_budget(error, None)
