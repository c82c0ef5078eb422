"""Graphical models of released margins, against tables of all cells."""

import math
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm as normal

from dpmodels.errors import ArgumentError
from dpmodels.noise import seeded
from dpmodels.postprocess.graphical import comparison
from dpmodels.postprocess.graphical.comparison import compare_unused
from dpmodels.postprocess.graphical.fit import Dual, fit_model, one_way_base
from dpmodels.postprocess.graphical.histograms import Histogram
from dpmodels.postprocess.graphical.measurements import (
    Residuals,
    centred_table,
    combined,
    on_simplex,
)
from dpmodels.postprocess.graphical.model import GraphicalModel, expanded, log_margins
from dpmodels.postprocess.graphical.sampling import divided, sample, within
from dpmodels.postprocess.graphical.selection import (
    MEAN_EXCESS,
    SD_EXCESS,
    THRESHOLD,
    Limits,
    choose_structure,
    missed_pairs,
    model_cells,
)
from dpmodels.postprocess.graphical.structure import junction_tree, structure_of
from dpmodels.postprocess.residuals import cells, components, crossed, summed

SIZES = (3, 2, 4, 2, 3, 2)
EVERY = tuple(range(len(SIZES)))
PAIRS = tuple(combinations(EVERY, 2))
# Graphs: a chain, cliques of three, one in parts, a tree, all in one clique.
GRAPHS = {
    "chain": [(i, i + 1) for i in range(5)],
    "threes": [(0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 5)],
    "parts": [(0, 3), (1, 4, 5)],
    "star": [(2, i) for i in EVERY if i != 2],
    "none": [],
    "all": [EVERY],
    "cycle": [(0, 1), (1, 2), (2, 3), (0, 3), (4, 5)],
}


@pytest.fixture(params=GRAPHS)
def tree(request):
    return structure_of(GRAPHS[request.param], SIZES)


def potentials_of(tree, seed=0):
    generator = np.random.default_rng(seed)
    shapes = [[SIZES[i] for i in clique] for clique in tree.cliques]
    return [generator.normal(size=shape) * 2 for shape in shapes]


def full_table(tree, potentials):
    """The exponential of the sum of all potentials, over all cells of all variables."""
    table = np.zeros(SIZES)
    for clique, potential in zip(tree.cliques, potentials, strict=True):
        table = table + expanded(potential, clique, EVERY)
    return np.exp(table)


def released_from(table, terms, sd, seed=None):
    """Components of a table's margins, with Gaussian noise unless there is no seed."""
    generator = np.random.default_rng(seed)
    tables, sds = {}, {}
    for part in components(terms):
        counts = np.asarray(summed(table, EVERY[: table.ndim], part))
        if part and seed is not None:
            counts = counts + sd * generator.standard_normal(counts.shape)
        tables[part] = centred_table(counts)
        sds[part] = sd if part else 0.0
    return Residuals(table.shape, tables, sds)


def test_each_clique_meets_all_earlier_ones_in_its_parent(tree):
    for k in range(1, len(tree.cliques)):
        earlier = set().union(*tree.cliques[:k])
        assert set(tree.separators[k]) == set(tree.cliques[k]) & earlier
        assert set(tree.separators[k]) <= set(tree.cliques[tree.parents[k]])
    assert {i for clique in tree.cliques for i in clique} == set(EVERY)


def test_a_chordal_graph_is_read_from_its_edges_without_more(tree):
    assert structure_of(tree.edges, SIZES).edges == tree.edges


def test_a_cycle_of_four_gets_one_chord():
    edges = {frozenset(edge) for edge in structure_of(GRAPHS["cycle"], SIZES).edges}
    declared = {frozenset(edge) for edge in GRAPHS["cycle"]}
    assert declared < edges
    assert len(edges - declared) == 1


def test_all_cells_have_the_margins_and_the_sum_of_the_passes(tree):
    potentials = potentials_of(tree)
    exact = full_table(tree, potentials)
    logs, log_total = log_margins(tree, potentials)
    assert log_total == pytest.approx(math.log(exact.sum()), abs=1e-10)
    for clique, log in zip(tree.cliques, logs, strict=True):
        margin = summed(exact / exact.sum(), EVERY, clique)
        np.testing.assert_allclose(np.exp(log - log_total), margin, rtol=0, atol=1e-10)


def test_any_margin_is_that_of_all_cells(tree):
    potentials = potentials_of(tree, seed=1)
    exact = full_table(tree, potentials)
    logs, log_total = log_margins(tree, potentials)
    tables = tuple(1000 * np.exp(log - log_total) for log in logs)
    model = GraphicalModel(tree, 1000.0, tables)
    for size in (1, 2, 3, 6):
        for term in combinations(EVERY, size):
            margin = summed(1000 * exact / exact.sum(), EVERY, term)
            np.testing.assert_allclose(model.table(term), margin, rtol=0, atol=1e-9)


def test_a_margin_that_needs_too_many_cells_is_refused():
    sizes = (200,) * 4
    tree = structure_of([], sizes)
    model = GraphicalModel(tree, 1.0, tuple(np.full(200, 1 / 200) for _ in sizes))
    with pytest.raises(ArgumentError, match="fewer"):
        model.table((0, 1, 2, 3))


def problem(tree, tau=0.3, sd=4.0):
    table = np.random.default_rng(5).gamma(0.3, 20.0, SIZES)
    released = released_from(table, [*tree.edges, *((i,) for i in EVERY)], sd, seed=6)
    return released, Dual(released, tree, tau)


def test_the_gradient_is_that_of_differences(tree):
    _, dual = problem(tree)
    generator = np.random.default_rng(0)
    at = centred_multipliers(dual, generator.normal(size=dual.size) / 10)
    _, gradient = dual.value(at)
    for _ in range(5):
        step = centred_multipliers(dual, generator.normal(size=dual.size)) * 1e-5
        change = dual.value(at + step)[0] - dual.value(at - step)[0]
        assert change / 2 == pytest.approx(gradient @ step, abs=1e-11)


def centred_multipliers(dual, values):
    return np.concatenate([centred_table(table).ravel() for table in dual.by_component(values)])


def test_the_minimum_is_that_of_the_penalised_divergence(tree):
    """Both sides of the duality at the solution, with all cells of all variables."""
    tau, sd = 0.3, 4.0
    released, dual = problem(tree, tau, sd)
    multipliers = dual.solved(2_000)
    value, gradient = dual.value(multipliers)
    assert np.abs(gradient).max() * released.n_rows < 0.1 * sd
    base = np.ones(SIZES)
    for i, weights in one_way_base(released).items():
        base = base * expanded(weights / weights.sum(), (i,), EVERY)
    shift = np.zeros(SIZES)
    parts = dict(zip(dual.parts, dual.by_component(multipliers), strict=True))
    for part, table in parts.items():
        shift = shift + expanded(table, part, EVERY)
    density = base * np.exp(shift)
    density /= density.sum()
    divergence = float((density * np.log(density / base)).sum())
    squares = sum(
        (
            (released.tables[part] - centred_table(summed(released.n_rows * density, EVERY, part)))
            ** 2
        ).sum()
        for part in parts
    )
    primal = released.n_rows * divergence + squares / (2 * tau * sd**2)
    assert primal == pytest.approx(-value * released.n_rows, rel=1e-4)
    model = dual.model(multipliers)
    for clique, table in zip(tree.cliques, model.tables, strict=True):
        margin = summed(released.n_rows * density, EVERY, clique)
        np.testing.assert_allclose(table, margin, rtol=0, atol=1e-8)


def test_without_noise_the_model_has_the_margins_of_the_edges(tree):
    table = np.random.default_rng(2).gamma(1.0, 50.0, SIZES)
    released = released_from(table, [*tree.edges, *((i,) for i in EVERY)], 1e-3)
    model = fit_model(released, tree, most_steps=3_000)
    for pair in tree.edges:
        exact = summed(table, EVERY, pair)
        assert np.abs(model.table(pair) - exact).max() < 1e-3 * exact.max()


def test_components_of_two_rounds_are_weighted_as_least_squares_does():
    """Dense: both noisy components of a table of 3 by 2, and the pseudo-inverse of their noise."""
    generator = np.random.default_rng(0)
    sds = (2.0, 5.0)
    rounds = [
        Residuals((3, 2), {(0, 1): centred_table(generator.normal(size=(3, 2)))}, {(0, 1): sd})
        for sd in sds
    ]
    joint = combined(*rounds)
    projection = crossed([np.eye(n) - 1 / n for n in (3, 2)])
    precisions = [np.linalg.pinv(sd**2 * projection) for sd in sds]
    weighted = sum(
        precision @ part.tables[0, 1].ravel()
        for precision, part in zip(precisions, rounds, strict=True)
    )
    covariance = np.linalg.pinv(sum(precisions))
    np.testing.assert_allclose(joint.tables[0, 1].ravel(), covariance @ weighted, atol=1e-12)
    np.testing.assert_allclose(joint.sds[0, 1] ** 2 * projection, covariance, atol=1e-12)


def test_a_public_number_of_rows_stays_exact():
    rounds = [Residuals((2,), {(): np.array(9.0)}, {(): 0.0}) for _ in range(2)]
    joint = combined(*rounds)
    assert (float(joint.tables[()]), joint.sds[()]) == (9.0, 0.0)


def test_the_nearest_table_on_the_simplex():
    generator = np.random.default_rng(0)
    table = generator.normal(size=(4, 3)) * 5
    nearest = on_simplex(table, 10.0)
    assert nearest.min() >= 0
    assert nearest.sum() == pytest.approx(10.0)
    shift = (nearest - table)[nearest > 0]
    assert np.ptp(shift) < 1e-12
    assert ((nearest - table)[nearest == 0] >= shift.max() - 1e-12).all()


def dependent_codes(n_rows=4_000, seed=0):
    """Rows of a chain 0 - 1 - 2, and of two variables that are independent of everything."""
    generator = np.random.default_rng(seed)
    first = generator.integers(0, 3, n_rows)
    second = np.where(generator.random(n_rows) < 0.8, first, generator.integers(0, 3, n_rows))
    third = np.where(generator.random(n_rows) < 0.8, second, generator.integers(0, 3, n_rows))
    return np.column_stack([first, second, third, *generator.integers(0, 3, (2, n_rows))])


def mixed_codes(n_rows=4_000, seed=0):
    """Rows of two classes, in which every column goes with every other."""
    generator = np.random.default_rng(seed)
    of = generator.integers(0, 2, (n_rows, 1))
    return np.where(generator.random((n_rows, 6)) < 0.7, 2 * of, 1)


def released_pairs(codes, sd, seed):
    sizes = (4,) * codes.shape[1]
    flat = np.ravel_multi_index(tuple(codes.T), sizes)
    table = np.bincount(flat, minlength=math.prod(sizes)).reshape(sizes).astype(float)
    return released_from(table, list(combinations(range(len(sizes)), 2)), sd, seed)


def test_the_graph_joins_what_depends_and_nothing_else():
    released = released_pairs(dependent_codes(), 10.0, seed=1)
    tree = choose_structure(released)
    assert {(0, 1), (1, 2)} <= set(tree.edges)
    assert not missed_pairs(released, fit_model(released, tree))
    missed = missed_pairs(released, fit_model(released, structure_of((), released.sizes)))
    assert {(0, 1), (1, 2)} <= set(missed)


def test_noise_alone_joins_nothing():
    """A pair without dependence has a weight 1 time in 75, by 3,000 simulated ones.

    Of 40 pairs more than 8 have a probability below 1e-8.
    """
    table = np.full((4,) * 5, 50.0)
    pairs = list(combinations(range(5), 2))
    noisy = [released_from(table, pairs, 30.0, seed) for seed in range(4)]
    assert sum(len(choose_structure(released).edges) for released in noisy) <= 8


def test_the_excess_of_noise_is_that_of_normal_variables():
    mean = 2 * (normal.pdf(THRESHOLD) - THRESHOLD * normal.sf(THRESHOLD))
    square = 2 * ((1 + THRESHOLD**2) * normal.sf(THRESHOLD) - THRESHOLD * normal.pdf(THRESHOLD))
    assert pytest.approx(mean, abs=5e-5) == MEAN_EXCESS
    assert pytest.approx(math.sqrt(square - mean**2), abs=5e-5) == SD_EXCESS


@pytest.mark.parametrize("limits", [Limits(20, 10_000), Limits(10_000, 80), Limits()])
def test_no_clique_exceeds_the_cells(limits):
    released = released_pairs(mixed_codes(), 5.0, seed=1)
    tree = choose_structure(released, limits)
    cells_of = [cells(clique, (3,) * 6) for clique in tree.cliques]
    assert max(cells_of) <= limits.clique
    assert sum(cells_of) <= limits.model
    assert (len(tree.edges) == 15) == (limits == Limits())
    assert tree.sizes == released.sizes
    assert model_cells(tree) > sum(cells_of)


def test_a_declared_structure_above_the_limit_is_refused():
    with pytest.raises(ArgumentError, match="structure="):
        structure_of([(0, 1, 2)], (100,) * 3)


def drawn_from(tree, n_rows):
    logs, log_total = log_margins(tree, potentials_of(tree, seed=3))
    tables = tuple(n_rows * np.exp(log - log_total) for log in logs)
    model = GraphicalModel(tree, float(n_rows), tables)
    return model, sample(model, n_rows, seeded(1))


def test_rows_have_whole_counts_within_one_of_each_conditional_table(tree):
    generator = np.random.default_rng(0)
    model, codes = drawn_from(tree, 500)
    assert codes.shape == (500, len(SIZES))
    for clique, separator, table in zip(tree.cliques, tree.separators, model.tables, strict=True):
        weights = summed(table, clique, separator).ravel()
        groups = generator.choice(len(weights), 500, p=weights / weights.sum())
        axes = [clique.index(i) for i in separator]
        lines = np.moveaxis(table, axes, range(len(axes))).reshape(len(weights), -1)
        counts = np.zeros(lines.shape)
        np.add.at(counts, (groups, divided(groups, lines, seeded(1), codes[:, 0])), 1)
        expected = lines / lines.sum(axis=1, keepdims=True) * counts.sum(axis=1, keepdims=True)
        assert np.abs(counts - expected).max() < 1 + 1e-9


def test_rows_have_whole_counts_within_one_of_each_variable(tree):
    """A column that several conditional tables decide would be off by the sum of their rounding."""
    model, codes = drawn_from(tree, 5_000)
    for i, size in enumerate(SIZES):
        counts = np.bincount(codes[:, i], minlength=size)
        assert np.abs(counts - model.table((i,))).max() < 1 + 1e-9


def test_rows_are_spread_over_the_levels_of_others():
    """Random rows would miss products of two columns by 11 rows, a standard deviation."""
    levels = np.repeat([0, 1], 500)
    weights = np.array([[1.0, 1.0]])
    other = divided(np.zeros(1_000, dtype=np.int64), weights, seeded(3), levels)
    assert abs(np.sum(other * levels) - 250) <= 2


def estimated_errors(seed, factors, classes):
    """The true errors of fits with these penalties, in noise variances, and Stein's estimates."""
    generator = np.random.default_rng(100)
    parts = [[generator.dirichlet(np.full(n, 0.7)) for n in SIZES] for _ in range(classes)]
    table = sum(math.prod(SIZES) * _product(part) for part in parts)
    table *= 4_000 / table.sum()
    whole = structure_of(combinations(EVERY, 2), SIZES, most_cells=None)
    released = released_from(table, PAIRS, 25.0, seed=seed)
    exact = released_from(table, PAIRS, 25.0)
    result = []
    for factor in factors:
        dual = Dual(released, whole, factor)
        solution = dual.solved(60)
        model = dual.model(solution)
        true = sum(
            float(((centred_table(model.table(part)) - exact.tables[part]) ** 2).sum()) / 25.0**2
            for part in dual.parts
        )
        result.append((true, dual.error(solution)))
    return np.array(result)


def _product(margins):
    table = margins[0]
    for margin in margins[1:]:
        table = np.multiply.outer(table, margin)
    return table


@pytest.mark.product
def test_steins_estimate_is_that_of_the_true_error_up_to_a_constant():
    """Of 40 releases, differences between penalties agree within 6 standard errors: 1e-8."""
    runs = np.array([estimated_errors(seed, (0.3, 0.03, 0.003), 3) for seed in range(40)])
    gaps = np.diff(runs[:, :, 1] - runs[:, :, 0], axis=1)
    errors = gaps.std(axis=0, ddof=1) / math.sqrt(len(runs))
    assert (np.abs(gaps.mean(axis=0)) < 6 * errors).all()
    assert np.abs(np.diff(runs[:, :, 0], axis=1).mean(axis=0)).max() > 6 * errors.max()


def test_rounded_counts_are_unbiased():
    """A mean of 800 draws: 6 standard errors of .5 at most, a false alarm of 1e-8."""
    weights = np.array([[0.2, 0.5, 0.3], [0.9, 0.05, 0.05]])
    groups = np.repeat([0, 1], [3, 1])
    entropy = seeded(2)
    total = np.zeros((2, 3))
    for _ in range(800):
        np.add.at(total, (groups, divided(groups, weights, entropy)), 1.0)
    expected = weights * np.array([[3.0], [1.0]])
    assert np.abs(total / 800 - expected).max() < 6 * 0.5 / math.sqrt(800)


def test_which_rows_of_a_group_get_a_level_is_random():
    levels = divided(np.zeros(1_000, dtype=np.int64), np.array([[1.0, 1.0]]), seeded(3))
    assert levels.sum() == 500
    assert 350 < levels[:500].sum() / 500 * 1_000 < 650


def test_numbers_are_in_their_cells_and_follow_the_histogram():
    edges, fine = np.array([0.0, 10.0, 30.0]), np.array([0.0, 5.0, 10.0, 20.0, 30.0])
    codes = np.repeat([0, 1, 2], [400, 300, 10])
    histogram = Histogram(fine, np.array([30.0, 10, -5, -1]), 1.0, (0, 2, 4))
    numbers = within(codes, edges, seeded(4), histogram)
    assert np.isnan(numbers[700:]).all()
    counts = np.histogram(numbers[:700], fine)[0]
    assert abs(counts[0] - 300) <= 1
    assert abs(counts[1] - 100) <= 1
    # No rows in the second cell: even.
    assert abs(counts[2] - 150) <= 1


def test_pairs_outside_the_graph_are_compared_with_it():
    codes = dependent_codes(20_000)
    released = released_pairs(codes, 20.0, seed=3)
    chain = junction_tree([(0, 1), (1, 2), (3,), (4,)], released.sizes)
    model = fit_model(released, chain)
    by_pair = {comparison.term: comparison for comparison in compare_unused(released, model)}
    assert set(by_pair) == {(0, 2), (0, 3), (0, 4), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)}
    broken = fit_model(released, junction_tree([(0, 1), (2,), (3,), (4,)], released.sizes))
    wrong = {comparison.term: comparison for comparison in compare_unused(released, broken)}
    assert wrong[1, 2].pvalue < 1e-6
    assert wrong[1, 2].distance > 100


def test_pvalues_of_a_model_that_holds_are_not_too_small():
    """Of 40 tables 2 are expected below .05: 14 or more have a probability of 2e-9."""
    generator = np.random.default_rng(0)
    small = 0
    for seed in range(40):
        codes = generator.integers(0, 3, (2_000, 2))
        released = released_pairs(codes, 5.0, seed)
        model = fit_model(released, structure_of([], released.sizes))
        small += compare_unused(released, model)[0].pvalue < 0.05
    assert small < 14


def test_expected_errors_are_the_means_of_the_margins_that_are_computed(monkeypatch):
    """A margin of too many cells is left out of the mean, and all of a size leave no number."""
    errors = {(0,): (0.1, 0.2), (1,): None, (2,): (0.3, 0.6), (0, 1): (0.4, 0.5)}
    monkeypatch.setattr(comparison, "fit_model", lambda *_, **__: None)
    monkeypatch.setattr(comparison, "_simulated", lambda *_: None)
    monkeypatch.setattr(comparison, "_errors", lambda _, __, term: errors.get(term))
    model = SimpleNamespace(tree=None)
    means = comparison.expected_errors(model, SimpleNamespace(sizes=(2, 2, 2)), None)
    np.testing.assert_allclose(means.expected, (0.2, 0.4, math.nan))
    np.testing.assert_allclose(means.independent, (0.4, 0.5, math.nan))
