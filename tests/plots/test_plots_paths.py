"""Lines of slopes by penalty, with the penalty of the noise."""

import matplotlib.pyplot as plt
import numpy as np
from plots_samples import assert_readable, new_ax

from dpmodels.plots.curves import NAMED, paths
from dpmodels.plots.style import alt_text

PENALTIES = np.array([1.0, 0.1, 0.01, 0.0])


def test_lines_are_the_slopes_and_the_mark_the_noise():
    slopes = np.array([[0.0, 0.0], [0.5, 0.0], [0.8, -0.2], [0.9, -0.3]])
    ax = paths(PENALTIES, slopes, ["a", "b"], ("penalty", "effect"), mark=0.05, ax=new_ax())
    assert_readable(ax, ax.texts)
    lines = {tuple(line.get_ydata()) for line in ax.lines}
    assert {(0.0, 0.5, 0.8), (0.0, 0.0, -0.2)} < lines
    assert ax.xaxis_inverted()
    assert {text.get_text() for text in ax.texts} == {"a", "b", "noise"}
    text = "a 0.8; b -0.2. Below a penalty of 0.05 slopes cannot be distinguished from noise."
    assert text in alt_text(ax)
    plt.close(ax.figure)


def test_of_many_lines_those_that_reach_furthest_are_named():
    slopes = np.linspace(0, 1, 20) * np.array([[0.0], [0.5], [1.0], [1.0]])
    names = [f"x{at}" for at in range(20)]
    ax = paths(PENALTIES, slopes, names, ("penalty", "effect"), ax=new_ax())
    assert {text.get_text() for text in ax.texts} == set(names[-NAMED:])
    plt.close(ax.figure)
