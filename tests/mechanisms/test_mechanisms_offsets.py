"""Offsets: a known part of the linear predictor, in every mechanism of counts and of two levels."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit

import dpmodels as dp
from dpmodels.errors import FormulaError, OutsideWarning
from dpmodels.formula.response import LARGEST_OFFSET
from dpmodels.mechanisms.minimise import provable_rows
from dpmodels.mechanisms.protocol import RegressionFacts, passes
from dpmodels.models.linear import linear
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import ZCDP, adjacency
from dpmodels.request import Request
from dpmodels.statistics.double_double import Pair
from dpmodels.statistics.losses import Logistic, Poisson

BOOK = dp.codebook(y=(0, 1), c=(0, 30), x=(0, 10), t=(0.5, 20), g=["a", "b"])
FORMULA = "x + g + offset(log(t))"
FAMILIES = {"binomial": "y", "poisson": "c"}
NO_NOISE = {"codebook": BOOK, "budget": ZCDP(1e9)}


def table(rows=6_000, seed=0):
    rng = np.random.default_rng(seed)
    x, t = rng.uniform(0, 10, rows), rng.uniform(0.5, 20, rows)
    g = rng.choice(["a", "b"], rows)
    linear = -3 + 0.2 * x + 0.4 * (g == "b") + np.log(t)
    counts = np.minimum(rng.poisson(np.exp(linear - 0.5)), 30)
    return {
        "y": (rng.random(rows) < expit(linear)).astype(int),
        "c": counts,
        "x": x,
        "t": t,
        "g": g,
    }


def maximum(data, family):
    design = np.column_stack([np.ones(len(data["x"])), data["g"] == "b", data["x"]]).astype(float)
    family_class = getattr(sm.families, family.capitalize())()
    response = data[FAMILIES[family]]
    return sm.GLM(response, design, family=family_class, offset=np.log(data["t"])).fit().params


def rows_of(loss, data, formula="y ~ x + offset(t)", book=BOOK):
    words = {"scale": "range", "row_norm": None, "family": "binomial"}
    words["family"] = "poisson" if isinstance(loss, Poisson) else "binomial"
    equations = linear(Request("glm", formula, book, ZCDP(1.0), adjacency("replace"), words))
    facts = RegressionFacts(equations.predictors, loss, adjacency("replace"))
    return passes(equations.design.bind(data), facts), equations.predictors


@pytest.mark.parametrize(
    ("family", "mechanism"),
    [
        *(("binomial", name) for name in ("objective", "gradients")),
        *(("poisson", name) for name in ("scores", "gradients")),
    ],
)
def test_without_noise_the_estimate_is_that_of_statsmodels(family, mechanism):
    data, clip = table(), {"clip": 60.0} if family == "poisson" else {}
    words = {**NO_NOISE, "family": family, "mechanism": mechanism, **clip}
    fit = dp.dp_glm(f"{FAMILIES[family]} ~ {FORMULA}", data, **words)
    np.testing.assert_allclose(fit.params, maximum(data, family), atol=2e-3)


def test_without_an_intercept_the_offset_still_counts():
    data = table()
    fit = dp.dp_glm("y ~ x + offset(log(t)) - 1", data, **NO_NOISE)
    design = data["x"][:, None]
    reference = sm.GLM(
        data["y"], design, family=sm.families.Binomial(), offset=np.log(data["t"])
    ).fit()
    np.testing.assert_allclose(fit.params, reference.params, atol=2e-3)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_neighbours_of_any_offset_move_a_gradient_by_one_row(relation):
    """Corners of the box, offsets at both ends and beyond them: never longer than the lattice."""
    book = BOOK | {"t": (-30, 30)}
    corners = [(x, t, y) for x in (0, 10, 1e9) for t in (-30, 0, 30, 1e300) for y in (0, 1)]
    for loss in (Logistic(), Poisson(30.0, 2.0)):
        sums, farthest = [], 0.0
        formula = "c ~ x + offset(t)" if isinstance(loss, Poisson) else "y ~ x + offset(t)"
        for x, t, y in corners:
            rows, predictors = rows_of(
                loss, {"x": [x], "t": [t], "y": [y], "c": [y]}, formula, book
            )
            lattice = Lattice(20, predictors.columns)
            points = [np.zeros(2), np.array([40.0, -3.0]), np.array([-1e5, 1e5])]
            values = [rows.gradient(point, lattice).cross()[0].astype(float) for point in points]
            sums.append(np.array(values) / lattice.radius)
        for sum_of_row in sums:
            alternatives = sums if relation == "replace" else [0 * sum_of_row]
            for alternative in alternatives:
                farthest = max(farthest, np.linalg.norm(sum_of_row - alternative, axis=1).max())
        allowed = 2.0 if relation == "replace" else 1.0
        assert 0.8 * allowed < farthest <= allowed


def test_slopes_are_derivatives_with_offsets_and_agree_with_precise_ones():
    data = table(300)
    rows, predictors = rows_of(Logistic(), data, f"y ~ {FORMULA}")
    at = np.array([0.4, -0.7, 1.1])
    slopes, step = rows.slopes(at, Logistic()), 1e-5
    for place, way in enumerate(np.eye(3) * step):
        up, down = (rows.slopes(at + sign * way, Logistic()).value for sign in (1, -1))
        assert (up - down) / (2 * step) == pytest.approx(slopes.gradient[place], abs=1e-6)
    precise, count = rows.precise_slopes(Pair(at, 0 * at), Logistic())
    np.testing.assert_allclose(precise.gradient, slopes.gradient, rtol=1e-12)
    assert count == 300
    assert np.log(20) <= predictors.largest_known < 2 * np.log(20)


def test_an_offset_takes_from_the_rows_that_are_proved():
    without, small, large = (
        provable_rows(50, 0.25, 10.0, 1e-4, largest_offset=offset) for offset in (0.0, 0.1, 30.0)
    )
    assert without >= small >= large > 1


def test_predictions_read_the_offset():
    fit = dp.dp_glm(f"c ~ {FORMULA}", table(), **NO_NOISE, family="poisson")
    new = {"x": [5, 5, 5], "t": [1.0, 4.0, None], "g": ["a", "a", "a"]}
    mean = fit.predict(new)
    assert mean[1] == pytest.approx(4 * mean[0])
    assert np.isnan(mean[2])
    prediction = fit.get_prediction(new)
    np.testing.assert_allclose(prediction["mean"], mean)
    np.testing.assert_allclose(prediction["mean_se"][1], 4 * prediction["mean_se"][0])
    np.testing.assert_allclose(np.exp(fit.decision_function(new)), mean)
    slopes = fit.margins({name: values[:2] for name, values in new.items()}, "x")
    expected = fit.params["x"] * mean[:2].mean()
    assert slopes.table["estimate"].iloc[0] == pytest.approx(expected, rel=1e-6)
    with pytest.warns(OutsideWarning, match="t: 1"):
        assert np.isnan(fit.predict({"x": [5], "t": [99.0], "g": ["a"]})[0])
    assert fit.predict({"x": [5], "t": [99.0], "g": ["a"]}, clip=True)[0] == pytest.approx(
        20 * mean[0]
    )


def test_an_offset_alone_gives_a_rate():
    data = table()
    fit = dp.dp_glm("c ~ 1 + offset(log(t))", data, **NO_NOISE, family="poisson", clip=60.0)
    assert fit.params["Intercept"] == pytest.approx(
        np.log(data["c"].sum() / data["t"].sum()), abs=1e-3
    )
    assert fit.predict({"t": [2.0]})[0] == pytest.approx(2 * np.exp(fit.params["Intercept"]))


def test_a_stored_fit_predicts_the_same(tmp_path):
    study = dp.session(table(), BOOK, eps=4, delta=1e-6)
    fit = study.glm(f"c ~ {FORMULA}", family="poisson", eps=2)
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    new = {"x": [5], "t": [3.0], "g": ["b"]}
    assert again.predict(new)[0] == fit.predict(new)[0]
    assert str(again.summary()) == str(fit.summary())
    assert again.release.clip == fit.release.clip
    assert "offset(log(t))" in str(dp.etable(fit)) + str(fit.summary())


@pytest.mark.parametrize(
    ("formula", "family", "message"),
    [
        ("c ~ x + offset(10 * t)", "poisson", f"from -{LARGEST_OFFSET:g} to {LARGEST_OFFSET:g}"),
        ("y ~ x + offset(10 * t)", "binomial", "narrower bounds"),
        ("c ~ x + offset(g)", "poisson", "'g' is a category"),
        ("c ~ x:offset(t)", "poisson", "a term of its own"),
        ("g ~ x + offset(t)", "multinomial", "one linear predictor"),
    ],
)
def test_offsets_that_cannot_be_are_refused_before_the_charge(formula, family, message):
    ledger = dp.Ledger(eps=1, delta=1e-5)
    words = {"codebook": BOOK, "eps": 0.5, "delta": 1e-6, "family": family, "ledger": ledger}
    with pytest.raises(FormulaError, match=message):
        dp.dp_glm(formula, table(20), **words)
    assert ledger.entries == ()
