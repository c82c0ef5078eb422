"""From the word `mechanism=` to a strategy."""

import pytest

from dpmodels.errors import ArgumentError
from dpmodels.mechanisms import COVARIANCE, Gauss, choose


def test_auto_and_names_are_in_the_table():
    assert choose("auto", COVARIANCE) == Gauss()
    for name, kind in COVARIANCE.items():
        assert choose(name, COVARIANCE) == kind()
        assert choose(name, COVARIANCE).card.name == name


def test_an_instance_is_itself():
    own = Gauss()
    assert choose(own, COVARIANCE) is own


@pytest.mark.parametrize("name", ["", "gaus", "GAUSS", "wishart"])
def test_an_unknown_name_lists_the_known_ones(name):
    with pytest.raises(ArgumentError, match="expected one of 'auto', 'gauss'"):
        choose(name, COVARIANCE)


@pytest.mark.parametrize("given", [None, 3, Gauss, object(), ["gauss"], [73.25]])
def test_what_is_no_strategy_is_named_by_its_type(given):
    with pytest.raises(ArgumentError, match="expected a name or an instance") as raised:
        choose(given, COVARIANCE)
    assert f"of type {type(given).__name__};" in str(raised.value)
    assert "73.25" not in str(raised.value)
