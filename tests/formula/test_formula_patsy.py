"""Names and columns against patsy, which reads the same formula and the same rows."""

import numpy as np
import pandas as pd
import patsy
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from numpy.polynomial import legendre

import dpmodels as dp
from dpmodels.design import row_coder
from dpmodels.formula import design
from dpmodels.formula.parse import parsed_formula

BOOK = dp.codebook(
    {"body mass": (15, 40)},
    x=(-2, 3),
    y=(0.5, 9),
    z=(0, 100),
    g=["a", "b", "c"],
    h=["no", "yes"],
    k=[0, 1, 2, 5],
    t=[False, True],
)
FUNCTIONS = {
    name: getattr(np, name) for name in ("abs", "exp", "log", "log10", "log1p", "log2", "sqrt")
} | {"pow": np.power, "clip": np.clip, "ifelse": np.where}


def table(rows=60):
    """Rows in range in which every level occurs, as lists and as patsy wants them."""
    random = np.random.default_rng(2)
    data = {}
    for name, values in BOOK.items():
        if isinstance(values, dp.Numeric):
            data[name] = random.uniform(values.lower, values.upper, rows)
            data[name][:2] = values.lower, values.upper
        else:
            data[name] = [
                values.levels[code % len(values.levels)] for code in random.permutation(rows)
            ]
    frame = pd.DataFrame(
        {
            name: cells
            if isinstance(BOOK[name], dp.Numeric)
            else pd.Categorical(cells, categories=list(BOOK[name].levels))
            for name, cells in data.items()
        }
    )
    return data, frame


DATA, FRAME = table()


def ours(formula):
    public = design(formula, BOOK)
    coded = row_coder(public)({name: DATA[name] for name in public.variables})
    return list(public.names), coded.T


def theirs(formula):
    spaces = patsy.EvalEnvironment([FUNCTIONS])
    matrix = patsy.dmatrix(formula, FRAME, eval_env=spaces)
    names = list(matrix.design_info.column_names)
    values = [j for j, name in enumerate(names) if name != "Intercept"]
    return [names[j] for j in values], np.asarray(matrix)[:, values]


def assert_equal(formula):
    names, coded = ours(formula)
    expected, matrix = theirs(formula)
    assert names == expected
    np.testing.assert_allclose(coded, matrix, rtol=1e-12, atol=1e-12)


ALGEBRA = """
x
x + y
x + y + x
x + y - y + y
x * y - x
x:y
y:x + x:y
x * y * z
x / y
(x + y) / z
x / (y + z)
g / x
x / g
(x + y + z) ** 2
(x + g + h) ** 3
(x + y) ** 1
(x + y):(g + z)
(x + y) * (y + z)
x + (y + (z + g))
x + y + z - (x + z) + z
0 + x
x + 0
x - 1
-1 + x
1 + x
0 + 1 + x
x - 1 + 1
x + (y - 1)
x + (y + 0) + 1
+ x
+ x + y - y + y
g
0 + g
g - 1
g + h
0 + g + h
0 + h + g + k
g:h
0 + g:h
g + g:h
g * h
0 + g * h
g * h * k
g:h:k
0 + g:h:k
g * h - g
g * h - h
g * h - g:h
g / h
g / h / k
(g + h + k) ** 2
x + g + y + h
x:g
x + x:g
0 + x:g
g:x
g + g:x
x * g
0 + x * g
x * y * g
x:y:g
x:g:h
x * g * h
(x + g) * (y + h)
x:g + y:h + g:h
k
t
k:t
0 + t
t * x
""".strip().splitlines()

CODINGS = """
C(g)
C(g, Treatment)
C(g, Treatment())
C(g, Treatment("b"))
C(g, Treatment(reference="c"))
C(g, Sum)
C(g, Sum())
C(g, Poly)
C(g, Helmert)
C(g, Diff)
C(k, Poly)
C(k, Treatment(5))
C(h, Sum) * C(g, Helmert)
C(h, Sum):C(g, Helmert)
0 + C(g, Sum)
0 + C(g, Sum):C(h, Poly)
0 + C(g, Poly):x
C(g, Sum) + C(g, Sum):x
C(g, Diff) * h * x
C(g, Treatment("b")) * C(h, Treatment("yes"))
C(C(g, Sum), Poly)
C(x > 0)
C(x > 0, Sum)
""".strip().splitlines()

EXPRESSIONS = """
I(x + y)
I(x * y - z / 3)
I(x ** 2)
I(-x)
I(+x)
I(x + 1) + I(1 + x)
I((x + 2) * (y - 1) / (z + 1))
I(2 * (x + y) ** 3)
I(y ** -2)
I(y ** 0.5)
I(10 ** 2 * x)
log(y)
log( y+1 )
log1p(z) + log10(y) + log2(y)
exp(x) + sqrt(z) + abs(x)
exp(-abs(x))
sqrt(log(y + 1))
pow(y, 3)
clip(x, -1, 1)
clip(z, 0, 10 ** 1)
ifelse(x > 0, x, 0)
ifelse(g == "a", x, y)
x > 0
I(x > 0)
I((x > 0) & (y < 5))
I((x > 0) | ~(y < 5))
g == "b"
I(g != "b")
I((x > 1) * y)
log(y):g + exp(x):h
log(y) * g
(log(y) + sqrt(z)) ** 2
Q("body mass")
Q("body mass"):g + log(Q("body mass"))
Q("body mass") * x
""".strip().splitlines()


@pytest.mark.parametrize("formula", ALGEBRA + CODINGS + EXPRESSIONS)
def test_columns_are_those_of_patsy(formula):
    assert_equal(f"~ {formula}")


def test_a_formula_without_a_tilde_is_a_right_hand_side():
    assert_equal("x + g")


TERMS = st.sampled_from(["x", "y", "g", "h", "C(g, Sum)", "I(x + y)", "log(y)", "k", "x > 0"])


def grown(inner):
    pair = st.tuples(inner, st.sampled_from([" + ", " - ", ":", " * ", " / "]), inner)
    return pair.map("({0[0]}{0[1]}{0[2]})".format) | inner.map("({}) ** 2".format)


@pytest.mark.product
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(
    st.recursive(TERMS, grown, max_leaves=6),
    st.sampled_from(["", "0 + "]),
    st.sampled_from(["", " - 1", " + 1"]),
)
def test_random_algebra_is_that_of_patsy(terms, head, tail):
    formula = f"~ {head}{terms}{tail}"
    try:
        parsed_formula(formula, BOOK)
    except dp.errors.FormulaError as error:
        # patsy subtracts what is not there, and takes a power of one term for it, and says nothing.
        assume("subtracts" not in str(error) and "itself, as in R" not in str(error))
    if not theirs(formula)[0]:
        with pytest.raises(dp.errors.FormulaError, match="no terms"):
            design(formula, BOOK)
        return
    assert_equal(formula)


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("knots", [[0.5], [-1, 0, 2.5]])
def test_splines_are_those_of_patsy(degree, knots):
    public = design(f"~ bs(x, knots={knots}, degree={degree})", BOOK)
    coded = row_coder(public)({"x": DATA["x"]}).T
    expected = patsy.dmatrix(
        f"bs(x, knots={knots}, degree={degree}, lower_bound=-2, upper_bound=3) - 1", FRAME
    )
    np.testing.assert_allclose(coded, np.asarray(expected), rtol=1e-10, atol=1e-12)
    assert len(public.names) == coded.shape[1] == len(knots) + degree


def test_splines_are_cubic_and_numbered():
    short, long = design("~ bs(x, [0, 1])", BOOK), design("~ bs(x, [0, 1], 3)", BOOK)
    assert short.names == tuple(f"bs(x, [0, 1]){j}" for j in range(1, 6))
    assert np.array_equal(*(row_coder(value)({"x": DATA["x"]}) for value in (short, long)))


@pytest.mark.parametrize("degree", [1, 2, 4, 10])
def test_polynomials_are_legendre_over_the_declared_range(degree):
    coded = row_coder(design(f"~ poly(z, {degree})", BOOK))({"z": DATA["z"]})
    for order in range(1, degree + 1):
        expected = legendre.Legendre.basis(order, domain=[0, 100])(DATA["z"])
        np.testing.assert_allclose(coded[order - 1], expected, rtol=1e-12, atol=1e-12)


def test_cut_is_that_of_pandas():
    breaks = [-2, -0.5, 0, 1.25, 3]
    public = design(f"~ 0 + cut(x, {breaks})", BOOK)
    coded = row_coder(public)({"x": [-2, -0.5, *DATA["x"]]}).T
    expected = pd.get_dummies(pd.cut([-2, -0.5, *DATA["x"]], breaks, include_lowest=True))
    assert np.array_equal(coded, expected.to_numpy(dtype=float))
    assert [name.partition(")[")[2] for name in public.names] == [
        "[-2, -0.5]]",
        "(-0.5, 0]]",
        "(0, 1.25]]",
        "(1.25, 3]]",
    ]
