"""The noise of margins, held against dense linear algebra and against releases."""

import numpy as np
import pytest
from scipy import stats

import dpmodels as dp
from dpmodels.inference.margins import MarginNoise
from dpmodels.mechanisms import MARGINS
from dpmodels.mechanisms.protocol import MarginFacts
from dpmodels.noise import source
from dpmodels.postprocess.residuals import components, rebuilt, shape, split
from dpmodels.privacy import ZCDP, PureDP, adjacency
from dpmodels.statistics import Statistic

SIZES, TERMS = (3, 4, 2), ((0,), (0, 1), (1, 2))
CASES = [
    (name, relation) for name in ("residual", "marginals") for relation in ("replace", "add-remove")
]


def planned(name, relation):
    facts = MarginFacts(SIZES, TERMS, adjacency(relation))
    guarantee = ZCDP(0.02) if name == "residual" else PureDP(0.5)
    plan = MARGINS[name]().plan(facts, guarantee)
    law = "gaussian" if name == "residual" else "laplace"
    sds = dict(zip(plan.measured, plan.noise_sds, strict=True))
    return plan, MarginNoise(law, SIZES, sds, relation == "replace", 1.0)


def declared(term):
    return [np.arange(SIZES[i]) for i in term]


@pytest.mark.parametrize(("name", "relation"), CASES)
@pytest.mark.parametrize("term", [(0,), (1, 2), (0, 1)])
def test_covariances_are_those_of_what_the_noise_is_made_of(name, relation, term):
    _, noise = planned(name, relation)
    draws, heavier = noise.drawn(term, declared(term))
    assert len(heavier) == draws.shape[1]
    rng = np.random.default_rng(0)
    for _ in range(3):
        left, right = ([rng.normal(size=SIZES[i]) for i in term] for _ in range(2))
        weigh = [np.ones(1), np.ones(1)]
        for place, side in enumerate((left, right)):
            for value in side:
                weigh[place] = np.kron(weigh[place], value)
        expected = weigh[0] @ draws @ draws.T @ weigh[1]
        assert noise.product(term, left, right) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose((draws**2).sum(axis=1), noise.cell_sd(term) ** 2)
    # Of the whole margin the noise is that of the number of rows: none where it is public.
    ones = [np.ones(SIZES[i]) for i in term]
    assert (noise.product(term, ones, ones) < 1e-9) == (relation == "replace")


@pytest.mark.parametrize(("name", "relation"), CASES)
def test_releases_have_the_covariance_and_the_widths(name, relation):
    """Each is within bounds that it leaves by chance once in a million, all tests together.

    A mean of 500 squares has the variance 2/500, or 5/500 at most for Laplace noise, and tails that
    are longer than normal ones by less than two fifths at such a distance (Cornish and Fisher); a
    share inside by a fifth. Of both there are less than a thousand, two-sided.
    """
    plan, noise = planned(name, relation)
    runs, beyond = 500, stats.norm.isf(1e-6 / 2_000)
    exact = np.zeros(3 * 4 + 4 * 2).astype(object)
    draws = {term: [] for term in TERMS}
    with dp.simulation(seed=5):
        for _ in range(runs):
            release = MARGINS[name]().release(Statistic("margins", exact, 0), plan, source())
            parts = split(release.values, components(TERMS), SIZES)
            for term in TERMS:
                draws[term].append(rebuilt(term, parts, SIZES).ravel())
    limit = 1.4 * beyond * np.sqrt((2 if name == "residual" else 5) / runs)
    for term, values in draws.items():
        values_array = np.array(values)
        sd = noise.cell_sd(term)
        assert np.abs((values_array**2).mean(axis=0) / sd**2 - 1).max() < limit
        samples, _ = noise.drawn(term, declared(term))
        expected = samples @ samples.T
        away = np.abs(values_array.T @ values_array / runs - expected) / sd**2
        assert away.max() < limit
        inside = (np.abs(values_array) <= noise.width(term, 0.9)).mean(axis=0)
        assert np.abs(inside - 0.9).max() < 1.2 * beyond * np.sqrt(0.09 / runs) + 0.005


def test_one_margin_of_few_steps_has_the_width_of_its_own_law():
    """With a row more or fewer the noise of a cell is one discrete Laplace variable."""
    sd = np.sqrt(2 * np.exp(-1)) / (1 - np.exp(-1))
    noise = MarginNoise("laplace", (3, 2), {(0, 1): sd}, public_total=False, step=1.0)
    ratio = np.exp(-1)
    for level in (0.5, 0.9, 0.95, 0.99):
        width = int(np.floor(noise.width((0, 1), level)))
        mass = [(1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-width, width + 1)]
        assert sum(mass) >= level
        assert sum(mass[1:-1]) < level


def test_noise_of_rows_taken_together_is_in_their_units():
    _, noise = planned("marginals", "replace")
    assert noise.divided(4).cell_sd((0, 1)) == pytest.approx(noise.cell_sd((0, 1)) / 4)
    assert shape((0, 1), SIZES) == (3, 4)
