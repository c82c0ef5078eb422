"""Sums of sampled units: what one unit adds, whatever its weights, and bad rows."""

from itertools import product

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design.cells import unbound_cells
from dpmodels.design.rows import requested_of
from dpmodels.formula.sides import one_measured, parse_sides
from dpmodels.formula.tally import STEPS, Tally, sampling_of
from dpmodels.privacy import Adjacency
from dpmodels.statistics.sampled import Amounts, SampledPasses

AMOUNTS = Amounts(2**40, 2**39, 2**38)
BOOK = dp.codebook(y=(0, 1), g=["a", "b"], h=["n", "s"])


def passes(rows, *, psu=None, degree=1, name="add-remove"):
    """Passes over rows; of degree 0 a table of counts."""
    stated = {"weights": "w", "bounds": (1, 8), "weights_are": "design"}
    book = dp.codebook(BOOK, design=dp.design(**stated, strata="h", psu=psu))
    sides = parse_sides("y ~ g", book)
    number, factors = one_measured(sides, "dp_mean")
    sampling = sampling_of(book)
    tally = Tally(factors, number if degree else None, degree, sampling=sampling)
    read = dp.Codebook({**sampling.codebook, **sides.codebook})
    relation = Adjacency(name) if psu is None else Adjacency(name, 2**16, psu)
    cells = unbound_cells("y ~ g", read, (tally,))
    private = cells.among(lambda terms: requested_of(terms, relation, None)).bind(rows)
    return SampledPasses(private)


def vector(rows, cap, **words):
    """All sums of the second round, in units of the table's amount."""
    sums, _ = passes(rows, **words).parts(round(cap / 8 * STEPS), AMOUNTS)
    return [np.array(part.tolist(), dtype=float) / AMOUNTS.table for part in sums]


def table(rows):
    columns = zip(*rows, strict=True) if rows else [()] * 5
    return dict(zip(["y", "g", "h", "w", "p"], map(list, columns), strict=True))


VALUES = list(product((0.0, 0.3, 1.0), "ab", "ns", (1.0, 2.5, 8.0)))
OTHERS = [(0.5, "a", "n", 3.0, 1), (0.9, "b", "s", 6.0, 2)]


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("cap", [1.0, 2.5, 4.0, 8.0])
def test_a_row_adds_parts_of_the_sum_one(cap, degree):
    base = vector(table(OTHERS), cap, degree=degree)
    for value in VALUES:
        extra = vector(table([*OTHERS, (*value, 0)]), cap, degree=degree)
        added = [new - old for new, old in zip(extra, base, strict=True)]
        assert all((part >= 0).all() for part in added)
        assert added[0].sum() == pytest.approx(1, abs=1e-9)
        assert added[0].sum() <= 1
        assert added[1].sum() <= 0.5
        assert added[2].sum() <= 0.25
        assert added[1].sum() == pytest.approx(0.5 * (value[3] > cap), abs=1e-9)


@pytest.mark.parametrize("cap", [2.5, 8.0, 20.0])
def test_a_unit_of_several_rows_adds_parts_of_the_sum_one(cap):
    base = vector(table(OTHERS), cap, psu="p")
    for first, second in product(VALUES[::5], VALUES[::7]):
        unit = [(*first, 0), (*second, 0), (*first, 0)]
        extra = vector(table([*OTHERS[:1], *unit, *OTHERS[1:]]), cap, psu="p")
        added = [new - old for new, old in zip(extra, base, strict=True)]
        assert all((part >= -1e-12).all() for part in added)
        assert added[0].sum() == pytest.approx(1, abs=1e-9)
        assert added[1].sum() <= 0.5 + 1e-12
        assert added[2].sum() <= 0.25 + 1e-12


def test_a_replaced_unit_stays_within_the_sensitivity():
    """Of all pairs: L1 2 (1 + κ + κ/2), L2 √2 √(1 + κ² + κ²/4), and both nearly reached."""
    units = [np.concatenate(vector(table([(*value, 0)]), 2.5)) for value in VALUES]
    differences = np.array([left - right for left in units for right in units])
    longest = np.abs(differences).sum(axis=1).max(), np.linalg.norm(differences, axis=1).max()
    assert 0.99 * 2 * 1.75 < longest[0] <= 2 * 1.75
    assert 0.99 * np.sqrt(2 * 1.3125) < longest[1] <= np.sqrt(2 * 1.3125)


@pytest.mark.parametrize("cap", [1.0, 2.5, 8.0, 20.0])
@pytest.mark.parametrize("rows_of_unit", [1, 3])
def test_a_unit_adds_to_counts_what_theorem_79_allows(cap, rows_of_unit):
    """Parts of the sum 1 and of κ twice: of capped units, of products, and κ/2 by stratum."""
    words = {"degree": 0, "psu": "p" if rows_of_unit > 1 else None}
    base = vector(table(OTHERS), cap, **words)
    units = [VALUES[at : at + 5 * rows_of_unit : 5] for at in range(len(VALUES) - 5 * rows_of_unit)]
    for unit in units:
        extra = vector(table([*OTHERS, *((*value, 0) for value in unit)]), cap, **words)
        added = [new - old for new, old in zip(extra, base, strict=True)]
        assert all((part >= -1e-12).all() for part in added)
        assert added[0].sum() == pytest.approx(1, abs=1e-9)
        parts = added[1].reshape(2, 3) / 0.5
        assert parts[:, 0].sum() <= 1 + 1e-12
        assert parts[:, 1:].sum() <= 1 + 1e-12
        share = min(sum(value[3] for value in unit) / cap, 1)
        assert parts[:, 1:].sum() == pytest.approx(share**2, abs=1e-8)
        assert added[2].sum() == pytest.approx(0.25, abs=1e-9)


def test_replaced_units_stay_within_the_sensitivity_of_counts():
    """L1 2 (1 + 2κ + κ/2), L2 √2 √(1 + 2κ² + κ²/4), of one cell or of all cells together."""
    rows = [[(*value, 0)] for value in VALUES]
    units = [[(0.1, g, "n", 8.0, 0) for g in "ab"], *rows]
    vectors = [np.concatenate(vector(table(unit), 2.5, degree=0, psu="p")) for unit in units]
    differences = np.array([left - right for left in vectors for right in vectors])
    longest = np.abs(differences).sum(axis=1).max(), np.linalg.norm(differences, axis=1).max()
    assert 0.99 * 2 * 2.25 < longest[0] <= 2 * 2.25
    assert 0.99 * np.sqrt(2 * 1.5625) < longest[1] <= np.sqrt(2 * 1.5625)


def test_every_unit_is_in_one_cell_of_the_first_round():
    edges = np.rint(np.array([1, 2, 4, 8]) / 8 * STEPS).astype(np.int64)
    rows = table([(0.5, "a", "n", w, 0) for w in (1.0, 1.5, 2.0, 3.0, 8.0)])
    assert passes(rows).by_weight(edges)[0].tolist() == [1, 2, 1, 1]
    # One unit of the weight 15.5, beyond all edges.
    assert passes(rows, psu="p").by_weight(edges)[0].tolist() == [0, 0, 0, 1]


BAD = [
    ("w", 0.0),
    ("w", -2.0),
    ("w", 9.0),
    ("w", None),
    ("y", None),
    ("g", "c"),
    ("h", None),
    ("h", "west"),
]


@pytest.mark.parametrize(("column", "cell"), BAD)
@pytest.mark.parametrize("psu", [None, "p"])
def test_a_bad_row_changes_nothing_but_the_rest(column, cell, psu):
    rows = table([*OTHERS, (0.5, "a", "n", 3.0, 0)])
    rows[column][-1] = cell
    base, bad = (vector(t, 2.5, psu=psu, name="replace") for t in (table(OTHERS), rows))
    np.testing.assert_array_equal(bad[0][:-1], base[0][:-1])
    assert bad[0][-1] - base[0][-1] == pytest.approx(1, abs=1e-9)
    for left, right in zip(bad[1:], base[1:], strict=True):
        np.testing.assert_array_equal(left, right)


def test_the_integers_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(3)
    rows = [
        (float(y), str(g), str(h), float(w), int(p))
        for y, g, h, w, p in zip(
            rng.random(200),
            rng.choice(["a", "b"], 200),
            rng.choice(["n", "s"], 200),
            rng.uniform(1, 8, 200),
            rng.integers(0, 30, 200),
            strict=True,
        )
    ]
    turned = [rows[i] for i in rng.permutation(200)]
    for psu in (None, "p"):
        pair = [vector(table(inputs), 6.0, psu=psu) for inputs in (rows, turned)]
        for left, right in zip(*pair, strict=True):
            np.testing.assert_array_equal(left, right)


def test_sums_are_those_of_the_definition():
    rows = table([(0.25, "a", "n", 4.0, 0), (0.75, "b", "s", 8.0, 1)])
    (main, capped, strata), n_units = passes(rows).parts(STEPS // 2, AMOUNTS)
    cells = np.array(main[:-1].tolist(), dtype=float).reshape(2, 6) / AMOUNTS.table
    # A weight of 4 at a cap of 4, and of 8 that is capped at 4: both have the share 1.
    np.testing.assert_allclose(cells[0], [0.5625, 0.375, 0.0625, 0, 0, 0], atol=1e-9)
    np.testing.assert_allclose(cells[1], [0.0625, 0.375, 0.5625, 0, 0, 0], atol=1e-9)
    assert n_units == 2
    assert [sum(part) > 0 for part in np.array_split(capped, 2)] == [False, True]
    by_stratum = np.array(strata.tolist(), dtype=float).reshape(2, 13) / AMOUNTS.by_stratum
    np.testing.assert_allclose(by_stratum.sum(axis=1), [1, 1], atol=1e-9)


def test_a_private_number_of_units_is_that_of_units_that_count():
    """Else a unit more would take its parts off the rest, and move all sums by 2."""
    rows = table([*OTHERS, (0.5, "a", "n", 99.0, 7)])
    (main, *_), n_units = passes(rows, psu="p").parts(STEPS // 2, AMOUNTS)
    assert n_units == 2
    assert main.sum() == 2 * AMOUNTS.table
