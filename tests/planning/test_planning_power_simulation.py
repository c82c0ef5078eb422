"""What is expected agrees with closed laws where there are some, and with the verbs."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from statsmodels.stats.power import GofChisquarePower, TTestIndPower

import dpmodels as dp
from dpmodels.planning.population import Hypothesis
from dpmodels.planning.power_simulation import (
    Cell,
    Expected,
    Trial,
    _normal,
    _shrunk,
    _upper,
    price,
    without_noise,
)
from dpmodels.planning.verbs import Reading
from tests.planning.test_planning_population import BOOK, CALLS, asking

NOISELESS = 1e5


@pytest.mark.product
def test_a_test_without_noise_has_students_power():
    trial = asking("ttest").trial(Cell(400, NOISELESS, 3.0))
    result = trial.expected()
    sd = trial.posed.sampling[0] / 2
    exact = TTestIndPower().power(3.0 / sd, 200, 0.05)
    assert result.power[0] == pytest.approx(exact, abs=0.03)
    assert result.se[0] == pytest.approx(sd * np.sqrt(2 / 200), rel=0.02)
    assert without_noise(trial.posed, 400, 0.05)[0] == pytest.approx(exact, abs=0.005)


@pytest.mark.product
def test_a_chi_square_test_without_noise_has_its_power():
    trial = asking("table", runs=120).trial(Cell(900, NOISELESS, 0.1))
    exact = GofChisquarePower().power(0.1, 900, 0.05, n_bins=2)
    assert without_noise(trial.posed, 900, 0.05)[0] == pytest.approx(exact, abs=1e-6)
    # Of 120 releases: five standard errors of a share near one half.
    assert trial.expected().power[0] == pytest.approx(exact, abs=5 * 0.5 / np.sqrt(120))


@pytest.mark.product
def test_the_noise_of_a_mean_is_the_one_the_verb_states():
    trial = asking("mean", formula="~ wage").trial(Cell(2_000, 0.5, 1.0))
    readings = trial.readings(40)
    with dp.simulation(seed=1):
        rows = {"wage": np.linspace(20, 60, 2_000)}
        fit = dp.dp_mean("~ wage", rows, codebook=BOOK, eps=0.5, mechanism=trial.choice.strategy)
    assert np.median(readings.noise) == pytest.approx(fit.bse_noise.item(), rel=0.1)
    total = np.hypot(readings.noise, trial.posed.sampling / np.sqrt(2_000))
    np.testing.assert_allclose(np.median(readings.se), np.median(total), rtol=0.02)


def test_the_mechanism_is_the_verbs_own():
    rows = asking("lm").assumed.rows(3_000)
    trial = asking("lm").trial(Cell(3_000, 1.0, CALLS["lm"][1]))
    with dp.options(clipping=False):
        fit = dp.dp_lm(CALLS["lm"][0], rows, codebook=BOOK, eps=1.0)
    assert trial.choice.strategy.info.name == fit.release.info.name
    assert trial.choice.plan.events == fit.release.events


@pytest.mark.product
def test_what_noise_swamps_is_seldom_identified_and_has_no_power():
    result = asking("glm").trial(Cell(1_000, 0.3, {"age": 0.05})).expected(4)
    assert result.identified.max() < 0.2
    assert result.power[1] < 0.2


def test_trials_repeat():
    trial = asking("lm").trial(Cell(1_000, 1.0, CALLS["lm"][1]))
    np.testing.assert_array_equal(trial.readings(3).statistic, trial.readings(3).statistic)


def test_power_given_standard_errors_is_the_normal_law():
    rng = np.random.default_rng(1)
    pull = np.full(4_000, 2.5)
    power, error = _normal(pull + rng.normal(size=4_000), pull, 1.96)
    exact = ndtr(2.5 - 1.96) + ndtr(-2.5 - 1.96)
    # The bias that is kept is no larger than the mean's: five of its standard errors.
    assert power == pytest.approx(exact, abs=5 * error)
    shifted, _ = _normal(pull + 1 + rng.normal(size=4_000), pull, 1.96)
    assert shifted == pytest.approx(ndtr(3.5 - 1.96), abs=5 * error)


@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_a_test_of_hardly_any_effect_has_its_level_as_power(alpha):
    posed = Hypothesis(None, ("x",), np.full(1, 1e-9), np.zeros(1), np.ones(1))
    statistic = ndtri((np.arange(4_000) + 0.5) / 4_000)[:, None]
    reading = Reading(*[np.ones_like(statistic)] * 2, statistic, np.ones_like(statistic))
    expected = Trial(None, None, posed, 100, alpha, None)._summed(reading)
    assert expected.power == pytest.approx([alpha], abs=0.002)


def test_chance_does_not_count_as_bias():
    assert _shrunk(0.19, 1 / 100) == 0.0
    assert _shrunk(2.0, 1 / 100) == pytest.approx(1.98)
    assert _shrunk(0.0, 1.0) == 0.0


def test_one_sided_power_is_the_normal_law():
    values = ndtri((np.arange(4_000) + 0.5) / 4_000) * 1.3 + 2.5
    assert _upper(values, 1.96)[0] == pytest.approx(ndtr(0.54 / 1.3), abs=0.002)


def test_the_price_is_in_rows():
    none = np.array([np.nan])
    posed = Hypothesis(None, ("x",), np.ones(1), np.zeros(1), np.array([10.0]))
    expected = Expected(np.array([2.0]), *[none] * 6)
    # Without noise 25 rows have the standard error 2, and 100 were taken.
    assert price(posed, expected, 100, 0.05)[0] == pytest.approx(4.0)
    chi2 = Hypothesis(None, ("w",), np.array([0.1]), np.zeros(1), none, freedom=3)
    half = without_noise(chi2, 500, 0.05)
    expected = Expected(*[none] * 4, half, none, none)
    assert price(chi2, expected, 1_000, 0.05)[0] == pytest.approx(2.0, rel=0.01)
