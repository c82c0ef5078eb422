"""``dp_bounds`` and ``dp_levels``: bounds that are declared too wide, and undeclared levels."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from dpmodels.codebook import Codebook
from dpmodels.design.cells import unbound_cells, unbound_levels
from dpmodels.errors import FormulaError, shorten
from dpmodels.formula.coding import checked_codebook
from dpmodels.formula.sides import Sides, named, parse_sides
from dpmodels.formula.tally import Tally
from dpmodels.formula.values import Real
from dpmodels.mechanisms import BOUNDS, LEVELS, CellMechanism, LevelMechanism, choose_strategy
from dpmodels.mechanisms.counts.partition import LevelFacts
from dpmodels.mechanisms.protocol import CountFacts
from dpmodels.models.descriptive_specs import descriptive_call
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.request import Request
from dpmodels.resolve_codebook import codebook_besides
from dpmodels.results.bounds import BoundsResult, LevelsResult
from dpmodels.results.call import DescribedCall, TableCall
from dpmodels.verbs import spec_of


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
    return run_verb("bounds", bounds_spec, **locals())


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


@verb
def dp_levels(
    formula: str,
    data: object = None,
    *,
    mechanism: str | LevelMechanism = "auto",
    **shared: Unpack[Shared],
) -> LevelsResult:
    """Find the levels of undeclared variables, where they have enough rows.

    Parameters
    ----------
    formula : str
        ``"~ town + job"``: columns of text or whole numbers.
    eps
        All variables share the guarantee. A delta well below 1/n is needed: it
        bounds the probability of showing a level that only one row has.
    codebook
        Only other variables need to be declared; those of the formula may be ``?``
        in a draft.
    mechanism : {"auto", "partition"} or instance
        Truncated geometric noise, which finds most.
    ledger
        A ledger takes such a release before any with Gaussian noise, as deltas of
        such releases add up: leave it the rest of its delta by a smaller one here.

    Returns
    -------
    LevelsResult
        Its ``codebook`` is what was declared with the levels that were found, and is public.

    Notes
    -----
    A level is a text of at most 100 printable characters or a whole number
    below 2**53; text that spells a number is that number, so that ``1``,
    ``"1"`` and ``"01"`` are one. Rows with any other cell, longer or blank
    text among them, count as incomplete for that variable, silently. Levels
    come sorted, whole numbers where all of them are.

    All levels are counted in memory, some 250 bytes each: where all values differ, as names do, 2.5
    GB for ten million rows. Such columns have no levels to find.

    References
    ----------
    .. [1] Desfontaines, D., Voss, J., Gipson, B. and Mandayam, C. (2022).
       "Differentially private partition selection." PoPETs 2022(1), 339-352.

    Examples
    --------
    >>> import dpmodels as dp
    >>> rows = {"town": ["Ulm"] * 400 + ["Bonn"] * 300 + ["Rust"]}
    >>> found = dp_levels("~ town", rows, eps=1.0, delta=1e-6)
    >>> found.levels["town"]
    ('Bonn', 'Ulm')
    >>> cb = dp.codebook(age=(0, 100)) | found.codebook
    >>> list(cb)
    ['age', 'town']
    """
    return run_verb(
        "levels", levels_spec, formula, data, shared, mechanism, resolve=codebook_besides
    )


@spec_of(
    "levels",
    spends_delta=True,
    instead="undeclared levels cannot be counted together by sites that do not show each other "
    "their names; run dp.dp_levels at each site, whose rows are disjoint, and unite the levels",
)
def levels_spec(request: Request) -> VerbSpec[LevelsResult]:
    """Build the specification of a dp_levels call."""
    book = checked_codebook(request.codebook)
    text, names = named(request.formula, book)
    tables = tuple(TableCall((), (), measured=name) for name in names)
    return VerbSpec(
        request,
        DescribedCall(text, Codebook(), tables),
        partial(LevelsResult, declared=book),
        unbound_levels(text, names),
        LevelFacts(len(names), request.adjacency),
        lambda mechanism, _: choose_strategy(mechanism, LEVELS, lambda: ("partition", "")),
    )
