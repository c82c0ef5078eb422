"""``dp_mean``, ``dp_total``, ``dp_var``, ``dp_ttest`` and ``dp_summary``: numbers by group."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar, Unpack

from dpmodels.arguments import boolean, finite
from dpmodels.errors import FormulaError, shorten
from dpmodels.formula.sides import Sides, grouping, one_measured, parse_sides
from dpmodels.formula.tally import Tally
from dpmodels.formula.values import Category, Real, Truth
from dpmodels.mechanisms.counts import CountMechanism
from dpmodels.models.descriptive_specs import descriptive_spec, mean_tally, sampled_spec
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.released import CountsRelease
from dpmodels.request import Request
from dpmodels.results.call import DescribedCall
from dpmodels.results.groups import MeanResult, TotalResult, TTestResult, VarResult
from dpmodels.results.overview import OverviewResult
from dpmodels.verbs import spec_of

R = TypeVar("R")


@verb
def dp_mean(
    formula: str,
    data: object = None,
    *,
    mechanism: str | CountMechanism = "auto",
    **shared: Unpack[Shared],
) -> MeanResult:
    """Release the mean of a variable, by groups or not.

    Parameters
    ----------
    formula : str
        ``"income ~ sex"``, ``"income ~ sex + region"`` for each combination of
        levels, or ``"~ income"`` for all rows. A comparison or a variable of
        two levels on the left gives proportions.
    mechanism : {"auto", "rounds", "paired", "geometric", "gaussian"} or instance
        Discrete Laplace or discrete Gaussian noise; the quieter by default.
        ``"paired"`` is Laplace noise for the mean of all rows under
        ``"replace"``, √2 times less of it. ``"rounds"`` first finds the range
        of the rows with 15 % of the budget, for few rows with 5 to 80 %: for
        bounds that are too wide, and the default where a public number of rows
        identifies a range.

    Returns
    -------
    MeanResult

    Notes
    -----
    Each row is divided between the three Bernstein polynomials of degree 2 of its position in the
    declared range, which sum to 1: it counts as one row in one table, whatever its value, and the
    noisy parts give numbers of rows, means and variances of all groups. Groups come from declared
    levels and all of them are shown; under ``"replace"`` a row may change its group, which the
    noise covers.

    With ``person="id"`` each person is one observation: with ``rows="mean"`` the mean of all its
    complete rows in a group, weighted by their share, so that the estimate is of the mean over
    persons; with ``rows=4`` each of at most four rows counts once. Errors are clustered by person:
    those of a ratio of sums over persons. Where groups or numbers of rows may differ within
    persons, two more parts per group are released for them.

    Under a survey design, ``design=dp.design(weights="w", ...)``, means are Hájek's with linearised
    errors; weights are capped at a bound that is released first (mechanism ``"capped"``), and what
    that moves is put back. ``fit.design`` has the design effect and the cap.

    Noise is in proportion to the range. ``"rounds"`` counts the rows by public cells of it, all
    groups together, and clips the numbers to a range estimated from the noisy counts, wide enough
    for a tail they may hide. Rows far beyond it are counted apart, without cost, and some 15/eps of
    them make the range longer. Of few rows the range is drawn by the exponential mechanism, so that
    it hardly ever misses a tenth of them. The table states it and bounds the share of rows outside:
    the mean is that of the clipped rows, and intervals add a tail that goes on as it falls before
    the end. If the estimate is not much shorter, the declared range is used.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(income=(0, 250_000), sex=["F", "M"])
    >>> rows = {"income": [30e3, 81e3] * 500, "sex": ["F", "M"] * 500}
    >>> fit = dp_mean("income ~ sex", rows, codebook=cb, eps=1.0)
    >>> list(fit.params.index), fit.conf_int().shape
    (['F', 'M'], (2, 2))
    """
    return run_verb("mean", mean_spec, **locals())


@spec_of("mean", gaussian="gaussian", designs=True)
def mean_spec(request: Request) -> VerbSpec[MeanResult]:
    """Build the specification of a dp_mean call."""
    formula_sides = parse_sides(request.formula, request.codebook)
    return _of_number(request, formula_sides, MeanResult)


def _of_number(
    request: Request,
    formula_sides: Sides,
    result: Callable[[DescribedCall, CountsRelease], R],
    *,
    sampled_degree: int = 1,
    degree: int | None = None,
    total: bool = False,
) -> VerbSpec[R]:
    """Build the specification of one number by groups, of the degree of a mean by default."""
    number, factors = one_measured(formula_sides, f"dp_{request.verb}")
    if request.codebook.design is not None:
        tally = Tally(factors, number, sampled_degree)
        return sampled_spec(request, formula_sides, (tally,), result, total=total)
    tally = mean_tally(request.adjacency, factors, number)
    tally = tally if degree is None else Tally(factors, number, degree)
    return descriptive_spec(request, formula_sides, (tally,), result)


# ``dp_var``: private variances by formula.


@verb
def dp_var(
    formula: str,
    data: object = None,
    *,
    mechanism: str | CountMechanism = "auto",
    **shared: Unpack[Shared],
) -> VarResult:
    """Release the variance of a variable, by groups or not.

    Parameters
    ----------
    formula : str
        ``"income ~ sex"``, ``"income ~ sex + region"`` for each combination of
        levels, or ``"~ income"`` for all rows.
    mechanism : {"auto", "rounds", "geometric", "gaussian"} or instance
        Discrete Laplace or discrete Gaussian noise; the quieter by default.
        ``"rounds"`` first finds the range
        of the rows with 15 % of the budget, for few rows with 5 to 80 %: for
        bounds that are too wide, and the default where a public number of rows
        identifies a range.

    Returns
    -------
    VarResult

    Notes
    -----
    As :func:`dp_mean`, with the five Bernstein polynomials of degree 4, which give
    the fourth moments that intervals for the population need. Where ``"rounds"``
    clipped the rows to a range, the variance is that of the clipped rows, and
    intervals add a tail that goes on as it falls before the end of the range. Rows far beyond it
    are counted apart, as for means.

    Under a survey design the variance is weighted. With ``psu=`` the divisor is the sum of weights,
    since numbers of rows are not public.

    With ``person="id"`` and ``rows="mean"`` the variance is between persons: of the
    mean of all complete rows of a person in a group, weighted by their share of its
    rows. With ``rows=4`` it is of the rows, of which at most four a person count;
    intervals allow for any dependence among them.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(income=(0, 250_000), sex=["F", "M"])
    >>> rows = {"income": [30e3, 81e3] * 500, "sex": ["F", "M"] * 500}
    >>> fit = dp_var("income ~ sex", rows, codebook=cb, eps=1.0)
    >>> list(fit.params.index), fit.conf_int().shape
    (['F', 'M'], (2, 2))
    """
    return run_verb("var", var_spec, **locals())


@spec_of("var", gaussian="gaussian", audited=("a ~ g", "geometric"), designs=True)
def var_spec(request: Request) -> VerbSpec[VarResult]:
    """Build the specification of a dp_var call."""
    formula_sides = parse_sides(request.formula, request.codebook)
    return _of_number(request, formula_sides, VarResult, sampled_degree=2, degree=4)


# ``dp_ttest``: private t-tests by formula.


@verb
def dp_ttest(
    formula: str,
    data: object = None,
    *,
    mu: float = 0.0,
    mechanism: str | CountMechanism = "auto",
    **shared: Unpack[Shared],
) -> TTestResult:
    """Test the difference of two means, or one mean, allowing for the noise.

    Parameters
    ----------
    formula : str
        ``"income ~ sex"``, a group of two declared levels, or ``"~ income"``
        for one sample.
    mu : float
        The difference, or the mean, that is tested.
    mechanism : {"auto", "rounds", "paired", "geometric", "gaussian"} or instance
        Discrete Laplace or discrete Gaussian noise; the quieter by default.
        ``"paired"`` is Laplace noise for the mean of all rows under
        ``"replace"``, √2 times less of it. ``"rounds"`` first finds the range
        of the rows with 15 % of the budget, for few rows with 5 to 80 %: for
        bounds that are too wide, and the default where a public number of rows
        identifies a range.

    Returns
    -------
    TTestResult

    Notes
    -----
    The release is that of :func:`dp_mean`, also under a survey design, with errors clustered by
    person where persons are named; persons with rows in both groups can make the standard error
    too large, never too small. Variances may differ; the distribution of the
    statistic combines the noise and a sampling error with Welch's degrees of
    freedom. A p-value is not below 1e-9.

    References
    ----------
    .. [1] Welch, B. L. (1947). "The generalization of 'Student's' problem when
       several different population variances are involved." Biometrika 34,
       28-35.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(income=(0, 250_000), sex=["F", "M"])
    >>> rows = {"income": [30e3, 81e3] * 500, "sex": ["F", "M"] * 500}
    >>> dp_ttest("income ~ sex", rows, codebook=cb, eps=1.0).pvalue < 0.001
    True
    """
    return run_verb("ttest", ttest_spec, **locals())


@spec_of("ttest", gaussian="gaussian", designs=True)
def ttest_spec(request: Request) -> VerbSpec[TTestResult]:
    """Build the specification of a dp_ttest call."""
    formula_sides = parse_sides(request.formula, request.codebook)
    _, factors = one_measured(formula_sides, "dp_ttest")
    levels = [len(factor.levels) for factor in factors]
    if levels not in ([], [2]):
        raise FormulaError(
            f"formula {shorten(formula_sides.text)!r}: a t-test compares two groups; write 'y ~ "
            "group' with a group of two levels, such as (region == \"north\"), or '~ y'"
        )
    result = partial(TTestResult, mu=finite("mu", request.options["mu"]))
    return _of_number(request, formula_sides, result)


@verb
def dp_total(
    formula: str,
    data: object = None,
    *,
    mechanism: str | CountMechanism = "auto",
    **shared: Unpack[Shared],
) -> TotalResult:
    """Release the total of a variable, by groups or not.

    Parameters
    ----------
    formula : str
        ``"income ~ sex"``, ``"income ~ sex + region"`` for each combination of
        levels, or ``"~ income"`` for all rows. A comparison or a variable of
        two levels on the left gives numbers of units.
    mechanism : {"auto", "capped", "rounds", "paired", "geometric", "gaussian"} or instance
        Discrete Laplace or discrete Gaussian noise; ``"capped"`` under a
        survey design, and there alone.

    Returns
    -------
    TotalResult

    Notes
    -----
    Under a survey design, ``design=dp.design(weights="w", ...)``, the estimate is the
    Horvitz-Thompson total ``Σ w y`` of the population. The weights are capped at a bound that is
    released first, from 3 % of the budget; the table says how much of the weight was cut off and
    what that moved the total by, and errors include it. Without a design each row has the weight 1.

    Noise is in proportion to the largest of the declared bounds, and to the cap.

    References
    ----------
    .. [1] Horvitz, D. G. and Thompson, D. J. (1952). "A generalization of sampling without
       replacement from a finite universe." JASA 47(260), 663-685.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(income=(0, 250_000), sex=["F", "M"])
    >>> design = dp.design(weights="w", bounds=(1, 50), weights_are="design")
    >>> rows = {"income": [30e3, 81e3] * 500, "sex": ["F", "M"] * 500, "w": [2.0, 5.0] * 500}
    >>> fit = dp_total("income ~ sex", rows, codebook=cb, eps=2.0, design=design)
    >>> list(fit.params.index), fit.conf_int().shape
    (['F', 'M'], (2, 2))
    """
    return run_verb("total", total_spec, **locals())


@spec_of("total", gaussian="gaussian", designs=True)
def total_spec(request: Request) -> VerbSpec[TotalResult]:
    """Build the specification of a dp_total call."""
    formula_sides = parse_sides(request.formula, request.codebook)
    return _of_number(request, formula_sides, TotalResult, total=True)


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
    Of several variables every number keeps its declared range: where that is far
    too wide, :func:`dp_mean` of each has several times less noise at the same price.

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
    return run_verb("summary", summary_spec, **locals())


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
    tallies, groups = [], formula_sides.groups
    for value in formula_sides.described:
        if isinstance(value, Real):
            tallies.append(of_number(groups, value))
        elif isinstance(value, Category | Truth):
            tallies.append(Tally((*groups, grouping(value))))
        else:
            raise FormulaError(
                f"{shorten(value.code)!r} has several columns; describe the variable itself"
            )
    return tuple(tallies)
