import numpy as np
import pytest
from matplotlib import pyplot as plt
from plots_samples import assert_readable, new_ax

from dpmodels.errors import ArgumentError
from dpmodels.plots import Panel, bars
from dpmodels.plots.bars import hist, ranked
from dpmodels.plots.style import alt_text

LABELS = ["shells", "gauss", "ppca", "zero"]
ENERGY = Panel("Captured energy", [0.99, 0.95, 0.85, 0.4], [0.001, 0.004, 0.01, 0.02])
ERROR = Panel("Error", [0.003, 0.01, np.nan, 0.09], [2e-4, 1e-3, np.nan, 0.0], log=True)


@pytest.fixture(autouse=True)
def _closed():
    """Leave no figure behind."""
    yield
    plt.close("all")


def ends(ax):
    """Where the bars end, by the place they stand at."""
    return {
        round(bar.get_y() + bar.get_height() / 2): bar.get_x() + bar.get_width()
        for bar in ax.patches
    }


@pytest.mark.product
def test_bars_end_at_the_values_first_at_the_top():
    energy, error = bars([ENERGY, ERROR], labels=LABELS)
    assert ends(energy) == pytest.approx(dict(enumerate(ENERGY.values)))
    assert ends(error) == pytest.approx({0: 0.003, 1: 0.01, 3: 0.09})
    assert energy.get_ylim()[0] > energy.get_ylim()[1]
    assert [tick.get_text() for tick in energy.get_yticklabels()] == LABELS
    assert not any(tick.get_text() for tick in error.get_yticklabels())
    assert_readable(energy, [*energy.get_yticklabels(), energy.xaxis.label])
    assert_readable(error, [error.xaxis.label])


def test_linear_bars_start_at_zero_and_logarithmic_ones_at_the_edge():
    energy, error = bars([ENERGY, ERROR], labels=LABELS)
    assert {bar.get_x() for bar in energy.patches} == {0.0}
    assert (energy.get_xscale(), error.get_xscale()) == ("linear", "log")
    left = error.get_xlim()[0]
    assert 0 < left < 0.003
    assert {bar.get_x() for bar in error.patches} == {left}


def test_error_bars_are_one_standard_error_each_way():
    (ax,) = bars([ENERGY], labels=LABELS)
    segments = np.array(ax.collections[0].get_segments())
    half = np.diff(segments[:, :, 0], axis=1)[:, 0] / 2
    np.testing.assert_allclose(half, ENERGY.errors)
    assert ax.get_xlim()[1] >= np.add(ENERGY.values, ENERGY.errors).max()


def test_error_bars_never_leave_the_axis():
    (ax,) = bars([Panel("Error", [1.0, 2.0], [5.0, 1.0], log=True)], labels=LABELS[:2])
    segments = np.array(ax.collections[0].get_segments())
    left, right = ax.get_xlim()
    assert segments[:, :, 0].min() == pytest.approx(left)
    assert segments[:, :, 0].max() <= right


@pytest.mark.parametrize("log", [False, True])
def test_marks_stand_at_their_bars_within_the_axis(log):
    panel = Panel("Error", [0.2, 0.3, np.nan], [0.01] * 3, log=log, marks=[0.9, 0.1, np.nan])
    (ax,) = bars([panel], labels=LABELS[:3])
    marks = next(line for line in ax.lines if line.get_marker() == "|" and len(line.get_xdata()))
    np.testing.assert_array_equal(marks.get_xdata(), panel.marks)
    assert ax.get_xlim()[1] > 0.9
    assert log or ax.get_xlim()[0] <= 0.1


def test_pale_ones_have_another_colour():
    (ax,) = bars([ENERGY], labels=LABELS, pale=[False, False, False, True])
    colours = [bar.get_facecolor() for bar in ax.patches]
    assert len(set(colours)) == 2
    assert colours[3] != colours[0]


@pytest.mark.parametrize("values", [[0.0, 0.0], [np.nan, np.nan], [-1.0, 0.0]])
@pytest.mark.parametrize("log", [False, True])
def test_nothing_to_draw_is_drawn(values, log):
    (ax,) = bars([Panel("Error", values, [0.0, 0.0], log=log)], labels=LABELS[:2])
    ax.figure.canvas.draw()
    assert np.isfinite(ax.get_xlim()).all()


def test_given_axes_leave_pyplot_alone():
    inputs = new_ax(), new_ax()
    assert bars([ENERGY, ERROR], labels=LABELS, axes=inputs) == inputs
    assert plt.get_fignums() == []


def test_a_new_figure_holds_the_panels_alone():
    draws = bars([ENERGY, ERROR], labels=LABELS)
    assert draws[0].figure.axes == list(draws)
    assert len(plt.get_fignums()) == 1


def test_the_stamp_lies_across_every_panel():
    for ax in bars([ENERGY, ERROR], labels=LABELS, stamp="SIMULATION - NOT PRIVATE"):
        assert any("NOT PRIVATE" in text.get_text() for text in ax.texts)


def test_dollar_signs_are_not_mathematics():
    (ax,) = bars([Panel("$x", [1.0], [0.1])], labels=[r"$\bad{$"], axes=[new_ax()])
    ax.figure.canvas.draw()
    assert ax.get_xlabel() == "$x"


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("panels", "extra", "reason"),
    [
        ([ENERGY, ERROR], {"labels": LABELS, "axes": [new_ax()]}, "axes has 1 entries for 2"),
    ],
)
def test_what_does_not_fit_is_refused(panels, extra, reason):
    with pytest.raises(ArgumentError, match=reason):
        bars(panels, **extra)


@pytest.mark.parametrize(("lowest", "is_from_zero"), [(0.0, True), (0.2, True), (-0.2, False)])
def test_ranked_bars_start_at_zero_unless_an_interval_is_below(lowest, is_from_zero):
    ends = np.array([lowest, 0.3]), np.array([0.6, 0.5])
    ax = new_ax()
    # Otherwise bars themselves keep the margin away.
    ax.use_sticky_edges = False
    ranked(["a", "b"], np.array([0.5, 0.4]), ends, "gain", empty="none", ax=ax)
    assert (ax.get_xlim()[0] == 0) == is_from_zero


def test_a_text_says_values_and_one_standard_error_each_way():
    (ax,) = bars([ENERGY], labels=LABELS)
    assert "shells 0.99 (0.989 to 0.991)" in alt_text(ax)
    assert "zero 0.4 (0.38 to 0.42)" in alt_text(ax)


def test_intervals_of_a_histogram_end_where_they_are_given():
    counts, ends = np.array([5.0, 9.0, 0.0]), np.array([[2.0, 7.0], [6.0, 13.0], [1.0, 4.0]])
    ax = hist(np.array([0.0, 1.0, 2.0, 3.0]), counts, ends, "x")
    drawn = np.array([lines for group in ax.collections for lines in group.get_segments()])
    # A count that was clipped at 0 lies below its interval, whose lower end is not drawn.
    assert drawn[:, :, 1].tolist() == [[2.0, 7.0], [6.0, 13.0], [0.0, 4.0]]
    assert drawn[:, 0, 0] == pytest.approx([0.5, 1.5, 2.5])
