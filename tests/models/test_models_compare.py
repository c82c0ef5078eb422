"""Mechanisms compared before anything is spent."""

import math

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError, CodebookError, NotAvailable
from dpmodels.mechanisms import COVARIANCE, SUBSPACE, Facts, Gauss
from dpmodels.models import mechanism_trials
from dpmodels.noise import source

CODEBOOK = dp.codebook(age=(0, 100), income=(0, 250_000), score=(-3, 5), sex=["F", "M"])
USUAL = {"codebook": CODEBOOK, "n": 3_000, "eps": 1.0, "delta": 1e-6, "repeats": 2}
COLUMNS = [
    "mechanism",
    *("energy", "energy_se", "energy_worst", "energy_worst_at"),
    *("frobenius", "frobenius_se", "frobenius_worst", "frobenius_worst_at"),
    *("relative", "relative_se", "relative_worst", "relative_worst_at"),
    *("numerics", "fits", "note"),
]


def compared(formula="~ .", **words):
    return dp.compare_mechanisms(formula, **{**USUAL, **words})


def test_persons_of_the_codebook_are_protected():
    """Noise is in proportion to the rows of a person, as in the verbs."""
    words = {"codebook": dp.codebook(CODEBOOK, person="id"), "mechanisms": ["laplace"]}
    words |= {"n": 10**6, "repeats": 1, "delta": 0.0, "row_length": 0.5}
    errors = [
        compared("~ age + income", **words, **person).table["relative"][0]
        for person in ({"person": False}, {"rows": 4})
    ]
    assert errors[1] == pytest.approx(4 * errors[0], rel=0.1)
    kept = compared("~ age + income", **words, rows=4)
    assert kept.request.adjacency.person == "id"


@pytest.fixture(scope="module")
def usual():
    return compared(ncomp=2, repeats=1)


@pytest.mark.product
def test_every_mechanism_but_the_reference_is_listed_once(usual):
    assert sorted(usual.table["mechanism"]) == sorted({*COVARIANCE, *SUBSPACE} - {"none"})
    assert list(usual.table.columns) == COLUMNS
    assert usual.table["fits"].all()
    assert usual.tidy().equals(usual.by_shape)
    assert usual.tidy() is not usual.by_shape


@pytest.mark.product
def test_predictions_are_sensible():
    predicted = compared(ncomp=2, row_length=0.5).predicted
    assert predicted["energy"].between(0.2, 1.0 + 1e-9).all()
    assert (predicted["energy_se"] >= 0).all()
    matrices = predicted[predicted["frobenius"].notna()].set_index("mechanism")
    norm = matrices["frobenius"] / matrices["relative"]
    # Rows of length 1/2, eigenvalues 1, 1/2, 1/3, 1/4.
    values = 1 / np.arange(1.0, 5)
    np.testing.assert_allclose(norm, 0.25 * np.linalg.norm(values) / values.sum(), rtol=2e-3)
    assert matrices.loc["zero", "relative"] == pytest.approx(1.0, rel=1e-9)
    names = set(predicted["mechanism"]) - set(matrices.index)
    assert names <= set(SUBSPACE)


@pytest.mark.product
def test_best_first_by_energy_or_by_error(usual):
    assert usual.predicted["energy"].is_monotonic_decreasing
    everything = compared(repeats=1)
    errors = everything.predicted["relative"].dropna()
    assert errors.is_monotonic_increasing
    assert everything.predicted["relative"].isna().sum() == len(everything.predicted) - len(errors)
    assert everything.predicted["relative"].iloc[: len(errors)].notna().all()
    assert everything.best == everything.table["mechanism"].iloc[0]


@pytest.mark.product
def test_the_best_is_no_baseline():
    hopeless = compared(eps=1e-6, delta=1e-9, repeats=1, row_length=0.5)
    assert set(hopeless.table.loc[hopeless.table["note"] == "baseline", "mechanism"]) == {
        "zero",
        "random",
    }
    assert hopeless.best not in {"zero", "random"}
    with pytest.raises(NotAvailable, match="no mechanism"):
        _ = compared(mechanisms=["zero"]).best


def test_a_huge_budget_is_the_exact_answer():
    table = compared(eps=1e8, delta=1e-6, n=2_500, mechanisms=["gauss", "laplace"]).table
    assert (table["relative"] < 1e-4).all()
    np.testing.assert_allclose(table["energy"], 1.0, rtol=1e-6)


def test_the_error_is_that_of_the_plan():
    # Without denoising the squared error of gauss is a sum of 10 known
    # variances; its mean over 50 releases is within 6 standard errors, each at
    # most sqrt(2/50) of it: a false alarm below 1e-8.
    comparison = compared(
        mechanisms=["gauss"], denoise=None, center=False, repeats=50, row_length=0.5
    )
    expected = math.sqrt(4 * 2 + 12) * gauss_noise(comparison.request)
    line = comparison.table.iloc[0]
    variance = line["frobenius_se"] ** 2 * 49 + line["frobenius"] ** 2
    assert math.sqrt(variance) == pytest.approx(expected, rel=6 * math.sqrt(2 / 50) / 2)


def gauss_noise(question):
    """The noise of gauss off the diagonal, in the unit ball, for one row of n."""
    facts = Facts(question.columns, question.adjacency, question.center, question.components)
    plan = Gauss().plan(facts, question.guarantee)
    return plan.steps.off / plan.lattice.steps**2 / question.rows


@pytest.mark.product
def test_the_same_question_has_the_same_answer(usual):
    with dp.simulation(seed=1):
        again = compared(ncomp=2, repeats=1)
    pd.testing.assert_frame_equal(again.table, usual.table)
    pd.testing.assert_frame_equal(again.by_shape, usual.by_shape)


def test_a_simulation_around_it_goes_on_where_it_was():
    with dp.simulation(seed=3):
        first = source().words(4)
    with dp.simulation(seed=3):
        compared(mechanisms=["gauss"])
        second = source().words(4)
    np.testing.assert_array_equal(first, second)


@pytest.mark.product
def test_a_mechanism_is_predicted_the_same_alone(usual):
    alone = compared(ncomp=2, repeats=1, mechanisms=["gauss"]).table
    table = usual.table[usual.table["mechanism"] == "gauss"].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, table)


def test_no_ledger_is_charged(monkeypatch):
    def refuse(*args, **words):
        raise AssertionError("charged")

    monkeypatch.setattr(dp.Ledger, "charge", refuse)
    compared(mechanisms=["gauss"])


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("budget", [{"eps": 1.0}, {"budget": dp.ZCDP(0.1)}])
def test_mechanisms_that_do_not_take_the_guarantee_say_why(adjacency, budget):
    words = {**USUAL, "eps": None, "delta": 0.0, "adjacency": adjacency, "repeats": 1, **budget}
    words["row_length"] = 0.5
    comparison = dp.compare_mechanisms("~ .", **words)
    unfit = comparison.table[~comparison.table["fits"]]
    assert unfit["energy"].isna().all()
    assert (unfit["note"].str.len() > 10).all()
    assert (unfit["note"].str.len() <= 90).all()
    if "eps" in budget:
        assert "gauss" in set(unfit["mechanism"])
        assert "gauss" not in set(comparison.predicted["mechanism"])
        assert "Not listed: " in comparison.summary(notes="all").as_text()
    else:
        assert "gauss" in set(comparison.predicted["mechanism"])


def test_nothing_that_fits_is_still_a_report():
    comparison = compared(mechanisms=["gauss"], delta=0.0)
    assert "Not listed: gauss" in str(comparison.summary(notes="all"))
    assert "0 mechanisms simulated" in repr(comparison)
    with pytest.raises(NotAvailable, match="no mechanism"):
        comparison.plot()


def test_too_many_columns_or_rows_are_said(monkeypatch):
    monkeypatch.setitem(mechanism_trials.SLOW, "gauss", 3)
    line = compared(mechanisms=["gauss"]).table.iloc[0]
    assert (line["note"], line["fits"]) == ("not simulated above 3 columns", True)
    monkeypatch.setattr(mechanism_trials, "MOST_COLUMNS", 2)
    comparison = compared(mechanisms=["laplace"])
    assert comparison.table["note"].tolist() == ["not simulated above 2 columns"]


def test_shorter_rows_have_larger_relative_errors():
    errors = [
        compared(mechanisms=["gauss"], row_length=length).table["relative"][0]
        for length in (0.25, 0.5, 1.0)
    ]
    assert errors[0] > 1.5 * errors[1] > 2.25 * errors[2]


@pytest.mark.parametrize("spectrum", ["power", "steep", "flat", [3, 1], (5.0, 0, 0, 1.0)])
def test_the_spectrum_is_the_one_asked_for(spectrum):
    comparison = compared(
        mechanisms=["zero"], ncomp=1, spectrum=spectrum, repeats=1, row_length=0.5
    )
    size = comparison.table["frobenius"][0]
    spectra = {
        "power": 1 / np.arange(1.0, 5),
        "steep": 1 / np.arange(1.0, 5) ** 2,
        "flat": np.ones(4),
    }
    values = spectra[spectrum] if isinstance(spectrum, str) else np.asarray(spectrum, dtype=float)
    norm = 0.25 * np.linalg.norm(values) / values.sum()
    assert size == pytest.approx(norm, rel=2e-3)
    label = spectrum if isinstance(spectrum, str) else "as given"
    assert comparison.request.spectrum == label


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({"n": 0}, "n=0: expected a whole number from 2"),
        ({"n": -5}, "n=-5"),
        ({"n": 1e4}, "n=10000.0"),
        ({"n": True}, "n=True"),
        ({"n": "many"}, "n='many'"),
        ({"n": None}, "n=None"),
        ({"repeats": 0}, "repeats=0"),
        ({"repeats": 2.0}, "repeats=2.0"),
        ({"ncomp": 5}, "ncomp=5"),
        ({"spectrum": "gentle"}, 'expected "power", "steep", "flat" or an array'),
        ({"spectrum": [1.0, -0.1]}, "none negative"),
        ({"spectrum": [1.0] * 5}, r"shape \(5,\): expected 1 to 4 numbers"),
        ({"spectrum": []}, "1 to 4"),
        ({"spectrum": [0, 0]}, "not all 0"),
        ({"spectrum": [1.0, np.nan]}, "1 to 4"),
        ({"spectrum": [np.inf]}, "1 to 4"),
        ({"spectrum": np.eye(2)}, "1 to 4"),
        ({"spectrum": ["a"]}, "1 to 4"),
        ({"spectrum": None}, "1 to 4"),
        ({"row_length": 0}, "row_length=0"),
        ({"row_length": 1.5}, "row_length=1.5"),
        ({"row_length": math.nan}, "row_length=nan"),
        ({"row_length": "half"}, "row_length='half'"),
        ({"mechanisms": "gauss"}, "expected a list of names"),
        ({"mechanisms": []}, "expected a list of names"),
        ({"mechanisms": ["gauss", "whishart"]}, "'whishart' is not known"),
        ({"mechanisms": ["gauss", "wishart"]}, "'wishart' is not offered.*retracted"),
        ({"mechanisms": ["none"]}, "'none' is not known"),
        ({"mechanisms": [Gauss()]}, "Gauss is not known"),
        ({"denoise": "magic"}, "denoise='magic'"),
        ({"denoise": ["auto"]}, "denoise=list"),
        ({"scale": "var"}, "scale="),
        ({"center": 1}, "center="),
        ({"row_norm": -1.0}, "row_norm="),
        ({"adjacency": "swap"}, "adjacency="),
    ],
)
def test_a_wrong_word_is_refused(words, reason):
    with pytest.raises(ArgumentError, match=reason):
        compared(**words)


def test_other_errors_are_those_of_the_verbs():
    with pytest.raises(CodebookError):
        compared("~ height")
    with pytest.raises(CodebookError):
        compared(codebook=None)
    with pytest.raises(BudgetError):
        compared(eps=-1.0)


def test_unit_rows_have_the_length_of_the_norm():
    comparison = compared(mechanisms=["gauss"], row_norm="unit", row_length=0.2)
    assert (comparison.request.row_norm, comparison.request.row_length) == (1.0, 1.0)


def test_one_release_has_no_standard_error():
    line = compared(mechanisms=["gauss"], repeats=1).table.iloc[0]
    assert math.isnan(line["energy_se"])
    assert math.isfinite(line["energy"])


def test_directions_alone_have_no_matrix_error(usual):
    lines = usual.table.set_index("mechanism")
    assert lines.loc[list(SUBSPACE), "frobenius"].isna().all()
    assert lines.loc[list(SUBSPACE), "energy"].notna().all()


def test_the_report_says_what_is_assumed_and_that_nothing_was_spent(usual):
    text = usual.summary().as_text()
    for words in (
        "Mechanisms compared, nothing spent",
        "eps = 1, delta = 1e-06",
        "3,000 (assumed)",
        "replace one row, n public",
        "power (assumed)",
        "five shapes, up to 2.00",
        "rounds (auto)",
        "No data were read",
        "zero *",
    ):
        assert words in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 100
    assert "by the error" in compared(mechanisms=["gauss"]).summary().as_text()
    assert "<table" in usual._repr_html_()
    assert "nothing spent" in repr(usual)


def test_the_picture_has_both_panels(usual):
    energy, error = usual.plot()
    try:
        names = [tick.get_text() for tick in energy.get_yticklabels()]
        assert names == [usual.label(name) for name in usual.predicted["mechanism"]]
        assert "rounds (auto)" in names
        worst = [line.get_xdata() for line in energy.lines]
        assert any(np.array_equal(at, usual.predicted["energy_worst"]) for at in worst)
        assert error.get_xscale() == "log"
        assert len(error.patches) == usual.predicted["frobenius"].notna().sum()
    finally:
        plt.close("all")


def test_a_draft_is_a_codebook_once_it_is_complete():
    draft = dp.codebook.draft({"age": "int64", "income": "float64"})
    with pytest.raises(CodebookError, match="does not know the bounds or levels of 'income'"):
        compared("~ age + income", codebook=draft.complete(age=(0, 100)))
    known = draft.complete(age=(0, 100), income=(0, 250_000))
    given = {"mechanisms": ["gauss"], "formula": "~ age + income"}
    drafted, declared = (compared(codebook=cb, **given) for cb in (known, known.codebook()))
    assert drafted.table.equals(declared.table)
