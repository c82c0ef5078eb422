"""Row norms from the codebook: attained, never exceeded, and what cannot be asked."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design import private_design, row_coder, scaling
from dpmodels.errors import ArgumentError, CodebookError, FrameError, PrivacyError
from dpmodels.formula import design
from tests.mines import Mine

BOOK = dp.codebook(
    x=(-2, 6),
    y=(10, 12),
    z=(0, 5),
    g=["a", "b", "c", "d"],
    s=["F", "M"],
    w=list(range(12)),
)


def chosen(formula, *, scale="range", center=True, row_norm=None, book=BOOK):
    return scaling(design(formula, book), scale=scale, center=center, row_norm=row_norm)


def worst(formula, **options):
    return chosen(formula, **options).worst_case


def attained(formula, **options):
    """The longest scaled row among the corners of the codebook."""
    public = design(formula, BOOK)
    scaling = chosen(formula, **options)
    axes = [
        BOOK[name].levels
        if isinstance(BOOK[name], dp.Categorical)
        else (BOOK[name].lower, BOOK[name].upper)
        for name in public.variables
    ]
    corners = zip(*itertools.product(*axes), strict=True)
    coded = row_coder(public)(dict(zip(public.variables, map(list, corners), strict=True)))
    scaled = (coded - scaling.centre[:, None]) / scaling.scale[:, None]
    return math.sqrt((scaled**2).sum(axis=0).max())


SIMPLE = """
x
x + y
x + y + z
g
0 + g
g + s
x + g
x * y
y * z
x:y
g:s
g:x
s * x
g * s
0 + g:s
I(x ** 2) + y
log(y) + exp(-z)
C(g, Sum)
C(g, Poly)
C(g, Helmert)
C(g, Sum):y
C(s, Sum) * z
poly(x, 4)
cut(x, [-2, 0, 3, 6])
x > 0
""".strip().splitlines()


@pytest.mark.parametrize("formula", SIMPLE)
@pytest.mark.parametrize("scale", ["range", None])
@pytest.mark.parametrize("center", [False, True])
def test_the_worst_case_is_a_row_of_the_codebook(formula, scale, center):
    options = {"scale": scale, "center": center}
    declared, reached = worst(f"~ {formula}", **options), attained(f"~ {formula}", **options)
    assert declared * (1 - 1e-9) <= reached <= declared * (1 + 1e-9)


@pytest.mark.parametrize(("name", "levels"), [("s", 2), ("g", 4), ("w", 12)])
def test_the_dummies_of_a_factor_have_norm_one(name, levels):
    for formula in (f"~ {name}", f"~ 0 + {name}"):
        assert worst(formula, scale=None, center=False) == pytest.approx(1)
        assert worst(formula, scale="range", center=False) == pytest.approx(2)
    assert worst(f"~ 0 + {name}", scale=None) == pytest.approx(math.sqrt(1 - 1 / levels))
    assert worst(f"~ {name}", scale=None) <= math.sqrt(1 - 1 / levels) + 1e-12


def test_centring_never_makes_rows_longer():
    for formula in SIMPLE:
        for scale in ("range", None):
            plain = worst(f"~ {formula}", scale=scale, center=False)
            assert worst(f"~ {formula}", scale=scale, center=True) <= plain * (1 + 1e-12)


def test_numbers_are_centred_at_the_middle_of_their_range():
    scaling = chosen("~ x + y", scale="range")
    assert scaling.centre.tolist() == [2, 11]
    assert scaling.scale.tolist() == [4, 1]
    assert scaling.worst_case == pytest.approx(math.sqrt(2))
    assert chosen("~ x + y", center=False).centre.tolist() == [0, 0]
    assert worst("~ x + y", center=False) == pytest.approx(math.hypot(6 / 4, 12))
    assert worst("~ x + y", scale=None) == pytest.approx(math.hypot(4, 1))
    assert worst("~ x + y", scale=None, center=False) == pytest.approx(math.hypot(6, 12))


def test_the_standard_deviation_is_applied_later_so_sd_is_range_here():
    range_, sd = chosen("~ x + g", scale="range"), chosen("~ x + g", scale="sd")
    assert np.array_equal(range_.scale, sd.scale)
    assert range_.worst_case == sd.worst_case


@pytest.mark.parametrize(
    ("formula", "norm"),
    [
        ("~ x:z", 30),
        ("~ x:y:z", 360),
        ("~ 0 + g:x", 6),
        ("~ 0 + g:s", 1),
        ("~ 0 + g:s:y", 12),
        ("~ C(s, Sum):y", math.hypot(12, 12)),
        ("~ x * z", math.sqrt(6**2 + 5**2 + 30**2)),
    ],
)
def test_interactions_multiply_norms(formula, norm):
    assert worst(formula, scale=None, center=False) == pytest.approx(norm)


def test_many_levels_cost_no_more_than_two():
    wide = dp.codebook(k=list(range(1500)))
    assert worst("~ k", scale=None, center=False, book=wide) == pytest.approx(1)


def test_a_smaller_row_norm_clips_and_a_larger_one_changes_nothing():
    smaller = chosen("~ x + y", row_norm=0.5)
    assert smaller.row_norm == 0.5
    assert smaller.row_norm < smaller.worst_case
    assert smaller.worst_case == worst("~ x + y")
    larger = chosen("~ x + y", row_norm=100)
    assert larger.row_norm == larger.worst_case
    assert larger.row_norm == larger.worst_case
    assert chosen("~ x + y").row_norm == chosen("~ x + y").worst_case
    assert chosen("~ x", row_norm=Fraction(1, 3)).row_norm == pytest.approx(1 / 3)


def test_a_constant_column_has_no_length():
    scaling = chosen("~ I(0 * x)")
    assert scaling.centre.tolist() == [0]
    assert scaling.scale.tolist() == [1]
    assert scaling.row_norm == 1


def test_a_range_too_narrow_to_divide_by_is_a_constant():
    narrow = dp.codebook(x=(0, 5e-324), y=(0, 1))
    result = chosen("~ x + y", book=narrow)
    assert result.scale.tolist() == [1, 0.5]
    assert result.worst_case == pytest.approx(1)


@pytest.mark.parametrize("scale", ["sdev", "RANGE", "", 1, True, ["range"], np.ones(2), {}])
def test_a_scale_that_is_none_is_refused(scale):
    with pytest.raises(ArgumentError, match="scale="):
        chosen("~ x", scale=scale)


@pytest.mark.parametrize("center", ["yes", 1, 0, None, np.True_])
def test_centring_is_true_or_false(center):
    with pytest.raises(ArgumentError, match="center="):
        chosen("~ x", center=center)


@pytest.mark.parametrize(
    "row_norm",
    [0, -1, math.nan, math.inf, -math.inf, True, False, "1", 10**400, 1j, [1.0], 5e-324],
)
def test_a_row_norm_is_a_positive_number(row_norm):
    with pytest.raises(ArgumentError, match="row_norm="):
        chosen("~ x", row_norm=row_norm)


def test_a_private_design_reads_no_row_and_shows_none():
    class Column(Mine):
        def __init__(self, cells):
            self.cells, self.shape = cells, (len(cells),)

    data = {"x": Column([1.0, 987654.25]), "extra": Column(["nobody's", "business"])}
    design = private_design("~ x", data, BOOK)
    for text in (repr(design), str(design), f"{design}"):
        assert "987654" not in text
        assert "business" not in text
    with pytest.raises(PrivacyError, match="pickled"):
        design.__reduce__()
    with pytest.raises(FrameError, match="'z'"):
        private_design("~ z", data, BOOK)


@pytest.mark.parametrize("codebook", [None, {"x": (0, 1)}, "book", 3])
def test_a_codebook_is_needed(codebook):
    with pytest.raises(CodebookError, match=r"dp\.codebook"):
        private_design("~ x", {"x": [1.0]}, codebook)
