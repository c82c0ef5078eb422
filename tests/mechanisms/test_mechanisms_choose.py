"""From the word `mechanism=` to a strategy."""

from dataclasses import fields
from functools import partial

import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError
from dpmodels.mechanisms import (
    COEFFICIENTS,
    COUNTS,
    COVARIANCE,
    MEANS,
    ORDERED,
    REGRESSION,
    SUBSPACE,
    Facts,
    Gauss,
    choose_strategy,
)
from dpmodels.mechanisms.choose_moments import auto_moments
from dpmodels.privacy import ApproxDP, PureDP, adjacency

ALL = COVARIANCE | SUBSPACE
BUDGET = ApproxDP(1.0, 1e-6)
FACTS = Facts(5, adjacency("replace"), centred=True, components=2)


def chosen(mechanism, table=ALL, guarantee=BUDGET, rows=10_000, **options):
    automatic = partial(auto_moments, FACTS, guarantee, rows, frozenset(table))
    return choose_strategy(mechanism, table, automatic, options)


@pytest.mark.parametrize(
    ("written", "meant"),
    [("Gauss", "gauss"), ("factorization", "factorisation"), ("partitions", "partition")],
)
def test_a_name_that_is_nearly_one_is_told(written, meant):
    table = ALL | ORDERED
    with pytest.raises(ArgumentError, match=f"did you mean '{meant}'"):
        chosen(written, table)


@pytest.mark.parametrize("name", ALL)
def test_a_name_is_its_strategy_and_needs_no_reason(name):
    strategy, reason = chosen(name)
    assert strategy == ALL[name]()
    assert strategy.info.name == name
    assert reason == ""


@pytest.mark.parametrize("table", [COVARIANCE, ALL, {"gauss": Gauss}])
@pytest.mark.parametrize("guarantee", [BUDGET, PureDP(1.0)])
@pytest.mark.parametrize("rows", [None, 100, 10**6])
def test_auto_is_in_the_table_and_says_why(table, guarantee, rows):
    strategy, reason = chosen("auto", table, guarantee, rows)
    assert type(strategy) in table.values()
    assert reason.endswith(".")


def test_words_go_where_there_is_a_field_for_them():
    for name, kind in ALL.items():
        field_names = {field.name for field in fields(kind)}
        strategy, _ = chosen(name, denoise=None, magic=3)
        assert not hasattr(strategy, "magic")
        assert ("denoise" not in field_names) or strategy.denoise is None
    assert any("denoise" in {field.name for field in fields(kind)} for kind in ALL.values())


def test_an_instance_is_itself():
    mechanism = Gauss()
    strategy, reason = chosen(mechanism, denoise=None)
    assert strategy is mechanism
    assert reason == ""


@pytest.mark.parametrize("name", ["", "gaus", "GAUSS"])
def test_an_unknown_name_lists_the_known_ones(name):
    with pytest.raises(ArgumentError, match="expected one of 'auto', 'gauss'"):
        chosen(name)


def test_a_name_of_another_table_is_unknown():
    with pytest.raises(ArgumentError, match="'ppca' is not known"):
        chosen("ppca", COVARIANCE)


@pytest.mark.parametrize("value", [None, 3, Gauss, object(), ["gauss"], [73.25]])
def test_what_is_no_strategy_is_named_by_its_type(value):
    with pytest.raises(ArgumentError, match="expected a name or an instance") as raised:
        chosen(value)
    assert f"of type {type(value).__name__};" in str(raised.value)
    assert "73.25" not in str(raised.value)


@pytest.mark.parametrize("table", [COVARIANCE, SUBSPACE, COUNTS, MEANS, REGRESSION, COEFFICIENTS])
def test_the_example_in_the_error_can_be_written(table):
    with pytest.raises(ArgumentError, match="such as") as raised:
        choose_strategy(3, table, lambda: ("", ""))
    written = str(raised.value).rpartition("such as ")[2]
    assert eval(written, {"dp": dp}).info.name in table
