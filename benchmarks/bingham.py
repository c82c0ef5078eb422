"""Acceptance, milliseconds and mixing of the Bingham samplers.

Run as ``python benchmarks/bingham.py``. The spectra are made up: n rows of
length at most 1 whose covariance has eigenvalues 1/j², j = 1 to d, scaled to
trace 1, at a budget of eps = 1 (concentration n/2 times the covariance), and
the hardest case for the envelope, one eigenvalue far above the others. Wanted:
a vector of d = 784 within 50 ms of its eigenvectors, 8 columns of d = 513
within 60 s.
"""

import time
from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np
from bingham_mixing import mixing
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dpmodels.noise import secure
from dpmodels.noise.bingham_frames import (
    accepted,
    bingham_from_eigen,
    envelope_spread,
    matrix_bingham,
    sequential_bingham,
)

ROWS = 60_000
VECTORS = (2, 10, 50, 116, 513, 784)
FRAMES = ((20, 3), (116, 4), (513, 8), (784, 8))
STUDIED = ((20, 3), (116, 4))
PROPOSALS = 200


def decaying(dimension: int, rows: float = ROWS) -> NDArray[np.float64]:
    values: NDArray[np.float64] = 1 / np.arange(1.0, dimension + 1) ** 2
    values *= rows / 2 / values.sum()
    return values


def peaked(dimension: int) -> NDArray[np.float64]:
    return np.where(np.arange(dimension) == 0, 1e12, 0.0)


def acceptance(values: NDArray[np.float64]) -> float:
    deficits = values.max() - values
    spread, entropy = envelope_spread(deficits), secure()
    n_accepted = sum(len(accepted(deficits, spread, PROPOSALS, entropy)) for _ in range(50))
    return n_accepted / (50 * PROPOSALS)


def seconds(draw: Callable[[], object], repeats: int) -> list[float]:
    spent = []
    for _ in range(repeats):
        start = time.perf_counter()
        draw()
        spent.append(time.perf_counter() - start)
    return spent


def vectors() -> None:
    print("One exact vector, eigenvectors known: ms, median and largest of 51")
    print(f"{'d':>5}{'accepted':>11}{'peaked':>9}{'.86/sqrt d':>12}{'ms':>8}{'largest':>9}")
    for d in VECTORS:
        values, directions, entropy = decaying(d), np.eye(d), secure()
        spent = seconds(partial(bingham_from_eigen, values, directions, entropy), 51)
        print(
            f"{d:>5}{acceptance(values):>11.3f}{acceptance(peaked(d)):>9.3f}{0.86 / d**0.5:>12.3f}"
            f"{1e3 * median(spent):>8.2f}{1e3 * max(spent):>9.2f}"
        )


def frames() -> None:
    print("\nA frame, eigenvectors and all: seconds, one run")
    print(f"{'d':>5}{'k':>4}{'matrix':>9}{'sequential':>12}  statement")
    for d, k in FRAMES:
        matrix, entropy = np.diag(decaying(d)), secure()
        start = time.perf_counter()
        _, convergence = matrix_bingham(matrix, k, entropy)
        middle = time.perf_counter()
        sequential_bingham(matrix, k, entropy)
        end = time.perf_counter()
        print(f"{d:>5}{k:>4}{middle - start:>9.2f}{end - middle:>12.2f}  {convergence}")


def convergence() -> None:
    print("\nMixing over the second half of the public number of sweeps, 16 chains")
    print(f"{'d':>5}{'k':>4}{'rows':>10}{'R-hat':>8}{'sweeps a draw':>15}")
    for d, k in STUDIED:
        for rows in (1e2, 1e4, 1e6, 1e9):
            diagnosis = mixing(decaying(d, rows), k, secure(), chains=16)
            draws_each = diagnosis.chains * diagnosis.sweeps / 2 / diagnosis.effective
            print(f"{d:>5}{k:>4}{rows:>10.0e}{diagnosis.rhat:>8.3f}{draws_each:>15.1f}")


def main() -> None:
    with threadpool_limits(1, "blas"):
        vectors()
        frames()
        convergence()


if __name__ == "__main__":
    main()
