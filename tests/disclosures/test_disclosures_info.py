"""Cards are found by name where there is one of it, and sources are those of the docstrings."""

import inspect
import re

import pytest

from dpmodels import mechanisms
from dpmodels.disclosures.document import bibtex, info_named, source
from dpmodels.mechanisms.tables import TABLES

STRATEGIES = {
    f"{strategy.__module__}.{strategy.__name__}": strategy
    for table in TABLES.values()
    for strategy in table.values()
}


@pytest.mark.parametrize("where", STRATEGIES)
def test_every_mechanism_tells_its_source(where):
    card = STRATEGIES[where].info
    reported = source(card)
    own, of_file = inspect.getdoc(STRATEGIES[where]), inspect.getmodule(STRATEGIES[where]).__doc__
    plain = re.sub(r":\w+:(?=`)|`", "", own if "\nSource\n" in own else of_file)
    documented = " ".join(plain.split())
    assert reported in documented
    assert len(reported) >= 4
    assert "`" not in reported, "what is printed and cited has no markup of the reference"


def test_a_name_that_several_mechanisms_have_tells_of_none():
    assert info_named("gauss") == mechanisms.Gauss.info
    assert info_named("tree") is info_named("no such") is None


def test_entries_are_balanced_and_one_a_card():
    text = bibtex((mechanisms.Gauss.info, mechanisms.Geometric.info))
    assert [line.split("{")[1] for line in text.splitlines() if line.startswith("@")] == [
        "dpmodels,",
        "dpmodels-gauss,",
        "dpmodels-geometric,",
    ]
    assert text.count("{") == text.count("}")
    assert "``Analyze Gauss'', STOC" in text
    assert "char34" not in text


def test_sources_are_plain_text():
    for strategy in STRATEGIES.values():
        assert not re.search(r"`|:\w+:", source(strategy.info))


def test_mechanisms_of_one_file_have_sources_of_their_own():
    assert "Ghosh" in source(mechanisms.Laplace.info)
    assert "Ghosh" not in source(mechanisms.Gauss.info)
    assert "Sheldon" in source(mechanisms.PermuteAndFlip.info)
