"""Predicted errors, bounds read from noisy counts, and steps of noise, by their definitions."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from dpmodels.mechanisms import Facts
from dpmodels.mechanisms.add_noise import GAUSSIAN, LAPLACE
from dpmodels.mechanisms.clipping_shells import TRACE, likely_cap, lost
from dpmodels.mechanisms.count_noise import noised_sums
from dpmodels.mechanisms.counts import Factorisation, Tree, Wavelet
from dpmodels.mechanisms.covariance import adaptive
from dpmodels.mechanisms.covariance.adaptive import (
    DIAGONAL,
    EIGENVALUES,
    HALF_DIAGONAL,
    HALF_OFF,
    OFF,
    Adaptive,
    better_error,
    better_of_two,
    denoised_error,
    separate_error,
    sizes,
)
from dpmodels.mechanisms.protocol import CountFacts
from dpmodels.mechanisms.regression.rate_scores import CLEAR, TAIL, SizeCounts
from dpmodels.noise import seeded
from dpmodels.privacy import ZCDP, ApproxDP, adjacency

LAWS = pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE])


@pytest.fixture(scope="module", params=[ZCDP(0.5), ApproxDP(1.0, 1e-6)], ids=str)
def plan(request):
    return Adaptive().plan(Facts(5, adjacency("replace"), centred=False), request.param)


@LAWS
@pytest.mark.parametrize("half", [False, True])
def test_the_size_of_the_noise_is_that_of_drawn_matrices(plan, law, half):
    """The root mean square of the Frobenius norm, and twice the root of a row's mean square."""
    names = (HALF_DIAGONAL, HALF_OFF) if half else (DIAGONAL, OFF)
    diagonal, off = (law.sd * plan.scales[name] / plan.lattice.steps**2 for name in names)
    variances = np.full((5, 5), off**2) + np.diag([diagonal**2 - off**2] * 5)
    result = sizes(plan, law, half=half)
    assert result.frobenius == pytest.approx(math.sqrt(variances.sum()))
    assert result.edge == pytest.approx(2 * math.sqrt(5 * off**2))


@LAWS
def test_errors_scale_as_the_squares_of_rows_do(plan, law):
    """Rows that are half as long have a quarter of the trace, and a quarter of every error."""
    for error in (denoised_error, separate_error, better_error):
        for trace in (1e-4, 0.02, 0.6):
            full = error(plan, trace, 1.0, law)
            assert error(plan, trace / 4, 0.5, law) == pytest.approx(full / 4)
            assert full > 0


@LAWS
def test_errors_are_those_of_their_sources(plan, law):
    """A quarter and a third of √(edge · trace); with eigenvalues released, their noise too."""
    values = law.sd * plan.scales[EIGENVALUES] * math.sqrt(5) / plan.lattice.steps**2
    for trace in (1e-6, 0.02, 0.6):
        noise, root = sizes(plan, law).frobenius, math.sqrt(sizes(plan, law).edge * trace)
        assert denoised_error(plan, trace, 1.0, law) == pytest.approx(min(noise, root / 4))
        half = math.sqrt(sizes(plan, law, half=True).edge * trace)
        assert separate_error(plan, trace, 1.0, law) == pytest.approx(half / 3 + values)
        errors = noise, separate_error(plan, trace, 1.0, law)
        assert better_error(plan, trace, 1.0, law) == min(errors)


@LAWS
def test_the_trace_of_clipped_rows_is_below_its_cap(plan, law):
    """Two noise sds above what was released, and at most what is public of clipped rows."""
    sd = law.sd * plan.scales[TRACE] / plan.lattice.steps**2
    assert likely_cap(0.3, None, 2, plan, law) == pytest.approx(0.3 + 2 * sd)
    assert likely_cap(0.3, 1e9, 2, plan, law) == pytest.approx(0.3 + 2 * sd)
    assert likely_cap(0.3, 0.8, 0, plan, law) == pytest.approx(min(0.3 + 2 * sd, 0.8))
    # Rows clipped to 2**-t have 4**-t of the cap at most.
    assert likely_cap(0.3, 1e-3, 3, plan, law) == pytest.approx(1e-3 / 64)


def test_what_clipping_takes_off_is_counted_in_whole_squares():
    """Of magnified rows that were cut to the ball: what they had, less what is left of it."""
    traces = [1000, 2000, 5000, 7001]
    exact = np.zeros((14, 3, 3), dtype=object)
    for level, trace in enumerate(traces):
        exact[level] = np.diag([99, trace - 10, 10])
    for level in range(4, 14):
        exact[level] = np.diag([99, 0, 0])
    exact_loss = [1000 - trace / 4**level for level, trace in enumerate(traces)][1:]
    assert lost(exact)[:3] == [math.floor(loss) for loss in exact_loss]


ENDS = np.array([0.0, 1.0, 2.0, 4.0, 8.0, 16.0])


def sizes_of(beyond_four, sd):
    """10,000 rows, some of which are beyond 4, and none beyond 8."""
    return SizeCounts(ENDS, np.array([2_000.0, 5_000, 2_000, 1_000, beyond_four, 0]), sd)


@pytest.mark.parametrize(
    ("rows", "sd", "is_read"),
    [
        (150, 5.0, True),
        # Fewer than a hundredth of all rows, however clear of the noise.
        (80, 5.0, False),
        # More than that, but within four sds of the noise in the two cells beyond.
        (150, 30.0, False),
    ],
)
def test_a_tail_is_read_where_it_is_clear_and_not_rare(rows, sd, is_read):
    assert CLEAR == 4
    assert TAIL == 0.01
    clear = sizes_of(rows, sd).bound(1e9)
    # With so much noise in the sum nothing beyond what was read is kept.
    assert clear == (8.0 if is_read else 4.0)


def test_nothing_is_read_of_rows_within_the_noise():
    assert SizeCounts(ENDS, np.array([5.0, 8, 3, 0, 2, 1]), 30.0).bound(10.0) is None


@pytest.mark.parametrize("kind", [Tree, Wavelet, Factorisation])
def test_the_step_of_released_sums_is_that_of_their_lattice(kind):
    facts = CountFacts(1, 65, False, adjacency("replace"), (1, 64))
    plan = kind().plan(facts, ZCDP(0.2))
    release = noised_sums(kind.info, plan, np.zeros(200, dtype=int), 1_000, seeded(4))
    steps = np.asarray(release.values) / release.step
    assert (steps == np.rint(steps)).all()
    # Noise of many steps is odd as often as even: all are even with a probability of 2**-200.
    assert (steps % 2 == 1).any()
    assert release.noise_sd == plan.noise_sd > 10 * release.step


@pytest.mark.parametrize("trace", [1e-9, 0.9])
@pytest.mark.parametrize("level", [0, 2])
def test_a_matrix_of_clipped_rows_is_held_to_their_cap(plan, trace, level):
    """Whichever error is predicted to be less: rows clipped to 2**-t have 4**-t of the cap."""
    unit = 4.0**level * plan.lattice.steps**2
    exact = np.zeros((6, 6), dtype=object)
    for at in range(6):
        exact[at, at] = int(1e3 * unit)
    matrix = better_of_two(exact, level, trace, 0.5, plan, seeded(3))
    assert np.trace(matrix) == pytest.approx(0.5 / 4**level)
    assert np.linalg.eigvalsh(matrix).min() >= -1e-12


@pytest.mark.parametrize("level", [0, 2])
def test_the_method_is_that_of_the_smaller_predicted_error(plan, level, monkeypatch):
    """Just below the trace at which errors errors are equal eigenvalues are released apart."""
    radius, calls = 2.0**-level, []

    def eigenvalues(*arguments):
        calls.append(arguments)
        return np.ones(5)

    monkeypatch.setattr(adaptive, "noised_eigenvalues", eigenvalues)

    def excess(trace):
        return separate_error(plan, trace, radius) - radius**2 * sizes(plan).frobenius

    equal = brentq(excess, 0.0, 1e6)
    exact = np.zeros((6, 6), dtype=object)
    for trace, is_separate in ((equal * 0.99, True), (equal * 1.01, False)):
        calls.clear()
        better_of_two(exact, level, trace, None, plan, seeded(3))
        assert bool(calls) == is_separate
