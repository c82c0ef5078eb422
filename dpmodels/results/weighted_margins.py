"""The result of margins of one table under a survey design."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from dpmodels.errors import ArgumentError
from dpmodels.formula.tally import CAPPED_PARTS
from dpmodels.postprocess.residuals import Term, least_squares, rebuilt
from dpmodels.released import CappedWeights, CountsRelease
from dpmodels.results.base import Derivation, Result
from dpmodels.results.call import DescribedCall, TableCall, joined
from dpmodels.results.count_tables import described_line, taken
from dpmodels.results.estimate_table import EstimateTable, joined_ends, table_of_estimates
from dpmodels.results.margins import named_factors
from dpmodels.results.weighted import WeightedTableResult
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False, eq=False)
class WeightedMarginsResult(Result):
    """Margins of the population that agree, under a survey design.

    Parameters
    ----------
    requested : tuple of TableCall
        The margins of the formula, of declared levels.

    Notes
    -----
    :meth:`table` gives a margin as the result of ``dp_table``: totals of the population, shares and
    both intervals. Unbiased totals have the same sums in all margins, those of missing levels
    included: they are fitted to all released tables by least squares. Errors are those of the
    margin's table by itself, which are not smaller.
    """

    call: DescribedCall
    release: CountsRelease
    requested: tuple[TableCall, ...]

    @property
    def terms(self) -> tuple[str, ...]:
        """The requested margins, as in a formula."""
        return tuple(":".join(table.factors) for table in self.requested)

    @cached_property
    def factors(self) -> tuple[str, ...]:
        """All variables, in order of first mention."""
        return tuple(dict.fromkeys(name for table in self.requested for name in table.factors))

    def table(self, *factors: str) -> WeightedTableResult:
        """Return one margin.

        Parameters
        ----------
        *factors : str
            Its variables, or one formula or term, ``"~ a + b"``, ``"a:b"``: those of a requested
            margin, or of rows any that occur together in one.

        Returns
        -------
        WeightedTableResult

        Raises
        ------
        ArgumentError, FormulaError
            If there is no such margin.
        """
        names = named_factors(self.call.codebook, self.factors, factors)
        return self._derive(WeightedTableResult, "margin", factors=list(names))

    def _margin(self, factors: list[str]) -> Derivation:
        term = tuple(sorted(self.factors.index(name) for name in factors))
        number = self._source_of(term)
        source = self.call.tables[number]
        axes = [source.factors.index(self.factors[i]) for i in term]
        levels = tuple(source.levels[axis][:-1] for axis in axes)
        assert source.sampled is not None
        sampled = replace(source.sampled, fitted=True)
        facts = TableCall(tuple(self.factors[i] for i in term), levels, sampled=sampled)
        call = replace(self.call, tables=(facts,))
        return Derivation(call, WeightedTableResult, partial(self._of_term, term, number))

    derivations: ClassVar = {"margin": _margin}

    def _positions(self, table: TableCall) -> Term:
        return tuple(map(self.factors.index, table.factors))

    def _source_of(self, term: Term) -> int:
        """Return the smallest released table that a margin is a sum of."""
        tables = self.call.tables
        sampled = tables[0].sampled
        is_exact = sampled is not None and sampled.units
        inside = [
            number
            for number, table in enumerate(tables)
            if set(term) <= set(self._positions(table))
            and not (is_exact and len(term) < len(table.factors))
        ]
        if not inside:
            names = ", ".join(map(repr, self.terms))
            raise ArgumentError(
                f"{':'.join(self.factors[i] for i in term)!r} was not requested; the margins are "
                f"{names}"
            )
        return min(inside, key=lambda number: tables[number].cells)

    @property
    def _sizes(self) -> tuple[int, ...]:
        levels = {
            name: len(of)
            for table in self.call.tables
            for name, of in zip(table.factors, table.levels, strict=True)
        }
        return tuple(levels[name] for name in self.factors)

    def _of_term(self, term: Term, number: int, release: CountsRelease) -> CountsRelease:
        """Return the release of one margin, as if requested alone.

        Shares of units are fitted to all tables; products are those of one table.
        """
        table, single = self.call.tables[number], taken(self.call, release, number)
        weights, values = single.weights, single.values
        assert weights is not None
        cut = (slice(-1),) * len(term)
        counts, capped = (np.ravel(rebuilt(term, parts, self._sizes)[cut]) for parts in self._fits)
        summed = partial(_declared, table, tuple(i in term for i in self._positions(table)))
        products = np.array(weights.capped).reshape(-1, CAPPED_PARTS)[:, 1:]
        n_summed = table.cells / math.prod(self._sizes[i] for i in term)
        n_units = float(values.sum()) if release.rows is None else float(release.rows)
        fitted = replace(
            weights,
            capped=tuple(np.column_stack([capped, *map(summed, products.T)]).ravel().tolist()),
            by_stratum=_by_stratum(weights, table, summed),
            capped_sd=weights.capped_sd * math.sqrt(n_summed),
            by_stratum_sd=weights.by_stratum_sd * math.sqrt(n_summed),
        )
        return replace(
            single,
            values=np.append(counts, n_units - counts.sum()),
            noise_sd=single.noise_sd * math.sqrt(n_summed),
            weights=fitted,
        )

    @cached_property
    def _fits(self) -> tuple[Mapping[Term, Floats], Mapping[Term, Floats]]:
        """What least squares fits to all tables, and to those of capped units, by component."""
        tables, sizes = self.call.tables, self._sizes
        terms = [self._positions(table) for table in tables]
        releases = [taken(self.call, self.release, number) for number in range(len(tables))]
        ones = dict.fromkeys(terms, 1.0)
        fits = (
            least_squares(
                {
                    term: np.reshape(values, table.shape)
                    for term, table, values in zip(terms, tables, kind, strict=True)
                },
                ones,
                sizes,
            )
            for kind in (
                [release.values[:-1] for release in releases],
                [_capped_shares(release) for release in releases],
            )
        )
        counts, capped = fits
        return counts, capped

    # ---- all margins -----------------------------------------------------------------------

    @cached_property
    def _tables(self) -> Mapping[str, WeightedTableResult]:
        return {
            name: self.table(*table.factors)
            for name, table in zip(self.terms, self.requested, strict=True)
        }

    @property
    def design(self) -> pd.DataFrame:
        """By margin and level: weight, deff, effective n and df of its share, and the cap."""
        return self._joined({name: table.design for name, table in self._tables.items()})

    def _noise_int(self, level: float) -> pd.DataFrame:
        return self._joined({name: fit.noise_int(level) for name, fit in self._tables.items()})

    def _conf_int(self, level: float) -> pd.DataFrame:
        return self._joined({name: fit.conf_int(level) for name, fit in self._tables.items()})

    @staticmethod
    def _joined(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
        relabelled = {
            name: frame.set_axis(pd.Index(joined(frame.index), name="level", dtype=object))
            for name, frame in frames.items()
        }
        return pd.concat(relabelled, names=["margin", "level"])

    def _estimates(self) -> EstimateTable:
        tables = [fit.estimates for fit in self._tables.values()]
        tidy = pd.concat([table.tidy() for table in tables], ignore_index=True)
        numbers: dict[str, Any] = {
            name: tidy[name] for name in ("estimate", "std_error", "noise_sd")
        }
        further = {name: tidy[name] for name in ("released", "proportion", "deff")}
        names = [table.variable for table in self.requested for _ in range(table.cells)]
        index = self.noise_int().index
        estimates = table_of_estimates(self, index, further=further, labels=names, **numbers)
        shares = {"proportion": joined_ends(tables, "proportion")}
        return replace(estimates, total=joined_ends(tables, "conf"), further_intervals=shares)

    def _line(self) -> dict[str, object]:
        line = described_line(self.release, np.nan, len(self.requested))
        return {"nobs": line["nobs"], "nmargins": len(self.requested)}

    def plot(
        self,
        *factors: str,
        ax: Axes | None = None,
        level: float = 0.95,
        caption: bool = True,
    ) -> Axes:
        """Draw the shares of one margin, as of a table.

        Parameters
        ----------
        *factors : str
            Its variables, as for :meth:`table`; the first requested one by default.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        level : float
            Coverage of the intervals, in (0, 1).
        caption : bool
            Whether guarantee, neighbours and noise stand under the picture.
        """
        table = self.table(*(factors or self.requested[0].factors))
        return table.plot(ax, level, caption=caption)

    @property
    def _size(self) -> str:
        return f"{len(self.requested)} margins"


def _capped_shares(release: CountsRelease) -> Floats:
    assert release.weights is not None
    return np.array(release.weights.capped)[::CAPPED_PARTS]


def _declared(table: TableCall, is_used: tuple[bool, ...], values: Floats) -> Floats:
    """Return sums over the other variables of a table, in cells of declared levels."""
    axes = tuple(axis for axis, is_in in enumerate(is_used) if not is_in)
    return np.ravel(values.reshape(table.shape).sum(axis=axes)[(slice(-1),) * sum(is_used)])


def _by_stratum(
    weights: CappedWeights, table: TableCall, summed: Callable[[Floats], Floats]
) -> tuple[float, ...]:
    """Return the products by stratum of a margin, then the rest of each stratum's units."""
    if table.sampled is None or not table.sampled.strata:
        return ()
    lines: list[float] = []
    for line in np.array(weights.by_stratum).reshape(table.sampled.strata, -1):
        columns = line[:-1].reshape(table.cells, -1).T
        parts = np.column_stack([*map(summed, columns)])
        lines += [*parts.ravel().tolist(), float(line.sum() - parts.sum())]
    return tuple(lines)
