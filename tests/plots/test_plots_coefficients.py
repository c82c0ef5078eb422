import numpy as np
import pytest
from matplotlib import pyplot as plt
from plots_samples import assert_readable

from dpmodels.plots.coefficients import Intervals, coefficients, response
from dpmodels.plots.style import alt_text

LABELS = ["age", "income", "C(region, Treatment('north west'))[T.south-east]:log(income + 1)"]


@pytest.fixture(autouse=True)
def _closed():
    """Leave no figure behind."""
    yield
    plt.close("all")


def model(name="", values=(1.0, -2.0, 0.5), noise=0.2, width=0.5):
    result = np.asarray(values, dtype=np.float64)
    return Intervals(
        name, result, result[:, None] + [-noise, noise], result[:, None] + [-np.array(width), width]
    )


def texts(ax):
    return [text.get_text() for text in ax.texts]


@pytest.mark.product
def test_wide_bars_are_noise_and_thin_ones_hold_sampling_too():
    ax = coefficients([model()], labels=LABELS, title="Coefficient", caption="eps = 1. " * 20)
    thin, wide = ax.collections[:2]
    assert wide.get_linewidth()[0] > 3 * thin.get_linewidth()[0]
    np.testing.assert_allclose([s[:, 0] for s in wide.get_segments()], model().noise)
    np.testing.assert_allclose([s[:, 0] for s in thin.get_segments()], model().confidence)
    keys = [text.get_text() for text in ax.get_legend().get_texts()]
    assert keys == ["estimate", "95% noise", "95% noise and sampling"]
    under = ax.figure.texts
    assert_readable(ax, [*ax.get_yticklabels(), ax.xaxis.label, *under])
    assert_readable(ax, ax.get_legend().get_texts())


def test_an_interval_far_longer_than_the_others_goes_on_outside():
    result = model(values=(1.0, -2.0, 0.5, 0.2))
    result.confidence[1] = [-500, 500]
    result.noise[2] = [-np.inf, np.inf]
    ax = coefficients([result], labels=[*LABELS, "x"], title="Coefficient")
    left, right = ax.get_xlim()
    assert -12 < left < -2
    assert 1 < right < 12
    arrows = {line.get_marker(): list(line.get_ydata()) for line in ax.lines}
    assert arrows["<"] == arrows[">"] == [1]
    assert texts(ax) == ["not identified"]


def test_a_long_interval_that_hardly_widens_the_picture_is_drawn_whole():
    result = model(values=(-0.7, 0.1, 0.02), noise=0.003, width=0.004)
    result.confidence[0] = [-0.82, -0.58]
    ax = coefficients([result], labels=LABELS, title="Coefficient")
    assert ax.get_xlim()[0] < -0.82
    assert not {"<", ">"} & {line.get_marker() for line in ax.lines}


def test_intervals_of_large_numbers_are_drawn_and_told_where_they_are():
    result = model(values=(46_000.0, -125_000.0, 3_000.0), noise=900.0, width=1_500.0)
    ax = coefficients([result], labels=LABELS, title="Mean")
    thin, wide = ax.collections[:2]
    np.testing.assert_allclose([s[:, 0] for s in wide.get_segments()], result.noise)
    np.testing.assert_allclose([s[:, 0] for s in thin.get_segments()], result.confidence)
    assert {line.get_marker() for line in ax.lines}.isdisjoint("<>")
    assert "age 46,000 (44,500 to 47,500)" in alt_text(ax)


def test_ratios_stand_on_a_logarithmic_axis_about_one():
    ax = coefficients([model()], labels=LABELS, title="Odds ratio", ratio=True)
    assert ax.get_xscale() == "log"
    wide = ax.collections[1]
    np.testing.assert_allclose([s[:, 0] for s in wide.get_segments()], np.exp(model().noise))
    assert any(np.allclose(line.get_xdata(), 1) for line in ax.lines)
    assert "age 2.72 (1.65 to 4.48)" in alt_text(ax)


def test_models_differ_by_mark_and_a_term_that_one_lacks_is_left_out():
    second = model("second", values=(1.2, np.nan, 0.4))
    ax = coefficients([model("first"), second], labels=LABELS, title="Coefficient")
    marks = {line.get_marker(): len(line.get_xdata()) for line in ax.lines}
    assert (marks["o"], marks["s"]) == (3, 2)
    assert texts(ax) == []
    assert "second: age 1.2 (0.7 to 1.7); C(" in alt_text(ax)


@pytest.mark.product
def test_sixty_terms_and_one_are_readable():
    names = [f"variable number {number}" for number in range(60)]
    large = coefficients([model(values=np.linspace(-1, 1, 60))], labels=names, title="")
    assert len(large.get_yticklabels()) == 60
    assert_readable(large, large.get_yticklabels())
    result = coefficients([model(values=[0.0], noise=1e-9, width=1e-8)], labels=["x"], title="b")
    assert_readable(result, [*result.get_yticklabels(), result.xaxis.label])


def test_levels_stand_under_the_name_of_their_variable():
    labels = ["age", "region[T.South]", "region[T.a [b] c]", "sex[T.male]", "age:region[T.South]"]
    ax = coefficients([model(values=range(5))], labels=labels, title="Coefficient")
    ticks = ax.get_yticklabels()
    names = [tick.get_text() for tick in ticks]
    assert names == ["age", "region", "South", "a [b] c", "sex[T.male]", "age:region[T.South]"]
    assert [tick.get_fontweight() == "bold" for tick in ticks] == [False, True] + 4 * [False]
    thin, _ = ax.collections[:2]
    np.testing.assert_allclose([s[0, 1] for s in thin.get_segments()], [0, 2, 3, 4, 5])
    assert "region[T.South] 1 (0.5 to 1.5)" in alt_text(ax)


def test_levels_are_not_grouped_where_names_are_thinned():
    labels = [f"g[T.{level}]" for level in range(70)]
    ax = coefficients([model(values=range(70))], labels=labels, title="Coefficient")
    assert "g" not in {tick.get_text() for tick in ax.get_yticklabels()}


def test_a_device_stands_at_its_lie_with_its_name_on_the_curve_of_the_smallest_eps():
    eps = np.log((1 - 0.2) * (3 - 1) / 0.2)
    ax = response(0.2, eps, 3, "dice")
    (text,) = ax.texts
    assert text.get_text() == f"dice: lie 0.2, eps {eps:.3g}"
    assert text.xy == (0.2, eps)
    curve = ax.lines[0]
    assert np.interp(0.2, curve.get_xdata(), curve.get_ydata()) == pytest.approx(eps, rel=1e-3)
    # Answers at random say nothing.
    assert curve.get_ydata()[-1] == pytest.approx(0, abs=1e-9)
    plt.close("all")


@pytest.mark.parametrize(("length", "width"), [(3, 6.0), (24, 6.0), (44, 7.6)])
def test_a_picture_is_wider_where_terms_are_longer_than_usual(length, width):
    ax = coefficients([model(values=(1.0,))], labels=["x" * length], title="Coefficient")
    assert ax.figure.get_figwidth() == pytest.approx(width)
