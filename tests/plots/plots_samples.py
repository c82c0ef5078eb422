"""Tables, axes and a check that the tests of all pictures use."""

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from dpmodels.plots import scree

mpl.use("Agg")  # draws without a screen

NAMES = ["mdvis", "lncoins", "idp", "lpi", "fmde", "physlm", "disea", "hlthg", "hlthf", "hlthp"]


def make_table(variables: int, components: int, names: list[str] | None = None) -> xr.DataArray:
    rng = np.random.default_rng(1)
    side = max(variables, components)
    basis, _ = np.linalg.qr(rng.normal(size=(side, side)))
    names = names or [f"variable_{i}" for i in range(variables)]
    heads = [f"PC{j + 1}" for j in range(components)]
    coords = {"variable": names, "component": heads}
    return xr.DataArray(basis[:variables, :components], coords, ("variable", "component"))


HEALTH = make_table(10, 4, NAMES)


def draw_scree(variances, **look):
    """Draw variances without the ends of intervals, and a floor of 0.5."""
    heights = np.array(variances, dtype=float)
    unknown = np.full(len(heights), np.nan)
    return scree(heights, **{"lower": unknown, "upper": unknown, "floor": 0.5, **look})


def new_ax():
    """Axes of a figure that pyplot does not know."""
    return Figure(figsize=(6, 4)).subplots()


def assert_readable(axes, texts):
    """Draw, then check that no text sticks out of the figure or meets its like."""
    figure = axes.figure
    figure.canvas.draw()
    page = figure.bbox
    boxes = [text.get_window_extent() for text in texts if text.get_text()]
    for number, box in enumerate(boxes):
        assert page.x0 <= box.x0
        assert box.x1 <= page.x1
        assert page.y0 <= box.y0
        assert box.y1 <= page.y1
        assert box.count_overlaps(boxes[number + 1 :]) == 0
