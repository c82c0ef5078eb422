"""The noisy mean of rows in a ball, shrunk by what is noise."""

from __future__ import annotations

import numpy as np

from dpmodels.mechanisms.add_noise import GAUSSIAN, Law, add_noise
from dpmodels.mechanisms.noisy_count import CountNoise
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import Lattice
from dpmodels.statistics import Passes
from dpmodels.statistics.norms import row_sums
from dpmodels.typing import Floats


def noisy_mean(
    passes: Passes, lattice: Lattice, noise: CountNoise, entropy: Entropy, law: Law = GAUSSIAN
) -> tuple[Floats, float]:
    """Return the mean, shape (columns,), in shares of the ball's radius, and the number of rows."""
    exact, _ = passes.measured(row_sums).cross()
    rows, total = (max(scale * lattice.radius, law.smallest) for scale in noise)
    count = max(float(add_noise(exact[:1], rows, entropy, law)[0]) / lattice.radius, 1.0)
    mean = add_noise(exact[1:], total, entropy, law) / lattice.steps / count
    return shrunk(mean, law.sd * noise.total / count), count


def shrunk(mean: Floats, sd: float) -> Floats:
    """Return James and Stein's estimate, in the ball: lost in noise, the mean is the old centre."""
    square = float(mean @ mean)
    held = mean * max(1 - len(mean) * sd**2 / square, 0.0) if square > 0 else mean
    return held / max(1.0, float(np.linalg.norm(held)))
