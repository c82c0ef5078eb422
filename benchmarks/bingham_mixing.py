"""How fast the rotation chain forgets its start, measured on public spectra.

The chain does the same whatever the eigenvectors are: turn the matrix and every frame turns with
it. So how fast it converges is a property of the eigenvalues, and can be studied beforehand on
eigenvalues that are made up, simulated or released already. Never give it the eigenvalues of
private rows.
"""

from dataclasses import dataclass

import numpy as np

from dpmodels.noise.bingham_frames import SWEEPS, rounds, sweep, uniform_frames
from dpmodels.noise.uniform import Entropy
from dpmodels.typing import Floats


@dataclass(frozen=True, slots=True)
class Mixing:
    """What several chains on one public spectrum say about convergence."""

    chains: int  # How many chains, how many sweeps each
    sweeps: int
    rhat: float  # Largest split R-hat over the quantities watched; 1 in the limit
    effective: float  # Smallest number of effective draws among the draws of the second half


def mixing(
    values: Floats, k: int, entropy: Entropy, *, chains: int = 4, sweeps: int = SWEEPS
) -> Mixing:
    """Run chains from far apart on a public spectrum and compare them.

    Half of the chains start at uniform frames, half at the k eigenvectors of lowest energy, which
    is as far from the bulk of the law as a frame can be. Watched are tr V' A V, the energy of the
    subspace in each of the k leading eigenvectors, and the squared cosine of its largest principal
    angle with them; the first half of the sweeps is left out.

    `values`, shape (d,), are public, k is from 1 to d - 1, `chains` even, `sweeps` a multiple of 4
    from 16 on.

    Source: Gelman, Carlin, Stern, Dunson, Vehtari, Rubin (2013), Bayesian Data Analysis, third
    edition, section 11.4 (split R-hat, effective draws).
    """
    ordered = np.sort(values)[::-1] - values.min()
    frames = uniform_frames(values.size, chains, k, entropy)
    frames[:, ::2] = np.eye(values.size)[:, None, -k:]
    schedule = rounds(values.size)
    trace = []
    for _ in range(sweeps):
        sweep(frames, ordered, schedule, entropy)
        trace.append(_watched(frames, ordered))
    halves = np.stack(trace[sweeps // 2 :]).reshape(2, sweeps // 4, -1, chains)
    sequences = np.moveaxis(halves, 2, 0).swapaxes(1, 2).reshape(-1, sweeps // 4, 2 * chains)
    return Mixing(
        chains,
        sweeps,
        max(_rhat(sequence) for sequence in sequences),
        min(_effective(sequence) for sequence in sequences),
    )


def _watched(frames: Floats, values: Floats) -> Floats:
    """Give the watched quantities, one row each, one column per chain."""
    energies = np.einsum("dck,dck->dc", frames, frames)
    leading = frames[: frames.shape[2]].transpose(1, 0, 2)
    worst = np.linalg.svd(leading, compute_uv=False)[:, -1] ** 2
    return np.vstack([values @ energies, energies[: frames.shape[2]], worst])


def _rhat(sequences: Floats) -> float:
    """Compare the variance between sequences, (draws, sequences), with that inside."""
    within, total = _variances(sequences)
    return float(np.sqrt(total / within)) if within > 0 else 1.0


def _effective(sequences: Floats) -> float:
    """Give the number of independent draws whose mean would be as precise."""
    draws = len(sequences)
    _, total = _variances(sequences)
    if total == 0:
        return float(sequences.size)
    correlation = 0.0
    for lag in range(1, draws - 1, 2):
        pair = sum(1 - _variogram(sequences, lag + offset) / (2 * total) for offset in (0, 1))
        if pair < 0:
            break
        correlation += pair
    return sequences.size / (1 + 2 * correlation)


def _variances(sequences: Floats) -> tuple[float, float]:
    """Give the variance inside the sequences, and all of it."""
    draws = len(sequences)
    within = float(sequences.var(axis=0, ddof=1).mean())
    between = float(sequences.mean(axis=0).var(ddof=1))
    return within, within * (draws - 1) / draws + between


def _variogram(sequences: Floats, lag: int) -> float:
    return float(np.mean((sequences[lag:] - sequences[:-lag]) ** 2))
