"""The biplot of two components: variables as arrows, never a row."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpmodels.errors import ArgumentError
from dpmodels.plots import tables
from dpmodels.plots.names import short_names
from dpmodels.plots.style import BLUE, FONT, GREY, INK, PALE, axes_or_new, stamp_across

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox

_SIZE = (5.4, 5.4)
_OFFSETS = (4.0, 11.0, 18.0)  # points between the tip of an arrow and its name
_TURNS = (0.0, 0.4, -0.4, 0.8, -0.8, 1.2, -1.2)  # radians off the arrow's direction


def biplot(
    table: xr.DataArray,
    sdev: npt.ArrayLike,
    *,
    components: tuple[int | str, int | str] = (0, 1),
    marked: Collection[int | str] = (),
    ax: Axes | None = None,
    stamp: str | None = None,
) -> Axes:
    """Draw each variable as an arrow, loading times standard deviation.

    Parameters
    ----------
    table : DataArray, dimensions variable and component
        Loadings.
    sdev : array_like, shape (components of the table,)
        Standard deviations of the components, in the table's order.
    components : pair of int or str
        Positions (0 is the first) or names of the two to draw.
    marked : collection of int or str
        Components below the noise floor; their axis says so.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    stamp : str, optional
        A warning to write across the picture.

    Returns
    -------
    matplotlib Axes
        With equal units on both axes. Names that find no free place are left
        out, the shortest arrows' first, and the picture says how many.

    Raises
    ------
    ArgumentError
        If the table has other dimensions, a component is not in it, or
        ``sdev`` has another length.
    NotAvailable
        If matplotlib is not installed.

    References
    ----------
    Gabriel, K. R. (1971). The biplot graphic display of matrices with
    application to principal component analysis. Biometrika 58(3), 453-467.
    """
    table = tables.ordered(table)
    heads = tables.names(table, "component")
    chosen = tables.positions(heads, components)
    if len(set(chosen)) != 2:
        raise ArgumentError("a biplot shows two different components: write components=(0, 1)")
    scales = np.asarray(sdev, dtype=np.float64)
    if scales.shape != (len(heads),):
        raise ArgumentError(
            f"sdev has shape {scales.shape} for {len(heads)} components: give one number each"
        )
    under = tables.positions(heads, tuple(marked))
    tips = np.asarray(table, dtype=np.float64)[:, chosen] * scales[chosen]
    ax = axes_or_new(ax, _SIZE)
    for axis, j in ((ax.xaxis, chosen[0]), (ax.yaxis, chosen[1])):
        note = " (below the noise floor)" if j in under else ""
        axis.set_label_text(heads[j] + note, parse_math=False)
    reach = 1.3 * float(np.max(np.abs(tips[np.isfinite(tips)]), initial=0.0)) or 1.0
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach))
    ax.set_aspect("equal", adjustable="box")
    ax.axhline(0, color=PALE, linewidth=0.8, zorder=0)
    ax.axvline(0, color=PALE, linewidth=0.8, zorder=0)
    _arrows(ax, tips)
    _label(ax, tips, short_names(tables.names(table, "variable")))
    return stamp_across(ax, stamp)


def _arrows(ax: Axes, tips: npt.NDArray[np.float64]) -> None:
    for x, y in tips:
        ax.annotate(
            "",
            (x, y),
            (0, 0),
            arrowprops={
                "arrowstyle": "-|>",
                "color": BLUE,
                "linewidth": 1.0,
                "mutation_scale": 8,
                "shrinkA": 0,
                "shrinkB": 0,
            },
        )


def _label(ax: Axes, tips: npt.NDArray[np.float64], names: Sequence[str]) -> None:
    """Put each name near its tip where it covers no other; longest arrows first."""
    ax.figure.canvas.draw()  # the layout must stand before texts are measured
    frame = ax.get_window_extent()
    taken = [_tip_box(ax, tip) for tip in tips]
    left_out = 0
    for i in np.argsort(-np.hypot(*tips.T), kind="stable"):
        others = taken[: len(tips)]
        del others[i]
        box = _place(ax, tips[i], names[i], others + taken[len(tips) :], frame)
        if box is None:
            left_out += 1
        else:
            taken.append(box)
    if left_out:
        ax.set_title(
            f"{left_out} of {len(names)} names left out where they would overlap",
            fontsize=FONT - 1,
            color=GREY,
            loc="left",
        )


def _place(
    ax: Axes, tip: npt.NDArray[np.float64], name: str, taken: Sequence[Bbox], frame: Bbox
) -> Bbox | None:
    """Write the name at the first free place; its box, or None where none is."""
    for x, y in _offsets(tip):
        text = ax.annotate(
            name,
            (float(tip[0]), float(tip[1])),
            (x, y),
            textcoords="offset points",
            ha="left" if x > 1 else "right" if x < -1 else "center",
            va="bottom" if y > 1 else "top" if y < -1 else "center",
            fontsize=FONT,
            color=INK,
            parse_math=False,
        )
        box = text.get_window_extent()
        inside = frame.x0 <= box.x0 and box.x1 <= frame.x1
        if inside and frame.y0 <= box.y0 and box.y1 <= frame.y1 and not box.count_overlaps(taken):
            return box
        text.remove()
    return None


def _offsets(tip: npt.NDArray[np.float64]) -> Iterator[tuple[float, float]]:
    """Places for a name, in points from the tip: outwards first, then aside."""
    along = float(np.arctan2(tip[1], tip[0]))
    for distance in _OFFSETS:
        for turn in _TURNS:
            yield distance * np.cos(along + turn), distance * np.sin(along + turn)


def _tip_box(ax: Axes, tip: npt.NDArray[np.float64]) -> Bbox:
    """Box the head of an arrow, which no name may cover."""
    from matplotlib.transforms import Bbox

    x, y = ax.transData.transform(tip)
    return Bbox.from_extents(x - 3, y - 3, x + 3, y + 3)
