"""Products of all columns of a box, against sums by hand, and what residuals make of them."""

import numpy as np

import dpmodels as dp
from dpmodels.design.regression import box_design
from dpmodels.formula.response import two_sided
from dpmodels.statistics.associations import (
    PARTS,
    ReleasedFit,
    associations,
    box_lattice,
    products,
    reach,
    residual_products,
    residual_scatter,
)

BOOK = dp.codebook(y=(0, 1), a=(-3, 5), b=["no", "yes"], c=(0, 1000))
LATTICE = box_lattice(4)
RNG = np.random.default_rng(1)
ROWS = {
    "y": RNG.integers(0, 2, 9_000).astype(float),
    "a": np.where(RNG.random(9_000) < 0.01, np.nan, RNG.normal(1, 4, 9_000)),
    "b": np.array(["no", "yes"])[RNG.integers(0, 2, 9_000)],
    "c": RNG.exponential(30, 9_000) * (RNG.random(9_000) < 0.3),
}
DESIGN = box_design(two_sided("y ~ a + b + c", BOOK))


def measured(cut, statistic=products):
    rows = {name: row[cut] for name, row in ROWS.items()}
    return statistic(DESIGN.bind(rows), LATTICE)


def test_products_add_and_have_the_sums_of_associations_among_them():
    exact, rows = measured(slice(None)).cross()
    parts = measured(slice(0, 8_191)) + measured(slice(8_191, None))
    assert (parts.cross()[0] == exact).all()
    assert rows == 9_000
    assert (exact == exact.T).all()
    lines = measured(slice(None), associations).cross()[0]
    assert (np.stack([exact[0], exact.diagonal(), exact[-1]]) == lines).all()


def test_products_of_residuals_are_those_of_each_row():
    few = slice(0, 40)
    limit, exact = reach(LATTICE), measured(few).cross()[0]
    values = [measured(slice(at, at + 1)).cross()[0] for at in range(40)]
    z = np.array([value[0] for value in values if value[0, 0]])
    y, x = z[:, -1], z[:, 1:-1]
    fit = ReleasedFit(-77 * PARTS - 3, (2, 0), (PARTS // 3, -2 * PARTS - 1))
    r = PARTS * y - fit.centre - x[:, [2, 0]] @ np.array(fit.slopes, dtype=object)
    assert residual_products(exact, fit).tolist() == (x.T @ r).tolist()
    assert abs(r).max() <= fit.longest(limit)
    assert fit.stretch == PARTS + PARTS // 3 + 2 * PARTS + 1
    n = len(z)
    scatter = n * (x[:, 1] @ r) - x[:, 1].sum() * r.sum()
    assert residual_scatter(exact, fit, 1) == scatter // (n * fit.stretch)
    assert residual_scatter(0 * exact, fit, 1) == 0
