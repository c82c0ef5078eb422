"""The formulas by which "auto" chooses, computed once more from matrices and from definitions."""

import math
import re

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from dpmodels.mechanisms.choose_counts import (
    _of_root,
    _of_tree,
    _of_wavelets,
    auto_counts,
    auto_ordered,
    auto_plane,
    auto_running,
)
from dpmodels.mechanisms.choose_moments import directions_loss, noise_loss
from dpmodels.mechanisms.counts import Factorisation, Gaussian, Geometric, Grid, Tree, Wavelet
from dpmodels.mechanisms.margins import MARGINS, auto_margins
from dpmodels.mechanisms.protocol import CountFacts, Facts, MarginFacts
from dpmodels.mechanisms.scalar.paired import Paired
from dpmodels.mechanisms.selection import auto_selection
from dpmodels.mechanisms.selection_plan import LevelScore, SelectionFacts
from dpmodels.postprocess.plane import rectangle_counts
from dpmodels.privacy import ZCDP, Adjacency, ApproxDP, PureDP

DELTA = ApproxDP(1.0, 1e-6)


def numbers(reason):
    """The numbers of a sentence, without its thousands' commas."""
    return [
        float(text) for text in re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", reason.replace(",", ""))
    ]


def counted(shape=(), parts=8, tables=1, divided=False, neighbours="replace", rows=1):
    return CountFacts(tables, parts, divided, Adjacency(neighbours, rows), shape)


def losses(columns, n_kept):
    values = 1 / np.arange(1.0, columns + 1)
    values /= values.sum()
    gaps = [values[i] - values[j] for i in range(n_kept) for j in range(n_kept, columns)]
    return values, np.array(gaps), values[:n_kept].sum()


def raised(loss, gaps, columns):
    """Raised by .3 of the distance to random directions, which lose the mean gap a column."""
    random = gaps.sum() / columns
    return loss * (1 + 0.3 * (1 - loss / random))


@pytest.mark.parametrize(("columns", "n_kept"), [(5, 2), (12, 3)])
def test_the_predicted_loss_of_a_noisy_matrix(columns, n_kept):
    _, gaps, captured = losses(columns, n_kept)
    for sd in (0.003, 0.02, 0.4):
        # Each pair loses its gap times the mean squared sine of an angle.
        loss = sum(gap * sd**2 / (gap**2 + columns * sd**2) for gap in gaps)
        predicted = noise_loss(Facts(columns, Adjacency("replace"), True, n_kept), sd)
        assert predicted == pytest.approx(raised(loss, gaps, columns) / captured)


@pytest.mark.parametrize(("columns", "n_kept"), [(5, 2), (12, 3)])
def test_the_predicted_loss_of_drawn_directions(columns, n_kept):
    values, gaps, captured = losses(columns, n_kept)
    for concentration in (0.5, 30.0, 1e4):

        def excess(b, i, c=concentration):
            cosines = [1 / (b + 2 * c * (values[i] - values[j])) for j in range(n_kept, columns)]
            return n_kept / b + sum(cosines) - 1

        loss = 0.0
        for i in range(n_kept):
            b = brentq(excess, 1e-9, 1e9, args=(i,), xtol=1e-13)
            rest = [values[i] - values[j] for j in range(n_kept, columns)]
            loss += sum(gap / (b + 2 * concentration * gap) for gap in rest)
        predicted = directions_loss(
            Facts(columns, Adjacency("replace"), True, n_kept), concentration
        )
        assert predicted == pytest.approx(raised(loss, gaps, columns) / captured, rel=1e-6)


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("tables", [1, 50])
def test_the_noises_in_a_count_that_are_printed(rows, tables):
    """A row replaced changes two counts of each table by 1."""
    facts = counted(tables=tables, rows=rows)
    name, reason = auto_counts(facts, DELTA)
    scale = 2 * tables * rows
    geometric = math.sqrt(2 * math.exp(-1 / scale)) / (1 - math.exp(-1 / scale))
    # The noise sd of one row of 4 that are protected together is printed for all of them.
    gaussian = Gaussian().plan(facts, DELTA).noise_sd * rows
    printed = {"geometric": geometric, "gaussian": gaussian}
    best, second = sorted(printed, key=printed.get)
    assert name == best
    assert f"that of {second} would" in reason
    assert numbers(reason) == pytest.approx([printed[best], printed[second]], rel=0.05)


def test_one_mean_takes_the_noise_that_is_less_in_the_sum():
    for guarantee in (PureDP(1.0), DELTA):
        facts = counted(parts=4, divided=True)
        name, reason = auto_counts(facts, guarantee)
        geometric = Geometric().plan(facts, guarantee).noise_sd
        # Σ t - 1/2 is half the difference of two counts, or half of one number.
        sds = [Paired().plan(facts, guarantee).noise_sd / 2, geometric / math.sqrt(2)]
        assert name == "paired"
        assert sds[0] < sds[1]
        assert numbers(reason) == pytest.approx(sds, rel=0.05)
    assert auto_counts(counted(parts=4, divided=True, neighbours="add-remove"), PureDP(1.0)) == (
        "geometric",
        "it needs no delta.",
    )


def test_a_range_is_searched_for_by_rows_times_eps():
    """Counts of cells with all of the budget have a noise sd of 2 √2 / ε rows."""
    facts = counted(parts=7, divided=True)
    assert auto_counts(facts, DELTA, 330)[0] != "rounds"
    assert auto_counts(facts, DELTA, 410)[0] == "rounds"
    assert "up to" in auto_counts(facts, DELTA, 410)[1]
    first = math.sqrt(2) * 2 / 0.15
    assert "up to" in auto_counts(facts, DELTA, int(95 * first))[1]
    assert "15% of the budget" in auto_counts(facts, DELTA, int(105 * first))[1]


def totals(cells):
    """The matrix of running totals."""
    return np.tril(np.ones((cells, cells)))


def of_tree(facts, guarantee):
    """The covariance of cells by least squares from the counts of all nodes, for one group."""
    plan = Tree().plan(facts, guarantee)
    hierarchy, fanout = Tree().above(plan)
    nodes = np.vstack([level.T for level in hierarchy.sums(np.eye(facts.shape[1]))])
    return plan.noise_sd**2 * np.linalg.inv(nodes.T @ nodes), plan.noise_sd**2, fanout


def of_root(facts, guarantee):
    """The covariance of cells from running sums by the square root of the matrix of totals."""
    cells = facts.shape[1]
    series = [math.comb(2 * k, k) / 4**k for k in range(cells)]
    root = np.array(
        [[series[i - j] if i >= j else 0.0 for j in range(cells)] for i in range(cells)]
    )
    assert root @ root == pytest.approx(totals(cells), abs=1e-9)
    variance = Factorisation().plan(facts, guarantee).noise_sd ** 2
    back = np.linalg.inv(root)
    return variance * back @ back.T, variance, None


def running_sd(covariance, variance, groups, *, is_public):
    """The root mean square of the noise of running totals, all groups in a public total or not."""
    cells = len(covariance)
    of_group = totals(cells) @ covariance @ totals(cells).T
    variances = np.diagonal(of_group)
    if is_public:
        # The incomplete rows are one more noisy count of the public total.
        variances = variances - of_group[:, -1] ** 2 / (groups * of_group[-1, -1] + variance)
    return math.sqrt(variances.mean())


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("shape", [(1, 30), (3, 100)])
@pytest.mark.parametrize("guarantee", [DELTA, ZCDP(0.2)])
def test_running_totals_take_the_least_noise(neighbours, shape, guarantee):
    facts = counted(shape, neighbours=neighbours)
    name, reason = auto_running(facts, guarantee)
    sds = {
        kind: running_sd(*of(facts, guarantee)[:2], shape[0], is_public=neighbours == "replace")
        for kind, of in (("tree", of_tree), ("factorisation", of_root))
    }
    best, second = sorted(sds, key=sds.get)
    assert name == best
    assert f"with {second} it would be" in reason
    assert numbers(reason) == pytest.approx([sds[best], sds[second]], rel=6e-3)


def test_running_totals_without_a_delta_or_of_many_periods():
    assert auto_running(counted((1, 30)), PureDP(1.0))[0] == "tree"
    name, reason = auto_running(counted((1, 2**22)), DELTA)
    assert name == "tree"
    assert "periods are more than" in reason


def mean_range(covariance):
    """The mean variance of the sums over all ranges of cells."""
    cells = len(covariance)
    edges = np.vstack([np.zeros(cells), totals(cells)])
    ranges = [edges[j] - edges[i] for j in range(cells + 1) for i in range(j)]
    return np.mean([row @ covariance @ row for row in ranges])


@pytest.mark.parametrize("cells", [64, 48, 27])
def test_predicted_noises_of_ranges_and_bins(cells):
    facts = counted((1, cells))
    covariance, variance, _ = of_root(facts, DELTA)
    predicted = _of_root(facts, DELTA)
    assert predicted.mean_range == pytest.approx(mean_range(covariance))
    assert predicted.cell == pytest.approx(np.diagonal(covariance).mean())
    covariance, variance, fanout = of_tree(facts, DELTA)
    predicted = _of_tree(facts, DELTA)
    # Said to be within 8 % for trees that are uneven.
    assert predicted.mean_range == pytest.approx(mean_range(covariance), rel=0.08)
    if fanout >= cells:
        assert predicted.cell == variance
        return
    # Between that of a bin whose parent has no noise, and of one whose parent is known by itself.
    assert predicted.cell == pytest.approx(variance * (1 - 1 / fanout))
    assert predicted.cell <= np.diagonal(covariance).mean() <= variance * (1 - 1 / (fanout + 1))


def test_predicted_noises_of_wavelets_at_a_power_of_two():
    facts, cells = counted((1, 64)), 64
    rows = [np.ones(cells)]
    for width in (64 >> level for level in range(6)):
        for start in range(0, cells, width):
            row = np.zeros(cells)
            row[start : start + width // 2], row[start + width // 2 : start + width] = 1, -1
            rows.append(row)
    assert len(rows) == cells
    back = np.linalg.inv(np.array(rows))
    covariance = Wavelet().plan(facts, DELTA).noise_sd ** 2 * back @ back.T
    predicted = _of_wavelets(facts, DELTA)
    assert predicted.mean_range == pytest.approx(mean_range(covariance), rel=0.08)
    assert predicted.cell == pytest.approx(np.diagonal(covariance).mean(), rel=1e-9)


@pytest.mark.parametrize("guarantee", [DELTA, PureDP(1.0), ZCDP(0.2)])
@pytest.mark.parametrize("rows", [1, 3])
def test_bins_in_an_order_take_the_least_of_ranges_by_the_root_of_a_bins(guarantee, rows):
    for cells in (30, 64, 200, 1_000):
        facts = counted((1, cells), rows=rows)
        flat, _ = auto_counts(facts, guarantee)
        noise = min(
            kind().plan(facts, guarantee).noise_sd
            for kind in ((Geometric,) if guarantee == PureDP(1.0) else (Geometric, Gaussian))
        )
        alone = (noise**2 * (cells + 2) / 3, noise**2)
        ways = {"tree": _of_tree(facts, guarantee), "wavelet": _of_wavelets(facts, guarantee)}
        if guarantee != PureDP(1.0):
            ways["factorisation"] = _of_root(facts, guarantee)
        best = min(ways, key=lambda kind: ways[kind][0] * math.sqrt(ways[kind][1]))
        wide = ways[best][0] * math.sqrt(ways[best][1])
        name, reason = auto_ordered(facts, guarantee)
        if cells <= 40 or alone[0] * noise <= wide:
            assert name == flat
            continue
        assert name == best
        variances = (ways[best][0], alone[0], ways[best][1], alone[1])
        printed = [cells, *(rows * math.sqrt(variance) for variance in variances)]
        assert numbers(reason) == pytest.approx(printed, rel=0.05)


def mean_rectangle(side, blocks):
    """The mean variance of a rectangle by least squares from square blocks of all levels."""
    levels, width = [np.eye(side)], 1
    while width * blocks < side:
        width *= blocks
        levels.append(np.kron(np.eye(side // width), np.ones(width)))
    nodes = np.vstack([np.kron(level, level) for level in levels])
    edges = np.vstack([np.zeros(side), totals(side)])
    ranges = np.array([edges[j] - edges[i] for j in range(side + 1) for i in range(j)])
    squares = ranges.T @ ranges / len(ranges)
    return (np.kron(squares, squares) * np.linalg.inv(nodes.T @ nodes)).sum()


@pytest.mark.parametrize(("side", "blocks"), [(16, 4), (16, 2), (9, 3), (8, 8)])
def test_the_mean_rectangle_is_that_of_least_squares(side, blocks):
    assert rectangle_counts((side, side), blocks) == pytest.approx(mean_rectangle(side, blocks))


@pytest.mark.parametrize("guarantee", [DELTA, PureDP(1.0)])
@pytest.mark.parametrize("rows", [1, 3])
def test_cells_of_a_plane_take_the_least_of_rectangles_by_the_root_of_a_cells(guarantee, rows):
    kinds = (Geometric,) if guarantee == PureDP(1.0) else (Geometric, Gaussian)
    names = []
    for side in (8, 64, 256, 1024):
        facts = counted((1, side, side), rows=rows)
        plan = Grid().plan(facts, guarantee)
        blocked = plan.noise_sd * math.sqrt(rectangle_counts((side, side), Grid().side_of(plan)))
        noise = min(kind().plan(facts, guarantee).noise_sd for kind in kinds)
        alone = noise * (side + 2) / 3
        name, reason = auto_plane(facts, guarantee)
        is_grid = side > 8 and blocked**2 * plan.noise_sd < alone**2 * noise
        assert (name == "grid") == is_grid
        names.append(name)
        if is_grid:
            assert reason.count(" rows ") == 1
            printed = [side**2, *(rows * sd for sd in (blocked, alone, plan.noise_sd, noise))]
            assert numbers(reason) == pytest.approx(printed, rel=0.05)
    assert names[0] != "grid"
    if guarantee == PureDP(1.0):
        assert names[-1] == "grid"


@pytest.mark.parametrize("rows", [1, 3])
def test_margins_take_the_least_noise_in_a_cell(rows):
    facts = MarginFacts((3, 4, 2), ((0, 1), (1, 2)), Adjacency("replace", rows))
    name, reason = auto_margins(facts, DELTA)
    spread = {}
    for kind, strategy in MARGINS.items():
        plan = strategy().plan(facts, DELTA)
        if kind == "marginals":
            noisy, weights = [], []
            for term, sd in zip(plan.measured, plan.noise_sds, strict=True):
                noisy.append(summed(facts.sizes, term))
                weights += [sd**-2] * len(noisy[-1])
            # A public number of rows is a sum without noise.
            noisy.append(np.ones((1, 24)))
            weights.append(1e9)
            sums = np.vstack(noisy)
            covariance = np.linalg.pinv(sums.T @ (np.array(weights)[:, None] * sums), rcond=1e-15)
        else:
            covariance = np.zeros((24, 24))
            for term, sd in zip(plan.measured, plan.noise_sds, strict=True):
                covariance += sd**2 * centred(facts.sizes, term)
        cells = np.vstack([summed(facts.sizes, term) for term in facts.terms])
        spread[kind] = rows * math.sqrt(np.trace(cells @ covariance @ cells.T) / len(cells))
    best, second = sorted(spread, key=spread.get)
    assert name == best
    assert f"that of {second} would" in reason
    assert numbers(reason) == pytest.approx([spread[best], spread[second]], rel=0.05)


def summed(sizes, term):
    """The matrix from all cells to those of a margin."""
    matrix = np.ones((1, 1))
    for i, size in enumerate(sizes):
        matrix = np.kron(matrix, np.eye(size) if i in term else np.ones((1, size)))
    return matrix


def centred(sizes, term):
    """The covariance that a component's noise of sd 1 in a margin's cells gives to all cells."""
    matrix = np.ones((1, 1))
    for i, size in enumerate(sizes):
        shared = np.full((size, size), 1 / size**2)
        matrix = np.kron(matrix, np.eye(size) - 1 / size if i in term else shared)
    return matrix


@pytest.mark.parametrize("guarantee", [PureDP(0.7), ZCDP(0.1)])
@pytest.mark.parametrize("n_chosen", [1, 4])
def test_candidates_are_ranked_with_the_noise_that_reaches_least_far(guarantee, n_chosen):
    size = 30
    facts = SelectionFacts(LevelScore(size), n_chosen, None, 0.0, Adjacency("replace"))
    name, reason = auto_selection(facts, guarantee)
    if isinstance(guarantee, PureDP):
        draws = {
            kind: 2 * math.log(size) * n_chosen / 0.7 for kind in ("permute_and_flip", "peeling")
        }
        reach = 2 / 0.7 * math.log(size)
    else:
        # A draw of eps costs eps²/2 of rho, one of a bounded range eps²/8.
        draws = {
            kind: 2 * math.log(size) / math.sqrt(factor * 0.1 / n_chosen)
            for kind, factor in (("permute_and_flip", 2), ("peeling", 8))
        }
        reach = math.sqrt(2) / math.sqrt(2 * 0.1) * norm.isf(1 / (2 * size))
    everything = {**draws, "noisy_counts": reach}
    best = min(everything, key=everything.get)
    assert everything[name] == pytest.approx(everything[best])
    second = sorted(everything.values())[1]
    assert numbers(reason) == pytest.approx([everything[best], second], rel=0.01)


def test_a_threshold_needs_a_search_or_noisy_counts():
    facts = SelectionFacts(LevelScore(9), 2, 40.0, 0.0, Adjacency("replace"))
    assert auto_selection(facts, PureDP(1.0))[0] == "noisy_counts"
