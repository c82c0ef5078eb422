"""Public rows given to a fit: those outside the codebook are counted, and clipped on request."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, NotAvailable, OutsideWarning

BOOK = dp.codebook(
    y=(-5, 5), x=dp.Numeric(0, 10, missing=[-9]), g=["a", "b"], day=("2001-01-01", "2001-12-31")
)
RNG = np.random.default_rng(2)
ROWS = pd.DataFrame(
    {
        "x": RNG.uniform(0, 10, 600),
        "g": RNG.choice(["a", "b"], 600),
        "day": pd.to_datetime("2001-06-01") + pd.to_timedelta(RNG.integers(0, 90, 600), "D"),
    }
)
ROWS["y"] = 0.3 * ROWS["x"] - 1 + RNG.normal(size=600)
NEW = pd.DataFrame(
    {
        "x": [2.0, 11.0, -9.0, np.nan, 3.0],
        "g": ["a", "b", "a", "b", None],
        "day": ["2001-02-01", "2002-02-01", "2001-03-01", "2001-03-01", "2001-03-01"],
        "id": list("pqrst"),
    },
    index=[10, 11, 12, 13, 14],
)
ASKED = {"codebook": BOOK, "eps": 1e6, "delta": 1e-6}


@pytest.fixture(scope="module")
def fits():
    with dp.simulation(seed=1):
        return {
            "lm": dp.dp_lm("y ~ x + g + day", ROWS, **ASKED),
            "glm": dp.dp_glm("g ~ x + day", ROWS, **ASKED),
            "bare": dp.dp_glm("g ~ x + day", ROWS, mechanism="output", **ASKED),
            "svm": dp.dp_svm("g ~ x + day", ROWS, **ASKED),
            "pca": dp.dp_pca("~ x + day + y", ROWS, ncomp=2, **ASKED),
        }


@pytest.mark.expensive
@pytest.mark.parametrize("name", ["lm", "glm", "svm"])
def test_rows_outside_are_counted_and_nan_or_held_on_request(fits, name):
    ask = getattr(fits[name], "decision_function", fits[name].predict)
    with pytest.warns(
        OutsideWarning, match=r"1 of 5 public rows .*\(x: 1, day: 1\)"
    ) as warnings_raised:
        free = np.asarray(ask(NEW), dtype=float)
    # The line that is named is the caller's.
    assert warnings_raised[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predictions = np.asarray(ask(NEW, clip=True), dtype=float)
        edge = NEW.assign(
            x=NEW["x"].replace(11.0, 10.0), day=NEW["day"].replace("2002-02-01", "2001-12-31")
        )
        same = np.asarray(ask(edge), dtype=float)
    unlisted = name == "lm"
    assert np.isnan(free).tolist() == [False, True, True, True, unlisted]
    assert np.isnan(predictions).tolist() == [False, False, True, True, unlisted]
    np.testing.assert_array_equal(predictions, same)


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"g": ["a", "z"]}, r"'g' in row 2 of the .* declares \(a \| b\): write such a value"),
        ({"g": pd.Categorical(["B", "a"])}, r"'g' in row 1 of the public rows is not what the"),
        ({"x": [1.0, "one"]}, r"'x' in row 2 of .* declares \(0 to 10; missing: -9\)"),
        ({"day": ["2001-13-01"] * 2}, r"'day' in row 1 of .* declares \(2001-01-01 to"),
    ],
)
def test_public_cells_that_are_not_as_declared_are_refused_and_not_quoted(fits, cells, said):
    new = {"x": [1.0, 2.0], "g": ["a", "b"], "day": ["2001-02-01"] * 2} | cells
    for ask in (fits["lm"].predict, fits["lm"].get_prediction, fits["lm"].augment):
        with pytest.raises(ArgumentError, match=said) as refusal:
            ask(new)
        assert not any(cell in str(refusal.value) for cell in ("z'", "B", "one", "2001-13"))


def test_missing_public_cells_are_no_error(fits):
    cells = {"x": [-9, "", np.nan, 1], "g": ["a", "a", "a", pd.NA], "day": ["2001-02-01"] * 4}
    assert np.isnan(fits["lm"].predict(cells)).all()
    assert np.isnan(fits["glm"].predict(cells | {"day": [pd.NaT] * 4})).all()


def test_a_level_below_a_half_is_an_error_rate_and_is_refused(fits):
    for ask in (fits["lm"].conf_int, fits["lm"].noise_int, fits["pca"].noise_int):
        with pytest.raises(ArgumentError, match=r"alpha=0.1, write level=0.9"):
            ask(0.1)


def test_rows_of_a_fit_and_of_a_second_model_are_held_without_a_word(fits):
    wide = ROWS.assign(x=ROWS["x"] * 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OutsideWarning)
        with dp.simulation(seed=1):
            dp.dp_lm("y ~ x", wide, **ASKED)
        # Components of private rows go to another verb.
        scores = fits["pca"].predict(wide.assign(y=9.0))
    assert np.isfinite(scores).all(axis=None)


@pytest.mark.parametrize("name", ["lm", "glm", "bare", "svm", "pca"])
def test_augment_keeps_the_rows_and_says_what_is_told_of_each(fits, name):
    new = NEW.assign(y=0.0)
    with pytest.warns(OutsideWarning):
        table = fits[name].augment(new)
    pd.testing.assert_frame_equal(table[list(new)], new)
    assert table[".outside"].tolist() == [False, True, False, False, False]
    added = list(table)[len(list(new)) : -1]
    if name == "pca":
        assert added == [".fittedPC1", ".fittedPC2"]
        want = fits["pca"].predict(new.iloc[:1]).to_numpy()
        np.testing.assert_allclose(table[added].to_numpy()[:1], want)
        return
    inside = new.iloc[[0, 2, 3, 4]]
    want = fits[name].predict(inside)
    assert (
        table[".fitted"].iloc[[0, 2, 3, 4]].tolist() == pytest.approx(list(want), nan_ok=True)
        if name != "svm"
        else table[".fitted"].iloc[0] == want.iloc[0]
    )
    if name in ("lm", "glm"):
        ahead = fits[name].get_prediction(inside)
        np.testing.assert_array_equal(
            table[[".fitted", ".se_fit", ".lower", ".upper"]].iloc[[0, 2, 3, 4]],
            ahead[["mean", "mean_se", "mean_ci_lower", "mean_ci_upper"]],
        )
    if name == "bare":
        assert table[[".se_fit", ".lower", ".upper"]].isna().all(axis=None)


def test_any_table_is_augmented_and_none_of_no_rows_fails(fits):
    table = fits["lm"].augment({name: NEW[name].to_list()[:1] for name in NEW})
    assert list(table["id"]) == ["p"]
    assert np.isfinite(table[".fitted"]).all()
    assert len(fits["lm"].augment(NEW.iloc[:0])) == 0
    assert len(fits["glm"].get_prediction(NEW.iloc[:0])) == 0


def test_a_machine_without_a_law_says_so(fits):
    for name in ("anova", "margins", "emmeans", "get_prediction", "t_test"):
        with pytest.raises(NotAvailable, match="penalised classifier"):
            getattr(fits["svm"], name)
    with pytest.raises(NotAvailable, match="no intervals with known coverage"):
        fits["bare"].get_prediction(NEW.iloc[:1])


def test_between_steps_numbers_are_rounded_as_those_of_the_fit():
    book = dp.codebook(y=(-5, 5), k=dp.Numeric(0, 4, step=1))
    rows = {"k": np.tile([0, 1, 2, 3, 4], 200), "y": np.tile([0.0, 1, 2, 3, 4], 200)}
    with dp.simulation(seed=1):
        fit = dp.dp_lm("y ~ k", rows, codebook=book, eps=1e6)
    predictions = fit.predict({"k": [1.4, 1.0, 3.6, 4.0]})
    assert predictions[0] == predictions[1]
    assert predictions[2] == predictions[3]
    with pytest.warns(OutsideWarning):
        assert math.isnan(fit.predict({"k": [4.3]})[0])
