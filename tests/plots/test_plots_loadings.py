import numpy as np
import pytest
from matplotlib import pyplot as plt
from plots_samples import HEALTH, assert_readable, make_table, new_ax

from dpmodels.errors import ArgumentError
from dpmodels.plots import loadings


@pytest.fixture(autouse=True)
def _closed():
    """Leave no figure behind."""
    yield
    plt.close("all")


def tick_labels(axis):
    return [t.get_text() for t in axis.get_ticklabels()]


def test_a_heat_map_with_its_values():
    ax = loadings(HEALTH)
    image = ax.images[0]
    assert np.array_equal(image.get_array(), HEALTH)
    low, high = image.get_clim()
    assert low == -high == -float(abs(HEALTH).max())
    written = [f"{value:.2f}".replace("-0.00", "0.00") for value in HEALTH.values.ravel()]
    assert [t.get_text() for t in ax.texts] == written
    assert tick_labels(ax.yaxis) == list(HEALTH["variable"].values)
    assert tick_labels(ax.xaxis) == ["PC1", "PC2", "PC3", "PC4"]
    assert_readable(ax, [*ax.texts, *ax.get_yticklabels()])


def test_components_by_position_and_name():
    ax = loadings(HEALTH, components=["PC3", 0])
    assert tick_labels(ax.xaxis) == ["PC3", "PC1"]
    assert np.array_equal(ax.images[0].get_array(), HEALTH.values[:, [2, 0]])


def test_one_component_is_bars():
    ax = loadings(HEALTH, components=["PC2"])
    assert not ax.images
    np.testing.assert_array_equal([b.get_width() for b in ax.patches], HEALTH.values[:, 1])
    assert ax.get_xlim()[0] == -ax.get_xlim()[1]
    assert ax.get_xlabel() == "Loading on PC2"
    assert ax.yaxis_inverted()
    assert tick_labels(ax.yaxis) == list(HEALTH["variable"].values)


def test_blue_is_positive_in_both_pictures():
    image = loadings(HEALTH).images[0]
    red, _, blue, _ = image.to_rgba(np.array([[0.5]]))[0, 0]
    bar = loadings(abs(make_table(1, 1))).patches[0].get_facecolor()
    assert blue > red
    assert bar[2] > bar[0]


@pytest.mark.product
def test_sixty_variables_all_have_names():
    ax = loadings(make_table(60, 10))
    assert len(tick_labels(ax.yaxis)) == 60
    assert min(t.get_fontsize() for t in ax.get_yticklabels()) >= 5.5
    assert not ax.texts
    assert len(ax.figure.axes) == 2
    assert_readable(ax, ax.get_yticklabels())


@pytest.mark.product
def test_more_variables_thin_their_names():
    ax = loadings(make_table(784, 3))
    names = tick_labels(ax.yaxis)
    assert 20 <= len(names) < 200
    assert names[0] == "variable_0"
    assert_readable(ax, ax.get_yticklabels())


def test_long_names_stay_within_the_figure_and_distinct():
    names = [f"C(region, Treatment('north west'))[T.south-{end}]:log(income + 1)" for end in "abc"]
    ax = loadings(make_table(3, 2, names))
    assert len(set(tick_labels(ax.yaxis))) == 3
    assert_readable(ax, ax.get_yticklabels())


def test_given_axes_leave_pyplot_alone():
    ax = new_ax()
    assert loadings(HEALTH, ax=ax) is ax
    assert plt.get_fignums() == []


def test_the_stamp_lies_across():
    ax = loadings(HEALTH, components=[0], stamp="SIMULATION - NOT PRIVATE")
    assert [t.get_text() for t in ax.texts] == ["SIMULATION - NOT PRIVATE"]


def test_zeros_and_missing_numbers_are_drawn():
    ax = loadings(HEALTH * 0)
    assert ax.images[0].get_clim() == (-1, 1)
    ax = loadings(HEALTH.where(HEALTH > 0))
    assert len(ax.texts) == int((HEALTH > 0).sum())


def test_components_that_are_not_there_are_refused():
    with pytest.raises(ArgumentError, match="'PC9' is not in the table"):
        loadings(HEALTH, components=["PC9"])
    with pytest.raises(ArgumentError, match="4 is not in the table"):
        loadings(HEALTH, components=[4])
