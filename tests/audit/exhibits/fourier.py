"""Noise on Fourier coefficients of a histogram: on all of each, or on its length alone.

`kept_phases`
    A histogram of n cells is released by its Fourier coefficients, which one row
    moves by 1 in L2 and so by √n in L1 at most: Laplace noise of scale √n/ε on
    all of them is ε-private [1]_. The authors' code, which DPBench runs, adds
    the noise to the length of each complex coefficient and keeps its phase.
    Phases are functions of the rows: what comes out of a coefficient lies on
    one line through the origin, which a row more turns. No ε is enough. Right
    is noise on both parts, or cosine coefficients, which have no phases.

References
----------
.. [1] Ács, G., Castelluccia, C. and Chen, R. (2012). "Differentially private
   histogram publishing through lossy compression." ICDM.
"""

import math
from typing import Final

import numpy as np
from scipy.fft import dct, idct

from dpmodels.audit.neighbours import Pair
from dpmodels.typing import Floats
from exhibits.exhibit import Batched, Exhibit

CELLS: Final = 8
_EPS: Final = 1.0
SCALE: Final = math.sqrt(CELLS) / _EPS


def _counts(rows: Floats) -> Floats:
    return np.bincount(rows.astype(np.int64), minlength=CELLS).astype(np.float64)


def _lengths(rows: Floats, generator: np.random.Generator, runs: int) -> Floats:
    exact = np.fft.rfft(_counts(rows), norm="ortho")
    noisy = np.abs(exact) + generator.laplace(scale=SCALE, size=(runs, exact.size))
    result = np.fft.irfft(noisy * np.exp(1j * np.angle(exact)), CELLS, norm="ortho")
    return np.asarray(result)


def _cosines(rows: Floats, generator: np.random.Generator, runs: int) -> Floats:
    exact = dct(_counts(rows), norm="ortho")
    noisy = exact + generator.laplace(scale=SCALE, size=(runs, CELLS))
    return np.asarray(idct(noisy, norm="ortho", axis=1))


_OTHERS = np.repeat([0.0, 1.0, 2.0], 4)
# How far one row of the first cell moves the cosine coefficients in L1.
MOVED: Final = float(np.abs(dct(np.eye(CELLS)[0], norm="ortho")).sum())

_PHASES = Exhibit(
    name="kept_phases",
    fault="noise on the lengths of complex coefficients, none on their phases",
    source="the Fourier algorithm's code, and DPBench's",
    recipe=Batched(_lengths),
    pair=Pair(np.append(_OTHERS, 0.0), _OTHERS, "add-remove", name="a row in the first cell"),
    eps=_EPS,
    loss=math.inf,
)

EXHIBITS = {_PHASES.name: _PHASES}
CORRECT = {
    _PHASES.name: _PHASES.mended(
        Batched(_cosines), "Acs et al. (2012), with a cosine transform", loss=MOVED / SCALE
    )
}
