"""The pictures of a result, as files of PNG beside words for who cannot see them."""

from __future__ import annotations

import io
from importlib.util import find_spec
from typing import Any, Final

from dpmodels.errors import DPModelsError

_METHODS: Final = {
    "plot_scree": "Variances of the components with noise intervals",
    "plot_loadings": "Loadings of the variables on the components",
    "plot": "Estimates with their errors",
}


def pictures(fit: Any) -> tuple[tuple[str, bytes], ...]:
    """Draw a result, each picture with its words; none where matplotlib is not installed."""
    if fit is None or find_spec("matplotlib") is None:
        return ()
    from matplotlib.figure import Figure

    drawn = []
    for name, text in _METHODS.items():
        draw = getattr(fit, name, None)
        if draw is None:
            continue
        figure = Figure(figsize=(7, 4.5), layout="constrained")
        try:
            draw(ax=figure.add_subplot())
        except DPModelsError:  # a model of the constant alone has nothing to draw
            continue
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=120)
        drawn.append((f"{text}: {fit.call.formula}", buffer.getvalue()))
    return tuple(drawn)
