"""Protocols between sites are audited by what an aggregator sees with those who collude."""

import pytest
from scipy import stats

import dpmodels as dp
from dpmodels.audit.registry import FULL, IN_ROUNDS, JOINT, SITES, SMALL, joint_audited, run_all
from dpmodels.sites import (
    PROTOCOLS,
    Cape,
    SecureSum,
    SiteProtocol,
    joint_rounds,
    secure_sum,
    summing,
)
from dpmodels.sites.packing import pack, scales

NAMES = [line.verb.protocol.trust.name for line in JOINT]


def audited(line, *, runs, confidence, seed=6):
    """Noise of a simulation, so that each outcome repeats."""
    with dp.simulation(seed=seed):
        return dp.audit(line.verb, line.pair, runs=runs, confidence=confidence)


def test_every_protocol_is_audited():
    assert list(PROTOCOLS) == NAMES
    # What is not attacked by its own messages has none: one adds the noise, or is alone.
    adding = {name for name, kind in PROTOCOLS.items() if kind().passes_noise}
    assert adding == {
        name for name, kind in PROTOCOLS.items() if kind.view is not SiteProtocol.view
    }


@pytest.mark.expensive
@pytest.mark.parametrize("line", JOINT, ids=NAMES)
def test_a_small_audit_flags_no_protocol(line):
    # False alarms: 1e-6 each.
    audit = audited(line, runs=line.small, confidence=SMALL)
    assert audit.verdict == "consistent"
    assert audit.claim.unit == "mu"
    assert audit.events, "nothing was counted"


@pytest.mark.product
@pytest.mark.parametrize("line", IN_ROUNDS, ids=lambda line: line.name)
def test_a_small_audit_flags_no_mechanism_of_rounds(line):
    # False alarms: 1e-6 each.
    audit = audited(line, runs=line.small, confidence=SMALL)
    assert audit.verdict == "consistent"
    assert audit.events, "nothing was counted"


@pytest.mark.product
def test_too_little_noise_in_every_round_is_flagged(monkeypatch):
    # At 95 %: the seed is fixed, so that what is found is found again.
    widening = joint_rounds.widening
    monkeypatch.setattr(joint_rounds, "widening", lambda *words: widening(*words) / 12)
    monkeypatch.setattr(joint_rounds, "fineness", lambda *words: 1)
    assert audited(IN_ROUNDS[0], runs=150, confidence=0.95).verdict == "VIOLATION"


@pytest.mark.audit_full
@pytest.mark.parametrize("line", [*JOINT, *IN_ROUNDS], ids=lambda line: line.name)
def test_a_full_audit_flags_no_protocol(line):
    # False alarms: 2e-4 each.
    audit = audited(line, runs=line.full, confidence=FULL)
    assert audit.verdict == "consistent"


@pytest.mark.product
@pytest.mark.parametrize(("name", "module"), [("cape", summing), ("secure_sum", secure_sum)])
def test_too_small_a_share_of_the_noise_is_flagged(name, module, monkeypatch):
    # At 95 %: the seed is fixed, so that what is found is found again.
    noise_share = module.noise_share
    monkeypatch.setattr(module, "noise_share", lambda *words: noise_share(*words) / 8)
    line = JOINT[NAMES.index(name)]
    assert audited(line, runs=150, confidence=0.95).verdict == "VIOLATION"


@pytest.mark.product
@pytest.mark.parametrize("protocol", [SecureSum(), Cape(), SecureSum(colluders=2)], ids=str)
def test_a_coalition_sees_the_honest_sum_with_the_planned_noise(protocol):
    """The sum of squares of 400 numbers is a chi-square: two tails of 5e-7."""
    line = joint_audited(protocol)
    result = line.verb.measurement(line.pair.rows)
    honest = result.statistics[: len(SITES) - protocol.colluders]
    exact = sum(pack(value, result.joint.plan).exact for value in honest)
    with dp.simulation(seed=2):
        recorded = line.verb.batch(line.pair.rows, 200)[:, : exact.size]
    noise = (recorded - exact.astype(float)) / scales(result.joint.plan)
    assert stats.chi2.ppf(5e-7, noise.size) < (noise**2).sum() < stats.chi2.isf(5e-7, noise.size)


def test_the_table_names_the_protocols():
    text = str(run_all(JOINT[:1]).summary())
    assert "dp_cov gauss, pooled by 3 sites" in text
