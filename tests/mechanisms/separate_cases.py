"""What holds of eigenvalues and eigenvectors released apart, by Gaussian or Laplace noise."""

import math
from fractions import Fraction
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
import pytest
from moment_cases import (
    ALARM,
    EXTREME,
    KINDS,
    RELATIONS,
    USUAL,
    absolute,
    ball,
    check_finite,
    check_guarantee,
    check_huge,
    check_measure,
    check_noise,
    distances,
    facts,
    moments_of,
    on_circle,
    part,
    squared,
)

import dpmodels as dp
from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.add_noise import SMALLEST_LAPLACE, SMALLEST_SCALE
from dpmodels.mechanisms.covariance.separate import Separate, SeparatePure
from dpmodels.noise import seeded, source
from dpmodels.privacy import ZCDP, ApproxDP, PureDP


class Twin(NamedTuple):
    """One of the two mechanisms, and what differs between them."""

    make: type
    takes: tuple[type, ...]
    norm: int
    law: str
    huge: object
    smallest: float


GAUSSIAN_TWIN = Twin(Separate, (ApproxDP, ZCDP), 2, "gaussian", ZCDP(1e40), SMALLEST_SCALE)
PURE_TWIN = Twin(
    SeparatePure, (PureDP, ApproxDP, ZCDP), 1, "laplace", PureDP(1e30), SMALLEST_LAPLACE
)


def planned(twin, guarantee, relation="replace"):
    """The noise scale of the eigenvalues in units of the ball."""
    plan = twin.make().plan(facts(3, relation), guarantee)
    return plan.scales["eigenvalues"] / plan.lattice.radius**2


def check_shares(twin):
    for share in (0, 1, -0.5, 1.5, math.nan, True, "half", None):
        with pytest.raises(ArgumentError, match=r"write share=0\.5"):
            twin.make(share)


def check_room(twin, guarantee):
    """A small share of either part has large noise, for which the lattice has room."""
    for share in (1e-6, 1 - 1e-6):
        mechanism = twin.make(share)
        plan = mechanism.plan(facts(centred=True), guarantee)
        assert max(plan.scales["eigenvalues"], plan.steps.count, plan.steps.mean) <= 2.0**57
        release = mechanism.release(moments_of(ball(20, 3), plan), plan, seeded(1))
        assert np.isfinite(release.estimate).all()


def spectrum(rows, plan):
    """Falling eigenvalues of the exact second moment, in lattice steps, rounded."""
    exact = moments_of(rows, plan).cross()[0][1:, 1:].astype(float)
    return [round(value) for value in np.linalg.eigvalsh(exact)[::-1].tolist()]


def check_eigenvalue_neighbours(twin):
    kind, norm = twin.takes[0], twin.norm
    # Others along the axes, far enough apart for the order to stay.
    replacements = np.repeat(np.eye(3), (12, 6, 2), axis=0)
    tried = np.vstack([np.eye(3), ball(12, 3), np.zeros((1, 3))])
    for relation, guarantee in product(RELATIONS, (USUAL[kind], EXTREME[kind][0])):
        plan = twin.make().plan(facts(3, relation), guarantee)
        changed = [spectrum(np.vstack([replacements, row]), plan) for row in tried]
        without = spectrum(replacements, plan)
        pairs = combinations(changed, 2) if relation == "replace" else product(changed, [without])
        scale = Fraction(plan.scales["eigenvalues"])
        largest = max(sum(abs(x - y) ** norm for x, y in zip(*pair, strict=True)) for pair in pairs)
        declared = 1 / Fraction(plan.events[0].multiplier) ** norm
        assert Fraction(97, 100) * declared <= largest / scale**norm <= declared


def check_moment_neighbours(twin):
    distance = {1: absolute, 2: squared}[twin.norm]
    for relation, centred in KINDS:
        plan = twin.make().plan(facts(2, relation, centred), USUAL[twin.takes[0]])
        between, alone = distances(np.vstack([on_circle(24), ball(3, 2)]), plan, distance)
        declared = 1 / Fraction(plan.events[1].multiplier) ** twin.norm
        assert Fraction(98, 100) * declared <= max([*between, *alone]) <= declared


def check_moment_noise(twin):
    check_noise(twin.make(), USUAL[twin.takes[0]], twin.law)


def check_eigenvalue_noise(twin):
    """The eigenvalues of the estimate have noise of the plan's law: one chi-square test."""
    plan = twin.make().plan(facts(3, "add-remove"), USUAL[twin.takes[0]])
    statistic, unit = moments_of([], plan), int(plan.lattice.radius**2)
    # So far apart, and from 0, that no noise changes their order or sign.
    truth = [6000 * unit, 4000 * unit, 2000 * unit]
    np.fill_diagonal(statistic.cross()[0], [0, *truth])
    with dp.simulation(seed=20240301):
        estimates = [twin.make().release(statistic, plan, source()).estimate for _ in range(1000)]
    released = np.linalg.eigvalsh(np.array(estimates))[:, ::-1]
    noise = released * plan.lattice.steps**2 - np.array(truth, dtype=float)
    part(noise, twin.law, plan.scales["eigenvalues"], ALARM, "eigenvalues")


def check_independence(twin):
    """The sum of the eigenvalues and the trace of the matrix err independently."""
    plan = twin.make().plan(facts(2, "add-remove"), USUAL[twin.takes[0]])
    empty = moments_of([], plan)
    empty.cross()[0][1, 1] = empty.cross()[0][2, 2] = 10**5 * int(plan.lattice.radius**2)
    with dp.simulation(seed=20240302):
        releases = [twin.make().release(empty, plan, source()) for _ in range(400)]
    traces = np.array([[np.trace(r.second), np.trace(r.estimate)] for r in releases])
    correlation = np.corrcoef(traces.T)[0, 1]
    # Under independence 20 r is normal to a good approximation: beyond 5.5 sd, 4e-8.
    assert abs(correlation) * math.sqrt(400) < 5.5


def check_feasible(twin):
    """The estimate could be a second moment: not negative, its trace within the public bound."""
    for relation, seed in product(RELATIONS, range(5)):
        plan = twin.make().plan(facts(6, relation), USUAL[twin.takes[0]])
        estimate = twin.make().release(moments_of(ball(10, 6), plan), plan, seeded(seed)).estimate
        assert (estimate == estimate.T).all()
        values = np.linalg.eigvalsh(estimate)
        assert values.min() >= -1e-12 * values.max()
        if relation == "replace":
            assert np.trace(estimate) <= 10 * (1 + 1e-12)


def check_closer(twin, guarantee):
    """Where the rank is low the estimate is closer than the noisy matrix."""
    rows = np.zeros((400, 30))
    rows[:, :2] = ball(400, 2)
    plan = twin.make().plan(facts(30), guarantee)
    release = twin.make().release(moments_of(rows, plan), plan, seeded(1))
    errors = [
        np.linalg.norm(matrix - rows.T @ rows) for matrix in (release.estimate, release.second)
    ]
    assert errors[0] < 0.7 * errors[1]


def check_ends(twin):
    """What is charged, what a huge budget gives, and what awkward rows do."""
    for share in (0.5, 0.3):
        check_guarantee(twin.make(share), twin.takes)
    check_huge(twin.make(), twin.huge)
    assert twin.make().plan(facts(), twin.huge).scales["eigenvalues"] == twin.smallest
    # An (eps, delta) guarantee of the pure twin has the plans of eps alone.
    check_finite(twin.make(), (twin.takes[0], ZCDP))
    check_measure(twin.make(), USUAL[twin.takes[0]])
