"""Sums of columns and one response, against sums by hand and every neighbour."""

from itertools import product

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design.regression import box_design
from dpmodels.formula.response import two_sided
from dpmodels.privacy import adjacency
from dpmodels.statistics.associations import (
    FINE,
    associations,
    box_lattice,
    centred_products,
    mean_change,
    product_change,
    reach,
    scatters,
    spread_change,
)

BOOK = dp.codebook(y=(0, 1), a=(-3, 5), b=["no", "yes"], c=(0, 1000))
RELATIONS = ("replace", "add-remove")


def measured(rows, formula="y ~ a + b + c"):
    design = box_design(two_sided(formula, BOOK))
    lattice = box_lattice(len(design.public.names))
    exact, read = associations(design.bind(rows), lattice).cross()
    return design.public.names, reach(lattice), exact, read


def some_rows(number, seed):
    rng = np.random.default_rng(seed)
    return {
        "y": rng.integers(0, 2, number).astype(float),
        "a": rng.normal(1, 4, number),
        "b": np.array(["no", "yes"])[rng.integers(0, 2, number)],
        "c": rng.exponential(30, number) * (rng.random(number) < 0.3),
    }


def test_sums_are_those_of_rows_in_half_ranges():
    rows = some_rows(20_000, 1)
    rows["a"][3] = np.nan
    names, limit, exact, read = measured(rows)
    assert names == ("b[T.yes]", "a", "c", "y")
    is_complete = ~np.isnan(rows["a"])
    y = 2 * rows["y"] - 1
    a = (np.clip(rows["a"], -3, 5) - 1) / 4
    columns = [np.ones(20_000), 2.0 * (rows["b"] == "yes") - 1, a, rows["c"] / 500 - 1, y]
    z = np.array(columns)[:, is_complete]
    units = np.array([1, *[limit] * 4])
    expected = np.array([z.sum(axis=1) * units, (z * z).sum(axis=1) * units**2, z @ z[-1] * units])
    expected[2] *= limit
    np.testing.assert_allclose(exact.astype(float), expected, rtol=1e-4, atol=1e-4 * limit**2)
    assert (exact[0, 0], exact[1, 0], read) == (19_999, 19_999, 20_000)


def test_sums_add_and_do_not_depend_on_blocks():
    rows = some_rows(9_000, 2)
    *_, n_rows, _ = measured(rows)
    parts = [
        measured({name: row[cut] for name, row in rows.items()})[2]
        for cut in (slice(0, 8_191), slice(8_191, None))
    ]
    assert (n_rows == parts[0] + parts[1]).all()


def test_centred_products_are_sums_of_centred_rows():
    rows = some_rows(50, 3)
    _, limit, exact, _ = measured(rows)
    centre = limit * FINE // 3
    assert centred_products(exact, centre).tolist() == [
        FINE * int(exact[2, j]) - centre * int(exact[0, j]) for j in range(1, 4)
    ]


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_neighbour_moves_a_product_further_than_declared_and_one_does(relation):
    corners = [
        {"y": [y], "a": [a], "b": [b], "c": [c]}
        for y, a, b, c in product((0.0, 1.0), (-9.0, 5.0), ("no", "yes"), (0.0, 1000.0))
    ]
    corners.append({"y": [0.5], "a": [np.nan], "b": ["yes"], "c": [0.0]})
    results = [measured(row)[2] for row in corners]
    _, limit, *_ = measured(corners[0])
    neighbours = adjacency(relation)
    pairs = (
        list(product(results, results))
        if neighbours.n_public
        else [(exact_row, 0 * exact_row) for exact_row in results]
    )
    changes = [first - second for first, second in pairs]
    for centre in (-limit * FINE, -(limit * FINE // 2), 0, limit * FINE // 3, limit * FINE):
        moves = [np.abs(centred_products(change, centre)).max() for change in changes]
        assert max(moves) == product_change(neighbours, limit, centre)
        spread = [np.ptp(centred_products(change, centre)) for change in changes]
        assert max(spread) == 2 * product_change(neighbours, limit, centre)
    for norm in (1, 2):
        means = [np.array([change[0, -1], limit * change[0, 0]], dtype=float) for change in changes]
        furthest = max(np.linalg.norm(mean, norm) for mean in means)
        assert furthest == pytest.approx(mean_change(neighbours, limit, norm), rel=1e-12)
        spreads = [
            np.array([limit**2 * change[0, 0], limit * change[0, -1], change[1, -1]], dtype=float)
            for change in changes
        ]
        furthest = max(np.linalg.norm(spread, norm) for spread in spreads)
        assert furthest == pytest.approx(spread_change(neighbours, limit, norm), rel=1e-12)


def test_a_column_pays_for_no_other():
    wide = dp.codebook.uniform([f"x{i}" for i in range(400)], (0, 1)) | dp.codebook(y=(0, 1))
    design = box_design(two_sided("y ~ .", wide))
    assert all(2**13 < reach(box_lattice(size)) <= 2**14 for size in (2, 3, 5, 401, 5_001))
    rows = {name: np.array([1.0, 0.0]) for name in wide}
    exact, _ = associations(design.bind(rows), box_lattice(401)).cross()
    assert (exact[2, 1:] == 2 * reach(box_lattice(401)) ** 2).all()


def test_a_column_of_one_value_is_refused_before_rows():
    book = dp.codebook(y=(0, 1), a=(0, 1))
    sides = two_sided("y ~ a + I(a * 0)", book)
    with pytest.raises(dp.errors.CodebookError, match="one value"):
        box_design(sides)


def test_scatters_are_sums_of_squares_about_the_mean_and_no_neighbour_moves_them_further():
    rng = np.random.default_rng(4)
    ends = (0.0, 1.0, 0.3)
    limit = reach(box_lattice(2))
    book = dp.codebook(y=(0, 1), x=(0, 1))
    design = box_design(two_sided("y ~ x", book))

    def found(values):
        rows = {"y": np.zeros(len(values)), "x": np.array(values)}
        exact, _ = associations(design.bind(rows), box_lattice(2)).cross()
        about = np.clip(np.rint((2 * np.array(values) - 1) * limit), -limit, limit)
        if np.isfinite(about).all() and len(values):
            assert abs(int(scatters(exact)[0]) - len(about) * about.var()) <= 2 + 1e-9 * limit**2
        return int(scatters(exact)[0])

    largest = 0
    for size in range(1, 9):
        for first in (*ends, np.nan):
            alternatives = rng.choice(ends, size - 1).tolist()
            first_result = found([first, *alternatives])
            for second in (*ends, np.nan):
                largest = max(largest, abs(first_result - found([second, *alternatives])))
    # A row opposite all others.
    largest = max(largest, found([1.0] + [0.0] * 7), found([1.0] + [0.0] * 200))
    assert 0.99 * 4 * limit**2 < largest <= 4 * limit**2
    assert found([]) == 0
