"""Coefficients of several fits on one axis, in units that can stand there."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

import dpmodels as dp
from dpmodels.errors import ArgumentError, NotAvailable
from dpmodels.plots.style import alt_text

BOOK = dp.codebook(age=(20, 70), income=(0, 100_000), sex=["F", "M"], y=(0, 10), got=["no", "yes"])
RNG = np.random.default_rng(5)
ROWS = {
    "age": RNG.uniform(20, 70, 4_000),
    "income": RNG.uniform(0, 100_000, 4_000),
    "sex": RNG.choice(["F", "M"], 4_000),
}
ROWS["y"] = np.clip(2 + ROWS["age"] / 20 + ROWS["income"] / 40_000 + RNG.normal(size=4_000), 0, 10)
ROWS["got"] = np.where(ROWS["y"] + RNG.normal(size=4_000) > 5, "yes", "no")
LENGTHS = {"sex[T.M]": 1.0, "age": 50.0, "income": 100_000.0}


@pytest.fixture(scope="module")
def fits():
    words = {"codebook": BOOK, "eps": 8, "delta": 1e-6}
    with dp.simulation(seed=2):
        return {
            "lm": dp.dp_lm("y ~ age + income + sex", ROWS, **words),
            "glm": dp.dp_glm("got ~ age + income + sex", ROWS, **words),
        }


def ax():
    return Figure().subplots()


def wide(axes):
    return np.array([segment[:, 0] for segment in axes.collections[1].get_segments()])


@pytest.mark.parametrize("name", ["lm", "glm"])
def test_coefficients_are_changes_over_public_ranges(fits, name):
    fit = fits[name]
    lengths = [LENGTHS[str(term)] for term in fit.params.index if term != "Intercept"]
    ends = fit.noise_int().drop(index="Intercept").to_numpy()
    axes = wide(fit.plot(ax=ax(), standardize="range"))
    np.testing.assert_allclose(axes, ends * np.array(lengths)[:, None])
    np.testing.assert_allclose(wide(fit.plot(ax=ax())), ends)


def test_by_released_standard_deviations(fits):
    ends = fits["lm"].noise_int().drop(index="Intercept").to_numpy()
    axes = wide(fits["lm"].plot(ax=ax(), standardize="sd"))
    assert fits["lm"].release.ball.axes is not None
    sds = [np.std(ROWS["sex"] == "M"), np.std(ROWS["age"]), np.std(ROWS["income"])]
    np.testing.assert_allclose(axes / ends, np.repeat([sds], 2, axis=0).T, rtol=0.05)
    with pytest.raises(NotAvailable, match='standardize="range" or None'):
        dp.coefplot(fits["glm"], standardize="sd")


def test_odds_ratios(fits):
    axes = fits["glm"].plot(ax=ax(), exponentiate=True, standardize="range")
    assert axes.get_xlabel() == "Odds ratio of yes over the range of each term"
    changes = fits["glm"].plot(ax=ax(), standardize="range")
    assert changes.get_xlabel().startswith("Change of log odds of yes")
    assert fits["glm"].plot(ax=ax()).get_xlabel() == "Coefficient (yes, log odds)"
    axes = fits["glm"].plot(ax=ax(), exponentiate=True)
    np.testing.assert_allclose(wide(axes), np.exp(wide(fits["glm"].plot(ax=ax()))))


def test_the_picture_has_the_numbers_of_the_table_and_whole_names():
    school = "Regular high school diploma or alternative credential"
    book = dp.codebook(school=["none", school], y=(0, 1))
    rows = {"school": ["none", school] * 500, "y": [0.2, 0.7] * 500}
    with dp.simulation(seed=1):
        fit = dp.dp_lm("y ~ school", rows, codebook=book, eps=8, delta=1e-6)
    axes = fit.plot()
    assert [tick.get_text() for tick in axes.get_yticklabels()] == [f"school[T.{school}]"]
    low, high = fit.tidy()[["conf_low", "conf_high"]].to_numpy()[1]
    assert axes.collections[0].get_segments()[0][:, 0] == pytest.approx([low, high])


def test_models_beside_each_other_have_all_terms_and_each_guarantee_once(fits):
    axes = dp.coefplot({"first": fits["lm"], "second": fits["glm"]}, ax=ax())
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    assert names == ["sex[T.M]", "age", "income"]
    caption = axes.figure.get_supxlabel()
    assert caption.count("eps = 8") == 2
    assert "first: Privacy" in caption
    once = dp.coefplot([fits["lm"], fits["lm"]], ax=ax())
    assert once.figure.get_supxlabel().count("eps = 8") == 1
    assert dp.coefplot(fits["lm"], caption=False, ax=ax()).figure.get_supxlabel() == ""


def test_words_that_are_not_known(fits):
    for call in (lambda: dp.coefplot([]), lambda: dp.coefplot("y ~ age")):
        with pytest.raises(ArgumentError, match="dp_lm, dp_glm or dp_survey"):
            call()
    with pytest.raises(ArgumentError, match="standardize"):
        fits["lm"].plot(standardize="half")
    with pytest.raises(ArgumentError, match="caption"):
        fits["lm"].plot(caption="none")
    with pytest.raises(ArgumentError, match="2 entries for 1"):
        dp.coefplot(fits["lm"], labels=["a", "b"])


def test_words_instead_of_the_picture(fits):
    text = alt_text(fits["lm"].plot(ax=ax(), standardize="range"))
    assert text.startswith("SIMULATION - NOT PRIVATE. Change of y over the range")
    assert f"age {50 * fits['lm'].params['age']:.3g} (" in text
    assert "eps = 8, delta = 1e-06; neighbours: replace one row, n public" in text


def test_what_is_no_regression_of_one_response_is_refused():
    words = {"codebook": BOOK | {"party": dp.Categorical(["a", "b", "c"])}, "eps": 8, "delta": 1e-6}
    rows = {**ROWS, "party": RNG.choice(["a", "b", "c"], 4_000)}
    several = dp.dp_glm("party ~ sex", rows, family="multinomial", **words)
    for fit in (several, dp.dp_mean("y ~ sex", rows, **words)):
        with pytest.raises(ArgumentError, match="have a plot\\(\\) of their own"):
            dp.coefplot(fit)


def test_the_axis_names_the_unit_and_the_terms_their_whole_levels():
    level = "a level with a name that is much longer than the usual axis"
    book = dp.codebook(y=dp.Numeric(0, 8, unit="mm"), x=(0, 1), g=["short", level])
    rows = {"y": [1, 5, 2, 7] * 500, "x": [0, 1, 1, 0] * 500, "g": ["short", level] * 1000}
    with dp.simulation(seed=1):
        fit = dp.dp_lm("y ~ x + g", rows, codebook=book, eps=10.0, delta=1e-6)
    axes = fit.plot()
    assert axes.get_xlabel() == "Coefficient (y, mm)"
    assert f"g[T.{level}]" in [tick.get_text() for tick in axes.get_yticklabels()]
    np.testing.assert_allclose(wide(axes), fit.noise_int().drop(index="Intercept"))
    over = fit.plot(standardize="range")
    assert over.get_xlabel() == "Change of y (mm) over the range of each term"
    logged = dp.dp_lm("log(y + 1) ~ x", rows, codebook=book, eps=10.0, delta=1e-6)
    assert logged.plot().get_xlabel() == "Coefficient (log(y + 1))"
