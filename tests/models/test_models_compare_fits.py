"""Mechanisms of regressions compared before anything is spent."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError, FormulaError
from dpmodels.formula.response import two_sided
from dpmodels.mechanisms.regression import COEFFICIENTS, REGRESSION
from dpmodels.models.compare import fit_spec
from dpmodels.models.simulated_rows import SHAPES, SimulatedFit, simulate_block, simulate_fit
from dpmodels.noise import simulation, source
from dpmodels.noise.lattice import MAX_BITS, Lattice
from dpmodels.privacy import adjacency, protecting
from dpmodels.report.layout import signif
from dpmodels.results.comparison import FitComparison

CODEBOOK = dp.codebook(
    wage=(0, 100),
    x=(0, 10),
    z=(-5, 5),
    region=["n", "s", "w"],
    born=dp.Date("1930-01-01", "1990-12-31"),
    case=["no", "yes"],
    visits=(0, 77),
)
USUAL = {"codebook": CODEBOOK, "n": 20_000, "eps": 1.0, "delta": 1e-6, "repeats": 1}


def compared(formula="wage ~ x + z", **words):
    return dp.compare_mechanisms(formula, **{**USUAL, **words})


@pytest.fixture(scope="module")
def usual():
    return compared()


@pytest.mark.product
def test_every_mechanism_of_the_verb_is_tried_on_every_shape(usual):
    assert sorted(usual.table["mechanism"]) == sorted(REGRESSION)
    assert len(usual.by_shape) == len(REGRESSION) * len(SHAPES)
    assert usual.table["error"].is_monotonic_increasing
    assert usual.best == usual.table["mechanism"][0]
    comparison = compared("case ~ x", family="binomial")
    assert sorted(comparison.predicted["mechanism"]) == sorted(COEFFICIENTS)
    assert usual.tidy().equals(usual.by_shape)


@pytest.mark.expensive
@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("log(wage + 1) ~ x * region + born", {}),
        ("wage ~ x + offset(z)", {"n": 10**7}),
        ("wage > 20 ~ x + 0", {"family": "binomial", "adjacency": "add-remove"}),
        ("visits ~ x", {"family": "poisson", "eps": None, "delta": 0.0, "budget": dp.ZCDP(0.5)}),
        ("wage ~ 1", {"eps": 0.5, "delta": 0.0}),
    ],
)
def test_what_a_budget_without_end_loses_is_nothing(formula, words):
    # Of rows far from their bounds: none is clipped, shortened or left out.
    budget_words = {"eps": 1e6} if words.get("eps", 1.0) else {"budget": dp.ZCDP(1e9)}
    first, huge = (
        compared(formula, row_length=0.1, **{**words, **options}).predicted["error"].min()
        for options in ({}, budget_words)
    )
    assert huge < 0.05
    assert first > 2 * huge


@pytest.mark.product
def test_the_automatic_choice_is_that_of_the_verb():
    names = set()
    for n, formula in ((2_000, "wage ~ x + z"), (200_000, "wage ~ x + z"), (500, "case ~ x")):
        family = "binomial" if "case" in formula else "gaussian"
        comparison = compared(formula, n=n, family=family)
        rows = {"wage": np.ones(n), "x": np.ones(n), "z": np.ones(n), "case": ["no"] * n}
        words = {"codebook": CODEBOOK, "eps": 1.0, "delta": 1e-6}
        with simulation(seed=1):
            verb = dp.dp_glm if family == "binomial" else dp.dp_lm
            fit = verb(formula, rows, **words)
        assert comparison.auto == (fit.release.info.name, fit.call.reason)
        names.add(comparison.auto.mechanism)
    assert names == {"scores", "objective"}


def test_how_far_the_automatic_choice_is_behind_is_by_shape(usual):
    wide = usual.by_shape.pivot_table("error", "shape", "mechanism", sort=False)
    expected = wide[usual.auto.mechanism] / wide.min(axis=1)
    pd.testing.assert_series_equal(usual.behind, expected, check_names=False)
    assert (usual.behind >= 1).all()


def test_rows_may_be_of_several_lengths():
    comparison = compared(row_length=[0.05, 0.5], mechanisms=["moments"])
    assert comparison.shapes["shape"].tolist() == ["length 0.05", "length 0.5"]
    short, long = comparison.by_shape["error"]
    # X'X of rows ten times as long is a hundred times as large, standard errors a tenth.
    assert short > 4 * long
    several = dp.compare_mechanisms(
        "~ x + z", codebook=CODEBOOK, n=3_000, eps=1, mechanisms=["laplace"], row_length=[0.1, 1.0]
    )
    ones = [
        dp.compare_mechanisms(
            "~ x + z", codebook=CODEBOOK, n=3_000, eps=1, mechanisms=["laplace"], row_length=length
        )
        for length in (0.1, 1.0)
    ]
    assert several.by_shape["shape"].tolist() == ["length 0.1", "length 1"]
    assert several.by_shape["relative"].tolist() == [length.table["relative"][0] for length in ones]
    assert several.table["relative_worst_at"].tolist() == ["length 0.1"]
    assert "0.10, 1.0 of" in several.summary().as_text()


def bound(family, formula, rows):
    """Rows of a formula in its joint design, with what is asked of them."""
    neighbours = adjacency("replace")
    arguments = (formula, CODEBOOK, dp.ApproxDP(1.0, 1e-6), neighbours, family, "range", None)
    way = fit_spec(*arguments)
    shapes = np.random.default_rng(5)
    sides = two_sided(formula, CODEBOOK)
    shares = np.full(len(sides.terms.codebook), 1 / len(sides.terms.codebook))
    rows_made = simulate_fit(sides, family, SHAPES["tails"], shares, rows, shapes)
    return way, rows_made


def written_out(rows_made):
    """The same rows, each as often as it occurs, one after another."""
    at = np.repeat(np.arange(len(rows_made.response)), rows_made.times.astype(int))
    return SimulatedFit(
        rows_made.terms[:, at], rows_made.response[at], len(at), rows_made.intercept
    )


def test_gradients_of_rows_that_stand_several_times_are_exact():
    way, rows_made = bound("binomial", "case ~ x + z", 5_000)
    strategy = COEFFICIENTS["gradients"]()
    plan = strategy.plan(way.facts, dp.ApproxDP(1.0, 1e-6))
    rows = [
        source.within(way.private, None).measured(strategy, plan)
        for source in (rows_made, written_out(rows_made))
    ]
    joint, separate = (
        row.within(rows[0]._predictors.within(np.array([0.1, 0.0]), 0.4)) for row in rows
    )
    point, lattice = np.array([0.3, -2.0, 1.0]), Lattice(MAX_BITS, 3)
    for name, arguments in (
        ("gradient", (point, lattice)),
        ("curvature", (point, lattice)),
        ("squares", (point, lattice)),
        ("moments", (lattice,)),
        ("outcomes", ()),
        ("sums", ()),
        ("lengths", (np.array([0.1, 0.2, 0.4]),)),
    ):
        first, second = (getattr(rows, name)(*arguments).cross() for rows in (joint, separate))
        assert first[1] == second[1] == 5_000
        assert (first[0] == second[0]).all(), name
    assert joint.rows == 5_000
    for first, second in zip(
        *(passes.slopes(point, way.facts.loss) for passes in (joint, separate)), strict=True
    ):
        np.testing.assert_allclose(first, second, rtol=1e-12)


def test_a_release_of_rows_that_stand_several_times_is_that_of_the_rows():
    for family, formula, name in (
        ("gaussian", "wage ~ x + z", "ellipsoid"),
        ("poisson", "visits ~ x", "gradients"),
    ):
        way, rows_made = bound(family, formula, 5_000)
        strategy = (REGRESSION | COEFFICIENTS)[name]()
        plan = strategy.plan(way.facts, dp.ApproxDP(1.0, 1e-6))
        results = []
        for value in (rows_made, written_out(rows_made)):
            with simulation(seed=3):
                statistic = value.within(way.private, None).measured(strategy, plan)
                release = strategy.release(statistic, plan, source())
            results.append(way.of(release).params)
        pd.testing.assert_series_equal(*results, check_exact=True)


def test_invented_variables_keep_to_their_declarations():
    sides = two_sided("wage ~ x + region + born", CODEBOOK)
    for shape in {**SHAPES, **simulate_block((0.2, 1.0))}.values():
        rows_made = simulate_fit(
            sides, "gaussian", shape, np.full(3, 1 / 3), 3_000, np.random.default_rng(1)
        )
        ends = sides.terms.lower[:, None], sides.terms.upper[:, None]
        assert ((rows_made.terms >= ends[0]) & (rows_made.terms <= ends[1])).all()
        assert ((rows_made.response >= 0) & (rows_made.response <= 100)).all()
        at = [sides.terms.names.index(f"region[T.{level}]") for level in "sw"]
        np.testing.assert_allclose(rows_made.terms[at].mean(axis=1), [3 / 11, 2 / 11], atol=0.05)
        assert rows_made.times.sum() == 3_000


def test_a_coefficient_that_rows_leave_open_is_said():
    # Of numbers at their bounds a square is a constant.
    comparison = compared("wage ~ x + I(x**2 - 10*x)", mechanisms=["moments"])
    open_ = comparison.by_shape.set_index("shape")["error"].isna()
    assert open_["dummies"]
    assert not open_["box"]
    assert "open" in comparison.summary().as_text()
    assert np.isnan(comparison.behind["dummies"])


@pytest.mark.product
def test_the_report_says_how_far_the_automatic_choice_is_behind(usual):
    text = " ".join(usual.summary(notes="all").as_text().split())
    assert f'mechanism="auto" uses {usual.auto.mechanism}' in text
    assert f"{signif(usual.behind.max(), 3)} at worst" in text
    assert "nothing spent" in repr(usual)
    unfit = compared("visits ~ x", family="poisson").summary(notes="all").as_text()
    assert "Not listed: objective" in unfit
    left, right = usual.plot()
    assert len(left.patches) == len(right.patches) == len(REGRESSION)


def test_no_ledger_is_charged_and_an_answer_comes_again(monkeypatch, usual):
    monkeypatch.setattr(dp.Ledger, "charge", None)
    with simulation(seed=8):
        pd.testing.assert_frame_equal(compared().table, usual.table)


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("formula", "words", "error", "reason"),
    [
        ("wage ~ x | region", {}, FormulaError, "groups after"),
        ("~ x", {"family": "binomial"}, ArgumentError, "goes with a response"),
        ("wage ~ x", {"family": "svm"}, ArgumentError, 'expected "gaussian"'),
        ("wage ~ x", {"ncomp": 1}, ArgumentError, "ncomp= goes with"),
        ("wage ~ x", {"center": False}, ArgumentError, "center= goes with"),
        ("wage ~ x", {"denoise": None}, ArgumentError, "denoise= goes with"),
        ("wage ~ x", {"scale": None}, ArgumentError, "leave out scale="),
        ("wage ~ x", {"mechanisms": ["gauss"]}, ArgumentError, "'gauss' is not known"),
        ("wage ~ x", {"row_length": []}, ArgumentError, "in a list"),
        ("wage ~ x", {"row_length": [0.5, 0.5]}, ArgumentError, "different"),
        ("wage ~ x", {"row_length": [0.5, 2]}, ArgumentError, "row_length=2"),
        ("wage ~ x", {"n": 1}, ArgumentError, "n=1"),
        ("visits ~ x", {"family": "poisson", "delta": 0.0}, BudgetError, "delta"),
    ],
)
def test_a_wrong_word_is_refused_with_what_to_write(formula, words, error, reason):
    with pytest.raises(error, match=reason):
        compared(formula, **words)


def test_persons_are_refused():
    persons = dp.codebook(wage=(0, 9), x=(0, 1), person="id")
    without = {"codebook": persons, "mechanisms": ["moments"], "person": False}
    assert compared("wage ~ x", **without).best == "moments"
    neighbours = protecting(adjacency("replace"), 3, "id")
    for words in ({"adjacency": neighbours}, {"codebook": persons}, {"person": "id", "rows": 3}):
        with pytest.raises(ArgumentError, match="write person=False"):
            compared("wage ~ x", **words)


def test_the_loss_of_the_automatic_choice_is_by_shape_and_nan_where_nothing_is_estimated():
    """Over the best mechanism of each shape; also of a shape without any estimate."""
    by_shape = pd.DataFrame(
        {
            "mechanism": ["objective", "output"] * 3,
            "shape": np.repeat(["normal", "skewed", "constant"], 2),
            "error": [2.0, 1.0, 1.5, 3.0, np.nan, np.nan],
        }
    )

    def behind(mechanism):
        fits = SimpleNamespace(by_shape=by_shape, auto=SimpleNamespace(mechanism=mechanism))
        return FitComparison.behind.fget(fits)

    losses = {"normal": 2.0, "skewed": 1.0, "constant": np.nan}
    assert behind("objective").to_dict() == pytest.approx(losses, nan_ok=True)
    assert behind("gradients").isna().tolist() == [True] * 3
