"""What tables and disclosure reports say of user-supplied mechanisms."""

import pytest
from user_mechanisms import Equal, registered

import dpmodels as dp
from dpmodels.mechanisms.user_supplied import UserSupplied, record_passed

BOOK = dp.codebook(a=(0, 1), b=(0, 1))
ROWS = {"a": [0.2, 0.7] * 500, "b": [0.1, 0.9] * 500}


@pytest.mark.expensive
@pytest.mark.parametrize("remaining", [False, True])
def test_reports_say_whether_it_was_checked_and_never_that_it_is_exact(remaining):
    with registered(Equal):
        if remaining:
            record_passed(Equal())
        session = dp.session(ROWS, BOOK, eps=2.0, delta=1e-6)
        fit = session.cov("~ a + b", eps=1.0, mechanism="equal")
        stated = f"user-supplied mechanism, {'' if remaining else 'not '}checked"
        text = fit.summary().as_markdown()
        assert f"equal ({stated})" in text
        assert "exact" not in text
        assert "see dpmodels.mechanisms" not in text
        table = dp.etable(fit, privacy=True)
        assert stated in " ".join(str(table).split())
        for of in (session, fit, session.ledger):
            report = " ".join(dp.disclosure(of, pictures=False).as_markdown().split())
            assert stated in report
            assert "User-supplied mechanisms (equal)" in report
            assert "Idealised (equal)" not in report
    report = dp.disclosure(session.ledger, pictures=False).as_markdown()
    assert "since the ledger records only its name" in report


def test_a_checked_class_is_no_longer_checked_once_it_is_changed():
    class Mine(Equal):
        name = "mine"

    record_passed(Mine())
    assert UserSupplied(Mine()).info.numerics.endswith(", checked")
    assert UserSupplied(Mine(2.0)).info.numerics.endswith("not checked")
    Mine.release = lambda self, moments, sd, draw: moments
    assert UserSupplied(Mine()).info.numerics.endswith("not checked")
