"""Numbers centred inside products: which are, and the exact map between both codings."""

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.formula.centring import centred_sides, product_centres, product_map
from dpmodels.formula.response import two_sided

BOOK = dp.codebook(
    x=(0, 20), z=(5, 9), w=(-1, 1), g=["a", "b", "c"], h=["p", "q"], y=(0, 100), day=(0, 9)
)
X, Z = ("x", 10.0), ("z", 7.0)
CENTRED = {
    "y ~ x*g": (X,),
    "y ~ 0 + g + x:g": (X,),
    "y ~ x*z": (X, Z),
    "y ~ x*z*g + h": (X, Z),
    "y ~ x:z + x + z": (X, Z),
    "y ~ x*g + z*h": (X, Z),
    "y ~ C(g, Sum)*x": (X,),
    "y ~ poly(x, 2)*z": (Z,),
    "y ~ (x > 3)*z": (Z,),
    "y ~ I(x ** 2)*g": (("I(x ** 2)", 200.0),),
    "y ~ h + g:h + x:g:h + x": (X,),
    "y ~ x*w": (X,),
    "y ~ x:z + x": (Z,),
}
# No product of a number, or a product whose lower-order terms the model lacks.
AS_WRITTEN = [
    "y ~ x + g",
    "y ~ g*h",
    "y ~ x:g",
    "y ~ g + x:g",
    "y ~ x + x:g",
    "y ~ 0 + x*z",
    "y ~ poly(x, 2)*g",
    "y ~ x + I(x ** 2)",
]


def coded(design, rows=40, seed=1):
    rng = np.random.default_rng(seed)
    columns = {"x": rng.uniform(-5, 25, rows), "z": rng.uniform(5, 9, rows)}
    columns |= {"w": rng.uniform(-1, 1, rows), "y": rng.uniform(0, 100, rows)}
    columns |= {"g": rng.integers(0, 3, rows) + 0.0, "h": rng.integers(0, 2, rows) + 0.0}
    out = np.empty((len(design.names), rows))
    design.evaluate(columns, out)
    return out


@pytest.mark.parametrize("formula", CENTRED)
def test_centred_columns_are_a_public_map_of_those_written(formula):
    sides = two_sided(formula, BOOK)
    centres = product_centres(sides)
    assert centres == CENTRED[formula]
    terms, products = centred_sides(sides, centres).terms, product_map(sides, centres)
    written, centred = coded(sides.terms), coded(terms)
    np.testing.assert_allclose(
        centred, products.matrix @ written + products.shift[:, None], rtol=0, atol=1e-12
    )
    assert terms.names == sides.terms.names
    # The bounds are those of the centred columns: every row is within them.
    assert (centred >= terms.lower[:, None] - 1e-12).all()
    assert (centred <= terms.upper[:, None] + 1e-12).all()


@pytest.mark.parametrize("formula", CENTRED)
def test_both_codings_have_the_same_fitted_values(formula):
    sides = two_sided(formula, BOOK)
    products = product_map(sides, product_centres(sides))
    centred = coded(centred_sides(sides, product_centres(sides)).terms)
    size = len(products.shift) + sides.intercept
    theta = np.random.default_rng(2).normal(size=size)
    written = products.of_coefficients(sides.intercept) @ theta
    ones = np.ones((int(sides.intercept), centred.shape[1]))
    np.testing.assert_allclose(
        theta @ np.vstack([ones, centred]), written @ np.vstack([ones, coded(sides.terms)])
    )


@pytest.mark.parametrize("formula", AS_WRITTEN)
def test_other_formulas_stay_as_written(formula):
    sides = two_sided(formula, BOOK)
    assert product_centres(sides) == ()
    assert product_map(sides, ()) is None
    assert centred_sides(sides, ()) is sides


def test_proposed_points_are_those_within_the_range_of_a_number_in_a_product():
    sides = two_sided("y ~ x*g + z", BOOK)
    assert product_centres(sides, (("x", 3.0),)) == (("x", 3.0),)
    for proposed in ((("x", 21.0),), (("z", 7.0),), (("nobody", 0.0),), (("x", float("nan")),)):
        assert product_centres(sides, proposed) == ()
