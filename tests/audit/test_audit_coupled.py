"""Coupled runs: what neighbours differ by, without the noise, against what is declared."""

import functools
import math

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.audit.verb_recipes import verb_recipe
from dpmodels.errors import ArgumentError
from dpmodels.mechanisms import Gauss
from dpmodels.noise import source
from dpmodels.noise.uniform import normals
from dpmodels.released import MomentsRelease

BOOK = dp.codebook(a=(0, 1), b=(-5, 20), g=["x", "y", "z"])


def verb(kind=dp.dp_cov, formula="~ a + b", **words):
    usual = {"codebook": BOOK, "eps": 1.0, "delta": 1e-6}
    return functools.partial(kind, formula, **(usual | words))


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("mechanism", ["gauss", "laplace", "analyze_gauss"])
def test_moments_reach_their_sensitivity_and_keep_it(mechanism, adjacency):
    coupled = dp.audit.coupled(verb(mechanism=mechanism, adjacency=adjacency))
    assert coupled.verdict == "consistent"
    assert coupled.pairs == (48 * 47 // 2 if adjacency == "replace" else 48)
    smallest = 0.99 if mechanism == "gauss" else 0.6
    assert smallest * coupled.limit <= coupled.largest <= coupled.limit * (1 + 1e-9)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_counts_reach_their_sensitivity_and_keep_it(adjacency):
    for kind, formula in ((dp.dp_mean, "a ~ g"), (dp.dp_hist, "~ a"), (dp.dp_table, "~ g")):
        coupled = dp.audit.coupled(verb(kind, formula, delta=0.0, adjacency=adjacency))
        assert coupled.verdict == "consistent"
        assert coupled.largest == pytest.approx(coupled.limit, rel=1e-6)


class Loud(Gauss):
    """Gauss with the noise of half its sensitivity."""

    def plan(self, facts, guarantee):
        plan = super().plan(facts, guarantee)
        halved = {name: getattr(plan.steps, name) / 2 for name in vars(plan.steps)}
        return type(plan)(**(vars(plan) | {"steps": type(plan.steps)(**halved)}))


def test_noise_of_half_the_sensitivity_is_a_violation():
    coupled = dp.audit.coupled(verb(mechanism=Loud()))
    assert coupled.verdict == "VIOLATION"
    assert coupled.largest == pytest.approx(2 * coupled.limit, rel=0.01)
    assert "VIOLATION" in repr(coupled)
    assert coupled.tidy().loc[0, "worst"] == coupled.worst != ""


@pytest.mark.parametrize("mechanism", ["ppca", "separate"])
def test_mechanisms_that_do_not_add_noise_are_refused(mechanism):
    with pytest.raises(ArgumentError, match=mechanism):
        dp.audit.coupled(verb(dp.dp_pca, mechanism=mechanism))


def pairs(*values):
    return [dp.audit.Pair([0.0, 0.0], [0.0, value], name=str(value)) for value in values]


def test_recipes_with_noise_of_the_package_are_coupled_by_simulation():
    coupled = dp.audit.coupled(
        lambda rows: sum(rows) + normals(3, source()),
        pairs(0.5, 1.0, 0.2),
        sensitivity=math.sqrt(3),
    )
    assert coupled.verdict == "consistent"
    assert coupled.largest == pytest.approx(math.sqrt(3))
    assert coupled.worst == "1.0"


def test_recipes_with_a_seed_are_coupled_by_it():
    def recipe(rows, seed):
        return sum(rows) + np.random.default_rng(seed).laplace(size=2)

    words = {"sensitivity": 1.9, "distance": lambda difference: np.abs(difference).sum()}
    coupled = dp.audit.coupled(recipe, pairs(1.0), **words)
    assert coupled.verdict == "VIOLATION"
    assert coupled.largest == pytest.approx(2.0)


def test_what_raises_or_changes_shape_is_a_finding():
    def recipe(rows):
        if rows[1] == 3:
            raise ValueError("no")
        return [0.0] * (2 if rows[1] else 1)

    coupled = dp.audit.coupled(recipe, pairs(1.0, 3.0), sensitivity=1.0)
    assert [finding.kind for finding in coupled.findings] == ["shape", "raised"]


def test_pairs_and_sensitivity_are_asked_for():
    with pytest.raises(ArgumentError, match="sensitivity"):
        dp.audit.coupled(abs, pairs(1.0))


def test_a_verb_is_run_as_it_is_and_released_from_one_statistic():
    recipe = verb_recipe(verb(mechanism="gauss", ledger=dp.Ledger(eps=1, delta=1e-6)))
    rows = {"a": [0.0, 1.0, 0.5], "b": [1.0, 2.0, 3.0]}
    draws = recipe.batch(rows, 400)
    release = recipe(rows).release
    assert isinstance(release, MomentsRelease)
    assert draws.shape == (400, 1 + 2 + 3 + 1)
    assert len(np.unique(draws[:, 0])) == 400
    # False alarms: six standard errors, below 1e-8.
    spread = draws[:, 0].std() / release.noise.count
    assert abs(spread - 1) < 6 / math.sqrt(2 * 400)
    assert Gauss.release.__qualname__ == "Gauss.release"


def test_verbs_without_formula_or_with_data_are_refused():
    for partial in (
        functools.partial(dp.dp_cov, codebook=BOOK, eps=1.0),
        functools.partial(dp.dp_cov, "~ a", {"a": [1.0]}, codebook=BOOK, eps=1.0),
        functools.partial(dp.dp_cov, "~ a", codebook={"a": (0, 1)}, eps=1.0),
    ):
        with pytest.raises(ArgumentError, match="recipe"):
            dp.audit(partial)
