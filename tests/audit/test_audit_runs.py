"""Whatever a recipe does is an outcome: counted, tested, and told as a finding."""

from itertools import count

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import dpmodels as dp
from dpmodels.audit.verb_recipes import commonest, run

PAIR = dp.audit.Pair(0, 1)


def audited(recipe, **words):
    return dp.audit(recipe, PAIR, **({"eps": 1.0, "runs": 1_000} | words))


def kinds(result):
    return {finding.kind for finding in result.findings}


def every(times):
    """True at every so many calls."""
    calls = count()
    return lambda: next(calls) % times == 0


def test_raising_more_often_for_a_neighbour_is_a_violation():
    sometimes, rng = every(2), np.random.default_rng(2)

    def recipe(rows):
        if rows and sometimes():
            raise KeyError(rows)
        return rng.integers(0, 10)

    audit = audited(recipe)
    assert audit.verdict == "VIOLATION"
    assert audit.events[0].score == "outcomes"
    assert "raised" in kinds(audit)


def test_raising_as_often_for_both_is_a_finding():
    sometimes, rng = every(3), np.random.default_rng(2)

    def recipe(rows):
        if sometimes():
            raise KeyError(rows)
        return rng.integers(0, 10)

    audit = audited(recipe, confidence=1 - 1e-6)
    assert audit.verdict == "consistent"
    assert "raised" in kinds(audit)


def test_a_recipe_that_always_raises_is_no_crash():
    audit = audited(lambda rows: rows / 0, runs=100)
    assert (audit.verdict, audit.eps_lower) == ("consistent", 0.0)
    assert {"raised", "no test"} <= kinds(audit)
    assert "ZeroDivisionError" in str(audit.summary())


def test_a_batch_that_raises_is_no_crash():
    audit = audited(abs, batch=lambda rows, runs: {}[rows], runs=100)
    assert "raised" in kinds(audit)


def test_values_from_rows_are_in_no_finding():
    def recipe(rows):
        raise ValueError(f"row {rows + 987654321}")

    assert "98765432" not in str(audited(recipe, runs=70).summary())


@pytest.mark.parametrize("value", [float("nan"), None, [], float("inf"), [None, "x"]])
def test_what_is_no_number_is_a_finding(value):
    audit = audited(lambda rows: value, runs=200)
    assert audit.verdict == "consistent"
    assert audit.findings


def test_nan_for_a_neighbour_alone_is_a_violation():
    audit = audited(lambda rows: float("nan") if rows else 1.0, runs=200)
    assert audit.verdict == "VIOLATION"
    assert "not finite" in kinds(audit)


def test_a_shape_that_follows_the_rows_is_a_violation():
    audit = audited(lambda rows: [1.0] * (2 + rows), runs=200)
    assert audit.verdict == "VIOLATION"
    assert "shape" in kinds(audit)


def test_constants_are_a_finding_and_a_violation_only_where_they_differ():
    same, audit = audited(lambda rows: 3.0, runs=200), audited(lambda rows: 3.0 + rows, runs=200)
    assert same.verdict == "consistent"
    assert audit.verdict == "VIOLATION"
    assert "constant" in kinds(same) & kinds(audit)


def test_the_same_noise_twice_is_a_violation():
    rng = np.random.default_rng(4)

    def recipe(rows):
        noise = rng.normal()
        return [rows + noise, noise]

    audit = audited(recipe, eps=2.0, delta=1e-5, law="gaussian", numerics="idealised")
    assert audit.verdict == "VIOLATION"


def test_a_fixed_seed_is_a_violation():
    audit = audited(lambda rows: rows + np.random.default_rng(1).normal(), runs=200)
    assert audit.verdict == "VIOLATION"
    assert "constant" in kinds(audit)


@pytest.mark.product
def test_words_are_outcomes():
    rng = np.random.default_rng(6)
    levels = np.array(["no", "yes"])
    audit = audited(lambda rows: levels[int(rng.uniform() < 0.1 + 0.8 * rows)])
    assert audit.verdict == "VIOLATION"
    assert 1.2 < audit.eps_lower < np.log(9)


@pytest.mark.parametrize("runs", [1, 2, 10, 63])
def test_too_few_runs_say_so(runs):
    audit = audited(lambda rows: rows, runs=runs)
    assert audit.verdict == "consistent"
    assert "no test" in kinds(audit)


def test_few_runs_say_what_could_have_been_seen():
    audit = audited(lambda rows: 0.0, eps=8.0, delta=1e-5, runs=100)
    assert "few runs" in kinds(audit)
    assert audit.reach.largest < 8.0
    assert "which is below the claim" in " ".join(str(audit.summary()).split())
    large = audited(lambda rows: 0.0, eps=1.0, runs=2_000)
    assert 1.0 < large.reach.smallest < 1.3
    assert "few runs" not in kinds(large)


def test_ragged_runs_are_sorted_by_kind():
    turn = count()
    result = run(lambda rows: list(range(next(turn) % 3)), None, 9)
    assert sorted(result.kinds) == ["0 numbers", "1 number", "2 numbers"]
    assert result.of("2 numbers").shape == (3, 2)
    part = result.cut(3, 6)
    assert len(part) == 3
    assert [len(part.of(kind)) for kind in result.kinds] == [1, 1, 1]
    assert commonest(result) != "0 numbers"


@pytest.mark.expensive
def test_released_values_of_every_sort_are_laid_out_alike():
    released = dp.audit.released
    table = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    expected = [1.0, 2.0, 3.0, 4.0]
    forms = [
        expected,
        np.array([[1, 2], [3, 4]]),
        {"x": 1, "y": [2, 3, 4]},
        (1, (2, 3), [4]),
        table,
        pd.Series(expected),
        xr.DataArray(np.array(expected).reshape(2, 2)),
        xr.Dataset({"u": ("i", [1.0, 2.0]), "v": ("i", [3.0, 4.0])}),
    ]
    for form in forms:
        assert released(form).tolist() == expected
    assert released(1 + 2j).tolist() == [1.0, 2.0]
    assert released("a") == released("a") != released("b")
    assert released(np.array(["a", "b"])).tolist() == [released("a")[0], released("b")[0]]


def test_a_batch_of_lines_of_different_lengths_is_sorted_by_their_length():
    lines = [np.ones(2), np.ones(3), np.zeros(2)]
    result = run(lambda rows: rows, None, 3, lambda rows, runs: lines)
    assert result.kinds == ("2 numbers", "3 numbers")
    assert result.codes.tolist() == [0, 1, 0]
