"""Several tables under one cap, mean squares of units, running sums: what one unit adds."""

from itertools import pairwise, product

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design.cells import unbound_cells
from dpmodels.design.rows import requested_of
from dpmodels.formula.sides import grouping, one_measured, parse_sides
from dpmodels.formula.tally import STEPS, Tally, sampling_of, with_missing
from dpmodels.inference.sampled_cells import squares_and_products
from dpmodels.models.quantile import _grid, grid_of
from dpmodels.privacy import Adjacency
from dpmodels.statistics.sampled import Amounts, SampledPasses

AMOUNTS = Amounts(2**40, 2**39, 2**38)
BOOK = dp.codebook(y=(0, 1), g=["a", "b"], h=["n", "s"])
CELLS = 6
MEANS, COUNTS, RUNNING = 2 * 9, 4, 2 * CELLS


def passes(rows, *, psu, name="add-remove", missing=False):
    """Passes over three tables: mean squares by g, counts of h by g, running counts of y by g."""
    stated = {"weights": "w", "bounds": (1, 8), "weights_are": "design"}
    book = dp.codebook(BOOK, design=dp.design(**stated, strata="s", psu=psu))
    book = dp.codebook(book, s=["1", "2"])
    sides = parse_sides("y + h ~ g", book)
    number, (group,) = one_measured(parse_sides("y ~ g", book), "dp_mean")
    sampling = sampling_of(book)
    counted = grouping(sides.described[1])
    cells = _grid(number, grid_of(Tally((group,), number), 4))
    open_levels = tuple(map(with_missing, (group, counted)))
    tallies = (
        (Tally(open_levels, sampling=sampling, has_missing=True),)
        if missing
        else _three_tables(group, counted, cells, number, sampling)
    )
    read = dp.Codebook({**sampling.codebook, **sides.codebook})
    relation = Adjacency(name) if psu is None else Adjacency(name, 2**16, psu)
    private = unbound_cells("y + h ~ g", read, tallies)
    private = private.among(lambda terms: requested_of(terms, relation, None)).bind(rows)
    return SampledPasses(private)


def _three_tables(group, counted, cells, number, sampling):
    return (
        Tally((group,), number, 2, sampling=sampling),
        Tally((group, counted), sampling=sampling),
        Tally((group, cells), number, sampling=sampling, running=True),
    )


def table(rows):
    columns = zip(*rows, strict=True) if rows else [()] * 6
    return dict(zip(["y", "g", "h", "s", "w", "p"], map(list, columns), strict=True))


def vector(rows, cap, **words):
    """All sums of the second round, in units of the table's amount."""
    sums, _ = passes(table(rows), **words).parts(round(cap / 8 * STEPS), AMOUNTS)
    return [np.array(part.tolist(), dtype=float) / AMOUNTS.table for part in sums]


VALUES = list(product((0.0, 0.4, 1.0, None), "ab", ("n", "s", None), "12", (1.0, 3.0, 8.0)))
OTHERS = [(0.5, "a", "n", "1", 3.0, 1), (0.9, "b", "s", "2", 6.0, 2)]


@pytest.mark.expensive
@pytest.mark.parametrize("cap", [1.0, 3.0, 8.0, 20.0])
def test_a_unit_adds_the_sum_one_to_each_table(cap):
    """And κ to capped units of each, κ more to products, κ/2 by stratum, whatever is missing."""
    base = vector(OTHERS, cap, psu="p")
    starts = np.cumsum([0, MEANS + 1, COUNTS + 1, RUNNING + 1])
    capped = np.cumsum([0, 2 * 3, 4 * 3, 2 * CELLS * 3])
    strata = np.cumsum([0, 2 * (MEANS + 1), 2 * (COUNTS * 3 + 1), 2 * (RUNNING * 3 + 1)])
    for at in range(0, len(VALUES) - 40, 11):
        unit = [(*VALUES[at + step], 0) for step in (0, 17, 39)]
        extra = vector([*OTHERS, *unit], cap, psu="p")
        added = [new - old for new, old in zip(extra, base, strict=True)]
        assert all((part >= -1e-12).all() for part in added)
        for number, ends in enumerate(zip(pairwise(starts), pairwise(capped), strict=True)):
            main, side = (part[slice(*span)] for part, span in zip(added, ends, strict=False))
            assert main.sum() == pytest.approx(1, abs=1e-9)
            blocks = [side] if number == 0 else [side[::3], np.r_[side[1::3], side[2::3]]]
            assert all(block.sum() <= 0.5 + 1e-12 for block in blocks)
        for span in pairwise(strata):
            assert added[2][slice(*span)].sum() <= 0.25 + 1e-12


@pytest.mark.expensive
def test_a_replaced_unit_stays_within_the_sensitivity_of_three_tables():
    """L1 2 (3 + 5κ + 3κ/2), L2 √2 √(3 + 5κ² + 3κ²/4): both are reached but for the means' κ."""
    units = [
        [(y, g, h, s, 8.0, 0), (y, g, h, s, w, 0)]
        for y, g, h, s, w in product((0.0, 1.0), "ab", "ns", "12", (1.0, 8.0))
    ]
    vectors = [np.concatenate(vector(unit, 3.0, psu="p")) for unit in units]
    differences = np.array([left - right for left in vectors for right in vectors])
    longest = np.abs(differences).sum(axis=1).max(), np.linalg.norm(differences, axis=1).max()
    assert 0.99 * 2 * 6.25 < longest[0] <= 2 * 6.25
    limit = np.sqrt(2 * (3 + 5 / 4 + 3 / 16))
    # Running products of a unit in one cell are two halves: shorter than one.
    assert 0.95 * limit < longest[1] <= limit


def test_the_parts_of_a_unit_give_squares_of_means_of_any_quadratic_function():
    """By Theorem 82: of rows 0.2 and 0.9 of the weights 3 and 1, under a cap of 8."""
    unit = [
        (0.2, "a", "n", "1", 3.0, 0),
        (0.9, "a", "s", "1", 1.0, 0),
        (0.9, "b", "s", "1", 2.0, 0),
    ]
    products, means = np.split(vector(unit, 8.0, psu="p")[0][:9], [6])
    left, right = np.triu_indices(3)
    for coefficients in np.eye(3), [[1.0, -2.0, 0.7]] * 3:
        for v in np.asarray(coefficients):
            value = [v @ [(1 - y) ** 2, 2 * y * (1 - y), y**2] for y in (0.2, 0.9)]
            mean, share = np.average(value, weights=[3, 1]), 4 / 8
            assert products @ (v[left] * v[right]) == pytest.approx((share * mean) ** 2, abs=1e-8)
            linear = products @ (v[left] + v[right]) / 2 + means @ v
            assert linear == pytest.approx(share * mean, abs=1e-8)


def test_running_products_give_squares_of_running_sums():
    unit = [(y, "a", "n", "1", w, 0) for y, w in ((0.1, 1.0), (0.3, 2.0), (0.3, 1.0), (0.9, 2.0))]
    shares, counts, _ = vector([*unit, (0.9, "b", "n", "1", 2.0, 0)], 8.0, psu="p")
    products = counts[-2 * CELLS * 3 :].reshape(-1, 3)[:CELLS, 1:] / 0.5
    squares, with_rest = np.cumsum(squares_and_products(products), axis=0).T
    running = np.cumsum(shares[-2 * CELLS - 1 :][:CELLS])
    assert sorted(set(running.round(6))) == [0, 0.5, 0.75]
    np.testing.assert_allclose(squares, running**2, atol=1e-8)
    np.testing.assert_allclose(with_rest, running * (6 / 8 - running), atol=1e-8)


@pytest.mark.parametrize("cap", [1.0, 8.0, 20.0])
def test_products_leave_missing_levels_out_and_counts_do_not(cap):
    """A table of g by h, three levels each: the sums of Theorem 79 over the four complete cells."""
    rows = [("a", "n", 2.0), ("a", None, 3.0), (None, "s", 1.0), ("b", "n", 4.0), (None, None, 1.0)]
    unit = [(None, g, h, "1", w, 0) for g, h, w in rows]
    main, capped, strata = vector(unit, cap, psu="p", missing=True)
    shares = np.array([[2, 0, 3], [4, 0, 0], [0, 1, 1]]) / max(11, cap)
    np.testing.assert_allclose(main[:-1], shares.ravel(), atol=1e-8)
    assert main.sum() == pytest.approx(1, abs=1e-9)
    complete = shares * [[1, 1, 0], [1, 1, 0], [0, 0, 0]]
    products = capped.reshape(-1, 3).T / 0.5
    np.testing.assert_allclose(products[0], (cap < 11) * shares.ravel(), atol=1e-8)
    np.testing.assert_allclose(products[1], complete.ravel() ** 2, atol=1e-8)
    alternatives = complete * (complete.sum() - complete)
    np.testing.assert_allclose(products[2], alternatives.ravel(), atol=1e-8)
    assert strata.sum() == pytest.approx(0.25, abs=1e-9)
    assert strata[27] == pytest.approx(0.25 * (1 - complete.sum()), abs=1e-8)


def test_one_cap_is_of_all_rows_that_count_in_any_table():
    edges = np.rint(np.array([1, 2, 4, 8]) / 8 * STEPS).astype(np.int64)
    rows = [(0.5, "a", None, "1", 2.0, 0), (None, "a", "n", "1", 1.0, 0)]
    rows += [(None, "a", None, "1", 5.0, 0), (0.5, "a", "n", "1", 1.0, 1)]
    assert passes(table(rows), psu="p").by_weight(edges)[0].tolist() == [1, 0, 1, 0]
    assert passes(table(rows), psu=None).by_weight(edges)[0].tolist() == [2, 1, 0, 0]
    (main, *_), n_units = passes(table(rows), psu="p").parts(STEPS // 8, AMOUNTS)
    assert n_units == 2
    # Of the first unit 2/3 count in the first table, 1/3 in the second.
    rests = main[[MEANS, MEANS + 1 + COUNTS]] / AMOUNTS.table
    np.testing.assert_allclose(rests.astype(float), [1 / 3, 2 / 3], atol=1e-8)
