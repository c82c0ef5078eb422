"""Descriptions in files: what is read back prints the same and holds the same numbers."""

import pandas as pd
import pytest
from verbs import forms

import dpmodels as dp

CASES = forms("printed")


@pytest.mark.parametrize("case", CASES)
def test_what_is_read_back_is_the_same(case, tmp_path):
    budget = CASES[case].options.get("budget")
    ledger = {"ledger": dp.Ledger(budget=budget)} if budget else {}
    fit = CASES[case].ask(**ledger)
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    assert type(again) is type(fit)
    assert again.call == fit.call
    for form in ("as_text", "as_html", "as_latex", "as_markdown"):
        assert getattr(again.summary(), form)() == getattr(fit.summary(), form)()
    pd.testing.assert_frame_equal(again.tidy(), fit.tidy())
    pd.testing.assert_frame_equal(again.glance(), fit.glance())


def test_what_is_read_back_may_be_asked_for_other_levels(tmp_path):
    fit = CASES["mean of all"].ask()
    fit.save(tmp_path / "fit.nc")
    pd.testing.assert_frame_equal(dp.load(tmp_path / "fit.nc").conf_int(0.5), fit.conf_int(0.5))


def test_a_simulation_stays_one(tmp_path):
    with dp.simulation(seed=1):
        fit = CASES["var of coded levels"].ask()
    fit.save(tmp_path / "fit.nc")
    assert "SIMULATION" in str(dp.load(tmp_path / "fit.nc").summary())
