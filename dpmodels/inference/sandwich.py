"""Intervals of coefficients from bought curvature and squared gradients.

At a released point θ the gradient of ``Σφ`` is ``g - b``: g is known, b noise of known variance. At
the minimum of ``Σφ + (Λ/2)|θ|² + ⟨b, θ⟩`` g is ``-Λθ``; where a noisy gradient was released, g is
that. To first order ``θ - H⁻¹g``, with H the curvature, is ``-H⁻¹b`` from the rows' own estimate,
and ``-H⁻¹(S + b)`` from the population's, S the sum of the gradients there, of covariance J: it is
free of the ridge's pull, and its covariance is ``H⁻¹(J + var(b) I)H⁻¹``, White's sandwich with the
noise inside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmodels.inference.noisy_variance import allowance
from dpmodels.postprocess import nearest_psd
from dpmodels.postprocess.solve import newton_step
from dpmodels.released import CoefficientsRelease, Meat, MomentNoise
from dpmodels.typing import Floats


@dataclass(frozen=True)
class Sandwich:
    """An estimate without what is known to be off it, and its covariance in two parts.

    In units of the ball. `noise_root`, shape (columns, 2 columns), is a root ``R`` of the
    covariance ``R Rᵀ`` of what separates the estimate from the rows' own: sums of its squares are
    variances, which no rounding makes negative. `sampling_root`, shape (columns, columns), is that
    of what separates the rows' own from the population's. `robust` is the share in [0, 1] of the
    squared gradients in the sandwich's filling; the rest is the curvature, which they equal where
    the model is right.
    """

    estimate: Floats
    noise_root: Floats
    sampling_root: Floats
    robust: float

    @property
    def noise(self) -> Floats:
        """Covariance of what separates the estimate from the rows' own."""
        return np.asarray(self.noise_root @ self.noise_root.T)

    @property
    def sampling(self) -> Floats:
        """Covariance of what separates the rows' own estimate from the population's."""
        return np.asarray(self.sampling_root @ self.sampling_root.T)


def sandwich(release: CoefficientsRelease) -> Sandwich | None:
    """Return estimate and covariances; None where the noise swamps the curvature.

    To first order in all noises. The noise E of the bought curvature enters through ``H⁻¹EH⁻¹g``;
    that of the squared gradients does not enter the estimate. H stands for the curvature where it
    was bought. The noisier the squared gradients, the more of the filling is the curvature instead.

    .. [1] White, H. (1982). "Maximum likelihood estimation of misspecified models." Econometrica
       50, 1-25.
    """
    bought = release.curvature
    if bought is None or release.gradient is None:
        return None
    columns = len(release.coefficients)
    step = newton_step(release.gradient, bought.bread, bought.bread_noise.off)
    if step is None:
        return None
    values, vectors = np.linalg.eigh(bought.bread)
    inside = release.gradient_sd**2 * np.eye(columns) + _moved(bought.bread_noise, step)
    noise = np.hstack([_solved(values, vectors, inside), release.coefficient_sd * np.eye(columns)])
    edge = 2 * bought.meat_noise.off * math.sqrt(columns)
    robust = max(0.0, 1 - edge / float(values[0]))
    filling = robust * nearest_psd(bought.meat) + (1 - robust) * bought.bread
    sampling = _solved(values, vectors, filling)
    return Sandwich(release.coefficients + step, noise, sampling, robust)


def filling(meat: Meat) -> Floats:
    """Return the covariance of the sum of scores from bought squares, never negative.

    Shape (parameters, parameters). In the units of the squares the variance of any combination is
    about 1 for each of its lengths: what the noise of the squares takes from a 95 % interval of it
    is made up for by adding that much in all directions alike.
    """
    allowed = allowance(0.95) * meat.sd**2
    kept = nearest_psd(meat.squares) + allowed * np.eye(len(meat.squares))
    return np.asarray(meat.root @ kept @ meat.root.T)


def _solved(values: Floats, vectors: Floats, covariance: Floats) -> Floats:
    """Return ``H⁻¹ R``, R a root of the covariance, H of the eigenvalues and eigenvectors given."""
    squares, axes = np.linalg.eigh(covariance)
    root = axes * np.sqrt(np.maximum(squares, 0.0))
    return np.asarray((vectors / values) @ (vectors.T @ root))


def _moved(noise: MomentNoise, vector: Floats) -> Floats:
    """Return the covariance of a symmetric noise matrix times a vector."""
    off, diagonal = noise.off**2, noise.diagonal**2
    square = float(vector @ vector)
    return np.asarray(
        off * (square * np.eye(len(vector)) + np.outer(vector, vector))
        + (diagonal - 2 * off) * np.diag(vector**2)
    )
