"""The noise of a biplot's arrows: eigenvectors times the roots of their eigenvalues."""

from __future__ import annotations

import numpy as np

from dpmodels.inference.spectrum import Spectrum
from dpmodels.typing import Floats


def arrow_noise(spectrum: Spectrum, vectors: Floats, pair: tuple[int, int]) -> Floats | None:
    """Return the noise covariances of arrows in the plane of two components, by delta method.

    `vectors` has the shape (variables, components), the result (variables, 2, 2); None where noise
    leaves too little of one of the two, or does not tell it from another component. Noise ``E`` in
    the eigenvectors' basis turns ``v_a`` by ``Σ_j E_ja v_j/(y_a - y_j)`` and moves ``y_a`` by
    ``E_aa``; what a pair shares is ``E_ab``.
    """
    own = list(pair)
    if not spectrum.readable[own].all() or (spectrum.alike[own].sum(axis=1) > 1).any():
        return None
    y, v = spectrum.values, spectrum.pair_variance
    squares, noise = vectors**2, np.empty((len(vectors), 2, 2))
    for at, a in enumerate(own):
        gaps = y[a] - y
        apart = np.divide(1.0, gaps, out=np.zeros_like(gaps), where=gaps != 0)
        turned = y[a] * (squares @ (v[:, a] * apart**2))
        grown = squares[:, a] * (v[a, a] + spectrum.count_sd[a] ** 2) / (4 * y[a])
        noise[:, at, at] = turned + grown
    a, b = own
    gap = y[a] - y[b]
    shared = -np.sqrt(y[a] * y[b]) * v[a, b] / gap**2 * vectors[:, a] * vectors[:, b]
    noise[:, 0, 1] = noise[:, 1, 0] = shared
    return noise
