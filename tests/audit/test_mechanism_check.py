"""The check of user-supplied mechanisms passes those that keep their claim and no other.

All noise is drawn from one seed: a right mechanism fails the audit in a check in 1e-4 of all draws.
"""

import pytest
from user_mechanisms import (
    Alike,
    Doubled,
    Equal,
    EqualLaplace,
    FailingPlan,
    Fickle,
    Halved,
    Lopsided,
    Negative,
    NoPlan,
    OwnBits,
    Quotes,
    Seldom,
    TooLittle,
    Writes,
    registered,
)

import dpmodels as dp
from dpmodels.errors import ArgumentError


@pytest.fixture(autouse=True)
def known():
    with registered(), dp.simulation(seed=1):
        yield


@pytest.mark.product
@pytest.mark.parametrize("kind", [Equal, EqualLaplace, Writes])
def test_a_mechanism_that_keeps_its_claim_passes(kind):
    checked = dp.mechanisms.check(kind, runs=2_000)
    assert (checked.verdict, checked.reason) == ("passed", "")
    assert checked.audit.verdict == "consistent"
    assert checked.checks == ("plan", "noise", "sensitivity", "audit")
    assert f"Check of the user-supplied mechanism {kind.name!r}: passed" in str(checked)
    with registered(kind):
        fit = dp.dp_cov(
            "~ a + b",
            {"a": [0.2, 0.7] * 500, "b": [0.1, 0.9] * 500},
            codebook=dp.codebook(a=(0, 1), b=(0, 1)),
            eps=1.0,
            delta=1e-6,
            mechanism=kind,
        )
    assert fit.release.info.numerics == "user-supplied mechanism, checked"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (TooLittle, "too little noise"),
        (NoPlan, "returned NoneType"),
        (Negative, "expected a positive number"),
        (FailingPlan, "raised ZeroDivisionError"),
        (Fickle, "different noise"),
        (Halved, "too little noise: its standard deviations are 0"),
        (Doubled, "does not add the planned noise"),
        (Alike, "not independent"),
        (OwnBits, "other than by draw"),
        (Quotes, "raised an exception"),
        (Lopsided, "did not return a finite symmetric matrix"),
    ],
)
def test_a_mechanism_that_does_not_is_convicted_with_the_reason(kind, words):
    checked = dp.mechanisms.check(kind, runs=1_000)
    assert checked.verdict == "convicted"
    assert words in checked.reason
    assert "convicted" in str(checked)
    assert checked.audit is None
    with registered(kind):
        card = dp.mechanisms.user_supplied.registered_info(kind.name)
    assert card.numerics == "user-supplied mechanism, not checked"


@pytest.mark.product
def test_coupled_runs_convict_what_is_doubled_where_columns_are_correlated():
    class Stretched(Equal):
        name = "stretched"

        def release(self, moments, sd, draw):
            noisy = super().release(moments, sd, draw)
            return noisy + 3 * moments if moments[1, 2] else noisy

    checked = dp.mechanisms.check(Stretched, runs=1_000)
    assert checked.checks == ("plan", "noise", "sensitivity")
    assert "neighbours differ by more than the planned noise allows" in checked.reason


@pytest.mark.product
@pytest.mark.parametrize("runs", [2_000, 6_000])
def test_an_audit_convicts_what_is_told_in_few_releases(runs):
    checked = dp.mechanisms.check(Seldom, runs=runs)
    assert checked.verdict == "convicted"
    assert checked.audit.verdict == "VIOLATION"
    assert "the audit refutes the claim" in checked.reason


@pytest.mark.parametrize("inputs", ["equal", 3, dp.mechanisms.Gauss])
def test_what_is_not_a_mechanism_is_refused(inputs):
    with pytest.raises(ArgumentError, match=r"expected a subclass of dp\.mechanisms"):
        dp.mechanisms.check(inputs)


@pytest.mark.parametrize("claim", ["numerics", "info", "claim", "law"])
def test_a_claim_of_exactness_is_refused(claim):
    with pytest.raises(ArgumentError, match="'exact'"):
        dp.mechanisms.check(type("Mine", (Equal,), {claim: "exact"}))
