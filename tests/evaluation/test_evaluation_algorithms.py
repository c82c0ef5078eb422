"""Sensitivities of published algorithms by all neighbours, and what they give without noise."""

import math
import sys

import numpy as np
import pytest
from scipy.fft import dct

import dpmodels as dp
from benchmarks.algorithms import (
    LINE,
    PLANE,
    clusters,
    edges_of,
    efpa_moves,
    efpa_scores,
    greedyh_shares,
    least_squares,
    mwem_scores,
    put_together,
    spread,
)
from dpmodels import source_tree
from dpmodels.errors import NotAvailable
from dpmodels.evaluation.histograms import BASELINES
from dpmodels.evaluation.recipe import published_algorithms

INCONSISTENT = {"uniform", "mwem"}
CASES = [
    *((name, values, (16,)) for name, values in (BASELINES | LINE).items()),
    *((name, values, (8, 8)) for name, values in PLANE.items()),
]


def tables(cells, limit=8):
    """Small tables of counts, and each with one row more in any cell."""
    rng = np.random.default_rng(3)
    for rows in range(limit):
        counts = rng.multinomial(rows, np.full(cells, 1 / cells))
        for place in range(cells):
            yield counts, counts + (np.arange(cells) == place)


@pytest.mark.parametrize(("name", "algorithm", "domain"), CASES)
def test_a_large_budget_gives_the_table_of_consistent_algorithms_alone(name, algorithm, domain):
    counts = np.random.default_rng(1).integers(0, 40, size=domain)
    with dp.simulation(seed=1):
        result = algorithm(counts, 1e6)
    assert result.shape == domain
    assert (np.abs(result - counts).max() < 1e-2) == (name not in INCONSISTENT)
    assert result.sum() == pytest.approx(counts.sum(), abs=1e-2)


@pytest.mark.parametrize(("name", "algorithm", "domain"), CASES)
def test_noise_is_drawn_anew_and_counts_stay_as_they_are(name, algorithm, domain):
    counts = np.full(domain, 50)
    with dp.simulation(seed=2):
        first, second = algorithm(counts, 0.5), algorithm(counts, 0.5)
    assert not np.array_equal(first, second)
    assert (counts == 50).all()


@pytest.mark.parametrize("domain", [(7,), (5, 11)])
def test_odd_numbers_of_cells_fit_all(domain):
    kinds = LINE if len(domain) == 1 else PLANE
    with dp.simulation(seed=3):
        for algorithm in kinds.values():
            result = algorithm(np.full(domain, 9), 1.0)
            assert result.shape == domain
            assert np.isfinite(result).all()


def test_scores_of_mwem_move_by_one_row_at_most():
    reached = 0
    for counts, neighbour in tables(6):
        released = np.linspace(0.3, 2.9, 6)
        first, second = (mwem_scores(x.cumsum(), released) for x in (counts, neighbour))
        reached = max(reached, np.abs(first - second).max())
    assert reached == 1


def test_scores_and_coefficients_of_efpa_move_by_no_more_than_is_said():
    tight = np.zeros(8)
    for counts, neighbour in tables(8):
        first, second = (dct(x.astype(float), norm="ortho") for x in (counts, neighbour))
        assert np.abs(efpa_scores(first, 1.0) - efpa_scores(second, 1.0)).max() <= 1 + 1e-12
        change = np.abs(first - second).cumsum()
        assert (change <= efpa_moves(8) + 1e-12).all()
        tight = np.maximum(tight, change / efpa_moves(8))
    # A bound that is never near would pay for nothing.
    assert tight.min() > 0.7


def test_scores_of_efpa_are_the_error_to_be_expected():
    exact = dct(np.array([9.0, 1, 0, 0, 4, 0, 0, 2]), norm="ortho")
    result = efpa_scores(exact, 0.5)
    for n_kept in range(1, 9):
        left = np.linalg.norm(exact[n_kept:])
        noise = math.sqrt(2 * n_kept) * efpa_moves(8)[n_kept - 1] / 0.5
        assert result[n_kept - 1] == pytest.approx(left + noise)


@pytest.mark.parametrize(("axes", "by", "height"), [(1, 2, 3), (1, 3, 2), (2, 2, 2)])
def test_two_passes_are_least_squares(axes, by, height):
    rng = np.random.default_rng(4)
    finest = by**height
    levels = [rng.normal(size=(by**level,) * axes) for level in range(height + 1)]
    variances = rng.uniform(0.5, 4, size=height + 1)
    cells = np.eye(finest**axes).reshape((finest**axes, *(finest,) * axes))
    rows, answers = [], []
    for level, value in enumerate(levels):
        sums = np.array([put_together(cell, by ** (height - level)).ravel() for cell in cells]).T
        rows.append(sums / math.sqrt(variances[level]))
        answers.append(value.ravel() / math.sqrt(variances[level]))
    expected, *_ = np.linalg.lstsq(np.concatenate(rows), np.concatenate(answers), rcond=None)
    result = least_squares(levels, variances.tolist(), by)
    np.testing.assert_allclose(result.ravel(), expected, atol=1e-9)


def test_spreading_and_putting_together():
    table = np.arange(4.0).reshape(2, 2)
    np.testing.assert_allclose(put_together(spread(table, 3), 3), 9 * table)


def test_shares_of_levels_are_the_budget_and_the_best_for_prefixes():
    result = greedyh_shares(5)
    used = np.array([1, *([16] * 5)])
    assert result.sum() == pytest.approx(1)
    variance = (used / result**2).sum()
    for second in np.random.default_rng(5).dirichlet(np.full(6, 30), size=200):
        assert (used / second**2).sum() >= variance - 1e-9


def test_clusters_are_cut_where_values_differ_by_more_than_noise():
    assert clusters(np.array([9.0, 9.0, 2.0, 1.0, 0.0]), 4.0).tolist() == [0, 0, 1, 1, 1]


def test_blocks_are_disjoint_and_hold_all_cells():
    for cells in (2, 7, 64):
        for expected in (0.0, 0.3, 3.2, 1e9):
            ends = edges_of(cells, expected)
            assert ends[0] == 0
            assert ends[-1] == cells
            assert (np.diff(ends) >= 1).all()


def test_the_source_tree_has_the_published_algorithms(monkeypatch):
    assert published_algorithms().LINE is LINE
    monkeypatch.delitem(sys.modules, "benchmarks.algorithms")
    assert list(published_algorithms().PLANE) == list(PLANE)


def test_an_installed_package_says_where_the_published_algorithms_are(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "benchmarks.algorithms")
    monkeypatch.setattr(source_tree, "ROOT", tmp_path)
    with pytest.raises(NotAvailable, match=r"source tree, benchmarks/algorithms\.py"):
        published_algorithms()


def worst_pair(domain):
    """A small table, and one row more in its first cell."""
    counts = np.zeros(domain, dtype=np.int64)
    counts.flat[:3] = 4
    neighbour = counts.copy()
    neighbour.flat[0] += 1
    return dp.audit.Pair(counts, neighbour, "add-remove")


@pytest.mark.audit_full
@pytest.mark.parametrize(("name", "algorithm", "domain"), CASES)
def test_no_audit_finds_more_than_the_budget(name, algorithm, domain):
    pair = worst_pair(domain)
    result = dp.audit(lambda x: algorithm(x, 1.0), pair, eps=1.0, runs=1_000, confidence=1 - 1e-4)
    assert result.verdict == "consistent"
