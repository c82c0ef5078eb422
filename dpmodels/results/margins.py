"""The result of private margins of one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpmodels.errors import ArgumentError, said, shorten
from dpmodels.inference.independence import Independence
from dpmodels.postprocess.residuals import Term
from dpmodels.released import MarginsRelease
from dpmodels.results.base import Result, public_rows
from dpmodels.results.call import DescribedCall
from dpmodels.results.estimate_table import EstimateTable, counted_as, estimate_table, joined_ends
from dpmodels.results.held_margins import HeldMargins
from dpmodels.results.loglin import LogLinear, loglin
from dpmodels.results.margin import Margin
from dpmodels.results.named import named_factors, named_terms

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False, eq=False)
class MarginsResult(Result):
    """Private margins that agree: released values and public facts only.

    Notes
    -----
    :meth:`table` gives any margin inside those asked for. What it has in
    `released` is unbiased, may be negative, and has the same sums in every
    margin: intervals and tests are made from it. `counts` are whole and not
    negative; all of them have the same total, and a variable has the same
    counts in every margin of at most 10,000 cells. Margins of three variables
    agree besides with that of all but the last. :meth:`noise_int` is of
    counts, :meth:`conf_int` of shares of the rows that are complete in the
    margin, by cell.
    """

    call: DescribedCall
    release: MarginsRelease

    @cached_property
    def held(self) -> HeldMargins:
        """What all margins are made from."""
        return HeldMargins(self.call, self.release)

    @property
    def factors(self) -> tuple[str, ...]:
        """All variables, in order of first mention."""
        return self.held.factors

    @property
    def terms(self) -> tuple[str, ...]:
        """The margins that were asked for, as in a formula."""
        return tuple(":".join(table.factors) for table in self.call.tables)

    def table(self, *factors: str) -> Margin:
        """Return one margin.

        Parameters
        ----------
        *factors : str
            Its variables, or one formula or term, ``"~ a + b"``, ``"a:b"``: any
            that are together in a margin that was asked for.

        Returns
        -------
        Margin

        Raises
        ------
        ArgumentError, FormulaError
            If there is no such margin.
        """
        return Margin(
            self.held, self._inside(named_factors(self.call.codebook, self.factors, factors))
        )

    def _inside(self, factors: tuple[str, ...]) -> Term:
        """Return the places of variables, or say in which margin they would have to be."""
        term = tuple(sorted(map(self.factors.index, factors)))
        if not self.held.inside(term):
            raise ArgumentError(
                f"none of {self._size} has {' and '.join(map(said, factors))} together; write "
                f"dp_margins('~ {shorten('*'.join(factors))}', ...), which costs another release"
            )
        return term

    def chi2_test(self, *factors: str, given: str | Iterable[str] = ()) -> Independence:
        """Test whether variables are independent, with the noise counted in.

        Parameters
        ----------
        *factors : str
            Two or more, which are together in a margin with all that is given.
        given : str or iterable of str
            Test it at each combination of their levels at once: conditional
            independence. A combination of which too few rows are left for the
            noise is left out, with its degrees of freedom.

        Returns
        -------
        Independence
            ``statistic, pvalue, df``, as of :meth:`TableResult.chi2_test`.

        Raises
        ------
        ArgumentError
            If there is no such margin, or there are fewer than two variables.

        Notes
        -----
        Where too few rows are told from the noise there is no test, and the noise
        itself has a part in that: the p-value is that among the releases with a
        test. Where Laplace noise leaves a test to fewer than one release in ten,
        it may reject at a level of 0.05 in some 0.15 of these.
        """
        behind = (given,) if isinstance(given, str) else tuple(given)
        own = named_factors(self.call.codebook, self.factors, factors)
        return self.table(*own, *behind).chi2_test(given=behind)

    def loglin(self, formula: str) -> LogLinear:
        """Fit a log-linear model, with errors that count sampling and noise.

        Parameters
        ----------
        formula : str
            ``"~ a*b + c"``; with each term all terms inside it are in the model,
            as in R's ``loglin``. The variables of each are together in a margin
            that was asked for.

        Returns
        -------
        LogLinear

        Raises
        ------
        ArgumentError, FormulaError
            If a term is in no margin.
        NotAvailable
            If noise leaves a margin of the model without rows, or the table of
            its variables has more than 2,000 cells.

        Notes
        -----
        Where one margin has all variables it is of the rows that are complete
        in that. Else it is fitted to the margins of its terms, which are all that
        such a model needs of a table: what is missing is then a level of its own
        where that is told from 0, and nothing is told of the fit. Coefficients are
        those of treatment coding, the first level of each variable the base.
        """
        terms = named_terms(self.call.codebook, self.factors, formula)
        for term in terms:
            self._inside(term)
        return loglin(self.held, formula, terms)

    def to_xarray(self) -> xr.Dataset:
        """Return the margins asked for, ``count[a:b]``, and unbiased, ``released[a:b]``."""
        import xarray as xr

        tables = {
            name: Margin(self.held, own)
            for name, own in zip(self.terms, self.held.asked, strict=True)
        }
        found = {f"count[{name}]": own.counts for name, own in tables.items()}
        released = {f"released[{name}]": own.released for name, own in tables.items()}
        return xr.Dataset({**found, **released})

    def _noise_int(self, level: float) -> pd.DataFrame:
        return self._joined({own.name: own.noise_int(level) for own in self._tables})

    def _conf_int(self, level: float) -> pd.DataFrame:
        return self._joined({own.name: own.conf_int(level) for own in self._tables})

    @property
    def _tables(self) -> list[Margin]:
        return [Margin(self.held, term) for term in self.held.asked]

    def _joined(self, frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
        labels = [own.labels for own in self._tables]
        named = [
            frame.set_axis(pd.Index(names, name="level", dtype=object))
            for frame, names in zip(frames.values(), labels, strict=True)
        ]
        return pd.concat(named, keys=list(frames), names=["margin", "level"])

    def _estimates(self) -> EstimateTable:
        tables = [own.estimates for own in self._tables]
        whole = pd.concat([own.tidy() for own in tables], ignore_index=True)
        names = [own.facts.variable for own in self._tables for _ in own.labels]
        found = estimate_table(
            self,
            self.noise_int().index,
            further={name: whole[name] for name in ("released", "proportion")},
            labels=names,
            unit=counted_as(self.release.adjacency),
            estimate=whole["estimate"],
            std_error=whole["std_error"],
            noise_sd=whole["noise_sd"],
        )
        shares = {"proportion": joined_ends(tables, "proportion")}
        return replace(found, total=joined_ends(tables, "conf"), others=shares)

    def _line(self) -> dict[str, Any]:
        rows = public_rows(self.release)
        return {
            "nobs": np.nan if rows is None else rows,
            "nmargins": len(self.held.asked),
            "ncells": sum(table.cells for table in self.call.tables),
        }

    def plot(
        self,
        *factors: str,
        ax: Axes | None = None,
        level: float = 0.95,
        caption: bool = True,
    ) -> Axes:
        """Draw the counts of one margin with their noise intervals.

        Parameters
        ----------
        *factors : str
            Its variables, as for :meth:`table`; the first one asked for by default.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        level : float
            Coverage of the noise bars, in (0, 1).
        caption : bool
            Whether guarantee, neighbours and noise stand under the picture.

        Raises
        ------
        ArgumentError, FormulaError
            If there is no such margin.
        """
        own = self.table(*factors) if factors else self._tables[0]
        return own.plot(ax, level, caption=caption)

    @property
    def _size(self) -> str:
        return f"{len(self.held.asked)} margins"
