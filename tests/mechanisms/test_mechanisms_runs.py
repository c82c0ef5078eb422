"""Counts of runs: what each row costs, neighbours by brute force, and what they are good for."""

import math

import numpy as np
import pytest
from scipy import stats

import dpmodels as dp
from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.counts import Runs, Tree, runs
from dpmodels.mechanisms.protocol import CountFacts
from dpmodels.noise import source
from dpmodels.postprocess.hierarchy import agreeing, line, split_levels
from dpmodels.postprocess.pooled_counts import Halves, PooledCounts
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, adjacency, gaussian_multiplier
from dpmodels.statistics import Statistic

ALARM = 1e-6
RELATIONS = ("replace", "add-remove")
# Shares of the rows in 4,096 cells: in one cell, a bell, in few cells, even.
CELLS = 4096
PLACE = (np.arange(CELLS) + 0.5) / CELLS
SHAPES = {
    "point": np.arange(CELLS) == 1234,
    "smooth": np.exp(-0.5 * ((PLACE - 0.35) / 0.12) ** 2) + 0.02,
    "sparse": (np.arange(CELLS) % 67 == 0) * (1.0 + np.arange(CELLS) % 5),
    "even": np.ones(CELLS),
}


def released(cells, guarantee, relation="add-remove", mechanism=None):
    mechanism = mechanism or Runs()
    exact = np.atleast_2d(np.asarray(cells, dtype=np.int64))
    facts = CountFacts(1, exact.size + 1, False, adjacency(relation), exact.shape)
    statistic = Statistic("counts", np.append(exact.ravel(), 0), int(exact.sum()), "")
    return mechanism.release(statistic, mechanism.plan(facts, guarantee), source())


def steps(release):
    """Return of each step its noise sd, and which cells (or incomplete rows) are in its counts."""
    groups, width = release.shape
    halves = Halves(width)
    steps_so_far = []
    ends = np.cumsum((0, *release.sizes))
    for at, (level, sd) in enumerate(zip(release.levels, release.noise_sds, strict=True)):
        starts = release.starts[ends[at] : ends[at + 1]].astype(int)
        matrix = np.zeros((len(starts), groups * width + 1))
        for row, start in enumerate(starts):
            node = halves.places[start % width] >> (halves.lowest - level)
            wide = halves.widths[level][node] if start < groups * width else 1
            matrix[row, start : start + wide] = 1
        steps_so_far.append((sd, release.values[ends[at] : ends[at + 1]], matrix))
    return steps_so_far


def laplace_cost(sd):
    """Return 1/b of the discrete Laplace law, whose variance is 1 / (cosh(1/b) - 1)."""
    return math.acosh(1 + sd**-2)


TABLES = [
    np.zeros((1, 64)),
    np.full((1, 64), 10_000),
    np.eye(1, 100, 17) * 5000,
    np.array([[0, 0, 7, 900, 0], [50, 0, 0, 0, 3]]),
    np.array([[3]]),
    np.random.default_rng(0).poisson(3, (3, 37)) * 40,
]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("cells", TABLES)
def test_all_counts_with_a_row_cost_the_budget_whatever_comes_out(cells, relation):
    sides = 2 if relation == "replace" else 1
    for guarantee in (PureDP(0.7), ZCDP(0.2), ApproxDP(0.7, 1e-9), ApproxDP(2.0, 0.1)):
        for _ in range(3):
            release = released(cells, guarantee, relation)
            if release.law == "laplace":
                spent = sum(
                    laplace_cost(sd) * matrix.sum(axis=0) for sd, _, matrix in steps(release)
                )
                budget = guarantee.eps
            else:
                spent = sum(sd**-2 * matrix.sum(axis=0) for sd, _, matrix in steps(release))
                budget = gaussian_multiplier(guarantee) ** -2
            np.testing.assert_allclose(spent * sides, budget, rtol=1e-9)
            assert (spent * sides <= budget * (1 + 1e-12)).all()


def test_what_is_counted_depends_on_released_counts_alone(monkeypatch):
    def told(plan, exact, entropy):
        return np.round(outcomes.normal(0, 40, len(exact))), "laplace"

    monkeypatch.setattr(runs, "noised_units", told)
    for seed in range(20):
        releases = []
        for cells in (np.zeros(64), np.full(64, 10_000), np.eye(1, 64, 9)[0] * 99):
            outcomes = np.random.default_rng(seed)
            releases.append(released(cells, PureDP(0.5)))
        for release in releases[1:]:
            assert release.sizes == releases[0].sizes
            np.testing.assert_array_equal(release.starts, releases[0].starts)
            np.testing.assert_array_equal(release.values, releases[0].values)


def privacy_losses(release, before, after):
    """Return the logarithm of the ratio of the densities of a release of Laplace counts."""
    return sum(
        laplace_cost(sd)
        * (np.abs(values - matrix @ after) - np.abs(values - matrix @ before)).sum()
        for sd, values, matrix in steps(release)
    )


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("width", [1, 5, 9])
def test_neighbours_by_brute_force(relation, width):
    # Up to 8 rows, each in one of so many cells or incomplete: all neighbours of what was released.
    facts = CountFacts(1, width + 1, False, adjacency(relation), (1, width))
    plan = Runs().plan(facts, PureDP(1.0))
    replacements = np.eye(width + 1) if relation == "replace" else np.zeros((1, width + 1))
    worst = 0.0
    with dp.simulation(seed=1):
        for size in range(1, 9):
            rows = (np.arange(size) ** 2) % (width + 1)
            before = np.bincount(rows, minlength=width + 1)
            for _ in range(6):
                statistic = Statistic("counts", before, size, "")
                release = Runs().release(statistic, plan, source())
                for left in set(rows.tolist()):
                    fewer = before - np.eye(width + 1)[left]
                    losses = [
                        privacy_losses(release, before, fewer + replacement)
                        for replacement in replacements
                    ]
                    worst = max(worst, np.abs(losses).max())
    assert worst <= 1 + 1e-9
    # Reached where the noise of all counts with the row has one sign.
    assert worst > 0.99


def log_laws(tables, plan, monkeypatch):
    """Return the log-probabilities of outcomes, counts of -1, 2 or 5, a column a table."""
    partitions = []

    def told(matrix, exact, entropy):
        values = partitions[1][: len(exact)]
        if len(values) < len(exact):
            raise EOFError
        partitions[1] = partitions[1][len(exact) :]
        decay = math.exp(-1 / matrix.scale)
        distance = np.abs(np.array(values) - exact.astype(float)).sum()
        partitions[0] += len(exact) * math.log((1 - decay) / (1 + decay)) - distance / matrix.scale
        return np.array(values, dtype=float), "laplace"

    def law(table, outcome):
        partitions[:] = 0.0, outcome
        try:
            Runs().release(Statistic("counts", np.array(table), sum(table), ""), plan, source())
        except EOFError:
            return None
        return partitions[0]

    monkeypatch.setattr(runs, "noised_units", told)
    results, open_ones = [], [()]
    while open_ones:
        outcome = open_ones.pop()
        laws = [law(table, outcome) for table in tables]
        # The same counts are made of all tables.
        assert len({law is None for law in laws}) == 1
        if laws[0] is None:
            open_ones += [(*outcome, value) for value in (-1, 2, 5)]
        else:
            results.append(laws)
    return np.array(results)


@pytest.mark.product
@pytest.mark.parametrize("relation", RELATIONS)
def test_every_outcome_costs_one_row_the_budget_and_two_rows_twice_that(relation, monkeypatch):
    # Of three cells, or two in each of two groups, and the incomplete rows.
    shape = (1, 3) if relation == "add-remove" else (2, 2)
    facts = CountFacts(1, math.prod(shape) + 1, False, adjacency(relation), shape)
    plan = Runs().plan(facts, PureDP(6.0))
    tables = [(2, 1, 0, 0), (1, 1, 0, 0), (2, 1, 0, 1), (0, 1, 0, 0), (1, 1, 1, 0)]
    changed = [1, 1, 2, 2]
    if relation == "replace":
        tables = [(2, 1, 0, 0, 0), (1, 2, 0, 0, 0), (1, 1, 0, 1, 0), (1, 1, 0, 0, 1)]
        tables += [(0, 1, 1, 0, 1), (1, 0, 2, 0, 0)]
        changed = [1, 1, 1, 2, 2]
    laws = log_laws(tables, plan, monkeypatch)
    losses = np.abs(laws[:, 1:] - laws[:, :1]).max(axis=0)
    # Neither are all closed at once nor all cut.
    assert len(np.unique(laws, axis=0)) > 9
    assert (losses <= 6.0 * np.array(changed) * (1 + 1e-9)).all()
    # A row that goes to another group, or to the incomplete ones, costs all of it.
    assert losses[1] > 5.99


@pytest.mark.parametrize("guarantee", [PureDP(0.3), ZCDP(0.05)])
def test_the_noise_of_every_step_has_the_size_it_states(guarantee):
    # Chi-square of normal draws, a gamma of Laplace ones: false alarms at a rate of 1e-6 in all.
    cells = np.array([[0] * 20 + [90] * 5 + [2000] + [0] * 14])
    draws = [np.zeros(0)] * 6
    for _ in range(60):
        release = released(cells, guarantee)
        exact = np.append(cells.ravel(), 0)
        residuals = [(values - matrix @ exact) / sd for sd, values, matrix in steps(release)]
        draws = [np.append(*pair) for pair in zip(draws, residuals, strict=True)]
    # The whole is never closed: there is no second count of it.
    assert [len(noise) >= 60 for noise in draws] == [True, False, True, True, True, True]
    for noise in (noise for noise in draws if noise.size):
        size, freedom = (noise**2).sum(), noise.size
        if release.law == "laplace":
            size, freedom = 2 * math.sqrt(2) * np.abs(noise).sum(), 2 * freedom
        low, high = stats.chi2.ppf(ALARM / 12, freedom), stats.chi2.isf(ALARM / 12, freedom)
        assert low < size < high


def test_an_empty_table_is_closed_at_once_and_a_full_cell_is_followed(monkeypatch):
    monkeypatch.setattr(runs, "noised_units", lambda plan, exact, entropy: (exact * 1.0, "laplace"))
    empty = released(np.zeros(512), PureDP(1.0))
    assert empty.sizes == (1, 1, 0, 0, 0, 0, 0, 1)
    full = released(np.eye(1, 512, 300)[0] * 1000, PureDP(1.0))
    assert full.sizes == (1, 0, 8, 7, 8, 7, 8, 1)
    assert full.levels == (0, 0, 3, 3, 6, 6, 9, 0)
    even = released(np.full(512, 1000), PureDP(1.0))
    assert even.sizes == (1, 0, 8, 0, 64, 0, 512, 1)


@pytest.mark.parametrize("facts", [(1, 4, 2, 2), ()])
def test_cells_of_several_numbers_are_refused(facts):
    with pytest.raises(ArgumentError, match="the bins of one variable"):
        Runs().plan(CountFacts(1, 17, False, adjacency("replace"), facts), PureDP(1.0))


@pytest.mark.parametrize("guarantee", [PureDP(0.1), ZCDP(0.005)])
@pytest.mark.parametrize("shape", list(SHAPES))
def test_sums_of_few_rows_are_closer_than_the_trees(shape, guarantee):
    share = SHAPES[shape] / SHAPES[shape].sum()
    exact = np.diff(np.rint(1000 * np.cumsum(share)), prepend=0).astype(np.int64)
    pooled, tree = 0.0, 0.0
    with dp.simulation(seed=7):
        for _ in range(8):
            of_runs = PooledCounts(released(exact, guarantee)).cells[0]
            release = released(exact, guarantee, mechanism=Tree())
            nodes = line(CELLS, release.fanout)
            levels = split_levels(nodes, release.values[:-1], 1)
            of_tree = agreeing(nodes, levels, float(release.values[-1]), None).cells[0]
            pooled += np.linalg.norm(np.cumsum(of_runs - exact))
            tree += np.linalg.norm(np.cumsum(of_tree - exact))
    assert pooled < 0.6 * tree


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rows", "limit"),
    [
        ("ADULTFRANK", 1_000, 1.0e-3),
        ("ADULTFRANK", 100_000, 2.1e-5),
        ("HEPTH", 1_000, 9.8e-4),
        ("HEPTH", 100_000, 2.5e-5),
        ("INCOME", 100_000, 1.7e-5),
    ],
)
def test_sums_on_published_shapes_are_as_close_as_published_partitions(
    local_data, name, rows, limit
):
    shape = np.load(local_data / "dpbench_1d.npz")[name]
    errors = []
    with dp.simulation(seed=2):
        for _ in range(20):
            exact = np.random.default_rng(len(errors)).multinomial(rows, shape / shape.sum())
            counts = PooledCounts(released(exact, PureDP(0.1)))
            for sums in (counts.cells[0], counts.whole[:-1]):
                errors.append(np.linalg.norm(np.cumsum(sums - exact)) / (CELLS * rows))
    assert np.mean(errors) <= limit
