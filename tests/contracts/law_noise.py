"""The noise in a release follows the plan's law, and nothing else.

Every law here raises a false alarm at a rate of at most ALARM in all: each of
its tests is exact under the null (chi-square, Kolmogorov, Student) and takes
an equal part of ALARM.
"""

import numpy as np
from contract_cases import BOOK, FORMULA, Case, table
from scipy import stats

import dpmodels as dp
from dpmodels.noise import source

ALARM = 1e-6
RELEASES = 2000
SEED = 20240229


def residuals(case: Case, releases: int, rows: int) -> dict[str, np.ndarray]:
    """Noise in units of the plan's scale, shape (releases, entries), by part."""
    statistic, plan = case.exact(FORMULA, table(rows), BOOK)
    exact, _ = statistic.cross()
    strategy, steps = case.mechanism.make(), plan.steps
    unit, longer = plan.lattice.steps**2, plan.lattice.radius * plan.lattice.steps
    upper = np.triu_indices(plan.facts.columns, 1)
    square = exact[1:, 1:].astype(float)
    found = {"count": [], "mean": [], "diagonal": [], "off": []}
    with dp.simulation(seed=SEED):
        for _ in range(releases):
            release = strategy.release(statistic, plan, source())
            noise = release.second * unit - square
            assert (release.second == release.second.T).all(), "the second moment is not symmetric"
            found["count"].append([release.count * plan.lattice.radius**2 - float(exact[0, 0])])
            found["diagonal"].append(np.diagonal(noise))
            found["off"].append(noise[upper])
            assert (release.total is not None) == case.centred
            if release.total is not None:
                found["mean"].append(release.total * longer - exact[0, 1:].astype(float))
    return {part: np.array(draws) / getattr(steps, part) for part, draws in found.items() if draws}


def the_noise_follows_the_plan(case: Case) -> None:
    parts = residuals(case, RELEASES, rows=60)
    alarm = ALARM / (2 * len(parts) + 2)
    for part, noise in parts.items():
        squares = (noise**2).sum()
        low, high = stats.chi2.ppf(alarm / 2, noise.size), stats.chi2.isf(alarm / 2, noise.size)
        assert low < squares < high, f"{part}: variance is not the plan's"
        shape = stats.kstest(noise.ravel(), "norm", method="asymp")
        assert shape.pvalue > alarm, f"{part}: not Gaussian"
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
    statistic, plan = case.exact(FORMULA, table(30), BOOK)
    release = case.mechanism.make().release(statistic, plan, source())
    unit, longer = plan.lattice.steps**2, plan.lattice.radius * plan.lattice.steps
    assert release.noise.count == plan.steps.count / plan.lattice.radius**2
    assert release.noise.diagonal == plan.steps.diagonal / unit
    assert release.noise.off == plan.steps.off / unit
    if case.centred:
        assert release.noise.mean == plan.steps.mean / longer
    assert release.events == plan.events
    assert release.guarantee == plan.guarantee == case.guarantee
    assert release.adjacency == plan.facts.adjacency
    assert release.rows == (30 if case.adjacency == "replace" else None)
