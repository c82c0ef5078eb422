"""A line over time with a band."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

from dpmodels.plots.curves import Drawn, band, survival_curves


def test_the_band_is_of_the_ends_and_the_line_of_the_values():
    days = np.array(["2024-01-01", "2024-01-02", "2024-01-03"], dtype="datetime64[s]")
    ends = np.array([[0.0, 4.0], [1.0, 5.0], [2.0, 6.0]])
    ax = band(days, np.array([2.0, 3.0, 4.0]), ends, ("day", "events"), stamp="SIMULATED")
    assert ax.lines[0].get_ydata().tolist() == [2.0, 3.0, 4.0]
    (path,) = ax.collections[0].get_paths()
    assert {tuple(ends[:, 0]), tuple(ends[:, 1])} == {(0.0, 1.0, 2.0), (4.0, 5.0, 6.0)}
    assert {*path.vertices[:, 1].tolist()} == {*ends.ravel().tolist()}
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("day", "events")
    assert ax.get_ylim()[0] == 0
    assert [text.get_text() for text in ax.texts] == ["SIMULATED"]
    plt.close(ax.figure)


def test_levels_are_places_in_their_order():
    levels = np.array(["low", 2, "high"], dtype=object)
    ax = band(levels, np.ones(3), np.ones((3, 2)), ("level", "events"))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["low", "2", "high"]
    plt.close(ax.figure)


def test_months_of_a_year_do_not_run_into_each_other():
    days = np.arange("2023-01-28", "2024-01-01", dtype="datetime64[D]").astype("datetime64[s]")
    figure, (ax, _) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    flat = np.full(len(days), 2.0)
    band(days, flat, np.stack([flat - 1, flat + 1], axis=1), ("day", "events"), ax=ax)
    figure.canvas.draw()
    boxes = [tick.get_window_extent() for tick in ax.get_xticklabels()]
    assert len(boxes) > 2
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
    plt.close(figure)


def test_rows_at_risk_are_written_below_the_axis_at_their_times():
    names = ("estimate", "noise_low", "noise_high", "conf_low", "conf_high")
    columns = {name: np.array([0.9, 0.7]) for name in names}
    columns |= {"time": np.array([1.0, 2.0]), "n_risk": np.array([1_250.0, 900.0])}
    ax = survival_curves([Drawn("", columns)], "days", steps=True, risk=True)
    title, *numbers = ax.texts
    assert title.get_text() == "at risk"
    assert [(text.get_text(), text.xy) for text in numbers] == [
        ("1,250", (1.0, 0)),
        ("900", (2.0, 0)),
    ]
    assert all(text.xyann[1] < title.xyann[1] < 0 for text in numbers)
    plt.close(ax.figure)
