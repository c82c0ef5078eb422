"""Components of rows: every row's lie in the declared bounds, and the bounds are tight."""

import math
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpmodels as dp
from dpmodels.errors import ArgumentError, FrameError, NotAvailable
from dpmodels.results.call import MomentsCall
from dpmodels.results.components import Analysis

BOOK = dp.codebook(a=(0, 10), b=(-3, 1), c=(18, 100), kind=["u", "v", "w"], label=["no", "yes"])
SETTINGS = [
    {},
    {"scale": None},
    {"scale": "sd"},
    {"center": False},
    {"center": False, "scale": None},
    {"row_norm": 1.2},
    {"row_norm": 0.8, "center": False},
    {"row_norm": "unit"},
    {"row_norm": "unit", "center": False},
    {"mechanism": "ppca", "center": False, "delta": 0.0},
]
FREE = st.floats(-200, 200)


def table(rows=400, seed=3):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "a": rng.uniform(-1, 11, rows),
            "b": rng.uniform(-3, 1, rows),
            "c": rng.uniform(10, 100, rows),
            "kind": rng.choice(["u", "v", "w"], rows),
            "label": rng.choice(["no", "yes"], rows),
        }
    )


def fitted(formula="~ a + b + c + kind", **words):
    words = {"eps": 2.0, "delta": 1e-6, "ncomp": 3} | words
    with dp.simulation(seed=11):
        return dp.dp_pca(formula, table(), codebook=BOOK, **words)


FITS = [(fitted(**words), words) for words in SETTINGS]


def bounds(pcs):
    declared = pcs.codebook.values()
    return np.array([bound.lower for bound in declared]), np.array(
        [bound.upper for bound in declared]
    )


def lengths(fit, rows):
    """Norms of the scaled rows of the fit, which it shrinks beyond the row norm."""
    return np.linalg.norm(fit.call.scaled(fit.coder(rows)), axis=0)


@pytest.mark.product
@settings(max_examples=30, deadline=None)
@given(st.sampled_from(range(len(FITS))), st.tuples(FREE, FREE, FREE), st.sampled_from("uvw"))
def test_every_row_lies_in_the_bounds(which, numbers, kind):
    fit, _ = FITS[which]
    corners = [*product((0, 10), (-3, 1), (18, 100), "uvw"), (*numbers, kind)]
    rows = pd.DataFrame(corners, columns=["a", "b", "c", "kind"])
    pcs = fit.components
    rows = rows[lengths(fit, rows) <= fit.call.row_norm * (1 + 1e-12)]
    scores = pcs.predict(rows).to_numpy()
    lower, upper = bounds(pcs)
    assert ((scores >= lower) & (scores <= upper)).all()
    centred = scores - (lower + upper) / 2
    for scale, divisor in ((None, 1.0), ("range", (upper - lower) / 2)):
        longest = np.linalg.norm(centred / divisor, axis=1).max(initial=0.0)
        assert longest <= pcs.row_norm(scale) * (1 + 1e-12)


@pytest.mark.parametrize("words", [{}, {"scale": None}, {"center": False}, {"scale": "sd"}])
def test_bounds_are_those_of_the_corners(words):
    fit = fitted("~ a + b + c", mechanism="gauss", **words)
    corners = pd.DataFrame([*product((0, 10), (-3, 1), (18, 100))], columns=["a", "b", "c"])
    scores = fit.components.predict(corners).to_numpy()
    lower, upper = bounds(fit.components)
    middle = (lower + upper) / 2
    np.testing.assert_allclose(np.abs(scores - middle).max(axis=0), upper - middle, rtol=1e-8)


def test_the_ball_is_tighter_than_the_box_and_is_reached():
    wide, narrow = fitted("~ a + b + c"), fitted("~ a + b + c", row_norm=0.5)
    (lower, upper), norm = bounds(narrow.components), narrow.components.row_norm(None)
    assert norm == pytest.approx(0.5)
    assert ((upper - lower) / 2 <= 0.5 * (1 + 1e-8)).all()
    assert (upper - lower < np.subtract(*bounds(wide.components)[::-1])).all()
    # Along a component the ball's farthest point is in the box, whose sides are 1.
    along = narrow.loadings.to_numpy()[:, 0] * 0.5
    rows = pd.DataFrame(
        {"a": [5 + 5 * along[0]], "b": [-1 + 2 * along[1]], "c": [59 + 41 * along[2]]}
    )
    reached = narrow.predict(rows)["PC1"].item() - (lower[0] + upper[0]) / 2
    assert reached == pytest.approx((upper[0] - lower[0]) / 2)


def test_components_are_those_of_transform_under_the_rows_index():
    fit = fitted()
    rows = table(50).set_index(np.arange(100, 150)[::-1])
    rows.loc[120, "b"] = np.nan
    predictions = fit.predict(rows)
    assert predictions.index.equals(rows.index)
    assert list(predictions) == list(fit.components.codebook) == ["PC1", "PC2", "PC3"]
    np.testing.assert_array_equal(predictions, fit.transform(rows))
    assert predictions.index[predictions.isna().any(axis=1)].tolist() == [120]
    parts = [fit.predict(rows.iloc[:20]), fit.predict(rows.iloc[20:])]
    pd.testing.assert_frame_equal(pd.concat(parts), predictions)
    assert fit.predict(rows.to_dict("list")).index.equals(pd.RangeIndex(50))


@pytest.mark.parametrize("verb", [dp.dp_svm, dp.dp_glm])
def test_two_stages_under_one_ledger(verb):
    rng = np.random.default_rng(5)
    rows = table(4000)
    rows["label"] = np.where(rows["a"] + rng.normal(0, 1, 4000) > 5, "yes", "no")
    ledger = dp.Ledger(eps=2.0, delta=1e-6, pure=1.0 if verb is dp.dp_svm else 0.0)
    words = {"eps": 1.0, "delta": 1e-6, "ledger": ledger}
    with dp.simulation(seed=4):
        pca = dp.dp_pca("~ a + b + c", rows, codebook=BOOK, **words)
        pcs = pca.components
        second = verb(
            "label ~ .",
            pcs.predict(rows).assign(label=rows["label"]),
            codebook=pcs.codebook | BOOK.select(["label"]),
            row_norm=pcs.row_norm(),
            **words,
        )
    # Smaller than what the codebook's bounds say one by one.
    assert second.call.row_norm == pytest.approx(pcs.row_norm())
    assert pcs.row_norm() < 0.99 * second.call.worst_case
    public = table(500, seed=6)
    sign = second.params["Intercept"] + pcs.predict(public) @ second.params.iloc[1:].to_numpy()
    assert ((sign > 0) == (public["a"] > 5)).mean() > 0.85
    assert [entry.label.split()[0] for entry in ledger.entries] == ["dp_pca", verb.__name__]
    assert ledger.spent.amount <= 2.0 * (1 + 1e-9)


def test_bad_words():
    pcs = fitted().components
    for scale in ("sd", 1, ["range"]):
        with pytest.raises(ArgumentError, match="scale"):
            pcs.row_norm(scale)
    with pytest.raises(FrameError, match="c"):
        pcs.predict({"a": [1.0], "b": [0.0], "kind": ["u"]})
    with pytest.raises(NotAvailable, match="center=False"):
        _ = fitted(mechanism="ppca", delta=0.0).components
    assert "PC1, PC2, PC3" in repr(pcs)
    assert "array" not in repr(pcs)


def test_no_row_lies_beyond_a_released_mean_that_noise_moved_out_of_the_box():
    """Distances below and above the mean (1.5, .25), along both columns and against the first."""
    box = (np.array([-1.0, 0.5]), np.array([1.0, 2.0]))
    moments = SimpleNamespace(
        call=SimpleNamespace(box=box, row_norm=10.0),
        plain=SimpleNamespace(mean=np.array([1.5, 0.25])),
    )
    directions = np.array([[1.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
    below, above = Analysis.reach(moments, directions)
    # A row that was shortened lies between the box and the origin.
    assert below == pytest.approx([2.5, 0.25, 0.0])
    assert above == pytest.approx([0.0, 1.75, 2.5])


@pytest.mark.parametrize("error_sds", [0.0, 1.96])
def test_what_was_clipped_is_a_share_of_the_rows_with_its_noise(error_sds):
    tails = SimpleNamespace(beyond=30.0, beyond_sd=4.0)
    analysis = SimpleNamespace(plain=SimpleNamespace(count=1000.0), cut=(0.25, None, None))
    lost, error, root = Analysis._clipped_off(analysis, tails, error_sds)
    assert (lost, error) == pytest.approx((0.03, error_sds * 0.004))
    # By Cauchy and Schwarz: of the rows that were clipped, and of what was cut off them.
    assert root == pytest.approx(math.sqrt(0.25 * (0.03 + error_sds * 0.004)))
    tails.beyond = -30.0
    assert Analysis._clipped_off(analysis, tails, error_sds)[2] == 0.0


def test_rows_of_length_one_have_coordinates_of_the_signs_of_their_bounds():
    call = SimpleNamespace(origin=np.array([0.0, 1.0, 9.0, 0.0]), divisor=3.0, unit_rows=True)
    call.lower, call.upper = np.array([-2.0, 1.0, 2.0, 0.0]), np.array([5.0, 4.0, 8.0, 0.0])
    low, high = MomentsCall.box.fget(call)
    assert list(zip(low, high, strict=True)) == [(-1, 1), (0, 1), (-1, 0), (0, 0)]
    call.unit_rows = False
    assert MomentsCall.box.fget(call)[1] == pytest.approx([5 / 3, 1.0, -1 / 3, 0.0])


def test_of_rows_that_may_be_shortened_three_standard_errors_more_are_taken():
    ball = SimpleNamespace(shortened=0.04, shortened_sd=0.003)
    analysis = SimpleNamespace(release=SimpleNamespace(ball=ball), independent=2500.0)
    analysis.call = SimpleNamespace(box=(np.array([-2.0, 0.0]), np.array([1.0, 3.0])))
    analysis.plain = SimpleNamespace(mean=np.array([-0.5, 0.2]))
    share, farthest, mean = Analysis.cut.func(analysis)
    # Noise of .003 and sampling of sqrt(.04 / 2,500) = .004 are .005 together.
    assert share == pytest.approx(0.055)
    assert (farthest.tolist(), mean.tolist()) == ([2.0, 3.0], [0.5, 0.2])
    ball.shortened = 0.999
    assert Analysis.cut.func(analysis)[0] == 1.0
    analysis.release.ball = None
    assert Analysis.cut.func(analysis)[0] == 0.0
