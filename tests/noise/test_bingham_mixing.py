import numpy as np
import pytest

from benchmarks.bingham_mixing import mixing
from dpmodels.noise import seeded

SPECTRA = {
    "none": np.zeros(12),
    "one gap": np.where(np.arange(12) < 3, 1e6, 0.0),
    "a small gap below a steep slope": np.append(
        1e6 * 0.3 ** np.arange(2), [11.0, *np.linspace(10, 0, 9)]
    ),
    "one leader, the rest nearly equal": np.append(1e8, np.linspace(3, 0, 11)),
    "steep": 1e8 * 0.3 ** np.arange(12),
    "level": 10 * np.arange(12.0),
}


@pytest.mark.parametrize("name", SPECTRA)
def test_the_public_number_of_sweeps_mixes(name):
    result = mixing(SPECTRA[name], 3, seeded(111), chains=40)
    assert (result.chains, result.sweeps) == (40, 128)
    # Eighty sequences of 32 draws, one in five independent: R-hat² is 1 + (5 F - 1)/32 with F a
    # mean square on 79 degrees of freedom, F < 2.1 but for 1e-7.
    assert result.rhat < 1.14
    assert result.effective > 40 * 64 / 5


def test_chains_too_short_are_found_out():
    # A leading space 1e12 above the rest is some thirty sweeps away from either start.
    spectrum = np.where(np.arange(30) < 3, 1e12, 0.0)
    assert mixing(spectrum, 3, seeded(112), chains=8, sweeps=16).rhat > 1.3


def test_equal_eigenvalues_leave_nothing_to_compare_but_the_subspace():
    result = mixing(np.full(6, 1e9), 2, seeded(113), sweeps=400)
    assert result.rhat < 1.1
    assert result.effective > 4 * 200 / 5
