import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection, PathCollection
from plots_samples import assert_readable, draw_scree, new_ax

from dpmodels.plots import scree

VALUES = np.array([0.1703, 0.049, 0.0266, 0.019, 0.0122, 0.0089, 0.0062, 0.0041, 0.003, 0.0012])
FLOOR = 0.0052
LABELS = [f"PC{i + 1}{' *' if v < FLOOR else ''}" for i, v in enumerate(VALUES)]
ENDS = np.where(VALUES < FLOOR, np.nan, 1.0)


@pytest.fixture(autouse=True)
def _closed():
    """Leave no figure behind."""
    yield
    plt.close("all")


def points(ax):
    """Positions of the filled and of the hollow points."""
    dots = [c for c in ax.collections if isinstance(c, PathCollection)]
    filled, hollow = ([c for c in dots if c.get_label() == name] for name in ("over", "under"))
    return filled[0].get_offsets(), hollow[0].get_offsets()


def intervals(ax):
    lines = [c for c in ax.collections if isinstance(c, LineCollection)]
    return [segment for line in lines for segment in line.get_segments()]


def tick_labels(ax):
    return [t.get_text() for t in ax.get_xticklabels()]


def draw(ax=None, **more):
    lower, upper = (VALUES - 0.0028) * ENDS, (VALUES + 0.0028) * ENDS
    inputs = {"lower": lower, "upper": upper, "floor": FLOOR, "labels": LABELS, **more}
    return scree(VALUES, ax=ax, **inputs)


@pytest.mark.product
def test_points_intervals_and_floor():
    ax = draw()
    filled, hollow = points(ax)
    assert filled[:, 1].tolist() == VALUES[VALUES >= FLOOR].tolist()
    assert hollow[:, 1].tolist() == VALUES[VALUES < FLOOR].tolist()
    assert filled[:, 0].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert len(intervals(ax)) == 7
    np.testing.assert_allclose(intervals(ax)[0][:, 1], VALUES[0] + np.array([-0.0028, 0.0028]))
    assert any(np.allclose(line.get_ydata(), FLOOR) for line in ax.lines)
    assert [t.get_text() for t in ax.texts] == ["noise floor"]
    assert ax.get_ylim()[0] == 0
    assert ax.get_yscale() == "linear"
    assert tick_labels(ax) == LABELS
    assert_readable(ax, ax.get_xticklabels())
    assert_readable(ax, [*ax.texts, *ax.get_legend().get_texts(), ax.yaxis.label])


def test_only_what_is_there_is_in_the_legend():
    assert [t.get_text() for t in draw().get_legend().get_texts()] == [
        "noise interval",
        "below the noise floor",
    ]
    (text,) = draw(floor=0.0).get_legend().get_texts()
    assert text.get_text() == "noise interval"


def test_all_components_below_the_floor():
    ax = draw_scree(VALUES / 100, floor=FLOOR, labels=LABELS)
    filled, hollow = points(ax)
    assert len(filled) == 0
    assert len(hollow) == 10
    assert ax.get_ylim()[1] > FLOOR


def test_negative_variances_are_shown():
    ax = draw_scree([0.2, -0.1], floor=0.05, labels=["PC1", "PC2"])
    assert ax.get_ylim()[0] < -0.1
    assert any(np.allclose(line.get_ydata(), 0) for line in ax.lines)


@pytest.mark.parametrize("d", [1, 10, 60, 500])
def test_any_number_of_components(d):
    values = np.linspace(1.0, 0.01, d)
    labels = [f"PC{i}" for i in range(d)]
    ax = draw_scree(values, lower=values - 0.1, upper=values + 0.1, labels=labels)
    assert len(intervals(ax)) == d
    assert ax.get_xlim()[0] < 1
    assert ax.get_xlim()[1] > d
    assert 1 <= len(tick_labels(ax)) <= 20
    assert_readable(ax, ax.get_xticklabels())


def test_given_axes_leave_pyplot_alone():
    ax = new_ax()
    assert draw(ax=ax) is ax
    assert plt.get_fignums() == []


def test_the_stamp_lies_across():
    texts = draw(stamp="SIMULATION - NOT PRIVATE").texts
    assert [t.get_rotation() for t in texts if "NOT PRIVATE" in t.get_text()] == [18]


def test_dollar_signs_are_not_mathematics():
    ax = new_ax()
    draw_scree([1.0, 0.5], labels=["$a_1$", r"$\bad{$"], ax=ax)
    ax.figure.canvas.draw()
    assert tick_labels(ax) == ["$a_1$", r"$\bad{$"]
