"""Specifications of descriptions under a survey design."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypedDict, TypeVar

from dpmodels.codebook import Codebook
from dpmodels.design.cells import PrivateCells, unbound_cells
from dpmodels.errors import ArgumentError, FormulaError, FrameError, shorten
from dpmodels.formula.sampling import Sampling, sampling_of
from dpmodels.formula.sides import Sides
from dpmodels.formula.tally import CAPPED_PARTS, MAX_CELLS, Margins, Tally
from dpmodels.mechanisms import SAMPLED, choose_strategy
from dpmodels.mechanisms.choose import Choice
from dpmodels.mechanisms.protocol import CountFacts
from dpmodels.mechanisms.sampled.capped import FAINT, Capped
from dpmodels.models.descriptive_specs import descriptive_call
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.postprocess.strata import UNLIKE
from dpmodels.privacy import Adjacency, Guarantee, Pufferfish
from dpmodels.privacy.budget import MOST_ROWS
from dpmodels.released import CountsRelease
from dpmodels.request import Request
from dpmodels.results.call import DescribedCall

Result = TypeVar("Result")

# The noise of a wanted sum over that of a part, and the error of what a unit of weight that is cut
# off and put back moves it by, on a range of length 1: of means and of totals. Choices.
_MEAN: Final = (1.0, 0.06)
_TOTAL: Final = (1.6, 0.15)


class _CapPrice(TypedDict):
    """What a cap is found for, as in CountFacts."""

    numerator: float
    moved: float


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
    book = Codebook({**sampling.codebook, **formula_sides.codebook})
    _check_strata(request, sampling, tables)
    relation, psu = request.adjacency, sampling.design.psu
    facts = CountFacts(
        tables=len(tables),
        parts=sum(table.size for table in tables),
        divided=any(table.degree for table in tables),
        adjacency=relation,
        side_tables=1 + (sampling.strata is not None),
        products=sum(not table.degree for table in tables),
        capped=sampling.lower < sampling.upper or psu is not None,
        **_cap_price(tables, total=total),
        totals=total or not all(table.degree for table in tables),
    )
    return VerbSpec(
        request,
        descriptive_call(formula_sides, tables),
        result,
        unbound_cells(formula_sides.text, book, tables),
        facts,
        partial(_chosen, sampling, partial(_ranged, tables, facts, request.guarantee)),
        reads=None if psu is None else Adjacency(relation.name, MOST_ROWS, psu),
        check=partial(_require_weights, tables),
    )


def _cap_price(tables: tuple[Tally, ...], *, total: bool) -> _CapPrice:
    """Return what a cap is found for: the sum of all cells of counts, else means or totals.

    A cap for one mean is lower, by so much that totals beyond it are not known well enough.
    """
    counts = [table.cells for table in tables if not table.degree]
    if counts:
        return {"numerator": math.sqrt(max(counts)), "moved": UNLIKE}
    numerator, moved = _TOTAL if total else _MEAN
    return {"numerator": numerator, "moved": moved / tables[0].cells}


def _check_strata(request: Request, sampling: Sampling, tables: tuple[Tally, ...]) -> None:
    """Refuse more sums by stratum than are released at once."""
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
    if len(tables) > 1:
        return False
    sampling, number = tables[0].sampling, tables[0].measured
    assert sampling is not None
    if sampling.design.psu is not None or n_rows is None or number is None:
        return False
    if isinstance(guarantee, Pufferfish) or not facts.adjacency.n_public:
        return False
    cells = Capped(ranged=True).plan(facts, guarantee).first
    return cells is not None and cells.noise_sd < FAINT * n_rows


def _chosen(
    sampling: Sampling,
    ranged: Callable[[int | None], bool],
    mechanism: object,
    private: Sequence[PrivateCells],
) -> Choice[Any]:
    """Choose the mechanism; refuse rows in several places, before a charge."""
    if len(private) != 1 or private[0].scattered is not None:
        raise ArgumentError(
            "a survey design needs all rows in one table, since one cap is found for their "
            "weights: write data= instead of sites= or a Dask DataFrame, or design=False"
        )
    size, n_rows = sampling.design.population.get(""), private[0].nrows
    is_public = private[0].neighbours.n_public and sampling.design.psu is None
    if size is not None and is_public and n_rows is not None and size < n_rows:
        raise ArgumentError(
            f"fpc={size:g} is less than the {n_rows:,} rows of the sample: write the number of "
            "units in the population"
        )
    choice: Choice[Any] = choose_strategy(
        mechanism, SAMPLED, lambda: ("capped", "it is the only one for survey designs.")
    )
    if mechanism == "auto" and ranged(n_rows):
        return choice._replace(strategy=replace(choice.strategy, ranged=True))
    return choice


def _require_weights(tables: tuple[Tally, ...], release: CountsRelease) -> None:
    """Refuse a release from a file without the sums that the design has."""
    sampling, weights = tables[0].sampling, release.weights
    assert sampling is not None
    strata = 0 if sampling.strata is None else len(sampling.strata.levels)
    expected = (
        sum(table.cells for table in tables) * CAPPED_PARTS,
        sum(table.stratum_size for table in tables) * strata,
    )
    if weights is None or (len(weights.capped), len(weights.by_stratum)) != expected:
        raise FrameError("release.weights: not those of the design")
