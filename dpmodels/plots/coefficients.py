"""Coefficients with two intervals each: noise, and noise with sampling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpmodels.errors import ArgumentError
from dpmodels.plots.names import short_names
from dpmodels.plots.style import BLUE, FONT, GREY, INK, PALE, axes_or_new, stamp_across

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def coefficients(
    values: npt.ArrayLike,
    noise: npt.ArrayLike,
    confidence: npt.ArrayLike,
    *,
    labels: Sequence[str],
    title: str,
    ax: Axes | None = None,
    stamp: str | None = None,
) -> Axes:
    """Draw points with intervals, the first at the top.

    Parameters
    ----------
    values : array_like, shape (coefficients,)
        Estimates.
    noise, confidence : array_like, shape (coefficients, 2)
        Lower and upper ends; where they are infinite the coefficient is said
        to be not identified.
    labels : sequence of str
        Names of the coefficients.
    title : str
        Written under the axis.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    stamp : str, optional
        A warning to write across the picture.

    Raises
    ------
    ArgumentError
        If numbers and labels differ in length.
    NotAvailable
        If matplotlib is not installed.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = Figure().subplots()
    >>> drawn = coefficients([1.0], [[0.8, 1.2]], [[0.7, 1.3]], labels=["x"], title="y", ax=ax)
    >>> drawn.get_xlabel()
    'y'
    """
    points, inner, outer = (
        np.asarray(one, dtype=np.float64) for one in (values, noise, confidence)
    )
    if not points.shape == (len(labels),) == inner.shape[:1] == outer.shape[:1]:
        raise ArgumentError(f"{points.shape} coefficients for {len(labels)} labels")
    drawn = axes_or_new(ax, (6.0, 1.1 + 0.3 * len(labels)))
    places = np.arange(len(labels), dtype=np.float64)
    known = np.isfinite(inner).all(axis=1)
    drawn.axvline(0, color=PALE, linewidth=1.0, zorder=0)
    for ends, width, colour in ((outer, 1.2, INK), (inner, 4.0, BLUE)):
        there = known & np.isfinite(ends).all(axis=1)
        drawn.hlines(places[there], *ends[there].T, color=colour, linewidth=width)
    # A stroke, that does not hide an interval shorter than a dot.
    drawn.plot(points[known], places[known], "|", color=INK, markersize=11, markeredgewidth=1.6)
    for place in places[~known]:
        drawn.text(0, place, "not identified", color=GREY, fontsize=FONT, ha="center", va="center")
    drawn.set_yticks(places, short_names(labels))
    for tick in drawn.get_yticklabels():
        tick.set_parse_math(False)
    drawn.set_ylim(len(labels) - 0.4, -0.6)
    drawn.tick_params(axis="y", length=0)
    drawn.set_xlabel(title, parse_math=False)
    return stamp_across(drawn, stamp)
