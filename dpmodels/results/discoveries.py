"""Hypotheses that are rejected at a false discovery rate, of p-values however they were made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from dpmodels.arguments import share, truth, word
from dpmodels.postprocess.mirror import mirrored
from dpmodels.postprocess.step_up import METHODS, adjusted, cut_offs
from dpmodels.results.base import Printed, Result, caption_of
from dpmodels.results.call import INTERCEPT
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False, eq=False)
class Discoveries(Printed):
    """Rejections at a false discovery rate: post-processing of a result's p-values.

    Parameters
    ----------
    formula : str
        Of the result.
    names : tuple of str
        The hypotheses that have p-values.
    p_values : ndarray, shape (tests,)
        nan where a hypothesis cannot be tested, which counts as a p-value of 1.
    hypotheses : int
        How many there are, those without p-values among them.
    q : float
        The level.
    method : {"bh", "by", "adapt"}
        Benjamini-Hochberg, Benjamini-Yekutieli for any dependence, or by p-values near 1.
    stamp : str or None
        What tables and pictures of a simulation are stamped with.
    caption : str or None
        What stands under pictures.
    """

    formula: str
    names: tuple[str, ...]
    p_values: Floats
    hypotheses: int
    q: float
    method: str
    stamp: str | None
    caption: str | None = None

    @property
    def rejected(self) -> list[str]:
        """The hypotheses that are rejected, smallest p-value first."""
        table = self.tidy()
        return [str(name) for name in table["hypothesis"][table["rejected"]]]

    def tidy(self) -> pd.DataFrame:
        """Return one row a tested hypothesis, smallest p-value first.

        ``hypothesis, p_value, p_adjusted, rejected``.
        """
        if self.method == "adapt":
            values = mirrored(self.p_values)
        else:
            values = adjusted(self.p_values, self.hypotheses, self.method)
        table = pd.DataFrame(
            {
                "hypothesis": self.names,
                "p_value": self.p_values,
                "p_adjusted": values,
                "rejected": values <= self.q,
            }
        )
        return table.sort_values("p_value", kind="stable", ignore_index=True)

    def plot(self, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw sorted p-values, on a scale of -log10, with what they are held against.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        caption : bool
            Whether guarantee, neighbours and noise stand under the picture.
        """
        from dpmodels.plots.step_up import step_up

        table = self.tidy().dropna()
        rejected = table["rejected"].to_numpy()
        if self.method == "adapt":
            lines = np.full(len(table), table["p_value"][rejected].max() if rejected.any() else 0.5)
        else:
            lines = cut_offs(self.hypotheses, self.q, self.method)
        return step_up(
            table["p_value"].to_numpy(),
            rejected,
            lines,
            ax=ax,
            stamp=self.stamp,
            caption=self.caption if truth("caption", caption) else None,
        )

    def __repr__(self) -> str:
        return (
            f"<Discoveries of {self.formula!r}: {len(self.rejected)} of {self.hypotheses} "
            f"rejected at a false discovery rate of {self.q:g}>"
        )


class Tested(Result):
    """A result that has p-values of several hypotheses."""

    if TYPE_CHECKING:

        @property
        def pvalues(self) -> pd.Series[float]:
            """P-values by hypothesis."""

    def fdr(self, q: float = 0.1, method: Literal["bh", "by"] = "bh") -> Discoveries:
        """Reject hypotheses at a false discovery rate: post-processing of the p-values.

        An intercept is no hypothesis; one without a p-value is not rejected, and counts.

        Parameters
        ----------
        q : float
            The expected share of true null hypotheses among those rejected, in (0, 1).
        method : {"bh", "by"}
            Benjamini-Hochberg, for independent or positively dependent tests, or
            Benjamini-Yekutieli for any dependence.

        Raises
        ------
        ArgumentError
            If `q` is not between 0 and 1, or the method not known.
        """
        return discoveries(self, self.pvalues, q, method)


def discoveries(
    result: Result, p_values: pd.Series[float], q: float, method: str, hypotheses: int | None = None
) -> Discoveries:
    """Step up over the p-values of a result, but that of an intercept; ArgumentError of words.

    `hypotheses` is how many there are, where some have no p-value.
    """
    level, how = share("q", q, ", such as 0.1"), word("method", method, tuple(METHODS))
    kept = p_values[p_values.index != INTERCEPT]
    return Discoveries(
        result.call.formula,
        tuple(map(str, kept.index)),
        np.asarray(kept, dtype=np.float64),
        len(kept) if hypotheses is None else hypotheses,
        level,
        how,
        result.stamp,
        caption_of(result.release),
    )
