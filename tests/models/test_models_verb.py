"""Verbs share their parameters: one text for each, in every signature and in every help."""

import inspect
import re

import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError
from dpmodels.models.verb import Shared

# A survey's several fits have parameters of their own.
VERBS = sorted({name for name in dp.__all__ if name.startswith("dp_")} - {"dp_survey"})
FIRST = ["formula", "data", "sites", "protocol", "codebook", "eps", "delta", "budget"]
LAST = ["adjacency", "person", "rows", "subset", "design", "csv", "ledger"]


@pytest.mark.parametrize("name", VERBS)
def test_a_signature_has_the_shared_parameters_in_order(name):
    parameters = inspect.signature(getattr(dp, name)).parameters
    assert list(parameters)[: len(FIRST)] == FIRST
    assert list(parameters)[-len(LAST) :] == LAST
    assert set(Shared.__annotations__) == set(FIRST[2:] + LAST)
    assert all(
        parameter.kind is parameter.KEYWORD_ONLY for parameter in list(parameters.values())[2:]
    )
    assert {parameters[word].default for word in (*FIRST[2:], *LAST)} == {None, 0.0}


@pytest.mark.parametrize("name", VERBS)
def test_help_is_complete(name):
    text = inspect.getdoc(getattr(dp, name))
    section = re.split(r"\n\n\w+\n-+\n", text.partition("\nParameters\n----------\n")[2])[0]
    entries = re.split(r"\n(?=\S)", section)
    described = [word.strip(" *") for entry in entries for word in entry.split(" :")[0].split(",")]
    assert described[: len(FIRST)] == FIRST
    assert described[-len(LAST) :] == LAST
    assert len(set(described)) == len(described)
    assert set(described) == set(inspect.signature(getattr(dp, name)).parameters)
    assert all("\n    " in entry for entry in entries)
    assert "s for :func:`dp_" not in section


def test_an_entry_of_a_verb_adds_to_the_shared_text():
    text = " ".join(inspect.getdoc(dp.dp_bounds).split())
    assert "an iterable of frames. Never kept. The rows are read twice. sites" in text


@pytest.mark.guarding
@pytest.mark.parametrize("name", VERBS)
def test_a_misspelled_parameter_is_answered_before_the_charge(name):
    ledger = dp.Ledger(eps=1.0)
    with pytest.raises(
        ArgumentError, match=rf"{name} has no parameter legder= \(did you mean 'led"
    ):
        getattr(dp, name)("~ a", {"a": [1]}, legder=ledger)
    with pytest.raises(ArgumentError, match=rf"has no parameter zzz=: see help\(dp\.{name}\)"):
        getattr(dp, name)("~ a", {"a": [1]}, zzz=1, ledger=ledger)
    with pytest.raises(ArgumentError, match="formula and data by position: write all else by name"):
        getattr(dp, name)("~ a", {"a": [1]}, {"a": (0, 1)}, ledger=ledger)
    assert ledger.entries == ()


def test_an_option_that_is_left_out_is_named():
    with pytest.raises(ArgumentError, match=r"^dp\.dp_series needs time=: see help"):
        dp.dp_series("~ a", {"a": [1]}, eps=1.0)


@pytest.mark.parametrize(
    ("parameter", "instead"),
    [
        ("bounds", r"bounds=; write codebook=dp\.codebook\(age="),
        ("weights", r"weights=; sampling weights are declared by dp\.design\(weights="),
        ("level", r"level=; write fit\.conf_int\(level="),
        ("seed", r"seed=; runs repeat in dp\.simulation\(seed=1\): see help\(dp\.dp_mean\)"),
        ("bins", r"bins=; write breaks=10: see help"),
    ],
)
def test_parameters_of_other_packages_are_answered_with_what_to_write(parameter, instead):
    with pytest.raises(ArgumentError, match=f"no parameter {instead}"):
        dp.dp_mean("~ a", {"a": [1]}, eps=1.0, **{parameter: 1})


def test_a_codebook_by_position_is_answered_with_its_name():
    with pytest.raises(ArgumentError, match=r"by name, such as codebook=; see help\(dp\.dp_lm\)"):
        dp.dp_lm("a ~ 1", {"a": [1]}, dp.codebook(a=(0, 1)), eps=1.0)


def test_a_misspelled_family_is_answered_with_the_nearest():
    with pytest.raises(ArgumentError, match=r"family='binomal' \(did you mean 'binomial'"):
        dp.dp_glm("a ~ 1", {"a": [1]}, codebook=dp.codebook(a=[0, 1]), eps=1.0, family="binomal")
