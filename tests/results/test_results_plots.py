"""Pictures show released values only; rows are not there to be drawn."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from dpmodels.errors import ArgumentError, NotAvailable  # noqa: E402

PLOTS = ("plot_scree", "plot_loadings", "biplot")


@pytest.fixture
def ax():
    return Figure().subplots()


def words(ax):
    texts = [text.get_text() for text in ax.texts]
    return [*texts, *(label.get_text() for label in ax.get_xticklabels())]


def drawn_points(ax):
    marks = sum(len(collection.get_offsets()) for collection in ax.collections)
    return marks + sum(len(line.get_xdata()) for line in ax.lines)


@pytest.mark.parametrize("name", PLOTS)
@pytest.mark.parametrize("noise", [1e-4, 0.01, 0.5])
def test_pictures_are_drawn_on_the_given_axes(make, ax, name, noise):
    fit = make(noise=noise)
    assert getattr(fit, name)(ax=ax) is ax
    ax.figure.canvas.draw()


@pytest.mark.parametrize("name", PLOTS)
def test_pictures_make_their_own_axes(make, name):
    assert isinstance(getattr(make(), name)(), Axes)


@pytest.mark.guarding
@pytest.mark.parametrize("name", PLOTS)
def test_as_many_marks_for_many_rows_as_for_few(make, name):
    few, axes_of_many = Figure().subplots(), Figure().subplots()
    getattr(make(rows=100), name)(ax=few)
    getattr(make(rows=100_000), name)(ax=axes_of_many)
    assert drawn_points(few) == drawn_points(axes_of_many) < 60


@pytest.mark.parametrize("name", PLOTS)
def test_simulations_are_stamped(make, ax, name):
    getattr(make(simulated=True), name)(ax=ax)
    stamps = [*words(ax), *(text.get_text() for text in ax.figure.texts)]
    assert any("NOT PRIVATE" in text for text in stamps)


def test_scree_marks_what_is_below_the_floor(make, ax):
    fit = make(noise=0.01)
    fit.plot_scree(ax=ax)
    assert words(ax)[-5:] == ["PC1", "PC2", "PC3", "PC4 *", "PC5 *"]
    heights = np.concatenate(
        [c.get_offsets()[:, 1] for c in ax.collections if len(c.get_offsets())]
    )
    for value in fit.eigenvals.to_numpy():
        assert np.isclose(heights, value).any()


def test_loadings_of_chosen_components(make, ax):
    make().plot_loadings(components=[0, 2], ax=ax)
    assert "PC2" not in " ".join(words(ax))


def test_biplot_needs_two_components(make):
    with pytest.raises(NotAvailable, match="two components"):
        make(ncomp=1).biplot()


@pytest.mark.parametrize("components", [(0, 5), (-6, 0), (0,), (1, 1)])
def test_components_that_are_not_there(make, components):
    with pytest.raises(ArgumentError):
        make().biplot(components=components)
