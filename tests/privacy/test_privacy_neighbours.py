import pytest

from dpmodels.errors import ArgumentError
from dpmodels.privacy import Adjacency, adjacency


@pytest.mark.parametrize(
    ("name", "n_public", "words"),
    [
        ("replace", True, "replace one row, n public"),
        ("add-remove", False, "add or remove one row"),
    ],
)
def test_each_relation_says_what_it_is(name, n_public, words):
    relation = adjacency(name)
    assert relation.n_public is n_public
    assert relation.describe() == words
    assert adjacency(relation) is relation


@pytest.mark.parametrize("wrong", ["swap", "", None, 1, ["replace"]])
@pytest.mark.parametrize("make", [adjacency, Adjacency])
def test_an_unknown_relation_is_refused_with_both_choices(make, wrong):
    with pytest.raises(ArgumentError) as caught:
        make(wrong)
    for words in ("adjacency=", "'replace'", "'add-remove'"):
        assert words in str(caught.value)


def test_a_relation_is_frozen():
    with pytest.raises(AttributeError):
        adjacency("replace").name = "add-remove"
