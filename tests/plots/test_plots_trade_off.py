"""Trade-off curves in a square of rates."""

import matplotlib.pyplot as plt
import numpy as np

from dpmodels.plots.curves import RATES, trade_offs


def test_curves_points_and_words_stand_where_they_belong():
    curves = np.stack([1 - RATES, (1 - RATES) ** 2])
    ax = trade_offs(curves, ["weak", "$strong"], (0.1, np.array([0.9, 0.81])), stamp="SIMULATED")
    values = [line for line in ax.lines if len(line.get_xdata()) == len(RATES)]
    for line, curve in zip(values, curves, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), curve)
    points = [line for line in ax.lines if line.get_marker() == "o"]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in points] == [
        (0.1, 0.9),
        (0.1, 0.81),
    ]
    assert (ax.get_xlim(), ax.get_ylim()) == ((0, 1), (0, 1))
    assert [text.get_text() for text in ax.texts] == ["SIMULATED"]
    plt.close(ax.figure)


def test_the_words_stand_in_the_empty_half_at_a_small_size():
    figure, ax = plt.subplots(figsize=(3, 2.9), layout="constrained")
    names = ["eps = 0.1", "eps = 0.5", "eps = 1", "eps = 2", "eps = 5"]
    trade_offs(np.stack([1 - RATES] * 5), names, (0.05, np.full(5, 0.95)), ax=ax)
    figure.canvas.draw()
    box = ax.get_legend().get_window_extent().transformed(ax.transAxes.inverted())
    assert box.x0 + box.y0 > 1
    plt.close(figure)
