"""A comparison over several shapes of rows, and what ``mechanism="auto"`` would take."""

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.mechanisms import SUBSPACE
from dpmodels.models import mechanism_trials
from dpmodels.models.simulated_rows import ONE_LENGTH, SHAPES

CODEBOOK = dp.codebook(age=(0, 100), income=(0, 250_000), score=(-3, 5), sex=["F", "M"])
USUAL = {"codebook": CODEBOOK, "n": 3_000, "eps": 1.0, "delta": 1e-6, "repeats": 2}


def compared(formula="~ .", **words):
    return dp.compare_mechanisms(formula, **{**USUAL, **words})


@pytest.mark.parametrize("n", [2, 50, 200_000])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_no_number_of_rows_keeps_a_mechanism_out(n, delta):
    passing = ["rounds_pure", "adaptive_pure"] if delta == 0 else ["rounds", "coinpress"]
    comparison = compared(mechanisms=passing, n=n, delta=delta, repeats=1, eps=5.0)
    assert comparison.predicted["energy"].between(0, 1 + 1e-9).all()
    assert len(comparison.predicted) == 2
    assert len(comparison.by_shape) == 2 * len(SHAPES)


@pytest.mark.product
def test_typical_is_the_median_and_worst_the_worst_of_the_shapes():
    usual = compared(ncomp=2, repeats=1)
    lines = usual.table.set_index("mechanism")
    for name, group in usual.by_shape.groupby("mechanism"):
        assert group["shape"].tolist() == list(SHAPES)
        assert lines.loc[name, "energy"] == group["energy"].median()
        assert lines.loc[name, "energy_worst"] == group["energy"].min()
        at = group.set_index("shape")["energy"].idxmin()
        assert lines.loc[name, "energy_worst_at"] == at
        if name not in SUBSPACE:
            assert lines.loc[name, "relative"] == group["relative"].median()
            assert lines.loc[name, "relative_worst"] == group["relative"].max()


@pytest.mark.product
def test_what_loses_on_some_shapes_only_is_told():
    # Rows and noise are the same at every call: no false alarm.
    comparison = compared(
        codebook=dp.codebook.uniform([f"x{i}" for i in range(20)], (0, 1)),
        n=20_000,
        eps=0.3,
        ncomp=5,
        mechanisms=["gauss", "rounds"],
    )
    energy = comparison.by_shape.set_index(["mechanism", "shape"])["energy"]
    assert energy["gauss", "dummies"] > 0.95
    assert energy["gauss", "short"] < 0.6
    assert energy["rounds", "short"] > 0.9
    assert comparison.best == comparison.auto.mechanism == "rounds"


@pytest.mark.parametrize(
    ("words", "name", "reason"),
    [
        ({}, "rounds", "n = 3,000"),
        ({"delta": 0.0, "n": 50_000}, "rounds_pure", "n = 50,000"),
        ({"n": 50}, "gauss", "too small"),
        ({"adjacency": "add-remove"}, "rounds", "estimates the centre"),
        ({"row_norm": "unit"}, "gauss", "the same norm"),
    ],
)
def test_the_automatic_choice_is_that_of_the_verb(words, name, reason):
    comparison = compared(mechanisms=["gauss", "laplace"], repeats=1, **words)
    assert comparison.auto.mechanism == name
    assert reason in comparison.auto.reason
    assert f'mechanism="auto" uses {name}' in " ".join(comparison.summary().as_text().split())
    settings = {**USUAL, **words}
    n = settings.pop("n")
    del settings["repeats"]
    rows = {"age": [30.0] * n, "income": [1e4] * n, "score": [0.0] * n, "sex": ["F"] * n}
    with dp.simulation(seed=1):
        fit = dp.dp_pca("~ .", rows, **settings)
    assert (fit.release.info.name, fit.call.reason) == comparison.auto


def test_progress_is_of_shapes_and_repetitions(monkeypatch):
    lengths = []

    def steps(items, *, total, label):
        lengths.append((total, label))
        return items

    monkeypatch.setattr(mechanism_trials, "steps", steps)
    compared(mechanisms=["zero"], repeats=2)
    compared(mechanisms=["zero"], repeats=2, row_length=0.5)
    assert lengths == [(2 * len(SHAPES), "comparing"), (2, "comparing")]


def test_one_length_has_no_worst_shape():
    comparison = compared(mechanisms=["gauss"], row_length=0.5)
    assert comparison.shapes is None
    assert comparison.by_shape["shape"].tolist() == [ONE_LENGTH]
    text = comparison.summary().as_text()
    assert "0.50 of 2.00 (assumed)" in text
    assert "worst" not in text


@pytest.mark.expensive
def test_bounds_and_row_norm_are_those_of_the_codebook():
    unclipped = compared(mechanisms=["zero"], repeats=1)
    clipped = compared(mechanisms=["zero"], repeats=1, row_norm=1.0)
    lengths = unclipped.shapes.set_index("shape")
    assert lengths.loc["dummies", "length_low"] == pytest.approx(1.0)
    assert (lengths["length_high"] <= 1 + 1e-9).all()
    np.testing.assert_allclose(clipped.shapes["length_high"], 2 * unclipped.shapes["length_high"])
    # About 0 and not the middle of their bounds, counts at the lower bound are short.
    wide = {"codebook": dp.codebook.uniform(["a", "b"], (0, 9)), "mechanisms": ["zero"]}
    about = [compared(**wide, repeats=1, center=center).shapes for center in (True, False)]
    middle = [
        mean_of_shape.set_index("shape").loc["counts", "length_low"] for mean_of_shape in about
    ]
    assert middle[0] > 0.4 > middle[1]


def test_columns_that_cannot_vary_are_said():
    comparison = compared("~ I(0 * age)", mechanisms=["gauss"])
    assert comparison.table["note"].tolist() == ["not simulated: no column varies"]
