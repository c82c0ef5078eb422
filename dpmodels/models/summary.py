"""``dp_summary``: a one-call table of private descriptions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Unpack

from dpmodels.arguments import boolean
from dpmodels.errors import FormulaError, shorten
from dpmodels.formula.sides import Sides, grouping, parse_sides
from dpmodels.formula.tally import Tally
from dpmodels.formula.values import Category, Real, Truth, Varying
from dpmodels.mechanisms.counts import CountMechanism
from dpmodels.models.descriptive_specs import descriptive_spec, mean_tally
from dpmodels.models.replay import spec_of
from dpmodels.models.sampled_specs import sampled_spec
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.request import Request
from dpmodels.results.overview import OverviewResult


@verb
def dp_summary(
    formula: str,
    data: object = None,
    *,
    tests: bool = False,
    mechanism: str | CountMechanism = "auto",
    **shared: Unpack[Shared],
) -> OverviewResult:
    """Release means, standard deviations and counts of several variables at once.

    Parameters
    ----------
    formula : str
        ``"~ age + income + sex"`` or ``"~ ."``; by groups ``"age + income ~ sex"``,
        or the same as ``"~ age + income | sex"``, and ``"~ . | sex"`` for all others.
    eps
        All variables share the guarantee.
    tests : bool, default False
        Whether p-values of differences between the groups are printed.
    mechanism : {"auto", "geometric", "gaussian"} or instance
        Discrete Laplace or discrete Gaussian noise; the quieter by default.

    Returns
    -------
    OverviewResult

    Notes
    -----
    Numbers are described by their means and standard deviations, categories
    by the counts of their levels. All tables are one vector: with m variables
    a row's L1 norm is m and its L2 norm √m, so that Gaussian noise grows with
    the root of the number of variables.

    The column of all groups together and the tests use the release of the groups,
    at no further cost: Welch's t or his analysis of variance for means, chi-square
    for counts, allowing for the noise. p-values are not adjusted for their number.

    Under a survey design means, standard deviations and shares are of the population, with
    linearised errors. One cap of the weights serves all tables; counts are not tested.

    References
    ----------
    .. [1] Welch, B. L. (1951). "On the comparison of several mean values: an
       alternative approach." Biometrika 38, 330-336.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(age=(0, 100), income=(0, 250_000), sex=["F", "M"])
    >>> rows = {"age": [31, 64] * 500, "income": [30e3, 81e3] * 500, "sex": ["F", "M"] * 500}
    >>> fit = dp_summary("~ age + income + sex", rows, codebook=cb, eps=1.0, delta=1e-6)
    >>> fit.variables, len(fit["sex"].counts)
    (('age', 'income', 'sex'), 2)
    """
    return run_verb("summary", summary_spec, formula, data, shared, mechanism, tests=tests)


@spec_of("summary", gaussian="gaussian", designs=True)
def summary_spec(request: Request) -> VerbSpec[OverviewResult]:
    """Build the specification of a dp_summary call."""
    design = request.codebook.design
    formula_sides = parse_sides(request.formula, request.codebook)
    tested = boolean("tests", request.options["tests"])
    if tested and not formula_sides.groups:
        raise FormulaError(
            f"formula {shorten(formula_sides.text)!r} has no groups, and tests=True compares them; "
            "write 'a + b ~ group'"
        )
    result = partial(OverviewResult, strata=len(formula_sides.groups), tested=tested)
    if design is not None:
        degree = 1 if design.psu is None else 2
        tallies = tables(formula_sides, lambda groups, number: Tally(groups, number, degree))
        return sampled_spec(request, formula_sides, tallies, result)
    tallies = tables(formula_sides, partial(mean_tally, request.adjacency))
    return descriptive_spec(request, formula_sides, tallies, result)


def tables(
    formula_sides: Sides, of_number: Callable[[tuple[Category, ...], Real], Tally]
) -> tuple[Tally, ...]:
    """Return a table for each variable that is described: of counts, or that of a number."""
    if not formula_sides.described:
        raise FormulaError(
            f"formula {shorten(formula_sides.text)!r} has no variable to describe; write '~ a + b' "
            "or 'a + b ~ group'"
        )
    return tuple(
        _tally(value, formula_sides.groups, of_number) for value in formula_sides.described
    )


def _tally(
    value: Varying,
    groups: tuple[Category, ...],
    of_number: Callable[[tuple[Category, ...], Real], Tally],
) -> Tally:
    """Describe a number by its first two moments, a category by its counts."""
    match value:
        case Real():
            return of_number(groups, value)
        case Category() | Truth():
            return Tally((*groups, grouping(value)))
    raise FormulaError(f"{shorten(value.code)!r} has several columns; describe the variable itself")
