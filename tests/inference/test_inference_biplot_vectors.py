import numpy as np

from dpmodels.inference.spectrum import Spectrum, arrow_noise

DRAWS = 20_000


def spectrum(values, sd=0.01):
    d = len(values)
    variance = np.full((d, d), sd**2) * (1 + np.eye(d))
    return Spectrum(np.array(values), variance, np.zeros(d), sd)


def test_the_noise_of_arrows_is_that_of_noisy_eigenvectors():
    values, sd = np.array([3.0, 2.0, 1.2, 0.5]), 0.01
    rng = np.random.default_rng(3)
    basis, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    noise = rng.normal(size=(DRAWS, 4, 4)) * sd
    noise = (noise + noise.transpose(0, 2, 1)) / np.sqrt(2)
    draws, vectors = np.linalg.eigh((basis * values) @ basis.T + noise)
    chosen = vectors[:, :, [3, 2]] * np.sqrt(draws[:, None, [3, 2]])
    signs = np.sign(np.einsum("nij,ij->nj", chosen, basis[:, :2]))
    tips = chosen * signs[:, None, :]
    covariances = np.stack([np.cov(tips[:, i].T) for i in range(4)])
    noises = arrow_noise(spectrum(values), basis, (0, 1))
    # An entry has a relative error of sd 1/sqrt(DRAWS) beside the root of both variances:
    # 8 of them are left in 1 of 1e14 cases; the seed is of data, not of noise that is released.
    scale = np.sqrt(noises[:, [0, 1], [0, 1]])
    off = np.abs(covariances - noises) / (scale[:, :, None] * scale[:, None, :])
    assert off.max() < 8 / np.sqrt(DRAWS) + 0.005
    assert np.abs(noises[:, 0, 1] / scale.prod(axis=1)).max() > 0.2


def test_components_that_noise_does_not_tell_apart_have_none():
    assert arrow_noise(spectrum([3.0, 2.999, 1.0]), np.eye(3), (0, 1)) is None
    assert arrow_noise(spectrum([3.0, 1.0, 0.001]), np.eye(3), (0, 2)) is None
