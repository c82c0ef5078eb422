"""Shares, quantiles and what was spent: bars and marks at the numbers, told apart in grey."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from plots_samples import assert_readable, new_ax

from dpmodels.plots.heat import quantiles, shares, spending
from dpmodels.plots.style import alt_text


@pytest.fixture(autouse=True)
def _closed():
    """Leave no figure behind."""
    yield
    plt.close("all")


SHARES = np.array([[0.3, 0.1], [0.4, 0.2]])


def around(values, half):
    return values[..., None] + np.array([-half, half])


def test_bars_of_two_factors_differ_by_hatching_and_have_both_intervals():
    ax = shares(
        SHARES,
        around(SHARES, 0.15),
        around(SHARES, 0.2),
        rows=["north", "south"],
        series=["F", "M"],
        title="Share",
    )
    assert [bar.get_width() for bar in ax.patches] == [0.3, 0.4, 0.1, 0.2]
    assert len({bar.get_hatch() for bar in ax.patches}) == 2
    wide, thin = ax.collections[:2]
    np.testing.assert_allclose(wide.get_segments()[0][:, 0], [0.15, 0.45])
    np.testing.assert_allclose(thin.get_segments()[1][:, 0], [0.2, 0.6])
    assert ax.get_xlim()[0] == 0
    keys = ax.get_legend().get_texts()
    assert [t.get_text() for t in keys] == ["F", "M", "95% noise", "95% noise and sampling"]
    assert "north, M 0.1 (-0.1 to 0.3); south, F" in alt_text(ax)
    assert_readable(ax, [*ax.get_yticklabels(), ax.xaxis.label])
    assert_readable(ax, keys)


def test_intervals_that_were_not_released_are_in_no_legend():
    none = around(SHARES, np.nan)
    ax = shares(SHARES, none, none, rows=["a", "b"], series=["F", "M"], title="", ax=new_ax())
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["F", "M"]


def test_quantiles_have_marks_of_their_own():
    values = np.array([[1.0, 2.0, 4.0], [np.nan] * 3])
    ax = quantiles(
        values,
        around(values, 0.5),
        probs=(0.25, 0.5, 0.75),
        groups=["F", "M"],
        title="age",
        level=0.9,
    )
    marks = {line.get_marker(): line.get_xdata().tolist() for line in ax.lines}
    assert marks == {"<": [1.0], "o": [2.0], ">": [4.0]}
    ends = [s[:, 0] for collection in ax.collections[1:] for s in collection.get_segments()]
    np.testing.assert_allclose(ends, around(values, 0.5)[0])
    assert [t.get_text() for t in ax.texts] == ["too few rows"]
    bottom, top = ax.get_ylim()
    assert bottom > 1.35
    assert top < -0.35
    assert "F 25% 1, 50% 2, 75% 4; M too few rows" in alt_text(ax)
    assert_readable(ax, ax.get_legend().get_texts())


def test_charges_stand_one_after_the_other_against_the_budget():
    ends = np.array([[0.0, 0.5], [0.5, 0.8], [0.8, 1.4]])
    states = ["released", "charged", "does not fit"]
    ax = spending(ends, states, 1.0, labels=["one", "two", "three"], unit="eps")
    assert [(bar.get_x(), round(bar.get_width(), 6)) for bar in ax.patches] == [
        (0.0, 0.5),
        (0.5, 0.3),
        (0.8, 0.6),
    ]
    assert [bar.get_hatch() for bar in ax.patches] == [None, "////", "xxxx"]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [*states, "budget"]
    assert ax.get_xlim()[1] > 1.4
    assert "two charged, 0.8; three does not fit, 1.4" in alt_text(ax)
    call = "6 dp_lm log_wage ~ educ_years*female + I(experience**2)"
    (name,) = spending(ends[:1], states[:1], 1.0, labels=[call], unit="eps").get_yticklabels()
    assert name.get_text() == call
    empty = spending(np.empty((0, 2)), [], 1.0, labels=[], unit="rho", ax=new_ax())
    assert empty.get_xlabel() == "rho spent, all together"
