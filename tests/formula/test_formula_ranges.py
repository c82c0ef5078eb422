"""Public ranges: interval arithmetic that holds, and is tight where a variable occurs once."""

import itertools
import math

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design import row_coder
from dpmodels.errors import FormulaError
from dpmodels.formula import design, functions

BOOK = dp.codebook(p=(0.5, 4), q=(1, 10), m=(-3, 2), n=(-5, -1), u=(0, 1), g=["a", "b"])
ONCE = """
p + m
m - n
p * m
m * n
n * q
n / q
m / p
p / n
-m
+m
2 * m + 1
1 - p / 3
10 / (m + 4)
(p + m) * (q - n)
m ** 2
m ** 3
m ** 4
n ** 2
n ** 3
n ** -1
n ** -2
n ** -3
p ** -0.5
u ** 0.3
p ** 20
p ** 1
abs(m)
abs(n)
abs(m + 0.5) * abs(n)
log(p)
log(q * p)
log10(q)
log2(p + 1)
log1p(u)
log1p(m / 4)
sqrt(u)
sqrt(p * q)
exp(m)
exp(-m * p)
exp(-(m ** 2))
clip(m, -1, 1)
clip(m, -10, 1)
clip(q, 20, 30)
clip(p, 0, 1)
clip(p * m, -4, 5)
pow(m, 2)
pow(q + m, 2)
ifelse(u > 0.5, p, m)
ifelse(g == "a", n, q ** 2)
(m > 0) * p
(m > 0) + (p > 1)
u + (g != "a")
1 / (1 + exp(-m))
sqrt(abs(m)) / (q + u)
log(1 + m ** 2) - exp(n)
""".strip().splitlines()


def box(steps):
    """A grid over the variables that occur, with both ends and the zeros of their ranges."""
    axes = {}
    for name, values in BOOK.items():
        if isinstance(values, dp.Numeric):
            inner = np.linspace(values.lower, values.upper, steps)
            zero = [0.0] if values.lower < 0 < values.upper else []
            axes[name] = np.array([*inner, *zero])
        else:
            axes[name] = np.array(values.levels)
    return axes


def sampled(public, steps):
    axes = [box(steps)[name] for name in public.variables]
    grid = list(zip(*itertools.product(*axes), strict=True))
    return row_coder(public)(dict(zip(public.variables, map(list, grid), strict=True)))


@pytest.mark.parametrize("expression", ONCE)
def test_the_range_holds_and_is_tight(expression):
    public = design(f"~ I({expression})", BOOK)
    values = sampled(public, 11)[0]
    (lower,), (upper,) = public.lower, public.upper
    width = upper - lower
    assert values.min() >= lower
    assert values.max() <= upper
    assert values.min() - lower <= 0.001 * width + 1e-9 * abs(lower)
    assert upper - values.max() <= 0.001 * width + 1e-9 * abs(upper)


@pytest.mark.parametrize(
    ("expression", "lower", "upper"),
    [
        ("m * m", -6, 9),
        ("m - m", -5, 5),
        ("m ** 2 - m", -2, 12),
        ("u * (1 - u)", 0, 1),
        ("p / (p + 1)", 0.1, 4 / 1.5),
    ],
)
def test_a_repeated_variable_widens_the_range_but_never_breaks_it(expression, lower, upper):
    public = design(f"~ I({expression})", BOOK)
    values = sampled(public, 101)[0]
    assert public.lower[0] == pytest.approx(lower)
    assert public.upper[0] == pytest.approx(upper)
    assert lower <= values.min() <= values.max() <= upper


@pytest.mark.parametrize(
    ("expression", "lower", "upper"),
    [
        ("log(p)", math.log(0.5), math.log(4)),
        ("m ** 2", 0, 9),
        ("n ** 2", 1, 25),
        ("n ** -1", -1, -0.2),
        ("abs(m)", 0, 3),
        ("exp(-m)", math.exp(-2), math.exp(3)),
        ("clip(m, -1, 1)", -1, 1),
        ("clip(q, 20, 30)", 20, 20),
        ("ifelse(u > 2, p, m)", -3, 4),
        ("0 * m", 0, 0),
        ("10 ** 2 / q", 10, 100),
    ],
)
def test_ranges_worked_out_by_hand(expression, lower, upper):
    public = design(f"~ I({expression})", BOOK)
    assert public.lower[0] == pytest.approx(lower, abs=0)
    assert public.upper[0] == pytest.approx(upper, abs=0)


def test_out_of_range_values_are_clipped_and_missing_ones_stay_missing():
    public = design("~ p + g", BOOK)
    cells = [-7, 0.5, 4, 4.0001, math.inf, -math.inf, math.nan, None, "many", 2]
    coded = row_coder(public)({"p": cells, "g": ["b"] * 9 + ["unlisted"]})
    assert public.names == ("g[T.b]", "p")
    expected = [0.5, 0.5, 4, 4, 4, 0.5, *[math.nan] * 4]
    assert np.array_equal(coded[1], expected, equal_nan=True)
    assert np.isnan(coded[0]).tolist() == np.isnan(expected).tolist()


def test_a_choice_not_taken_may_be_missing():
    public = design("~ ifelse(g == 'a', p, 0)", BOOK)
    coded = row_coder(public)({"g": ["a", "b", "a", None], "p": [1.0, None, None, 1.0]})
    assert np.array_equal(coded[0], [1, 0, math.nan, math.nan], equal_nan=True)


def test_a_library_that_rounds_carelessly_cannot_cross_a_pole(monkeypatch):
    def careless(x):
        return np.exp(x) * (1 - 1e-15 * (np.size(x) > 1))

    build = functions._increasing_function(careless, -math.inf, "")
    monkeypatch.setitem(functions.FUNCTIONS, "exp", build)
    below = math.nextafter(math.exp(0.1), 0)
    public = design(f"~ I(1 / (exp(x) - {below!r}))", dp.codebook(x=(0.1, 3)))
    coded = row_coder(public)({"x": [0.1, 0.1, 0.1 + 1e-16, 3.0]})
    assert coded[0].tolist() == pytest.approx([public.upper[0]] * 3 + [1 / (math.exp(3) - below)])
    with pytest.raises(FormulaError, match="reaches 0"):
        design(f"~ I(1 / (exp(x) - {math.exp(0.1)!r}))", dp.codebook(x=(0.1, 3)))
    with pytest.raises(FormulaError, match="not bounded; divide by another number"):
        design("~ I(x / 0)", dp.codebook(x=(0.1, 3)))


BASES = ["bs(m, [0])", "bs(m, [-1, 0, 1], 1)", "bs(m, [0], 0)", "poly(m, 3)", "poly(q, 7)"]


@pytest.mark.parametrize("expression", BASES)
def test_every_column_of_a_basis_stays_in_its_range(expression):
    public = design(f"~ {expression}", BOOK)
    values = sampled(public, 301)
    assert (values >= public.lower[:, None]).all()
    assert (values <= public.upper[:, None]).all()
    if expression.startswith("bs"):
        assert (values.sum(axis=0) <= 1 + 1e-12).all()
        assert (public.lower == 0).all()
        assert (public.upper == 1).all()
    else:
        assert values.max(axis=1) == pytest.approx(1)
        assert public.lower.tolist() == [-1] * len(public.names)


@pytest.mark.parametrize(
    ("formula", "lower", "upper"),
    [
        ("~ g", [0], [1]),
        ("~ C(g, Sum)", [-1], [1]),
        ("~ g:m", [-3, -3], [2, 2]),
        ("~ C(g, Sum):m", [-3, -3], [2, 3]),
        ("~ C(g, Sum) * m", [-1, -3, -3], [1, 2, 3]),
        ("~ m:n", [-10], [15]),
        ("~ m:n:u", [-10], [15]),
    ],
)
def test_interactions_multiply_ranges(formula, lower, upper):
    public = design(formula, BOOK)
    assert public.lower.tolist() == lower
    assert public.upper.tolist() == upper
