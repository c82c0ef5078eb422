"""A line over time with the band of its noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from dpmodels.plots.style import BLUE, axes_or_new, few_ticks, finished
from dpmodels.plots.words import between, listed
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def band(
    times: NDArray[Any],
    values: Floats,
    ends: Floats,
    labels: tuple[str, str],
    *,
    ax: Axes | None = None,
    stamp: str | None = None,
    caption: str | None = None,
) -> Axes:
    """Draw values over times from 0, and between `ends`, shape (times, 2), a band."""
    ax = axes_or_new(ax, (6.4, 3.4))
    if times.dtype == object:
        times = times.astype(str)
    ax.fill_between(times, ends[:, 0], ends[:, 1], color=BLUE, alpha=0.22, linewidth=0)
    ax.plot(times, values, color=BLUE, linewidth=1.3)
    ax.set_ylim(bottom=0)
    ax.margins(x=0.01)
    few_ticks(ax)
    ax.set_xlabel(labels[0], parse_math=False)
    ax.set_ylabel(labels[1], parse_math=False)
    told = map(between, values, *ends.T)
    alt = f"Line with its noise band: {labels[1]} by {labels[0]}: {listed(times.tolist(), told)}"
    return finished(ax, stamp, caption, alt)
