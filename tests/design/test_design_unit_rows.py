"""row_norm="unit": each coded row divided by its own norm, whatever is in it."""

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design import private_design
from dpmodels.errors import ArgumentError
from dpmodels.noise.lattice import Lattice
from dpmodels.statistics import moments

HUGE = {"eps": 1e9, "delta": 1e-6}
BOOK = dp.codebook(a=(0, 1), b=(-2, 6), c=(0, 1e59), d=(0, 1e-90))
ODD = {
    "a": [0.0, 1.0, 0.3, np.nan, 0.0, 0.0, 1e9, np.inf],
    "b": [0.0, 6.0, -1.0, 2.0, 0.0, 0.0, -1e9, -np.inf],
    "c": [0.0, 1e59, 1e-100, 1.0, 1e-100, 0.0, 5.0, 0.0],
    "d": [0.0, 1e-90, 0.0, 0.0, 0.0, 1e-300, 0.0, 0.0],
}


@pytest.mark.parametrize("scale", ["range", None])
@pytest.mark.parametrize("center", [True, False])
def test_every_row_is_in_the_unit_ball_and_the_others_are_zero(scale, center):
    lattice = Lattice(20, 4)
    for row in range(8):
        data = {name: column[row : row + 1] for name, column in ODD.items()}
        design = private_design(
            "~ a + b + c + d", data, BOOK, scale=scale, center=center, row_norm="unit"
        )
        assert design.scaling.row_norm == design.scaling.worst_case == 1.0
        exact, _ = moments(design, lattice).cross()
        size = float(np.trace(exact[1:, 1:])) / lattice.steps**2
        complete = row != 3
        assert exact[0, 0] == (4**20 if complete else 0)
        assert np.trace(exact[1:, 1:]) <= 4**20
        # Two rounding steps of 2**-20 for each of the four coordinates.
        assert size == pytest.approx(1.0 if row not in (0, 3) else 0.0, abs=1e-5)


@pytest.mark.expensive
def test_a_huge_budget_gives_the_second_moment_of_unit_rows():
    rng = np.random.default_rng(3)
    table = {"a": rng.random(500), "b": rng.uniform(-2, 6, 500)}
    numbers = np.column_stack([table["a"] / 0.5, table["b"] / 4])
    unit = numbers / np.linalg.norm(numbers, axis=1)[:, None]
    fit = dp.dp_pca("~ a + b", table, codebook=BOOK, center=False, row_norm="unit", **HUGE)
    np.testing.assert_allclose(fit.cov, unit.T @ unit / 500, atol=1e-4)
    centred = dp.dp_pca("~ a + b", table, codebook=BOOK, row_norm="unit", **HUGE)
    np.testing.assert_allclose(centred.cov, np.cov(unit, rowvar=False), atol=1e-4)
    scores = centred.transform(table).to_numpy()
    np.testing.assert_allclose(scores.var(axis=0, ddof=1), centred.eigenvals, rtol=1e-3)
    np.testing.assert_allclose(scores.mean(axis=0), 0.0, atol=1e-3)
    assert "each row by its own" in str(fit.summary())


def test_a_column_whose_range_leaves_out_zero_keeps_its_mean():
    rng = np.random.default_rng(4)
    table = {"a": rng.random(500), "c": rng.uniform(18, 100, 500)}
    unit = np.column_stack([table["a"] / 0.5, table["c"] / 41])
    unit /= np.linalg.norm(unit, axis=1)[:, None]
    book = dp.codebook(a=(0, 1), c=(18, 100))
    fit = dp.dp_pca("~ a + c", table, codebook=book, row_norm="unit", **HUGE)
    np.testing.assert_allclose(fit.cov, np.cov(unit, rowvar=False), atol=1e-4)


@pytest.mark.parametrize("word", ["Unit", "", "1", "unit "])
def test_another_word_is_refused(word):
    with pytest.raises(ArgumentError, match='"unit", to divide each row by its norm'):
        dp.dp_pca("~ a + b", {"a": [0.1], "b": [0.2]}, codebook=BOOK, row_norm=word, **HUGE)
