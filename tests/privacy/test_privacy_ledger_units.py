"""A ledger is opened for rows or for persons, as text, and takes no charge for others."""

import pytest

from dpmodels.errors import ArgumentError, LedgerError
from dpmodels.privacy import Adjacency, Ledger
from dpmodels.privacy.events import PureEvent

EVENT = [PureEvent(0.5)]


def test_the_words_are_those_of_the_verbs():
    assert Ledger(eps=1).adjacency == Adjacency("replace")
    assert Ledger(eps=1, rows=5).adjacency == Adjacency("replace", 5)
    ledger = Ledger(eps=1, adjacency="add-remove", person="id", rows=4)
    assert ledger.adjacency == Adjacency("add-remove", 4, "id")
    with pytest.raises(ArgumentError, match="already states what is protected"):
        Ledger(eps=1, adjacency=Adjacency("replace", 3), rows=4)
    with pytest.raises(ArgumentError, match="rows=0"):
        Ledger(eps=1, person="id", rows=0)


@pytest.mark.parametrize(
    "terms",
    [Adjacency("replace"), Adjacency("replace", 4), Adjacency("replace", 4, "who")],
    ids=str,
)
def test_a_charge_for_others_is_refused(terms):
    ledger = Ledger(eps=1, person="id", rows=4)
    with pytest.raises(LedgerError, match="write person='id', rows=4"):
        ledger.charge(EVENT, adjacency=terms)
    with pytest.raises(LedgerError, match=r"protects one person.*write person=False and no rows="):
        Ledger(eps=1).charge(EVENT, adjacency=ledger.adjacency)
    assert ledger.entries == ()
    ledger.charge(EVENT, adjacency=Adjacency("replace", "mean", "id"))


def test_the_unit_is_in_the_file_and_in_the_register(tmp_path):
    path = tmp_path / "study.ledger"
    ledger = Ledger.open(path, eps=2, person="id", rows=4, new=True)
    ledger.charge(EVENT, adjacency=ledger.adjacency)
    for words in ({}, {"person": "id", "rows": 4}, {"adjacency": Adjacency("replace", 4, "id")}):
        assert Ledger.open(path, **words, new=True).adjacency == Adjacency("replace", 4, "id")
    for words in ({"adjacency": "replace"}, {"person": "who"}, {"rows": 4}):
        with pytest.raises(LedgerError, match=r"was opened with adjacency replace one person"):
            Ledger.open(path, **words, new=True)
    assert Ledger.open(path).register()["adjacency"].tolist() == ["replace"]
