"""The check of user-supplied mechanisms passes those that keep their claim and no other."""

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
    TooLittle,
    Writes,
    registered,
)

import dpmodels as dp
from dpmodels.errors import ArgumentError


@pytest.fixture(autouse=True)
def known():
    with registered():
        yield


@pytest.mark.parametrize("kind", [Equal, EqualLaplace])
def test_a_mechanism_that_keeps_its_claim_passes(kind):
    checked = dp.mechanisms.check(kind, runs=2_000)
    assert checked.passed
    assert checked.reasons == ()
    assert checked.audit.verdict == "consistent"
    assert checked.table["check"].tolist() == ["plan", "repeat", "sensitivity", "noise", "audit"]
    assert "Check of a user-supplied mechanism: passed" in str(checked)
    with registered(kind):
        fit = dp.dp_cov(
            "~ a + b",
            {"a": [0.2, 0.7] * 500, "b": [0.1, 0.9] * 500},
            codebook=dp.codebook(a=(0, 1), b=(0, 1)),
            eps=1.0,
            delta=1e-6,
            mechanism=kind,
        )
    assert fit.release.card.numerics == "user-supplied mechanism, checked"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (TooLittle, "too little noise"),
        (NoPlan, "returned NoneType"),
        (Negative, "expected a positive number"),
        (FailingPlan, "raised ZeroDivisionError"),
        (Fickle, "different noise"),
        (Halved, "the noise that is added is too small"),
        (Doubled, "by more than the planned noise allows"),
        (Alike, "not independent"),
        (OwnBits, "not of source="),
        (Writes, "changes the moments"),
        (Quotes, "raised an exception"),
        (Lopsided, "no symmetric matrix"),
    ],
)
def test_a_mechanism_that_does_not_is_convicted_with_the_reason(kind, words):
    checked = dp.mechanisms.check(kind, runs=1_000)
    assert checked.verdict == "convicted"
    assert any(words in reason for reason in checked.reasons), checked.reasons
    assert "convicted" in str(checked)
    assert checked.audit is None
    with registered(kind):
        card = dp.mechanisms.user_supplied.registered_card(kind.name)
    assert card.numerics == "user-supplied mechanism, not checked"


def test_only_an_audit_convicts_what_stands_out_for_one_row():
    class Told(Equal):
        """It releases more where a row lies in a certain direction."""

        name = "told"

        def release(self, moments, noise, source):
            noisy = moments + source.matrix(noise, len(moments) - 1)
            return noisy + 1e3 * (moments[1, 2] < -0.2) * (moments[0, 0] == 20)

    checked = dp.mechanisms.check(Told, runs=2_000)
    assert checked.verdict == "convicted"
    assert checked.audit.verdict == "VIOLATION"
    assert any("the audit refutes the claim" in reason for reason in checked.reasons)


@pytest.mark.parametrize("given", ["equal", 3, dp.mechanisms.Gauss])
def test_what_is_not_a_mechanism_is_refused(given):
    with pytest.raises(ArgumentError):
        dp.mechanisms.check(given)
