"""The pictures of a result, as files of PNG beside words for who cannot see them."""

from __future__ import annotations

import io
from importlib.util import find_spec
from typing import Any, Final

from dpmodels.errors import DPModelsError

# Instead of plot(), where a result has them.
_METHODS: Final = ("plot_scree", "plot_loadings")


def pictures(fit: Any) -> tuple[tuple[str, bytes], ...]:
    """Draw a result, each picture with its words; none where matplotlib is not installed."""
    if fit is None or find_spec("matplotlib") is None:
        return ()
    from matplotlib import pyplot as plt

    from dpmodels.plots.style import alt_text

    drawn = []
    methods = [name for name in _METHODS if hasattr(fit, name)] or ["plot"]
    for draw in (getattr(fit, name) for name in methods if hasattr(fit, name)):
        with plt.ioff():
            try:
                ax = draw()  # as large as what it shows needs
            except DPModelsError:  # a model of the constant alone has nothing to draw
                continue
            buffer = io.BytesIO()
            ax.figure.savefig(buffer, format="png", dpi=120)
            drawn.append((alt_text(ax), buffer.getvalue()))
            plt.close(ax.figure)
    return tuple(drawn)
