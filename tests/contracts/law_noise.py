"""The noise in a release follows the law it states, and nothing else.

Every law here raises a false alarm at a rate of at most ALARM in all: each of
its tests is exact under the null (chi-square, gamma, Kolmogorov, Student) or
within 1e-6 of it, and takes an equal part of ALARM.
"""

import math
from dataclasses import astuple

import numpy as np
from contract_cases import BOOK, FORMULA, Case, table
from scipy import stats

import dpmodels as dp
from dpmodels.noise import source
from dpmodels.statistics import moments

ALARM = 1e-6
RELEASES = {False: 1000, True: 100}
SEED = 20240229
# What a law of scale 1 is called elsewhere, and its standard deviation.
LAWS = {"gaussian": ("norm", 1.0), "laplace": ("laplace", math.sqrt(2))}
PARTS = ("count", "mean", "diagonal", "off")


def law_of(case: Case, part: str) -> str:
    return case.mechanism.counts if part in ("count", "mean") else case.mechanism.law


def residuals(case: Case, releases: int, rows: int) -> dict[str, np.ndarray]:
    """Noise in units of the stated scale, shape (releases, entries), by part."""
    design = case.design(FORMULA, table(rows), BOOK)
    plan = case.plan(5)
    strategy, lattice = case.mechanism.make(), plan.lattice
    statistic = strategy.measure(design, plan)
    exact, _ = moments(design, lattice, count_public=True).cross()
    unit, longer = lattice.steps**2, lattice.radius * lattice.steps
    upper = np.triu_indices(plan.facts.columns, 1)
    square = exact[1:, 1:].astype(float) / unit
    found = {part: [] for part in PARTS}
    with dp.simulation(seed=SEED):
        for _ in range(releases):
            release = strategy.release(statistic, plan, source())
            noise = release.second - square
            assert (release.second == release.second.T).all(), "the second moment is not symmetric"
            found["count"].append([release.count - float(exact[0, 0]) / lattice.radius**2])
            found["diagonal"].append(np.diagonal(noise))
            found["off"].append(noise[upper])
            assert (release.total is not None) == case.centred
            if release.total is not None:
                found["mean"].append(release.total - exact[0, 1:].astype(float) / longer)
    sds = {part: getattr(release.noise, part) for part in PARTS}
    return {
        part: np.array(draws) / sds[part] * LAWS[law_of(case, part)][1]
        for part, draws in found.items()
        if draws and law_of(case, part)
    }


def the_noise_follows_the_plan(case: Case) -> None:
    parts = residuals(case, RELEASES[case.mechanism.slow], rows=60)
    alarm = ALARM / (2 * len(parts) + 2)
    for part, noise in parts.items():
        law = law_of(case, part)
        # Squares of normals sum to a chi-square; absolute Laplace variables to a gamma.
        size = (noise**2).sum() if law == "gaussian" else 2 * np.abs(noise).sum()
        freedom = noise.size if law == "gaussian" else 2 * noise.size
        low, high = stats.chi2.ppf(alarm / 2, freedom), stats.chi2.isf(alarm / 2, freedom)
        assert low < size < high, f"{part}: variance is not the plan's"
        shape = stats.kstest(noise.ravel(), LAWS[law][0], method="asymp")
        assert shape.pvalue > alarm, f"{part}: not {law}"
    joint = np.hstack(list(parts.values()))
    _uncorrelated(joint, joint, alarm, "entries of one release")
    _uncorrelated(joint[::2], joint[1::2], alarm, "two releases in a row")


def _uncorrelated(left: np.ndarray, right: np.ndarray, alarm: float, what: str) -> None:
    """Student's test of every pair of columns, Bonferroni's bound over the pairs."""
    count, width = left.shape
    correlations = np.corrcoef(left, right, rowvar=False)[:width, width:]
    if left is right:
        np.fill_diagonal(correlations, 0.0)
    limit = stats.t.isf(alarm / (2 * width**2), count - 2)
    worst = np.abs(correlations).max()
    assert worst * np.sqrt((count - 2) / (1 - min(worst, 1 - 1e-15) ** 2)) < limit, (
        f"{what}: noise is not independent"
    )


def the_noise_is_the_same_for_any_rows(case: Case) -> None:
    few, many = residuals(case, 3, rows=20), residuals(case, 3, rows=90)
    for part in few:
        # Floats carry the sum of the answer and the noise to 2**-52 of it.
        np.testing.assert_allclose(few[part], many[part], rtol=0, atol=1e-9)


def the_release_states_its_noise(case: Case) -> None:
    """What the plan has noise for is stated, in the released values' units; the rest is nan."""
    statistic, plan = case.exact(FORMULA, table(30), BOOK)
    with case.inside:
        release = case.mechanism.make().release(statistic, plan, source())
    radius, steps = plan.lattice.radius, plan.lattice.steps
    units = (radius**2, radius * steps, steps**2, steps**2)
    for part, unit in zip(PARTS, units, strict=True):
        stated, law = getattr(release.noise, part), law_of(case, part)
        known = bool(law) and (part != "mean" or case.centred)
        assert math.isnan(stated) != known, f"{part}: {stated}"
        if case.mechanism.norm and known:
            scale = LAWS[law][1] * getattr(plan.steps, part)
            assert stated == scale / unit
    assert case.mechanism.law or release.estimate is None, "two estimates, and a law of neither"


def the_release_carries_its_terms(case: Case) -> None:
    statistic, plan = case.exact(FORMULA, table(30), BOOK)
    with case.inside:
        release = case.mechanism.make().release(statistic, plan, source())
    assert release.card == case.mechanism.make().card
    assert release.events == plan.events
    assert release.guarantee == plan.guarantee == case.guarantee
    assert release.adjacency == plan.facts.adjacency
    assert release.rows == (30 if case.adjacency == "replace" else None)
    assert release.simulated == case.mechanism.open
    noisy = not case.mechanism.open
    assert all((step > 0) == noisy for step in astuple(plan.steps) if not math.isnan(step))
