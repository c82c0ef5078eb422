"""The result of margins of one table under a survey design."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
import pandas as pd

from dpmodels.errors import ArgumentError
from dpmodels.formula.tally import CAPPED_PARTS
from dpmodels.postprocess.residuals import Term, least_squares, rebuilt
from dpmodels.released import CappedWeights, CountsRelease
from dpmodels.results.base import Derivation
from dpmodels.results.call import DescribedCall, TableCall
from dpmodels.results.count_tables import described_line, taken
from dpmodels.results.margins import MarginTables, named_factors
from dpmodels.results.weighted import WeightedTableResult
from dpmodels.typing import Floats


@dataclass(frozen=True, repr=False, eq=False)
class WeightedMarginsResult(MarginTables):
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
            margin, names = (
                ":".join(self.factors[i] for i in term),
                ", ".join(map(repr, self.terms)),
            )
            raise ArgumentError(f"{margin!r} was not requested; the margins are {names}")
        return min(inside, key=lambda number: tables[number].cells)

    @property
    def _sizes(self) -> tuple[int, ...]:
        sizes: dict[str, int] = {}
        for table in self.call.tables:
            sizes |= dict(zip(table.factors, table.shape, strict=True))
        return tuple(sizes[name] for name in self.factors)

    def _of_term(self, term: Term, number: int, release: CountsRelease) -> CountsRelease:
        """Return the release of one margin, as if requested alone.

        Shares of units are fitted to all tables; products are those of one table.
        """
        table, single = self.call.tables[number], taken(self.call, release, number)
        weights, values = single.weights, single.values
        assert weights is not None
        cut = (slice(-1),) * len(term)
        counts, capped = (np.ravel(rebuilt(term, parts, self._sizes)[cut]) for parts in self._fits)
        other_axes = tuple(at for at, i in enumerate(self._positions(table)) if i not in term)

        def summed(parts: Floats) -> Floats:
            return np.ravel(parts.reshape(table.shape).sum(axis=other_axes)[cut])

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
        weights = [release.weights for release in releases if release.weights is not None]
        values = [release.values[:-1] for release in releases]
        capped = [np.array(weight.capped)[::CAPPED_PARTS] for weight in weights]

        def fitted(kind: Sequence[Floats]) -> Mapping[Term, Floats]:
            lines = zip(terms, tables, kind, strict=True)
            by_term = {term: np.reshape(of, table.shape) for term, table, of in lines}
            return least_squares(by_term, ones, sizes)

        return fitted(values), fitted(capped)

    further: ClassVar = ("released", "proportion", "deff")

    @property
    def _requested(self) -> tuple[TableCall, ...]:
        return self.requested

    @cached_property
    def _tables(self) -> list[WeightedTableResult]:
        return [self.table(*table.factors) for table in self.requested]

    @property
    def design(self) -> pd.DataFrame:
        """By margin and level: weight, deff, effective n and df of its share, and the cap."""
        return self._joined(table.design for table in self._tables)

    def _line(self) -> dict[str, object]:
        line = described_line(self.release, np.nan, len(self.requested))
        return {"nobs": line["nobs"], "nmargins": len(self.requested)}


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
