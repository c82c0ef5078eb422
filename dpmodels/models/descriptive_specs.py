"""What descriptive verbs share: their specification, and the call that a result keeps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from dpmodels.codebook import Codebook
from dpmodels.design.cells import PrivateCells, unbound_cells
from dpmodels.errors import CodebookError, quoted
from dpmodels.formula.sampling import Sampling
from dpmodels.formula.sides import Sides
from dpmodels.formula.tally import Margins, Tally
from dpmodels.formula.values import Category, Real
from dpmodels.mechanisms import COUNTS, MEANS, MEASURED, ORDERED, PLANE, choose_strategy
from dpmodels.mechanisms.choose import Choice, auto_counts, auto_ordered, auto_plane
from dpmodels.mechanisms.counts.rounds import range_shares
from dpmodels.mechanisms.protocol import CountFacts
from dpmodels.models.predicted_laws import group_means
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.privacy import Adjacency, Guarantee
from dpmodels.request import Request
from dpmodels.results.call import DescribedCall, SampledTable, TableCall
from dpmodels.sites import together

Result = TypeVar("Result")


def descriptive_spec(
    request: Request,
    formula_sides: Sides,
    tallies: tuple[Tally, ...],
    result: Callable[[DescribedCall, Any], Result],
    mechanisms: Mapping[str, type[object]] = MappingProxyType({}),
    shape: tuple[int, ...] = (),
) -> VerbSpec[Result]:
    """Build the specification of a verb that counts the rows of a formula in tables.

    `mechanisms` are those of the verb beside those of counts; `shape` is that of the one
    table whose cells stand in an order, or in a plane, if they do.
    """
    facts = CountFacts(
        tables=len(tallies),
        parts=sum(tally.size for tally in tallies),
        divided=any(tally.degree for tally in tallies),
        adjacency=request.adjacency,
        shape=shape,
    )

    return VerbSpec(
        request,
        descriptive_call(formula_sides, tallies),
        result,
        unbound_cells(formula_sides.text, formula_sides.codebook, tallies),
        facts,
        partial(_ordered if shape else partial(_counted, mechanisms), facts, request.private),
        law=partial(group_means, tallies),
    )


def _counted(
    mechanisms: Mapping[str, type[object]],
    facts: CountFacts,
    guarantee: Guarantee,
    mechanism: object,
    private: Sequence[PrivateCells],
) -> Choice[Any]:
    n_rows = _n_rows_for_range(facts, private)
    shares = None if n_rows is None else range_shares(facts, guarantee, n_rows)
    return choose_strategy(
        mechanism,
        {**COUNTS, **MEANS, **MEASURED, **mechanisms},
        partial(auto_counts, facts, guarantee, n_rows),
        {} if shares is None else {"shares": shares},
    )


def _ordered(
    facts: CountFacts, guarantee: Guarantee, mechanism: object, private: Sequence[PrivateCells]
) -> Choice[Any]:
    """Choose among mechanisms for ordered cells; "flat" is the one with least noise per cell."""
    flat, _ = auto_counts(facts, guarantee)
    mechanisms, automatic = (
        (PLANE, auto_plane) if len(facts.shape) == 3 else (ORDERED, auto_ordered)
    )
    table: Mapping[str, type[object]] = {"flat": COUNTS[flat], **COUNTS, **mechanisms}
    n_rows = None
    if facts.adjacency.n_public and len(private) == 1:
        (source,) = private
        n_rows = together((source.nrows if source.rereadable else None,), facts.adjacency.places)
    return choose_strategy(mechanism, table, partial(automatic, facts, guarantee, n_rows))


def mean_tally(neighbours: Adjacency, factors: tuple[Category, ...], number: Real) -> Tally:
    """Return the table of a mean by groups, of rows or of persons."""
    several = bool(factors) or not neighbours.counts_persons
    clustered = neighbours.person is not None and neighbours.places > 1 and several
    return Tally(factors, number, 2, clustered)


def _n_rows_for_range(facts: CountFacts, private: Sequence[PrivateCells]) -> int | None:
    """Return the number of rows for estimating a number's range; None where it is not estimated.

    Proportions and conditions, between 0 and 1, fill their declared range.
    """
    if facts.tables > 1 or not (facts.divided and facts.adjacency.n_public):
        return None
    (tally,) = private[0].tallies
    number = tally.measured
    if number is None or (number.lower, number.upper) == (0.0, 1.0):
        return None
    counts = (source.nrows if source.rereadable else None for source in private)
    return together(counts, facts.adjacency.places)


def descriptive_call(formula_sides: Sides | Margins, tallies: tuple[Tally, ...]) -> DescribedCall:
    """Return the public facts of a description."""
    tables = tuple(map(table_call, tallies))
    return DescribedCall(formula_sides.text, Codebook(formula_sides.codebook), tables)


def table_call(tally: Tally) -> TableCall:
    """Return the public facts of a table."""
    number = tally.measured
    return TableCall(
        factors=tuple(factor.code for factor in tally.factors),
        levels=tuple(factor.levels for factor in tally.factors),
        measured="" if number is None else number.code,
        lower=0.0 if number is None else number.lower,
        upper=1.0 if number is None else number.upper,
        degree=tally.degree,
        clustered=tally.clustered or None,
        step=None if number is None else number.step or None,
        date=number is not None and number.date,
        sampled=None if tally.sampling is None else _sampled(tally.sampling),
    )


def _sampled(sampling: Sampling) -> SampledTable:
    """Return the public facts of a design, its population in the order of the strata."""
    design, levels = sampling.design, () if sampling.strata is None else sampling.strata.levels
    sizes = design.population
    population = tuple(sizes.values()) if "" in sizes else _by_level(sizes, levels)
    units = design.psu is not None
    return SampledTable(design.describe(), len(levels), population, units, sampling.upper)


def _by_level(sizes: Mapping[str, float], levels: Sequence[object]) -> tuple[float, ...]:
    unknown = [level for level in sizes if level not in map(str, levels)]
    if unknown:
        raise CodebookError(f"fpc= names {quoted(unknown[0])}, which is not a level of strata=")
    return tuple(sizes.get(str(level), math.inf) for level in levels) if sizes else ()
