"""The default picture of a result: its estimates with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from dpmodels.results.base import Result, checked_level
from dpmodels.results.estimate_table import EstimateTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class DefaultPlot(Result):
    """A result that is drawn as its table of estimates."""

    # The name of the estimates.
    _estimated: ClassVar[str] = "Estimate"

    @property
    def _plotted(self) -> tuple[EstimateTable, str]:
        """The estimates that the picture shows, and what they are."""
        return self.estimates, self._estimated

    def plot(self, level: float = 0.95, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw the estimates, with noise intervals and confidence intervals where available.

        Parameters
        ----------
        level : float
            Coverage of the intervals, in (0, 1).
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        caption : bool
            Whether guarantee, neighbours and noise stand under the picture.
        """
        from dpmodels.plots.points import estimates

        source, title = self._plotted
        table = source.tidy(checked_level(level))
        noise, confidence = (
            table[[f"{kind}_low", f"{kind}_high"]].to_numpy() for kind in ("noise", "conf")
        )
        return estimates(
            table["estimate"].to_numpy(),
            noise,
            confidence,
            labels=[", ".join(map(str, key)) for key in source.keys.itertuples(index=False)],
            title=title,
            level=level,
            ax=ax,
            stamp=self.stamp,
            caption=self._caption(enabled=caption),
        )
