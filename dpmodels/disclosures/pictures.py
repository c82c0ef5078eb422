"""Pictures of a result, as PNG files, where matplotlib is installed."""

from __future__ import annotations

import io
from importlib.util import find_spec
from typing import Any, Final

from dpmodels.disclosures.blocks import Picture
from dpmodels.errors import DPModelsError

_METHODS: Final = {
    "plot_scree": "Variances of the components with noise intervals",
    "plot_loadings": "Loadings of the variables on the components",
    "plot": "Estimates with their errors",
}


def pictures(fit: Any) -> tuple[Picture, ...]:
    """Draw what a result can draw of itself; nothing where that is nothing."""
    if find_spec("matplotlib") is None:
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
        except DPModelsError:  # such as of a model of the constant alone
            continue
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=120)
        drawn.append(Picture(f"{text}: {fit.call.formula}", buffer.getvalue()))
    return tuple(drawn)
