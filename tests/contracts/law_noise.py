"""The noise in a release follows the law it states, and nothing else.

Every law here raises a false alarm at a rate of at most ALARM in all: each of
its tests is exact under the null (chi-square, gamma, Kolmogorov, Student) or
within 1e-6 of it, and takes an equal part of ALARM.
"""

import math
from dataclasses import astuple

import numpy as np
from contract_cases import BOOK, Case, table
from noises import LAWS, PARTS, Noise, law_of
from scipy import stats

from dpmodels.noise import source

ALARM = 1e-6
# By mechanism or family. Of 400 matrices the entries off the diagonal tell noise that is a tenth
# too small: their variance is then 8 standard errors away, where 5.4 raise the alarm. An increment
# of shells that lacks its noise takes more.
RELEASES = {"covariance": 400, "shells": 1000, "coefficients": 80, "bounds": 100}
SLOW, FEW = 100, 300
# Releases of every mechanism in the ordinary run: noise a quarter or four times as large is noticed
# in one entry by release, noise a third off in ten of them.
ORDINARY, ORDINARY_OF = 24, {"bounds": 8, "coefficients": 8, "regression": 12, "graphs": 8}


def the_noise_follows_the_plan(case: Case) -> None:
    _follows_the_plan(case, _releases(case))


def a_third_of_the_noise_follows_the_plan(case: Case) -> None:
    """The same of fewer releases, which convict only a grosser fault."""
    _follows_the_plan(case, min(_releases(case), max(SLOW, _releases(case) // 6 * 2)))


def _releases(case: Case) -> int:
    mechanism = case.mechanism
    return RELEASES.get(
        mechanism.name, SLOW if mechanism.slow else RELEASES.get(mechanism.family, FEW)
    )


def the_noise_is_as_large_as_planned(case: Case) -> None:
    """Of few releases the variance only, so that each mechanism has its turn."""
    parts = case.family.noise(case, table(60), ORDINARY_OF.get(case.mechanism.family, ORDINARY))
    for part, noise in parts.items():
        _as_large_as_planned(part, noise, ALARM / len(parts))


def _as_large_as_planned(part: str, drawn: Noise, alarm: float) -> None:
    """Squares of normals sum to a chi-square; absolute Laplace variables to a gamma."""
    law, noise = drawn
    size = (noise**2).sum() if law == "gaussian" else 2 * np.abs(noise).sum()
    freedom = noise.size if law == "gaussian" else 2 * noise.size
    low, high = stats.chi2.ppf(alarm / 2, freedom), stats.chi2.isf(alarm / 2, freedom)
    assert low < size < high, f"{part}: variance is not the plan's"


def _follows_the_plan(case: Case, releases: int) -> None:
    parts = case.family.noise(case, table(60), releases)
    alarm = ALARM / (2 * len(parts) + 2)
    for part, (law, noise) in parts.items():
        _as_large_as_planned(part, parts[part], alarm)
        shape = stats.kstest(noise.ravel(), LAWS[law][0], method="asymp")
        assert shape.pvalue > alarm, f"{part}: not {law}"
    joint = np.hstack([noise.values for noise in parts.values()])
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
    few, second = (case.family.noise(case, table(rows), 3) for rows in (20, 90))
    for part in few:
        # Floats carry the sum of the answer and the noise to 2**-52 of it.
        np.testing.assert_allclose(few[part].values, second[part].values, rtol=0, atol=1e-9)


def the_release_states_its_noise(case: Case) -> None:
    """What the plan has noise for is stated, in the released values' units; the rest is nan."""
    strategy, _, statistic, plan = case.crossing(case.formula, table(30), BOOK)
    with case.inside:
        release = strategy.release(statistic, plan, source())
    radius, steps = plan.lattice.radius, plan.lattice.steps
    units = (radius**2, radius * steps, steps**2, steps**2)
    for part, unit in zip(PARTS, units, strict=True):
        stated, law = getattr(release.noise, part), law_of(case, part)
        is_known = bool(law) and (part != "mean" or case.centred)
        assert math.isnan(stated) != is_known, f"{part}: {stated}"
        if case.mechanism.norm and is_known:
            scale = LAWS[law][1] * getattr(plan.steps, part)
            assert stated == scale / unit
    assert case.mechanism.law or release.estimate is None, "two estimates, and a law of neither"


def the_release_carries_its_terms(case: Case) -> None:
    strategy, _, statistic, plan = case.crossing(case.formula, table(30), BOOK)
    with case.inside:
        release = strategy.release(statistic, plan, source())
    assert release.info == strategy.info
    assert release.events == plan.events
    assert release.guarantee == plan.guarantee == case.guarantee
    assert release.adjacency == plan.facts.adjacency
    assert release.rows == (30 if case.adjacency == "replace" else None)
    assert release.simulated == case.mechanism.open
    noisy = not case.mechanism.open
    steps = astuple(plan.steps) if hasattr(plan, "steps") else ()
    assert all((step > 0) == noisy for step in steps if not math.isnan(step))
