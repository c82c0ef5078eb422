"""Recipes are asked by the words they take, and none that spends anything is asked at all."""

from functools import partial

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError
from dpmodels.evaluation.recipe import recipes

SHAPE = {"bimodal": dp.shapes.standard(8)["bimodal"]}
FLAT = partial(dp.dp_hist, "~ v")


def evaluated(algorithms, **words):
    words = {"scale": 100, "repeats": 2, "eps": 1.0} | words
    return dp.evaluate(algorithms, SHAPE, **words)


def test_a_verb_gets_rows_of_the_drawn_counts():
    recorded = {}

    def verb(data, *, codebook, eps, breaks, adjacency):
        recorded.update(eps=eps, breaks=breaks, adjacency=adjacency, book=codebook)
        return np.bincount(data["v"], minlength=breaks)

    result = evaluated({"exact": verb})
    assert (result.data["error"].sel(algorithm="exact") == 0).all()
    assert recorded["breaks"] == 8
    assert recorded["adjacency"] == "add-remove"
    assert recorded["book"]["v"].describe() == dp.Integer(0, 7).describe()


def test_a_function_of_any_words_is_asked_as_a_verb():
    result = evaluated({"any": lambda **words: dp.dp_hist("~ v", **words)})
    assert result.answers["any", 0].shape == (8,)


def test_a_recipe_of_any_name_has_noise_of_its_own():
    """Noise from the seed of the rows would follow them."""
    recorded = []

    def spying(counts, eps, rng):
        recorded.append(rng.multinomial(100, np.full(8, 1 / 8)))
        return counts

    study = dp.evaluate({"rows": spying}, {"even": np.ones(8)}, scale=100, repeats=2)
    assert not np.array_equal(recorded[0], study.truths[0])


def test_words_that_a_recipe_says_stay_its_own():
    recorded = set()

    def verb(data, *, codebook, eps, adjacency="replace", breaks=None):
        recorded.add(adjacency)
        return np.bincount(data["v"], minlength=8)

    evaluated({"own": partial(verb, adjacency="replace")})
    assert recorded == {"replace"}


def test_a_function_of_counts_cannot_change_them_and_may_ask_for_noise():
    def planted(counts, eps, rng):
        noisy = counts + rng.normal(size=counts.shape)
        counts[:] = 0
        return noisy

    first, again = (evaluated({"planted": planted}).data["error"] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert (first.sel(algorithm="identity") > 0).any()


def test_a_pair_reads_the_attribute_it_names():
    study = evaluated({"released": FLAT, "counts": (FLAT, "counts")})
    printed = study.answers["counts", 0]
    assert (printed >= 0).all()
    assert (printed % 1 == 0).all()
    assert study.answers["released", 0].shape == printed.shape


def test_the_same_recipe_under_other_names_has_other_noise():
    study = evaluated({"one": FLAT, "other": FLAT})
    assert not np.array_equal(study.answers["one", 0], study.answers["other", 0])


def test_what_else_is_compared_changes_no_error():
    alone = evaluated({"flat": FLAT}).data["error"].sel(algorithm="flat")
    beside = evaluated({"zero": lambda counts, eps: 0 * counts, "flat": FLAT}, eps=[0.5, 1.0])
    np.testing.assert_array_equal(alone[0], beside.data["error"].sel(algorithm="flat")[1])


def test_nothing_is_charged_to_a_ledger_chosen_for_all_calls():
    ledger = dp.Ledger(eps=1.0, adjacency="add-remove")
    with dp.options(ledger=ledger, adjacency="replace", codebook={"v": (0, 3)}):
        evaluated({"flat": FLAT})
    assert not ledger.entries


def test_margins_are_read_by_the_names_of_their_variables():
    class Margins:
        def __init__(self, table):
            self.cells = table

        def table(self, *names):
            over = tuple(axis for axis, name in enumerate(("v1", "v2")) if name not in names)
            return type("Margin", (), {"released": self.cells.sum(axis=over) + 1})

    def verb(data, *, codebook, eps):
        assert codebook["v2"].levels == (0, 1, 2)
        table = np.zeros((4, 3))
        np.add.at(table, (data["v1"], data["v2"]), 1)
        return Margins(table)

    tables = {"two": np.ones((4, 3))}
    study = dp.evaluate({"margins": verb}, tables, scale=60, repeats=2, error="marginals")
    result = study.data["error"].sel(algorithm="margins")
    # 4 + 3 + 12 answers are wrong by 1.
    np.testing.assert_allclose(result, np.sqrt(19) / (19 * 60))


@pytest.mark.parametrize(
    ("recipe", "reported"),
    [
        ({}, "expected a mapping from names to recipes"),
        (None, "expected a mapping from names to recipes"),
        ({"": FLAT}, "is not a nonempty string"),
        ({"x": 3}, "expected a verb"),
        ({"x": (FLAT, 3)}, "expected a verb"),
        ({"x": partial(FLAT, eps=1)}, "sets eps="),
        ({"x": partial(FLAT, budget=dp.PureDP(1))}, "sets budget="),
        ({"x": partial(FLAT, ledger=dp.Ledger(eps=1.0))}, "sets ledger="),
        ({"x": partial(FLAT, data={"v": [1]})}, "sets data="),
        ({"x": partial(dp.dp_hist, "~ v", {"v": [1]})}, "already has rows"),
    ],
)
def test_recipes_with_rows_or_budgets_of_their_own_are_refused(recipe, reported):
    with pytest.raises(ArgumentError, match=reported):
        recipes(recipe)


def test_a_session_is_refused():
    session = dp.session({"v": [1, 2]}, codebook={"v": (0, 3)}, eps=1.0)
    with pytest.raises(ArgumentError, match="a method of a session"):
        recipes({"x": session.hist})


def broken(counts, eps):
    raise ZeroDivisionError("planted")


@pytest.mark.parametrize(
    ("recipe", "reported"),
    [
        (broken, "raised ZeroDivisionError at table 'bimodal', scale 100, 8 cells, eps 1: planted"),
        (lambda counts, eps: counts * np.nan, "not finite at table 'bimodal'"),
        (lambda counts, eps: counts[:3], r"shape \(3,\): expected a number for each"),
        (lambda counts, eps: "word", "expected an array"),
        ((FLAT, "nothing"), "without the attribute 'nothing'"),
        (partial(dp.dp_hist, "~ w"), "raised UnknownVariable at table 'bimodal'"),
    ],
)
def test_a_recipe_that_fails_is_named_with_the_cell(recipe, reported):
    with pytest.raises(ArgumentError, match=reported) as raised:
        evaluated({"x": recipe})
    assert "recipes['x']" in str(raised.value)
