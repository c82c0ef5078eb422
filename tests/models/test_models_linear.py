"""Responses of 0 and 1 however they are declared, and offsets: the same fits to the last bit."""

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import FormulaError

RNG = np.random.default_rng(3)
X = RNG.uniform(0, 1, 400)
Y = (RNG.uniform(size=400) < 0.3 + 0.4 * X).astype(float)
ODD = np.where(np.arange(400) % 40 == 0, 0.5, np.where(np.arange(400) % 41 == 0, 7.0, Y))
FEW = {"x": (0, 1), "z": (0, 2)}


def params(verb, formula, rows, **words):
    with dp.simulation(seed=4):
        return verb(formula, rows, **words).params.to_numpy()


@pytest.mark.parametrize(
    "declared",
    [(0, 1), dp.Integer(0, 1), dp.Numeric(0, 1, step=1), dp.Numeric(0, 1, missing=[7, 0.5])],
    ids=repr,
)
@pytest.mark.parametrize("verb", [dp.dp_glm, dp.dp_svm])
def test_a_number_from_0_to_1_is_the_category_of_0_and_1(verb, declared):
    """A value between or beyond is an incomplete row, and no 1."""
    levels = dp.codebook(FEW, y=dp.Categorical([0, 1]))
    expected = params(verb, "y ~ x", {"x": X, "y": ODD}, codebook=levels, eps=1.0)
    book = dp.codebook(FEW, y=declared)
    assert (params(verb, "y ~ x", {"x": X, "y": ODD}, codebook=book, eps=1.0) == expected).all()
    clipped = np.clip(ODD, 0, 1).round()
    assert (
        params(verb, "y ~ x", {"x": X, "y": clipped}, codebook=levels, eps=1.0) != expected
    ).any()


@pytest.mark.expensive
def test_a_subset_reads_the_response_as_the_model_does():
    """A row of 0.5 or 7 is in no subset by the response, and none reads it as a level."""
    rows = {"x": X, "y": ODD}
    levels = dp.codebook(FEW, y=dp.Categorical([0, 1], ordered=True))
    for text in ("y >= 0", "y in [0, 1]", "(y == 1) | (x > 0.5)", "y %in% c(0, 1)"):
        words = {"eps": 1.0, "subset": text}
        expected = params(dp.dp_glm, "y ~ x", rows, codebook=levels, **words)
        result = params(dp.dp_glm, "y ~ x", rows, codebook=dp.codebook(FEW, y=(0, 1)), **words)
        assert (result == expected).all()


@pytest.mark.parametrize(
    ("formula", "declared", "cells"),
    [
        ("y ~ x", dp.Boolean(), Y.astype(bool)),
        ("y ~ x", dp.Categorical({"n": "no", "y": "yes"}), np.where(Y, "y", "n")),
        ("y == 'yes' ~ x", dp.Categorical({"n": "no", "y": "yes"}), np.where(Y, "y", "n")),
        ("y > 0.5 ~ x", (0, 1), Y),
    ],
    ids=["truth", "two levels", "a level", "a comparison"],
)
def test_other_responses_of_two_levels(formula, declared, cells):
    plain = dp.codebook(FEW, y=[0, 1])
    expected = params(dp.dp_glm, "y ~ x", {"x": X, "y": Y}, codebook=plain, eps=1.0)
    codebook = dp.codebook(FEW, y=declared)
    assert (
        params(dp.dp_glm, formula, {"x": X, "y": cells}, codebook=codebook, eps=1.0) == expected
    ).all()


@pytest.mark.product
def test_a_fit_of_a_number_from_0_to_1_is_saved_and_read(tmp_path):
    fit = dp.dp_glm("y ~ x", {"x": X, "y": Y}, codebook=dp.codebook(FEW, y=(0, 1)), eps=1.0)
    assert fit.call.levels == ("0", "1")
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    assert str(again.summary()) == str(fit.summary())


def test_an_offset_is_a_regression_of_the_difference():
    z = RNG.uniform(0, 2, 400)
    rows = {"y": 1 + X + z, "x": X, "z": z, "d": 1 + X}
    words = {"eps": 1.0, "delta": 1e-6}
    book = dp.codebook(FEW, y=(0, 4), d=(-2, 4))
    expected = params(dp.dp_lm, "d ~ x", rows, codebook=book, **words)
    result = params(dp.dp_lm, "y ~ x + offset(z)", rows, codebook=book, **words)
    np.testing.assert_allclose(result, expected, rtol=1e-9)


def test_a_fit_with_an_offset_is_saved_and_read(tmp_path):
    rows, book = {"y": 1 + X, "x": X, "z": X}, dp.codebook(FEW, y=(0, 4))
    fit = dp.dp_lm("y ~ x + offset(z)", rows, codebook=book, eps=1.0, delta=1e-6)
    fit.save(tmp_path / "fit.nc")
    assert str(dp.load(tmp_path / "fit.nc").summary()) == str(fit.summary())
    assert "y - z" in str(fit.summary())


def test_machines_refuse_an_offset_before_the_charge():
    ledger = dp.Ledger(eps=1.0)
    words = {"codebook": dp.codebook(FEW, y=(0, 1)), "eps": 1.0, "ledger": ledger}
    with pytest.raises(FormulaError, match=r"'offset\(z\)': .*dp_lm"):
        dp.dp_svm("y ~ x + offset(z)", {"y": Y, "x": X, "z": X}, **words)
    assert ledger.entries == ()
