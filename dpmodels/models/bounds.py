"""``dp_bounds``: private bounds of variables whose declared ones are too wide."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from dpmodels.codebook import Codebook
from dpmodels.design.cells import unbound_cells
from dpmodels.errors import FormulaError, shorten
from dpmodels.formula.sides import Sides, parse_sides
from dpmodels.formula.tally import Tally
from dpmodels.formula.values import Real
from dpmodels.mechanisms import BOUNDS, CellMechanism, choose_strategy
from dpmodels.mechanisms.protocol import CountFacts
from dpmodels.models.descriptive_specs import descriptive_call
from dpmodels.models.replay import spec_of
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.request import Request
from dpmodels.results.bounds import BoundsResult


@verb
def dp_bounds(
    formula: str,
    data: object = None,
    *,
    mechanism: str | CellMechanism = "auto",
    **shared: Unpack[Shared],
) -> BoundsResult:
    """Find bounds that nearly all rows are in, where the declared ones are too wide.

    Parameters
    ----------
    formula : str
        ``"~ income + age"``: numeric variables of the codebook; ``"~ ."`` for all of them.
    eps
        All variables share the guarantee. With a delta the noise of many variables
        is much smaller.
    codebook
        The bounds may be far too wide.
    data
        The rows are read twice.
    mechanism : {"auto", "ranges"} or instance
        Two rounds of counts by cell.

    Returns
    -------
    BoundsResult
        Its ``codebook`` has the bounds that were found, and is public.

    Notes
    -----
    Rows are counted by cells that double from 0, or from the bound nearest to it, and again by 24
    to 192 equal cells where the first counts detect rows: bounds a million times too wide cost
    hardly more than those ten times too wide. Where noise hides the ends, each side of the middle
    is taken to be uniform, exponential or slightly heavier, as fitted to the counts, and the bound
    lies twice as far out as 3 % of the rows would be; heavier tails, and a few distant rows, are
    cut off. Where counts rule out that more than 2 % are beyond a nearer cell, which is wrong once
    in a thousand at most, and show one or two in a thousand, the bound is there. Ends are rounded
    outwards to three digits; of numbers in steps they are steps. A bound within a twentieth of that
    length is kept, and both are where the declared range is less than 1.5 times as long, or where
    too few rows stand out from the noise: then the table says so.

    The share of rows outside is released with its noise. Later fits with these bounds describe rows
    clipped to them.

    References
    ----------
    .. [1] Karwa, V. and Vadhan, S. (2018). "Finite sample differentially
       private confidence intervals." ITCS.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(age=dp.Numeric(0, 10_000, step=1), sex=["F", "M"])
    >>> rows = {"age": list(range(18, 90)) * 100, "sex": ["F", "M"] * 3600}
    >>> found = dp_bounds("~ age", rows, codebook=cb, eps=1.0)
    >>> found.codebook["age"].upper < 200, found.codebook["sex"] == cb["sex"]
    (True, True)
    """
    return run_verb("bounds", bounds_spec, formula, data, shared, mechanism)


@spec_of("bounds")
def bounds_spec(request: Request) -> VerbSpec[BoundsResult]:
    """Build the specification of a dp_bounds call."""
    formula_sides = parse_sides(request.formula, request.codebook)
    tallies = numbers(formula_sides)
    facts = CountFacts(len(tallies), len(tallies), False, request.adjacency)
    return VerbSpec(
        request,
        descriptive_call(formula_sides, tallies),
        partial(BoundsResult, declared=Codebook(request.codebook)),
        unbound_cells(formula_sides.text, formula_sides.codebook, tallies),
        facts,
        lambda mechanism, _: choose_strategy(mechanism, BOUNDS, lambda: ("ranges", "")),
        passes=True,
    )


def numbers(formula_sides: Sides) -> tuple[Tally, ...]:
    """Return one table for each variable of a formula, all of them numeric."""
    if formula_sides.groups or not formula_sides.described:
        raise FormulaError(
            f"formula {shorten(formula_sides.text)!r}: dp_bounds finds bounds of all rows "
            "together, without groups; write '~ a + b'"
        )
    tallies = []
    for value in formula_sides.described:
        if not isinstance(value, Real) or value.variable is None:
            raise FormulaError(
                f"{shorten(value.code)!r} is not a numeric variable of the codebook: dp_bounds "
                "finds bounds of numeric variables; leave it out, as in '~ . - sex', or name the "
                "variable alone"
            )
        tallies.append(Tally((), value))
    return tuple(tallies)
