"""What is claimed of the exhibit of Fourier coefficients, against its law."""

import math

import numpy as np
import pytest
from exhibits import CORRECT, EXHIBITS
from exhibits.fourier import CELLS, MOVED, SCALE
from scipy.fft import dct

from dpmodels.noise import simulation


def test_phases_are_those_of_the_counts_in_every_release():
    values = EXHIBITS["kept_phases"]
    with simulation(seed=1):
        result = {"faulty": values.recipe.batch(values.pair.rows, 50)}
        result["correct"] = CORRECT[values.name].recipe.batch(values.pair.rows, 50)
    counts = np.bincount(values.pair.rows.astype(int), minlength=CELLS)
    phases = np.exp(1j * np.angle(np.fft.rfft(counts)[1:4]))
    beside = {
        name: np.abs((np.fft.rfft(values, axis=1)[:, 1:4] / phases).imag)
        for name, values in result.items()
    }
    assert beside["faulty"].max() < 1e-5
    assert np.median(beside["correct"]) > 0.1


def test_no_row_moves_cosine_coefficients_farther_than_is_paid_for():
    total = np.abs(dct(np.eye(CELLS), norm="ortho", axis=1)).sum(axis=1)
    assert total[0] == pytest.approx(MOVED)
    assert total.max() <= math.sqrt(CELLS) == SCALE
