"""Hazard ratios of dp_survfit: terms, tables, refusals, and coverage."""

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, NotAvailable

BOOK = dp.codebook(
    time=(0, 20), died=["no", "yes"], sex=["F", "M"], arm=["a", "b", "c"], dose=dp.Integer(0, 2)
)
TRUTH = pd.Series({"sex[T.M]": 0.5, "arm[T.b]": -0.4, "arm[T.c]": 0.2})


def patients(rows, seed=0):
    rng = np.random.default_rng(seed)
    sex, arm, dose = (rng.integers(0, size, rows) for size in (2, 3, 3))
    event = rng.exponential(15 / np.exp(0.5 * sex + np.array([0.0, -0.4, 0.2])[arm]))
    censored = np.minimum(rng.exponential(28, rows), 20)
    return pd.DataFrame(
        {
            "time": np.minimum(event, censored),
            "died": np.where(event <= censored, "yes", "no"),
            "sex": np.array(["F", "M"])[sex],
            "arm": np.array(["a", "b", "c"])[arm],
            "dose": dose,
        }
    )


def asked(formula, rows=4_000, seed=0, **words):
    with dp.simulation(seed=seed):
        return dp.dp_survfit(
            formula, patients(rows, seed), **{"codebook": BOOK, "eps": 1.0, "breaks": 10, **words}
        )


def test_terms_are_coded_as_in_a_regression():
    fit = asked("Surv(time, died) ~ sex + arm")
    assert fit.coxph().tidy()["term"].tolist() == list(TRUTH.index)
    product = asked("Surv(time, died) ~ arm * sex").coxph().tidy()["term"].tolist()
    assert product[-2:] == ["arm[T.b]:sex[T.M]", "arm[T.c]:sex[T.M]"]
    assert asked("Surv(time, died) ~ sex + dose").coxph().tidy()["term"].tolist() == [
        "sex[T.M]",
        "dose",
    ]
    cut = asked("Surv(time, died) ~ (arm == 'b')").coxph().tidy()
    assert len(cut) == 1
    without = asked("Surv(time, died) ~ 0 + sex").coxph().tidy()
    assert without["term"].tolist() == ["sex[T.M]"]


def test_ratios_are_exponentials_and_errors_are_of_logarithms():
    fit = asked("Surv(time, died) ~ sex + arm")
    logs, ratios = fit.coxph().tidy(), fit.coxph(exponentiate=True).tidy()
    for name in ("estimate", "conf_low", "noise_high"):
        np.testing.assert_allclose(ratios[name], np.exp(logs[name]))
    np.testing.assert_array_equal(ratios["std_error"], logs["std_error"])
    assert (logs["noise_sd"] < logs["std_error"]).all()
    wide, narrow = (fit.coxph(level).tidy() for level in (0.99, 0.5))
    assert (wide["conf_low"] < narrow["conf_low"]).all()
    titles = [fit.coxph(exponentiate=option).summary().report.title for option in (False, True)]
    assert titles == ["Proportional hazards: log hazard ratios", "Hazard ratios"]
    assert "ratio" in str(fit.coxph(exponentiate=True).summary())


def test_nothing_is_charged_and_a_saved_fit_has_the_same_ratios(tmp_path):
    ledger = dp.Ledger.open(tmp_path / "ledger.db", new=True, eps=2.0)
    fit = asked("Surv(time, died) ~ sex", ledger=ledger)
    before = ledger.spent
    table = fit.coxph().tidy()
    assert ledger.spent == before
    fit.save(tmp_path / "fit.nc")
    pd.testing.assert_frame_equal(dp.load(tmp_path / "fit.nc").coxph().tidy(), table)


def test_one_curve_has_no_ratios():
    with pytest.raises(NotAvailable, match="write 'Surv"):
        asked("Surv(time, died) ~ 1").coxph()
    with pytest.raises(ArgumentError, match="level"):
        asked("Surv(time, died) ~ sex").coxph(level=2)


def test_too_much_noise_identifies_nothing():
    table = asked("Surv(time, died) ~ sex + arm", rows=60, eps=0.1).coxph().tidy()
    assert not table["identified"].any()
    assert table["conf_low"].isna().all()


@pytest.mark.product
@pytest.mark.parametrize("mechanism", ["gaussian", "geometric", "tree"])
def test_intervals_cover_the_populations_ratios(mechanism):
    """Of 90 intervals of 95 % fewer than 69 cover at a rate below 1e-7."""
    words = {"delta": 1e-6} if mechanism == "gaussian" else {}
    covered = []
    for seed in range(30):
        fit = asked("Surv(time, died) ~ sex + arm", 3_000, seed, mechanism=mechanism, **words)
        table = fit.coxph().tidy().set_index("term")
        assert table["identified"].all()
        covered += ((table["conf_low"] <= TRUTH) & (table["conf_high"] >= TRUTH)).tolist()
    assert sum(covered) >= 69
