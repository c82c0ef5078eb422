"""Two tables answered alike: what of each round differs, and whether anything else does."""

from contextlib import contextmanager

import numpy as np

from dpmodels.mechanisms import add_noise
from dpmodels.privacy import LaplaceEvent
from dpmodels.statistics import Statistic


def honest(rng, exact, scale):
    return exact.astype(float) + scale * rng.normal(size=exact.size)


def wild(rng, exact, scale):
    """Answers that no table would get, of any size."""
    sizes = 10.0 ** rng.uniform(-3, 17, 2)
    several = (
        exact.astype(float) * rng.uniform(0.5, 2),
        sizes[0] * np.abs(rng.normal(size=exact.size)),
        sizes[1] * rng.normal(size=exact.size),
        sizes[0] * (np.arange(exact.size) == rng.integers(max(exact.size, 1))),
    )
    return several[rng.integers(4)]


@contextmanager
def answered(answer):
    """Let all noise be added by a function; nothing is added in a sampler's place."""
    original = add_noise.noisy_sums
    add_noise.noisy_sums = lambda parts, *_: [answer(exact, scale) for exact, scale in parts]
    try:
        yield
    finally:
        add_noise.noisy_sums = original


def replayed(first, second, rng, answers):
    """Release from two tables with the same answers; give both releases and both tables' rounds.

    A round is what a statistic hands over at once: integers in units of their noise.
    """
    prints, rounds_so_far, turn = [], [], [0]
    crossed = Statistic.cross

    def counted(statistic):
        turn[0] += 1
        return crossed(statistic)

    def added(exact, scale):
        rounds, at = rounds_so_far[-1]
        if at == len(prints):
            prints.append(np.asarray(answers(rng, exact, scale), dtype=float))
        rounds_so_far[-1] = rounds, at + 1
        rounds.setdefault(turn[0], []).append((exact / scale).astype(float))
        return prints[at]

    releases = []
    Statistic.cross = counted
    try:
        for release in (first, second):
            rounds_so_far.append(({}, 0))
            turn[0] = 0
            with answered(added):
                releases.append(release())
    finally:
        Statistic.cross = crossed
    return releases, [
        [np.concatenate(parts) for parts in rounds.values()] for rounds, _ in rounds_so_far
    ]


def prices(events, rounds):
    """How far two tables' rounds are apart, each in units of what its event allows."""
    for event, first, second in zip(events, *rounds, strict=True):
        norm = 1 if isinstance(event, LaplaceEvent) else 2
        yield float(np.linalg.norm(first - second, norm)) * event.multiplier
