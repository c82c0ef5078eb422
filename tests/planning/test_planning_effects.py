"""Populations have the effects that were stated, and else are as guessed."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import dpmodels as dp
from dpmodels.errors import ArgumentError, FormulaError
from dpmodels.planning.population import _independent
from dpmodels.planning.power_simulation import Cell, PowerInputs
from dpmodels.planning.verbs import options_of, verb_with_power
from tests.planning.test_planning_population import asking

LAWS = ["normal", "skewed", "uniform", "tails"]


def posed(verb, effect, shape="normal", **words):
    return asking(verb, shape, **words).trial(Cell(1_000, 1.0, effect)).posed


def design(own):
    columns = own.population.part.columns
    return np.stack([np.ones(own.population.part.rows), columns["sex"], columns["age"]])


@pytest.mark.parametrize("law", LAWS)
def test_slopes_are_exact_and_the_variance_stays(law):
    shape = {"wage": law if law == "skewed" else (law, 40, 6)}
    trial = posed("lm", {"age": 0.1, "sex[T.M]": 1.0}, shape)
    plain = posed("lm", {"age": 1e-9}, shape).population.part.columns["wage"]
    wage = trial.population.part.columns["wage"]
    is_within = wage.min() > 0 and wage.max() < 80
    np.testing.assert_allclose(trial.effect, [1.0, 0.1], rtol=1e-6 if is_within else 0.1)
    np.testing.assert_allclose(wage.std(), plain.std(), rtol=1e-6 if is_within else 0.05)
    slopes = np.linalg.lstsq(design(trial).T, wage, rcond=None)[0]
    np.testing.assert_allclose(slopes[1:], trial.truth, rtol=1e-9)


def test_log_odds_have_the_slopes_and_the_level_its_share():
    shape = {"smoker": [0.8, 0.2]}
    trial = posed("glm", {"age": 0.02, "sex[T.M]": -0.5}, shape)
    weights, smoker = trial.population.shares, trial.population.part.columns["smoker"]
    assert weights @ smoker == pytest.approx(0.2, abs=1e-3)
    linear = trial.truth @ design(trial)[1:]
    constant = np.log(0.2 / 0.8)
    for _ in range(50):
        mean = expit(constant + linear)
        constant -= (weights @ (mean - smoker)) / (weights @ (mean * (1 - mean)))
    score = design(trial) @ (weights * (smoker - expit(constant + linear)))
    np.testing.assert_allclose(score, 0, atol=1e-8)
    np.testing.assert_allclose(trial.effect, [-0.5, 0.02], rtol=1e-6)


def test_logarithms_of_counts_have_the_slopes():
    book = dp.codebook(visits=dp.Integer(0, 60), age=(18, 80))
    shape = {"visits": ("normal", 8, 2)}
    verb, power = verb_with_power("glm")
    words = {**options_of(verb), "family": "poisson"}
    arguments = (verb, power, "visits ~ age", book, shape, 1e-6, None, "auto", None, 0.05)
    posed = PowerInputs(*arguments, words).trial(Cell(1_000, 3.0, 0.01)).posed
    assert posed.effect[0] == pytest.approx(0.01, rel=0.01)
    visits = posed.population.part.columns["visits"]
    assert posed.population.shares @ visits == pytest.approx(8.0, abs=0.1)


def test_groups_differ_by_what_was_said():
    trial = posed("ttest", 3.0, {"sex": [0.3, 0.7], "wage": ("normal", 40, 6)})
    wage, male = trial.population.part.columns["wage"], trial.population.part.columns["sex"] == 1
    assert wage[~male].mean() - wage[male].mean() == pytest.approx(3.0, abs=1e-9)
    sd = np.sqrt(wage[male].var() / 0.7 + wage[~male].var() / 0.3)
    assert trial.sampling[0] == pytest.approx(sd, rel=2e-3)


def test_one_mean_is_held_against_a_number_so_far_away():
    trial = posed("ttest", -2.0, formula="~ wage")
    assert trial.null[0] == pytest.approx(trial.truth[0] + 2.0)


@pytest.mark.parametrize("w", [0.05, 0.2, -0.1])
def test_factors_depend_by_cohens_w_and_keep_their_margins(w):
    result = posed("table", w, {"sex": [0.3, 0.7]})
    share = result.truth[1:].reshape(2, 2)
    alone = _independent(share).reshape(2, 2)
    assert np.sqrt(((share - alone) ** 2 / alone).sum()) == pytest.approx(abs(w), rel=1e-9)
    np.testing.assert_allclose(share.sum(axis=1), [0.3, 0.7], atol=1e-3)
    assert result.freedom == 1


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("verb", "effect", "words", "reported"),
    [
        ("lm", 0, {}, "other than 0"),
        ("lm", {"age": 0.0}, {}, "other than 0"),
        ("lm", {"sex": 1.0}, {}, r"the terms are 'sex\[T.M\]', 'age'"),
        ("lm", {"agee": 1.0}, {}, r"names 'agee' \(did you mean 'age'\?\); the terms are"),
        ("lm", {"age": 9.0}, {}, "more than the assumed sd"),
        ("lm", 1.0, {"formula": "wage ~ 1"}, 'write verb="mean"'),
        ("glm", 0.1, {"shape": {"smoker": [1.0, 0.0]}}, "assumed responses are equal"),
        ("lm", "sample", {}, "frame of public rows"),
        ("lm", 0.1, {"formula": "log(wage + 1) ~ age"}, "computed from variables"),
        ("glm", 0.1, {"formula": "(wage > 20) ~ age"}, "computed from variables"),
        ("table", 0.9999999, {"shape": {"sex": [0.3, 0.7]}}, "Cohen's w is at most"),
        ("mean", "sample", {}, "in its own unit"),
        ("mean", {"X": 1.0}, {}, "the terms are 'F', 'M'"),
        ("ttest", 1.0, {"shape": {"sex": [1.0, 0.0]}}, "no assumed row is in 'M'"),
        ("lm", 0.1, {"subset": "age > 79.99"}, "too few for 2 terms"),
    ],
)
def test_effects_that_there_cannot_be_are_refused(verb, effect, words, reported):
    with pytest.raises(ArgumentError, match=reported):
        posed(verb, effect, **words)


def test_effects_of_a_sample_are_its_own():
    rng = np.random.default_rng(2)
    sample = {"age": rng.uniform(20, 70, 3_000), "sex": rng.choice(["F", "M"], 3_000)}
    sample["wage"] = 10 + 0.5 * sample["age"] + rng.normal(0, 3, 3_000)
    trial = posed("lm", "sample", pd.DataFrame(sample))
    assert trial.truth[1] == pytest.approx(0.5, abs=0.02)


@pytest.mark.product
@pytest.mark.parametrize("verb", ["lm", "ttest"])
def test_an_effect_far_smaller_than_a_step_of_the_response_is_kept(verb):
    book = dp.codebook(visits=dp.Integer(0, 100), group=["a", "b"])
    words = {"codebook": book, "shape": {"visits": ("skewed", 30, 5)}}
    table = dp.power("visits ~ group", verb=verb, n=1_000, eps=3.0, effect=0.2, **words).table
    assert table["effect"].item() == pytest.approx(0.2, rel=0.01)


@pytest.mark.parametrize(("response", "family"), [("y", "poisson"), ("g", "binomial")])
def test_offsets_are_left_out_of_power(response, family):
    book = dp.codebook(y=(0, 30), x=(-1, 1), t=(1, 5), g=["a", "b"])
    words = {"verb": "glm", "family": family, "codebook": book, "n": 500, "eps": 1, "delta": 1e-6}
    with pytest.raises(FormulaError, match="leave it out"):
        dp.power(f"{response} ~ x + offset(log(t))", effect={"x": 0.3}, **words)
