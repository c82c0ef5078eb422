import numpy as np
import pytest
import xarray as xr
from matplotlib import pyplot as plt
from plots_samples import assert_readable, new_ax

from dpmodels.plots import heat
from dpmodels.plots.heat import FONT, _fitting


@pytest.fixture(autouse=True)
def _closed():
    """Leave no figure behind."""
    yield
    plt.close("all")


def make_square(size, names=None, sd=1.0):
    rng = np.random.default_rng(size)
    rows = rng.normal(size=(200, size)) + rng.normal(size=(200, 1))
    names = names or [f"variable_{i}" for i in range(size)]
    matrix = np.atleast_2d(np.corrcoef(rows, rowvar=False)) * sd**2
    return xr.DataArray(matrix, {"variable": names, "variable_": names}, ("variable", "variable_"))


def tick_labels(axis):
    return [t.get_text() for t in axis.get_ticklabels()]


@pytest.mark.product
@pytest.mark.parametrize("size", [1, 4, 10])
def test_a_small_matrix_shows_its_values(size):
    table = make_square(size)
    ax = heat(table, largest=1.0)
    assert np.array_equal(ax.images[0].get_array(), table)
    assert ax.images[0].get_clim() == (-1, 1)
    assert [t.get_text() for t in ax.texts] == [f"{value:.2f}" for value in table.values.ravel()]
    assert tick_labels(ax.yaxis) == tick_labels(ax.xaxis) == list(table["variable"].values)
    assert len(ax.figure.axes) == 1
    assert_readable(ax, [*ax.texts, *ax.get_yticklabels()])
    assert_readable(ax, ax.get_xticklabels())


@pytest.mark.product
@pytest.mark.parametrize("size", [12, 60, 300])
def test_a_large_matrix_has_a_colour_bar(size):
    ax = heat(make_square(size), label="Covariance")
    assert not ax.texts
    assert ax.figure.axes[1].get_ylabel() == "Covariance"
    for names in (ax.get_yticklabels(), ax.get_xticklabels()):
        assert min(t.get_fontsize() for t in names) >= 5.5
        assert names[0].get_text() == "variable_0"
        assert_readable(ax, names)


def test_colours_reach_equally_far_on_both_sides_of_zero():
    table = -abs(make_square(4))
    low, high = heat(table).images[0].get_clim()
    assert low == -high == float(table.min())
    red, _, blue, _ = heat(table).images[0].to_rgba(np.array([[-0.8]]))[0, 0]
    assert red > blue


def test_numbers_of_any_size_fit_into_their_cells():
    ax = heat(make_square(4, sd=3e4))
    assert max(len(t.get_text()) for t in ax.texts) <= 8
    assert_readable(ax, ax.texts)


def test_long_names_are_cut_and_stay_distinct():
    names = [f"C(region, Treatment('north west'))[T.south-{end}]:log(income + 1)" for end in "abc"]
    ax = heat(make_square(3, names))
    assert len(set(tick_labels(ax.xaxis))) == 3
    assert_readable(ax, ax.get_xticklabels())
    assert_readable(ax, ax.get_yticklabels())


def test_given_axes_leave_pyplot_alone():
    ax = new_ax()
    assert heat(make_square(3), ax=ax) is ax
    assert plt.get_fignums() == []


def test_the_stamp_lies_across():
    ax = heat(make_square(12), stamp="SIMULATION - NOT PRIVATE")
    assert [t.get_text() for t in ax.texts] == ["SIMULATION - NOT PRIVATE"]


def test_zeros_and_missing_numbers_are_drawn():
    table = make_square(3)
    assert heat(table * 0).images[0].get_clim() == (-1, 1)
    assert len(heat(table.where(table > 0.9)).texts) == 3


@pytest.mark.parametrize(
    ("points", "size", "is_whole"),
    [(40.0, FONT, True), (7.0, 7 / 1.15, True), (5.0, FONT - 1, False)],
)
def test_names_are_smaller_where_there_are_many_and_thinned_where_that_is_unreadable(
    points, size, is_whole
):
    ticks, fontsize = _fitting(30, 30 * points)
    assert fontsize == pytest.approx(size)
    assert (len(ticks) == 30) == is_whole
