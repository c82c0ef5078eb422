"""What descriptive verbs share: their specification, under a survey design too, and their call."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeVar

from dpmodels.codebook import of_variables
from dpmodels.design.cells import PrivateCells, unbound_cells
from dpmodels.errors import ArgumentError, CodebookError, FormulaError, FrameError, quoted, shorten
from dpmodels.formula.sides import Sides
from dpmodels.formula.tally import CAPPED_PARTS, MAX_CELLS, Margins, Sampling, Tally, sampling_of
from dpmodels.formula.values import Category, Real
from dpmodels.mechanisms import COUNTS, MEANS, MEASURED, ORDERED, PLANE, SAMPLED, choose_strategy
from dpmodels.mechanisms.choose import Choice
from dpmodels.mechanisms.choose_counts import auto_counts, auto_ordered, auto_plane
from dpmodels.mechanisms.counts.ranges import range_shares
from dpmodels.mechanisms.protocol import AnyStrategy, CountFacts
from dpmodels.mechanisms.sampled.capped import FAINT, Capped
from dpmodels.models.assumed_rows import group_means
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.postprocess.weight_caps import UNLIKE
from dpmodels.privacy import Adjacency, Guarantee, Pufferfish
from dpmodels.privacy.budget import MOST_ROWS
from dpmodels.released import CountsRelease
from dpmodels.request import Request
from dpmodels.results.call import DescribedCall, SampledTable, TableCall
from dpmodels.sites import together

Result = TypeVar("Result")


def descriptive_spec(
    request: Request,
    formula_sides: Sides,
    tallies: tuple[Tally, ...],
    result: Callable[[DescribedCall, Any], Result],
    mechanisms: Mapping[str, type[AnyStrategy]] = MappingProxyType({}),
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
    mechanisms: Mapping[str, type[AnyStrategy]],
    facts: CountFacts,
    guarantee: Guarantee,
    mechanism: object,
    private: Sequence[PrivateCells],
) -> Choice[AnyStrategy]:
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
) -> Choice[AnyStrategy]:
    """Choose among mechanisms for ordered cells; "flat" is the one with least noise per cell."""
    (flat, _), is_plane = auto_counts(facts, guarantee), len(facts.shape) == 3
    mechanisms, automatic = (PLANE, auto_plane) if is_plane else (ORDERED, auto_ordered)
    table: Mapping[str, type[AnyStrategy]] = {"flat": COUNTS[flat], **COUNTS, **mechanisms}
    is_public = facts.adjacency.n_public and len(private) == 1
    n_rows = _n_rows(facts, private) if is_public else None
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
    return _n_rows(facts, private)


def _n_rows(facts: CountFacts, private: Sequence[PrivateCells]) -> int | None:
    counts = (source.nrows if source.rereadable else None for source in private)
    return together(counts, facts.adjacency.places)


def descriptive_call(formula_sides: Sides | Margins, tallies: tuple[Tally, ...]) -> DescribedCall:
    """Return the public facts of a description."""
    tables = tuple(map(table_call, tallies))
    return DescribedCall(formula_sides.text, formula_sides.codebook, tables)


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
    design, levels = sampling.design, () if sampling.strata is None else sampling.strata.levels
    sizes, units = design.population, design.psu is not None
    population = tuple(sizes.values())
    if sizes and "" not in sizes:
        unknown = [level for level in sizes if level not in map(str, levels)]
        if unknown:
            raise CodebookError(f"fpc= names {quoted(unknown[0])}, which is not a level of strata=")
        population = tuple(sizes.get(str(level), math.inf) for level in levels)
    return SampledTable(design.describe(), len(levels), population, units, sampling.upper)


# The noise of a wanted sum over that of a part, and the error of what a unit of weight that is cut
# off and put back moves it by, on a range of length 1: of means and of totals. Choices.
_MEAN: Final = (1.0, 0.06)
_TOTAL: Final = (1.6, 0.15)


def sampled_spec(
    request: Request,
    formula_sides: Sides | Margins,
    tallies: tuple[Tally, ...],
    result: Callable[[DescribedCall, Any], Result],
    *,
    total: bool = False,
) -> VerbSpec[Result]:
    """Build the specification of tables of weighted units; the request has a design."""
    sampling = sampling_of(request.codebook)
    assert sampling is not None
    tables = tuple(replace(tally, sampling=sampling) for tally in tallies)
    book = of_variables({**sampling.codebook, **formula_sides.codebook})
    _check_strata(request, sampling, tables)
    relation, psu = request.adjacency, sampling.design.psu
    numerator, moved = _cap_price(tables, total=total)
    facts = CountFacts(
        tables=len(tables),
        parts=sum(table.size for table in tables),
        divided=any(table.degree for table in tables),
        adjacency=relation,
        side_tables=1 + (sampling.strata is not None),
        products=sum(not table.degree for table in tables),
        capped=sampling.lower < sampling.upper or psu is not None,
        numerator=numerator,
        moved=moved,
        totals=total or not all(table.degree for table in tables),
    )
    return VerbSpec(
        request,
        descriptive_call(formula_sides, tables),
        result,
        unbound_cells(formula_sides.text, book, tables),
        facts,
        partial(_chosen, sampling, tables, facts, request.guarantee),
        reads=None if psu is None else Adjacency(relation.name, MOST_ROWS, psu),
        check=partial(_require_weights, tables),
    )


def _cap_price(tables: tuple[Tally, ...], *, total: bool) -> tuple[float, float]:
    """Return what a cap is found for: the sum of all cells of counts, else means or totals.

    A cap for one mean is lower, by so much that totals beyond it are not known well enough.
    """
    counts = [table.cells for table in tables if not table.degree]
    if counts:
        return math.sqrt(max(counts)), UNLIKE
    numerator, moved = _TOTAL if total else _MEAN
    return numerator, moved / tables[0].cells


def _check_strata(request: Request, sampling: Sampling, tables: tuple[Tally, ...]) -> None:
    levels = 0 if sampling.strata is None else len(sampling.strata.levels)
    if sum(table.stratum_size for table in tables) * levels > MAX_CELLS:
        cells = sum(table.cells for table in tables)
        raise FormulaError(
            f"formula {shorten(request.formula)!r} has {cells:,} cells in {levels:,} strata, "
            f"and at most {MAX_CELLS:,} sums are released; write fewer cells, or a design without "
            "strata="
        )


def _ranged(
    tables: tuple[Tally, ...],
    facts: CountFacts,
    guarantee: Guarantee | Pufferfish,
    n_rows: int | None,
) -> bool:
    """Whether a range is searched: of rows, whose public number is far above the noise in cells."""
    if len(tables) > 1 or tables[0].measured is None or n_rows is None:
        return False
    if isinstance(guarantee, Pufferfish) or not facts.adjacency.n_public:
        return False
    cells = Capped(ranged=True).plan(facts, guarantee).first
    return cells is not None and cells.noise_sd < FAINT * n_rows


def _chosen(
    sampling: Sampling,
    tables: tuple[Tally, ...],
    facts: CountFacts,
    guarantee: Guarantee | Pufferfish,
    mechanism: object,
    private: Sequence[PrivateCells],
) -> Choice[AnyStrategy]:
    """Choose the mechanism; refuse rows in several places, before a charge."""
    if len(private) != 1 or private[0].scattered is not None:
        raise ArgumentError(
            "a survey design needs all rows in one table, since one cap is found for their "
            "weights: write data= instead of sites= or a Dask DataFrame, or design=False"
        )
    size, n_rows = sampling.design.population.get(""), private[0].nrows
    neighbours, in_units = private[0].rows.terms.neighbours, sampling.design.psu is not None
    is_public = neighbours.n_public and not in_units
    if size is not None and is_public and n_rows is not None and size < n_rows:
        raise ArgumentError(
            f"fpc={size:g} is less than the {n_rows:,} rows of the sample: write the number of "
            "units in the population"
        )
    choice: Choice[Any] = choose_strategy(
        mechanism, SAMPLED, lambda: ("capped", "it is the only one for survey designs.")
    )
    if mechanism == "auto" and not in_units and _ranged(tables, facts, guarantee, n_rows):
        return choice._replace(strategy=replace(choice.strategy, ranged=True))
    if in_units and neighbours.n_public and n_rows is not None and isinstance(mechanism, str):
        largest, n_units = sampling.upper * neighbours.places, n_rows // neighbours.places
        limits = sampling.lower, largest, n_units
        return choice._replace(strategy=choice.strategy.for_units(facts, guarantee, *limits))
    return choice


def _require_weights(tables: tuple[Tally, ...], release: CountsRelease) -> None:
    sampling, weights = tables[0].sampling, release.weights
    assert sampling is not None
    strata = 0 if sampling.strata is None else len(sampling.strata.levels)
    expected = (
        sum(table.cells for table in tables) * CAPPED_PARTS,
        sum(table.stratum_size for table in tables) * strata,
    )
    if weights is None or (len(weights.capped), len(weights.by_stratum)) != expected:
        raise FrameError("release.weights: not those of the design")
