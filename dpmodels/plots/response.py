"""What an answer costs, by how often it is a lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpmodels.plots.style import BLUE, GREY, INK, VERMILION, axes_or_new, finished

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The largest loss that is drawn, unless a device has more.
HIGHEST = 5.0


def response(lie: float, eps: float, levels: int, how: str, *, ax: Axes | None = None) -> Axes:
    """Draw the least privacy loss of a device that lies so often, and one device.

    Of `levels` answers the truth is identified while lies are rarer than ``(levels - 1)/levels``.
    """
    ax = axes_or_new(ax, (5.6, 3.6))
    top = max(HIGHEST, 1.2 * eps)
    end = 1 - 1 / levels
    lies = np.linspace(end / 500, end, 500)
    ax.plot(lies, np.log((1 - lies) * (levels - 1) / lies), color=BLUE, linewidth=1.6)
    ax.plot([lie, lie, 0], [0, eps, eps], color=GREY, linewidth=0.8, linestyle="--")
    ax.plot([lie], [eps], marker="o", color=VERMILION)
    ax.annotate(
        f"{how}: lie {lie:.3g}, eps {eps:.3g}",
        (lie, eps),
        xytext=(6, 6),
        textcoords="offset points",
        color=INK,
        fontsize="small",
        parse_math=False,
    )
    ax.set_xlim(0, end)
    ax.set_ylim(0, top)
    ax.set_xlabel("probability that an answer is a lie")
    ax.set_ylabel("eps of an answer")
    alt = f"Line, eps of an answer by the probability that it is a lie; {how}: {lie:.3g}, {eps:.3g}"
    return finished(ax, alt=alt)
