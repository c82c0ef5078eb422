import numpy as np
import pytest
from matplotlib import pyplot as plt
from plots_samples import HEALTH, assert_readable, make_table, new_ax

from dpmodels.errors import ArgumentError
from dpmodels.plots import biplot
from dpmodels.plots.biplot import THIN, WIDE, graph

SDEV = np.array([0.41, 0.22, 0.16, 0.07])


@pytest.fixture(autouse=True)
def _closed():
    """Leave no figure behind."""
    yield
    plt.close("all")


def arrows(ax):
    return np.array([t.xy for t in ax.texts if t.arrow_patch is not None])


def names(ax):
    return [t for t in ax.texts if t.get_text()]


@pytest.mark.product
def test_arrows_are_loadings_times_sdev():
    ax = biplot(HEALTH, SDEV)
    np.testing.assert_allclose(arrows(ax), HEALTH.values[:, :2] * SDEV[:2])
    assert {t.get_text() for t in names(ax)} == set(HEALTH["variable"].values)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("PC1", "PC2")
    assert ax.get_aspect() == 1
    assert not ax.collections
    assert_readable(ax, names(ax))


@pytest.mark.product
def test_other_components_and_the_noise_floor():
    ax = biplot(HEALTH, SDEV, components=("PC2", 3), marked=["PC4"])
    np.testing.assert_allclose(arrows(ax), HEALTH.values[:, [1, 3]] * [0.22, 0.07])
    assert ax.get_xlabel() == "PC2"
    assert ax.get_ylabel() == "PC4 (below the noise floor)"


def test_names_of_arrows_to_the_right_stand_above_or_below_where_the_frame_is_near():
    table = make_table(4, 2).copy()
    table.values[:] = [[-0.045, 0.716], [-0.262, 0.65], [0.701, 0.053], [0.661, 0.25]]
    table = table.assign_coords(variable=["log_wage", "educ_years", "experience", "A_AGE"])
    assert len(names(biplot(table, np.array([1.424, 1.167])))) == 4


def test_a_name_lies_away_from_the_tip_of_its_arrow():
    """Beside it its middle is as high as the tip, above it its lower edge, below its upper one."""
    beside = []
    for text in names(biplot(make_table(12, 2), np.array([1.0, 1.0]))):
        x, y = text.get_position()
        sides = ("left", "right"), ("bottom", "top")
        for offset, side, (after, before) in zip(
            (x, y), (text.get_ha(), text.get_va()), sides, strict=True
        ):
            assert side == (after if offset > 1 else before if offset < -1 else "center")
        beside.append(abs(y) <= 1)
    assert any(beside)


def test_origin_and_arrows_are_inside():
    ax = biplot(HEALTH, SDEV)
    tips = np.vstack([arrows(ax), [0, 0]])
    for (low, high), side in zip((ax.get_xlim(), ax.get_ylim()), tips.T, strict=True):
        assert low < side.min()
        assert side.max() < high


@pytest.mark.product
def test_sixty_names_do_not_cover_each_other():
    ax = biplot(make_table(60, 4), np.ones(4))
    left_out = int(ax.get_title(loc="left").split(" of 60 ")[0])
    assert len(names(ax)) == 60 - left_out
    assert len(arrows(ax)) == 60
    assert_readable(ax, names(ax))


@pytest.mark.product
def test_one_variable_and_no_length():
    assert len(arrows(biplot(make_table(1, 2), np.array([1.0, 1.0])))) == 1
    assert len(arrows(biplot(make_table(3, 2), np.array([0.0, 0.0])))) == 3


def test_missing_loadings_have_no_arrow():
    ax = biplot(HEALTH.where(HEALTH["variable"] != "idp"), SDEV)
    assert len(arrows(ax)) == 9
    assert "idp" not in {t.get_text() for t in names(ax)}


def test_given_axes_leave_pyplot_alone():
    ax = new_ax()
    assert biplot(HEALTH, SDEV, ax=ax) is ax
    assert plt.get_fignums() == []


def test_the_stamp_lies_across():
    ax = biplot(HEALTH, SDEV, stamp="SIMULATION - NOT PRIVATE")
    assert names(ax)[-1].get_text() == "SIMULATION - NOT PRIVATE"


def test_what_does_not_fit_is_refused():
    with pytest.raises(ArgumentError, match="two different components"):
        biplot(HEALTH, SDEV, components=(1, "PC2"))


@pytest.mark.parametrize("strengths", [[0.2, 0.05], [0.0, 0.0], []])
def test_edges_of_a_graph_are_as_wide_as_they_are_strong(strengths):
    """The strongest has the full width; without strength all are thin."""
    edges = [(0, 1), (1, 3)][: len(strengths)]
    ax = graph(["a", "b", "c", "d"], edges, np.array(strengths))
    widths = [line.get_linewidth() for line in ax.lines if len(line.get_xdata()) == 2]
    shares = np.array(strengths) / max([*strengths, 1e-12])
    assert widths == pytest.approx(THIN + (WIDE - THIN) * shares)
