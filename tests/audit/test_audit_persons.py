"""Persons are audited with all their rows, and noise for a row does not pass for theirs."""

from functools import partial

import pytest

import dpmodels as dp
from dpmodels.audit.neighbours import PERSON, Pair, of_persons
from dpmodels.audit.registry import FULL, PERSONS, REGISTRY, SMALL
from dpmodels.models import verb_spec

# One of each family in the ordinary run, by both ways of counting a person's rows.
ORDINARY = {
    "dp_pca laplace (eps)",
    "dp_lm ellipsoid (eps, delta)",
    "dp_glm output (eps)",
    "dp_mean geometric (eps)",
    "dp_quantile refined (eps)",
}
LINES = [
    pytest.param(line, id=line.name, marks=() if old.name in ORDINARY else pytest.mark.product)
    for line, old in zip(PERSONS, [line for line in REGISTRY if not line.is_sampled], strict=True)
]


def audited(line, *, runs, confidence):
    """Noise of a simulation, so that each outcome repeats."""
    with dp.simulation(seed=6):
        return dp.audit(line.verb, line.pair, runs=runs, confidence=confidence)


@pytest.mark.product
@pytest.mark.parametrize("line", LINES)
def test_a_small_audit_flags_no_mechanism(line):
    # False alarms: 1e-6 each.
    audit = audited(line, runs=line.small, confidence=SMALL)
    assert audit.verdict == "consistent"
    assert audit.eps_lower <= audit.eps_claimed


@pytest.mark.audit_full
@pytest.mark.parametrize("line", PERSONS, ids=lambda line: line.name)
def test_a_full_audit_flags_no_mechanism(line):
    # False alarms: 2e-4 each, below 0.01 for all.
    audit = audited(line, runs=line.full, confidence=FULL)
    assert audit.verdict == "consistent"


@pytest.mark.product
@pytest.mark.parametrize("name", ["dp_pca laplace", "dp_mean geometric"])
def test_noise_for_one_row_is_flagged(name, monkeypatch):
    # At 95 %: the seed is fixed, so that what is found is found again.
    monkeypatch.setattr(
        verb_spec, "planned_for_group", lambda plan, events, guarantee, rows: plan(guarantee)
    )
    line = next(person for person in PERSONS if person.name.startswith(name))
    verb = partial(line.verb, rows="mean")
    assert audited(line._replace(verb=verb), runs=2_000, confidence=0.95).verdict == "VIOLATION"


def test_the_row_that_differs_is_a_person_of_several():
    (extra,) = of_persons([Pair({"a": [0, 1]}, {"a": [0, 1, 2]}, "add-remove")], 2)
    assert extra.neighbour == {"a": [0, 1, 2, 2], PERSON: ["0", "1", "2", "2"]}
    assert extra.rows == {"a": [0, 1], PERSON: ["0", "1"]}
    assert {line.name for line in PERSONS}.isdisjoint(line.name for line in REGISTRY)
