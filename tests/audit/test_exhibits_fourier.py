"""What is claimed of the exhibit of Fourier coefficients, against its law."""

import math

import numpy as np
import pytest
from exhibits import CORRECT, EXHIBITS
from exhibits.fourier import CELLS, MOVED, SCALE
from scipy.fft import dct

from dpmodels.noise import simulation


def test_phases_are_those_of_the_counts_in_every_release():
    one = EXHIBITS["kept_phases"]
    with simulation(seed=1):
        made = {"faulty": one.recipe.batch(one.pair.rows, 50)}
        made["correct"] = CORRECT[one.name].recipe.batch(one.pair.rows, 50)
    counts = np.bincount(one.pair.rows.astype(int), minlength=CELLS)
    phases = np.exp(1j * np.angle(np.fft.rfft(counts)[1:4]))
    beside = {
        name: np.abs((np.fft.rfft(own, axis=1)[:, 1:4] / phases).imag) for name, own in made.items()
    }
    assert beside["faulty"].max() < 1e-5
    assert np.median(beside["correct"]) > 0.1


def test_no_row_moves_cosine_coefficients_farther_than_is_paid_for():
    moved = np.abs(dct(np.eye(CELLS), norm="ortho", axis=1)).sum(axis=1)
    assert moved[0] == pytest.approx(MOVED)
    assert moved.max() <= math.sqrt(CELLS) == SCALE
