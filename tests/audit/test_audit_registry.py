"""Every mechanism and every verb is audited, and the audits have the power they state."""

import dataclasses
import math
from functools import partial

import pytest

import dpmodels as dp
from dpmodels.audit.registry import FULL, LEFT_OUT, REGISTRY, SMALL, Audited, AuditTable, run_all
from dpmodels.audit.result import Outcome
from dpmodels.mechanisms import add_noise, count_noise
from dpmodels.mechanisms.tables import TABLES

TITLES = [line.name for line in REGISTRY]
# Releases a side with which twice the claim is found four times in five and more.
POWERFUL = {
    "dp_pca gauss (eps, delta)": 3_000,
    "dp_pca laplace (eps)": 2_000,
    "dp_mean geometric (eps)": 8_000,
}


def audited(line: Audited, *, runs, confidence, seed=6):
    """Noise of a simulation, so that each outcome repeats."""
    with dp.simulation(seed=seed):
        return dp.audit(line.verb, line.pair, runs=runs, confidence=confidence)


def test_every_mechanism_of_every_table_is_audited():
    assert len(TABLES) >= 7
    names = {name for table in TABLES.values() for name in table}
    options = {line.mechanism for line in REGISTRY}
    assert options | set(LEFT_OUT) == names
    assert not options & set(LEFT_OUT)


def test_every_verb_is_audited():
    verbs = {f"dp_{name}" for name in dir(dp.call)}
    assert len(verbs) >= 13
    assert {line.verb.func.__name__ for line in REGISTRY} == verbs


def test_each_line_says_what_it_asks():
    assert len(set(TITLES)) == len(REGISTRY)
    for line in REGISTRY:
        words = line.verb.keywords
        assert words["eps"] == 1.0
        assert words.get("delta", 1e-5) == 1e-5
        assert 64 <= line.small < line.full


@pytest.mark.product
@pytest.mark.parametrize("line", REGISTRY, ids=TITLES)
def test_a_small_audit_flags_no_mechanism(line):
    # False alarms: 1e-6 each. What each would find: the column "detectable" of the table.
    audit = audited(line, runs=line.small, confidence=SMALL)
    assert audit.verdict == "consistent"
    assert audit.eps_lower <= audit.eps_claimed
    assert audit.events, "nothing was counted"


@pytest.mark.audit_full
@pytest.mark.parametrize("line", REGISTRY, ids=TITLES)
def test_a_full_audit_flags_no_mechanism(line):
    # False alarms: 2e-4 each, below 0.01 for all.
    audit = audited(line, runs=line.full, confidence=FULL)
    assert audit.verdict == "consistent"
    assert audit.eps_lower <= audit.eps_claimed


def halve_the_noise(patch):
    """Of all moments, and of counts with discrete Laplace noise."""
    noisy_sums = add_noise.noisy_sums

    def halved(parts, *rest):
        return noisy_sums([(exact, scale / 2) for exact, scale in parts], *rest)

    patch.setattr(add_noise, "noisy_sums", halved)
    draw = count_noise.discrete_laplace
    patch.setattr(count_noise, "discrete_laplace", lambda scale, *rest: draw(scale / 2, *rest))


@pytest.mark.product
@pytest.mark.parametrize("name", POWERFUL)
def test_halved_noise_is_flagged(name, monkeypatch):
    # At 95 %: the seed is fixed, so that what is found is found again.
    halve_the_noise(monkeypatch)
    audit = audited(REGISTRY[TITLES.index(name)], runs=POWERFUL[name], confidence=0.95)
    assert audit.reach.smallest < 2 * audit.claim.value
    assert audit.verdict == "VIOLATION"


def outcome(**words):
    outcome = Outcome(
        name="dp_table geometric (eps)",
        faulty=False,
        eps=1.0,
        delta=0.0,
        eps_lower=0.5,
        eps_gaussian=math.nan,
        detectable=1.4,
        runs=1_000,
        seconds=0.5,
        verdict="consistent",
    )
    return dataclasses.replace(outcome, **words)


@pytest.mark.parametrize(
    ("faulty", "verdict", "expected"),
    [
        (False, "consistent", True),
        (False, "VIOLATION", False),
        (True, "VIOLATION", True),
        (True, "consistent", False),
    ],
)
def test_what_is_expected_of_the_faulty_and_of_the_rest(faulty, verdict, expected):
    audit_table = AuditTable("Audits", SMALL, (outcome(), outcome(faulty=faulty, verdict=verdict)))
    assert audit_table.expected == expected
    assert audit_table.tidy()["expected"].tolist() == [True, expected]
    assert ("not as expected" in repr(audit_table)) != expected


@pytest.mark.product
def test_the_table_shows_claims_bounds_and_runs():
    lines = [line for line in REGISTRY if line.verb.func is dp.dp_table]
    result = run_all(lines)
    text = str(result.summary())
    for word in ("dp_table geometric (eps)", "1,000", "consistent", "1e-06", "detectable"):
        assert word in text
    unknown = outcome(eps_lower=0.0, detectable=math.inf, eps_gaussian=0.9)
    printed = str(AuditTable("Audits", SMALL, (unknown,)).summary())
    assert printed.count(" - ") == 2
    assert "0.900" in printed


def test_a_line_takes_a_pair_or_its_name():
    line = Audited("laplace", partial(dp.dp_pca, "~ a", **REGISTRY[0].verb.keywords), "", 64, 100)
    with pytest.raises(StopIteration):
        _ = line.pair
    inputs = next(line.worst for line in REGISTRY if line.mechanism == "ppca")
    assert line._replace(worst=inputs).pair is inputs
