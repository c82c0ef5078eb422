import math
from itertools import combinations

import numpy as np
import pytest

from dpmodels.mechanisms import Facts, Gauss
from dpmodels.privacy import ZCDP, ApproxDP, adjacency
from dpmodels.sites import Cape, SecureSum
from dpmodels.sites.packing import multiplier, pack, scales
from dpmodels.sites.summing import least_factor
from dpmodels.statistics import Statistic


def discrete_gaussian_law(scale, reach):
    grid = np.arange(-reach, reach + 1)
    weights = np.exp(-(grid**2) / (2 * scale**2))
    return weights / weights.sum()


def renyi(law, shift, order):
    """Divergence of order `order` of a law from the same law moved; both ways are alike."""
    p, q = law[shift:], law[:-shift]
    mask = (p > 1e-280) & (q > 1e-280)
    logs = order * np.log(p[mask]) + (1 - order) * np.log(q[mask])
    return float(np.log(np.exp(logs).sum()) / (order - 1))


@pytest.mark.parametrize("honest", [1, 2, 3, 5])
@pytest.mark.parametrize("scale", [1.5, 4.0])
def test_a_sum_of_shares_is_as_private_as_planned_on_a_coarse_lattice(honest, scale):
    """Exact laws by convolution, at scales where sums are far from discrete Gaussians."""
    for shift in (1, 2, 3):
        m = scale / shift
        values = least_factor(honest, m, np.array([scale])) * scale
        law = np.ones(1)
        for _ in range(honest):
            law = np.convolve(law, discrete_gaussian_law(values, math.ceil(20 * values)))
        for order in (1.5, 2.0, 4.0, 8.0):
            assert renyi(law, shift, order) <= order / (2 * m**2) * (1 + 1e-9)


def test_without_what_rounding_costs_a_coarse_sum_would_not_be():
    """The planted fault: shares of the plain planned variance over h."""
    law = np.ones(1)
    for _ in range(6):
        values = 0.6 / math.sqrt(6)
        law = np.convolve(law, discrete_gaussian_law(values, 12))
    assert renyi(law, 1, 2.0) > 2.0 / (2 * 0.6**2)


@pytest.mark.parametrize("sites", [2, 3, 4, 5, 6, 7])
def test_correlated_noise_hides_a_site_from_any_colluders(sites):
    """The view's covariance, in continuous noise: e_s' C^-1 e_s is at most 1/m^2."""
    plan = Gauss().plan(Facts(4, adjacency("replace"), centred=True), ApproxDP(1.0, 1e-6))
    for colluders in range(sites):
        protocol = Cape(colluders)
        result, ratio = protocol.share(plan, sites), protocol.ratio(plan, sites)
        for i in combinations(range(sites), colluders):
            honest = [j for j in range(sites) if j not in i]
            covariance = result**2 * np.eye(len(honest))
            for a, b in combinations(range(len(honest)), 2):
                if honest[b] in protocol.partners(honest[a], sites):
                    covariance[[a, b], [a, b]] += ratio**2
                    covariance[[a, b], [b, a]] -= ratio**2
            form = np.diag(np.linalg.inv(covariance))
            assert form.max() <= 1 + 1e-9
            assert form.max() >= 0.999


def test_partners_are_mutual():
    for sites in range(2, 9):
        for colluders in range(sites):
            close = [Cape(colluders).partners(i, sites) for i in range(sites)]
            assert all(i in close[second] for i in range(sites) for second in close[i])
            assert all(len(value) >= min(colluders + 1, sites - 1) for value in close)


def test_correlated_noise_as_large_as_that_of_one_site_costs_nearly_twice_the_sum():
    """The note in cape.py: 2S/(S+1) with e of (1-1/S) and g of 1/S."""
    for sites in (2, 5, 50):
        projector = np.eye(sites) - 1 / sites
        covariance = projector + np.eye(sites) / sites
        form = np.linalg.inv(covariance)[0, 0]
        assert form == pytest.approx(2 * sites / (sites + 1))


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_what_travels_moves_no_more_than_planned(centred, relation):
    """Brute force over extreme rows of the ball, on and above the diagonal once each."""
    facts = Facts(3, adjacency(relation), centred=centred)
    plan = Gauss().plan(facts, ZCDP(0.5))
    result, m, radius = scales(plan), multiplier(plan), int(plan.lattice.radius)
    rng = np.random.default_rng(5)
    rows = [np.zeros(4, dtype=object)]
    for _ in range(60):
        x = rng.normal(size=3) * rng.choice([0, 1], size=3)
        x = x / max(np.linalg.norm(x), 1e-9) * (radius - 2)
        rows.append(np.array([radius, *map(int, x)], dtype=object))
    turned = [np.array([radius, -radius // 4, 0, int(0.968 * radius)], dtype=object)]
    rows += [*turned, np.array([radius, radius, 0, 0], dtype=object)]
    packed = [pack(Statistic("m", np.multiply.outer(z, z), 1), plan).exact for z in rows]
    alternatives = packed if relation == "replace" else packed[:1]
    largest = max(
        float(np.linalg.norm((a - b).astype(float) / result)) for a in packed for b in alternatives
    )
    assert largest <= 1 / m
    assert largest >= 0.97 / m


def test_the_shares_of_many_honest_sites_add_up_to_the_planned_noise():
    plan = Gauss().plan(Facts(20, adjacency("replace"), centred=True), ApproxDP(1.0, 1e-6))
    for sites in (2, 10, 100):
        assert SecureSum(0).share(plan, sites) * math.sqrt(sites) == pytest.approx(1, abs=1e-9)
        assert 1 <= Cape(0).share(plan, sites) * math.sqrt(sites) <= 1 + 1e-5
