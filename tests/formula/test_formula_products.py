"""Which products of coded columns are 0 or equal, against the coded rows themselves."""

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design import row_coder
from dpmodels.formula.coding import NONE, cells
from dpmodels.formula.response import two_sided

BOOK = dp.codebook(y=(0, 1), g=list("abcd"), h=["u", "v"], x=(1, 10), b=["no", "yes"])
FORMULAS = [
    "y ~ g",
    "y ~ g*h + g*x",
    "b ~ 0 + g + h:x",
    "y ~ C(g, Sum)*h + x",
    "y ~ g*poly(x, 2) + I(x**2)",
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_products_said_to_be_equal_are_and_others_are_not(formula):
    sides, rng = two_sided(formula, BOOK), np.random.default_rng(3)
    columns = {name: rng.choice(list(BOOK[name].levels), 200) for name in "ghb"}
    rows = {**columns, "x": rng.uniform(1, 10, 200), "y": rng.random(200)}
    cell_values = cells(sides.joint.blocks)
    design = np.vstack([np.ones(200), row_coder(sides.joint)(rows)]) / cell_values.factor[:, None]
    left, right = np.triu_indices(len(design))
    function = cell_values.products(left, right)
    product = design[left] * design[right]
    assert not product[function == NONE].any()
    for value in np.unique(function[function != NONE]):
        same = product[function == value]
        assert np.ptp(same, axis=0).max() < 1e-12 * np.abs(same).max()
    # Of treatment coding all zeros and all equal products are found.
    if "Sum" not in formula and "I(" not in formula:
        distinct = np.unique(np.round(product[product.any(axis=1)], 9), axis=0)
        assert len(distinct) == len(np.unique(function[function != NONE]))


def test_levels_of_one_category_exclude_each_other():
    cell_values = cells(two_sided("y ~ g + h", BOOK).joint.blocks)
    left, right = np.triu_indices(4, 1)
    function = cell_values.products(left[left > 0], right[left > 0])
    assert (function == NONE).all()
    assert cell_values.sizes == (4, 2)
