"""Released components as a public map of rows, for a second model on them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpmodels.arguments import word
from dpmodels.codebook import Codebook
from dpmodels.errors import NotAvailable
from dpmodels.labels import component_names
from dpmodels.postprocess.support import longest_in_box, support
from dpmodels.results.call import MomentsCall
from dpmodels.results.public_rows import index_of, public_rows, require_coder
from dpmodels.typing import Coder, Floats
from dpmodels.variables import Numeric

if TYPE_CHECKING:
    import xarray as xr

# Bounds are computed, and rows are mapped, to a few units in the last place of 64 bits.
ROUNDING = 1e-9


@dataclass(frozen=True, repr=False, eq=False)
class Components:
    """The map that takes a row to its components, and public bounds of what comes out.

    The map is made of released values and public facts, and it takes rows one
    by one. So a verb that is private for rows of components is as private for
    the rows they were made from: neighbours stay neighbours.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(x=(0, 4), y=(-1, 1), z=(0, 9), kind=["a", "b"])
    >>> rows = {"x": [1, 3] * 900, "y": [-0.5, 0.9] * 900, "z": [2, 8] * 900}
    >>> rows["kind"] = ["a", "b"] * 900
    >>> ledger = dp.Ledger(eps=2.0, delta=1e-6, pure=1.0)
    >>> words = {"eps": 1.0, "delta": 1e-6, "ledger": ledger}
    >>> pca = dp.dp_pca("~ x + y + z", rows, codebook=cb, ncomp=2, **words)
    >>> pcs = pca.components
    >>> svm = dp.dp_svm(
    ...     "kind ~ PC1 + PC2",
    ...     pcs.predict(rows).assign(kind=rows["kind"]),
    ...     codebook=pcs.codebook | cb.select(["kind"]),
    ...     row_norm=pcs.row_norm(),
    ...     **words,
    ... )
    >>> svm.predict(pcs.predict({"x": [1], "y": [-0.5], "z": [2]})).tolist()
    ['a']
    """

    call: MomentsCall
    matrix: Floats  # shape (columns, components): loadings, over released sds where those scale
    mean: Floats  # shape (columns,): what is taken off the scaled columns
    coder: Coder | None = field(default=None, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """``PC1`` to the last."""
        return tuple(component_names(self.matrix.shape[1]))

    @cached_property
    def codebook(self) -> Codebook:
        """Public bounds of the components.

        About the point that the centre of the rows' ball goes to, the
        tightest that hold the components of every row in the codebook's
        ranges that is no longer than the row norm of the release. Longer
        rows, which the release shrank, are clipped by the next verb.
        """
        ends = zip(self.names, self._middle, self._reach, strict=True)
        return Codebook({name: Numeric(mid - far, mid + far) for name, mid, far in ends})

    def row_norm(self, scale: str | None = "range") -> float:
        """Return how long the rows of components are, for the word ``row_norm`` of a verb.

        Smaller than what the bounds one by one allow, and so less noise: all
        components together lie in the ball that the release held its rows in.

        Parameters
        ----------
        scale : {"range", None}
            The word ``scale`` of that verb.

        Returns
        -------
        float
            For formulas that are linear in the components, with an intercept.
            Each further numeric column scaled by its range adds 1 to the
            square. A formula of other form does without.

        Raises
        ------
        ArgumentError
            If ``scale`` is neither.
        """
        word("scale", scale, ("range", None), ", as in the verb")
        longest = self.call.row_norm * float(np.linalg.norm(self.matrix, ord=2))
        divisor = np.ones_like(self._reach) if scale is None else self._reach
        return longest_in_box(self._reach, longest, divisor) * (1 + ROUNDING)

    def predict(self, newdata: object) -> pd.DataFrame:
        """Return the components of rows that you hold, as R's ``predict(prcomp)`` does.

        Parameters
        ----------
        newdata : frame, mapping or path
            Rows with the formula's variables. What comes out is as private as
            they are: public rows' components may be looked at, private rows'
            are for another verb. Rows are mapped one by one, so a table
            larger than memory may be mapped part by part.

        Returns
        -------
        DataFrame
            ``PC1, PC2, ...``, with the index of a pandas ``newdata``; nan for
            incomplete rows.

        Raises
        ------
        FrameError
            If a variable is not there.
        NotAvailable
            If the release was loaded without its formula's coding.
        """
        scores = self.scores(newdata)
        return pd.DataFrame(scores, columns=list(self.names), index=index_of(newdata))

    def scores(self, newdata: object) -> Floats:
        """Return the same as an array, shape (rows, components)."""
        if self.coder is None:
            raise NotAvailable("the formula's coding is not there: load the fit with dp.load")
        return self._mapped(self.coder(newdata))

    def augment(self, newdata: object, *, clip: bool = False) -> pd.DataFrame:
        """Return rows that are not private with their components, as R's broom does.

        Parameters
        ----------
        newdata : frame, mapping or path
            Public rows with the formula's variables.
        clip : bool, default False
            Whether numbers outside the codebook's bounds are held in them, as the
            rows of the release were; else such rows are nan, and a warning counts
            them.

        Returns
        -------
        DataFrame
            All columns of `newdata`, then ``.fittedPC1, .fittedPC2, ...`` and
            ``.outside``, whether a number is beyond the codebook's bounds.

        Raises
        ------
        NotAvailable
            If the release was loaded without its formula's coding.

        Warns
        -----
        OutsideWarning
            With the number of public rows outside the bounds.
        """
        table = require_coder(self.coder).table(newdata)
        rows = public_rows(self.coder, table, clip=clip)
        scores = self._mapped(rows.coded).T
        fitted = {f".fitted{name}": own for name, own in zip(self.names, scores, strict=True)}
        return table.assign(**fitted, **{".outside": rows.outside})

    def _mapped(self, coded: Floats) -> Floats:
        """Return the components of coded rows, shape (rows, components)."""
        return np.asarray((self.call.scaled(coded) - self.mean[:, None]).T @ self.matrix)

    def labelled(self, newdata: object) -> xr.DataArray:
        """Return the same as a labelled array, ``row × component``."""
        import xarray as xr

        coords = {"component": list(self.names)}
        return xr.DataArray(self.scores(newdata), dims=("row", "component"), coords=coords)

    def __repr__(self) -> str:
        return f"<Components {', '.join(self.names)} of {self.call.formula!r}>"

    @cached_property
    def _middle(self) -> Floats:
        """Where the centre of the ball goes."""
        return np.asarray(-self.mean @ self.matrix)

    @cached_property
    def _reach(self) -> Floats:
        """How far from it each component may lie, shape (components,)."""
        lower, upper = self.call.box
        if self.call.unit_rows or self.call.row_norm < self.call.worst_case:
            # Rows made longer or shorter leave a box that does not hold the centre.
            lower, upper = np.minimum(lower, 0.0), np.maximum(upper, 0.0)
        radius = self.call.row_norm
        far = [
            max(support(way, lower, upper, radius), support(-way, lower, upper, radius))
            for way in self.matrix.T
        ]
        least = ROUNDING * (math.hypot(radius, *self._middle) or 1.0)
        return np.asarray(np.maximum(np.array(far) * (1 + ROUNDING), least))
