"""Rows, neighbours and laws that the tests of several mechanisms share.

Every statistical law here raises a false alarm at a rate of at most ALARM in
all its tests together: each is an exact chi-square test and takes an equal part.
"""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

import dpmodels as dp
from dpmodels.design import private_design
from dpmodels.errors import BudgetError
from dpmodels.mechanisms import Facts
from dpmodels.noise import seeded, source
from dpmodels.noise.lattice import to_lattice
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, adjacency, total_eps, total_rho
from dpmodels.statistics import Statistic

ALARM = 1e-6
RELATIONS = ("replace", "add-remove")
KINDS = tuple(product(RELATIONS, (True, False)))
USUAL = {PureDP: PureDP(1.0), ApproxDP: ApproxDP(1.0, 1e-6), ZCDP: ZCDP(0.1)}
EXTREME = {
    PureDP: (PureDP(1e-9), PureDP(1e9)),
    ApproxDP: (ApproxDP(1e-9, 1e-9), ApproxDP(1e9, 1e-6), ApproxDP(1.0, 0.9)),
    ZCDP: (ZCDP(1e-18), ZCDP(1e18)),
}
HOLE = np.nan


def fraction_spent(events, guarantee):
    """Return what events cost, as a fraction of a guarantee."""
    if isinstance(guarantee, ZCDP):
        return total_rho(events) / guarantee.rho
    delta = guarantee.delta if isinstance(guarantee, ApproxDP) else 0.0
    return total_eps(events, delta) / guarantee.eps


def facts(columns=3, relation="replace", centred=False, components=0):
    return Facts(columns, adjacency(relation), centred=centred, components=components)


def moments_of(rows, plan):
    """The exact moments of rows in the unit ball, shape (rows, columns)."""
    vectors = np.array(rows, dtype=float).reshape(-1, plan.lattice.columns).T
    ones = np.ones(len(vectors))
    complete = to_lattice(vectors, ones, 0 * ones, plan.lattice)
    augmented = np.vstack([complete * plan.lattice.radius, vectors])
    integers = np.array([[int(cell) for cell in line] for line in augmented.tolist()], dtype=object)
    exact = integers.reshape(len(vectors) + 1, -1)
    square = [[sum((a * b for a, b in zip(x, y, strict=True)), 0) for y in exact] for x in exact]
    return Statistic("augmented moments", np.array(square, dtype=object), vectors.shape[1])


def ball(rows, columns, seed=0):
    """Rows in the unit ball, most of them near its surface."""
    cloud = np.random.default_rng(seed).normal(size=(rows, columns)) * np.geomspace(1, 0.2, columns)
    return cloud / np.maximum(np.linalg.norm(cloud, axis=1, keepdims=True), 1)


def on_circle(count=48):
    """Points around the circle, those mirrored in the diagonal among them; opposite ones too."""
    angles = np.pi / 4 + 2 * np.pi * np.arange(count) / count
    return np.column_stack([np.cos(angles), np.sin(angles)])


def check_measure(mechanism, guarantee):
    """`measure` gives the rows' moments, by way of a formula."""
    rows = ball(40, 3) / 2
    rows[7, 1] = HOLE
    names = ["x0", "x1", "x2"]
    data = {name: rows[:, i] for i, name in enumerate(names)}
    book = dp.codebook.uniform(names, (-1, 1))
    design = private_design("~ .", data, book, center=False, row_norm=1.0)
    for relation in RELATIONS:
        plan = mechanism.plan(facts(3, relation, components=2), guarantee)
        measured, expected = mechanism.measure(design, plan), moments_of(rows, plan)
        assert measured.cross()[0].tolist() == expected.cross()[0].tolist()
        assert measured.cross()[1] == 40


def part(array, law, scale, alarm, what):
    """The chi-square test of integer noise of a scale of many steps."""
    noise = np.asarray(array, dtype=float).ravel() / scale
    total = (noise**2).sum() if law == "gaussian" else 2 * np.abs(noise).sum()
    freedom = noise.size if law == "gaussian" else 2 * noise.size
    low, high = stats.chi2.ppf(alarm / 2, freedom), stats.chi2.isf(alarm / 2, freedom)
    assert low < total < high, f"{what}: the noise is not the plan's"


def residuals(mechanism, plan, releases=300):
    """Noise in lattice steps by part, each shape (releases, entries)."""
    statistic = moments_of(ball(9, plan.facts.columns), plan)
    exact, lattice = statistic.cross()[0].astype(float), plan.lattice
    upper = np.triu_indices(plan.facts.columns, 1)
    residual_lists = {"count": [], "mean": [], "diagonal": [], "off": []}
    for _ in range(releases):
        release = mechanism.release(statistic, plan, source())
        noise = release.second * lattice.steps**2 - exact[1:, 1:]
        assert (release.second == release.second.T).all()
        residual_lists["count"].append([release.count * lattice.radius**2 - exact[0, 0]])
        residual_lists["diagonal"].append(np.diagonal(noise))
        residual_lists["off"].append(noise[upper])
        if plan.facts.centred:
            longer = lattice.radius * lattice.steps
            residual_lists["mean"].append(release.total * longer - exact[0, 1:])
        else:
            assert release.total is None
    return {name: np.array(draws) for name, draws in residual_lists.items() if draws}


def check_noise(mechanism, guarantee, law):
    """The noise of every part is of the planned scale, and stated as it is."""
    sd = {"gaussian": 1.0, "laplace": math.sqrt(2)}[law]
    with dp.simulation(seed=20240229):
        for relation, centred in KINDS:
            plan = mechanism.plan(facts(4, relation, centred), guarantee)
            parts = residuals(mechanism, plan)
            assert set(parts) == {"count", "diagonal", "off"} | ({"mean"} if centred else set())
            for name, noise in parts.items():
                alarm = ALARM / (len(KINDS) * len(parts))
                part(noise, law, getattr(plan.steps, name), alarm, name)
            stated = mechanism.release(moments_of([], plan), plan, source()).noise
            unit, longer = plan.lattice.steps**2, plan.lattice.radius * plan.lattice.steps
            units = {"count": plan.lattice.radius**2, "mean": longer, "diagonal": unit, "off": unit}
            for name, values in units.items():
                planned = sd * getattr(plan.steps, name) / values
                assert getattr(stated, name) == pytest.approx(planned, rel=1e-15, nan_ok=True)


def squared(delta, plan):
    """The L2 distance of moments in units of the noise, squared."""
    steps, size = plan.steps, len(delta)
    parts = [
        (delta[0, 0] ** 2, steps.count),
        (sum(delta[i, i] ** 2 for i in range(1, size)), steps.diagonal),
        (sum(delta[i, j] ** 2 for i, j in combinations(range(1, size), 2)), steps.off),
    ]
    if plan.facts.centred:
        parts.append((sum(cell**2 for cell in delta[0, 1:]), steps.mean))
    return sum((Fraction(int(total)) / Fraction(scale) ** 2 for total, scale in parts), Fraction())


def absolute(delta, plan):
    """The L1 distance of moments in units of the noise."""
    steps, size = plan.steps, len(delta)
    parts = [
        (abs(delta[0, 0]), steps.count),
        (sum(abs(delta[i, i]) for i in range(1, size)), steps.diagonal),
        (sum(abs(delta[i, j]) for i, j in combinations(range(1, size), 2)), steps.off),
    ]
    if plan.facts.centred:
        parts.append((sum(map(abs, delta[0, 1:])), steps.mean))
    return sum((Fraction(int(total)) / Fraction(scale) for total, scale in parts), Fraction())


def distances(rows, plan, distance):
    """Distances between complete rows, and of one against none, with other rows around."""
    base = [rows[0], rows[0], rows[-1], np.full(plan.lattice.columns, HOLE)]

    def exact(*more):
        return moments_of([*base, *more], plan).cross()[0]

    without, hole = exact(), exact(base[-1])
    assert (without == hole).all(), "an incomplete row leaves a trace"
    statistics = [exact(row) for row in rows]
    alone = [distance(statistic - without, plan) for statistic in statistics]
    if not plan.facts.adjacency.n_public:
        return [], alone
    return [distance(x - y, plan) for x, y in combinations(statistics, 2)], alone


def check_guarantee(mechanism, kinds):
    """What is charged is within what was asked, and close to it where nothing is left over."""
    guarantees = [guarantee for kind in kinds for guarantee in (USUAL[kind], *EXTREME[kind])]
    for guarantee, (relation, centred) in product(guarantees, KINDS):
        plan = mechanism.plan(facts(3, relation, centred), guarantee)
        assert plan.guarantee == guarantee
        if isinstance(guarantee, ZCDP):
            assert total_rho(plan.events) <= guarantee.rho
        else:
            delta = guarantee.delta if isinstance(guarantee, ApproxDP) else 0.0
            assert total_eps(plan.events, delta) <= guarantee.eps


def check_refusals(mechanism, kinds, word="write"):
    """Other kinds of guarantee are refused with what to write instead."""
    for kind in set(USUAL) - set(kinds):
        with pytest.raises(BudgetError, match=word):
            mechanism.plan(facts(), USUAL[kind])


def check_finite(mechanism, kinds):
    """No statistic and no guarantee makes anything but finite numbers."""
    guarantees = [guarantee for kind in kinds for guarantee in (USUAL[kind], *EXTREME[kind])]
    awkward = {
        "no rows": (3, []),
        "one column": (1, [[0.5], [-1.0]]),
        "more columns than rows": (6, ball(2, 6)),
        "rank one": (3, np.full((5, 3), 0.5)),
        "constant zero": (2, np.zeros((4, 2))),
        "all incomplete": (2, np.full((4, 2), HOLE)),
    }
    for guarantee, (relation, centred) in product(guarantees, KINDS):
        for what, (columns, rows) in awkward.items():
            plan = mechanism.plan(facts(columns, relation, centred), guarantee)
            release = mechanism.release(moments_of(rows, plan), plan, seeded(1))
            assert release.rows == (len(rows) if relation == "replace" else None)
            values = [np.array(release.count), release.second]
            values += [part for part in (release.total, release.estimate) if part is not None]
            assert all(np.isfinite(value).all() for value in values), what
            assert release.second.shape == (columns, columns)
            assert (release.total is not None) == centred


def check_huge(mechanism, guarantee):
    """A huge budget gives numpy's answer to the lattice's resolution."""
    rows = ball(50, 4, seed=3)
    for relation, centred in KINDS:
        plan = mechanism.plan(facts(4, relation, centred), guarantee)
        with_hole = np.vstack([rows, np.full((1, 4), HOLE)])
        release = mechanism.release(moments_of(with_hole, plan), plan, seeded(1))
        # Rounding moves an entry of one row's square by at most 1.5 steps.
        slack = 50 * 3 / plan.lattice.steps
        estimate = release.second if release.estimate is None else release.estimate
        np.testing.assert_allclose(release.second, rows.T @ rows, rtol=0, atol=slack)
        np.testing.assert_allclose(estimate, rows.T @ rows, rtol=0, atol=4 * slack)
        assert release.count == pytest.approx(50, abs=1e-3)
        if centred:
            np.testing.assert_allclose(release.total, rows.sum(axis=0), rtol=0, atol=slack)


def thinned(plan, **steps):
    """The plan with other scales: a fault that a test of the noise or of neighbours must find."""
    return replace(plan, steps=replace(plan.steps, **steps))
