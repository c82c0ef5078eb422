"""Neighbours from a formula and a codebook: one row apart, and as bad as they say."""

import functools
import math
from importlib import import_module

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.audit.neighbours import neighbouring_tables, worst_pairs
from dpmodels.errors import ArgumentError

coupled_runs = import_module("dpmodels.audit.coupled")
BOOK = dp.codebook(a=(0, 1), b=(-5, 20), g=["x", "y", "z"], unused=(0, 9))


def rows(table):
    return list(zip(*(map(repr, column) for column in table.values()), strict=True))


@pytest.fixture
def values_alone(monkeypatch):
    """Leave out the pairs that vary how a record is written."""
    monkeypatch.setattr(coupled_runs, "ingestion_pairs", lambda *_, **__: ())


@pytest.mark.parametrize("make", [worst_pairs, neighbouring_tables])
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_pairs_are_neighbours(make, adjacency):
    result = make("~ a * b + g", BOOK, adjacency)
    assert len({pair.name for pair in result}) == len(result)
    for pair in result:
        left, right = rows(pair.rows), rows(pair.neighbour)
        assert pair.adjacency == adjacency
        assert set(pair.rows) == {"a", "b", "g"}
        if adjacency == "replace":
            assert len(left) == len(right)
            assert sum(first != second for first, second in zip(left, right, strict=True)) == 1
        else:
            assert right[: len(left)] == left
            assert len(right) == len(left) + 1


def test_all_kinds_of_variables_have_neighbours():
    book = dp.codebook(
        k=dp.Integer(0, 9, missing=[-9]),
        d=dp.Date("2001-01-01", "2001-12-31"),
        b=dp.Boolean(),
        e=dp.Categorical({1: "low", 2: "high"}, ordered=True),
    )
    for make in (worst_pairs, neighbouring_tables):
        cells = {cell for pair in make("~ .", book) for cell in pair.rows["d"]}
        assert {"2001-01-01", "2001-12-31"} <= cells


def test_every_kind_of_row_is_tried():
    names = " ".join(pair.name for pair in worst_pairs("~ .", BOOK))
    for word in ("none", "opposite", "orthogonal", "45 degrees", "bounds", "infinite", "unlisted"):
        assert word in names


def test_orthogonal_rows_are_orthogonal_and_as_long_as_any():
    verb = functools.partial(
        dp.dp_pca, "~ a + b", codebook=BOOK, eps=1.0, delta=1e-6, mechanism="gauss"
    )
    pairs = {pair.name: pair for pair in worst_pairs("~ a + b", BOOK)}
    swap = pairs["orthogonal rows, few others"]
    coupled = dp.audit.coupled(verb, [swap])
    # With the mean released, rows a little beyond a right angle are farthest apart.
    assert coupled.largest == pytest.approx(math.sqrt(3 / 3.125) * coupled.limit, rel=1e-5)


def test_formulas_without_variables_are_refused():
    with pytest.raises(ArgumentError, match="names no variable"):
        worst_pairs("~ 1", BOOK)


def test_a_verb_brings_its_claim_and_its_pair(values_alone):
    verb = functools.partial(dp.dp_mean, "a ~ g", codebook=BOOK, budget=dp.ZCDP(0.1))
    result = dp.audit(verb, runs=600, tests=["whitened"], confidence=1 - 1e-6)
    assert result.claim.unit == "mu"
    assert result.claim.value == pytest.approx(np.sqrt(0.2))
    assert result.pair in {pair.name for pair in worst_pairs("a ~ g", BOOK)}
    assert result.verdict == "consistent"


@pytest.mark.product
def test_a_mechanism_that_halves_its_noise_is_caught_through_the_verb(values_alone):
    from dpmodels.mechanisms.counts import Geometric

    class Quiet(Geometric):
        def plan(self, facts, guarantee):
            plan = super().plan(facts, guarantee)
            return type(plan)(**(vars(plan) | {"scale": plan.scale / 2}))

    verb = functools.partial(dp.dp_mean, "~ a", codebook=BOOK, eps=1.0, mechanism=Quiet())
    result = dp.audit(verb, runs=3_000, tests=["laplace"])
    assert result.verdict == "VIOLATION"
    assert 1.0 < result.eps_lower < 2.0
