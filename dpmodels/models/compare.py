"""``compare_mechanisms``: the accuracy of each mechanism for a budget, before it is spent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from dpmodels.arguments import checked_keywords, integer, option, real
from dpmodels.codebook import Codebook
from dpmodels.design import scaling
from dpmodels.errors import ArgumentError, did_you_mean, quoted
from dpmodels.formula import Design, design
from dpmodels.formula.parse import parsed_formula
from dpmodels.formula.response import two_sided
from dpmodels.mechanisms import COVARIANCE, SUBSPACE, Facts
from dpmodels.mechanisms.choose_moments import Table, auto_moments
from dpmodels.mechanisms.regression import COEFFICIENTS, REGRESSION
from dpmodels.mechanisms.user_supplied import refuse_superseded, supplied
from dpmodels.models import mechanism_trials
from dpmodels.models.glm import glm_by_sums
from dpmodels.models.lm import lm_spec
from dpmodels.models.mechanism_trials import lengths
from dpmodels.models.moments import automatic, checked_rule
from dpmodels.models.simulated_rows import Box, box_of, simulate_block
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.privacy import Adjacency, AdjacencyName, Guarantee, resolve_budget
from dpmodels.request import related, requested
from dpmodels.resolve_codebook import Resolved, codebook_of_call
from dpmodels.results import MomentsCall, comparison
from dpmodels.results.components import checked_ncomp
from dpmodels.typing import Floats, Option

MOMENTS: Table = {name: kind for name, kind in (COVARIANCE | SUBSPACE).items() if name != "none"}
SPECTRA = {"power": 1.0, "steep": 2.0, "flat": 0.0}


@checked_keywords("dp.compare_mechanisms")
def compare_mechanisms(
    formula: str,
    *,
    codebook: Resolved,
    n: int,
    eps: float | None = None,
    delta: float = 0.0,
    budget: Guarantee | None = None,
    ncomp: int | None = None,
    spectrum: str | ArrayLike = "power",
    row_length: float | Sequence[float] | None = None,
    center: bool = True,
    scale: str | None = "range",
    row_norm: float | str | None = None,
    adjacency: AdjacencyName | Adjacency = "replace",
    person: str | Literal[False] | None = None,
    rows: int | Literal["mean"] | None = None,
    mechanisms: Sequence[str | type] | None = None,
    denoise: str | None = "auto",
    repeats: int = 3,
    family: str | None = None,
) -> comparison.Comparison | object:
    """Compare the mechanisms for a formula and a budget; reads no data, spends nothing.

    Parameters
    ----------
    formula : str
        A right-hand side, as for :func:`dp_pca`. Only the number and the public
        ranges of its coded columns matter. With a response, as for
        :func:`dp_lm`, its mechanisms are compared, or those of :func:`dp_glm`.
    codebook : Codebook, Draft, mapping or path
        Public bounds and levels of the variables.
    n : int
        Number of rows, known or guessed, from 2.
    eps, delta, budget
        The guarantee, as for :func:`dp_pca`.
    ncomp : int, optional
        Components wanted. All by default, as for a covariance matrix: then
        mechanisms are sorted by its relative error instead of by captured energy.
    spectrum : {"power", "steep", "flat"} or array_like
        Assumed eigenvalues: ``1/i``, ``1/i²``, equal, or a public guess of their relative sizes;
        those left out are 0. They apply to columns in units of their ranges, before a shape rounds
        these.
    row_length : float or sequence of float, optional
        By default rows of five shapes are tried, whose lengths differ. Numbers in
        (0, 1] try rows of those lengths instead, as shares of the row norm,
        about a mean at the centre. With ``row_norm="unit"`` it is 1. With a
        response they are standard deviations of numbers, in halves of their
        ranges.
    center, scale, row_norm, adjacency, denoise
        As for :func:`dp_pca`; `scale` and `row_norm` as for :func:`dp_glm` where
        there is a response, and then neither `center` nor `denoise`.
    person, rows
        As for :func:`dp_pca`, without a response: `n` counts rows, with ``rows="mean"`` persons. A
        regression is compared for one row a person: write ``person=False``.
    mechanisms : sequence of str or type, optional
        Names to compare, or registered classes of moments; all of the package by
        default.
    repeats : int
        Simulated releases of each on each shape, from 1.
    family : {"gaussian", "binomial", "poisson"}, optional
        With a response: least squares, which is the default, or the family of
        :func:`dp_glm`.

    Returns
    -------
    Comparison
        Its ``table`` has the loss of every mechanism on the typical and on the worst shape,
        ``by_shape`` that on each; ``auto`` is the choice of ``mechanism="auto"``. With a response a
        :class:`~dpmodels.results.comparison.FitComparison`: errors of coefficients in standard
        errors without privacy, and how far the automatic choice is behind the best, ``behind``.

    Raises
    ------
    FormulaError, CodebookError, ArgumentError, BudgetError

    Notes
    -----
    Every strategy plans, measures and releases as it would, on invented rows,
    with noise that is the same at every call. Which mechanism serves best
    depends on how long rows are and where their mean lies, so five shapes of
    columns are tried between the bounds of the codebook: ``short``, normal
    columns in wide bounds; ``tails``, heavy ones; ``box``, columns that fill
    their ranges; ``counts``, whole numbers with half of the rows at the lower
    bound, so that all rows are long and little of that is variance; and
    ``dummies``, long rows on the surface of the ball. *Typical* is the
    median over the shapes, *worst* the worst of them.

    Rows are blocks of about 2,000, repeated to n rows. Sums over rows are measured on one block and
    multiplied, which is exact; noise is that of n rows. So the time does not depend on n. Many rows
    are equal, which affects no mechanism. Predictions are as good as the assumptions; nothing comes
    from data.

    With a response the shapes are those of the variables of the right-hand
    side, which the formula then codes; levels of a category fall off as 1/i. A
    number's response has their shape too, 30 % of it explained by terms of equal
    weight; an outcome has the rate 0.3 and log odds of spread 1; counts have a
    tenth of their upper bound for a mean, of which the logarithm has the spread
    ½. Errors are those about the fit without privacy to the same rows. Sums that
    the minimiser of ``"objective"`` and ``"output"`` takes in floating point are
    multiplied too, with the rounding of one block.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook.uniform([f"x{i}" for i in range(6)], (0, 1))
    >>> made = dp.compare_mechanisms(
    ...     "~ .", codebook=cb, n=5_000, eps=1, delta=1e-6, ncomp=2, mechanisms=["gauss"]
    ... )
    >>> made.best, bool(made.table["energy"][0] > 0.9)
    ('gauss', True)
    >>> fits = dp.compare_mechanisms("x0 ~ x1", codebook=cb, n=10**5, eps=1, delta=1e-6)
    >>> fits.auto.mechanism, len(fits.behind)
    ('scores', 5)
    """
    guarantee = resolve_budget(eps, delta, budget)
    book = codebook_of_call(codebook, None, None, formula)
    relation = related(book, adjacency, person, rows)
    if parsed_formula(formula, list(book)).response:
        _refuse_moments(ncomp=ncomp is None, center=center is True, denoise=denoise == "auto")
        assuming = partial(
            comparison.FitRequest,
            rows=integer("n", n, 2, 2**40),
            row_lengths=shares_of_norm(row_length),
            spectrum=spectrum if isinstance(spectrum, str) else "as given",
            repeats=integer("repeats", repeats, 1, 10_000),
        )
        spec = fit_spec(
            *(formula, book, guarantee, relation, "gaussian" if family is None else family),
            *(scale, row_norm),
        )
        available = COEFFICIENTS if spec.request.verb == "glm" else REGRESSION
        names = _chosen(mechanisms, available)
        return compared_fits(spec, names, assuming, partial(_shares, spectrum))
    if family is not None:
        raise ArgumentError(
            f"family={quoted(family)} goes with a response: write 'y ~ a + b', or leave it out"
        )
    public = design(formula, book)
    scaled = scaling(public, scale=scale, center=center, row_norm=row_norm)
    columns, row_lengths = len(public.names), shares_of_norm(row_length)
    assumptions = comparison.ComparisonRequest(
        formula=public.formula,
        columns=columns,
        components=checked_ncomp(ncomp, columns),
        rows=integer("n", n, 2, 2**40),
        guarantee=guarantee,
        adjacency=relation,
        center=center,
        scale=scale,
        row_norm=scaled.row_norm,
        row_lengths=(1.0,) if scaled.unit else row_lengths,
        spectrum=spectrum if isinstance(spectrum, str) else "as given",
        repeats=integer("repeats", repeats, 1, 10_000),
    )
    shares, names = _shares(spectrum, columns), _chosen(mechanisms, MOMENTS)
    box = box_of(public.lower, public.upper, scaled)
    facts = Facts(columns, assumptions.adjacency, center, assumptions.components, scaled.unit)
    call = _call(public, assumptions, checked_rule(denoise), box)
    trial = mechanism_trials.Trial(assumptions, call, facts, shares, box)
    rows = assumptions.rows if assumptions.adjacency.n_public else None
    auto = comparison.Automatic(*auto_moments(facts, guarantee, rows, automatic(scale)))
    entered = [mechanism_trials.planned_contender(name, MOMENTS, trial) for name in names]
    shapes = lengths(trial) if assumptions.row_length is None else None
    runs, measure = mechanism_trials.run_trials(entered, trial), assumptions.ranked_by
    losses, frame = mechanism_trials.summarised(entered, runs)
    order, rises = [measure, f"{measure}_worst"], measure != "energy"
    frame = frame.sort_values(order, ascending=rises, kind="stable")
    return comparison.Comparison(assumptions, frame.reset_index(drop=True), losses, shapes, auto)


def _call(
    public: Design, assumptions: comparison.ComparisonRequest, denoise: str | None, box: Box
) -> MomentsCall:
    """Return the call for the simulated rows: in the unit ball, without scaling."""
    ones, columns = np.ones(assumptions.columns), assumptions.columns
    shaped = not assumptions.row_lengths
    return MomentsCall(
        formula=public.formula,
        codebook=public.codebook,
        names=public.names,
        lower=box.low if shaped else -ones,
        upper=box.high if shaped else ones,
        origin=np.zeros(columns),
        divisor=ones,
        row_norm=1.0,
        worst_case=max(box.longest, 1.0) if shaped else 1.0,
        unit_rows=False,
        center=assumptions.center,
        scale=None,
        denoise=denoise,
        ncomp=assumptions.components,
    )


def _refuse_moments(**is_default: bool) -> None:
    for name in (name for name, unchanged in is_default.items() if not unchanged):
        raise ArgumentError(f"{name}= goes with '~ a + b': leave it out where there is a response")


def _chosen(names: object, available: Mapping[str, type[object]]) -> list[str]:
    """Return the names of the mechanisms, all of them by default."""
    if names is None:
        return list(available)
    listed, chosen = ", ".join(map(repr, available)), list[str]()
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise ArgumentError(f"mechanisms={quoted(names)}: expected a list of names out of {listed}")
    for value in names:
        registered = supplied(value, available) if isinstance(value, str | type) else None
        name = value if registered is None else registered.mechanism.name
        if not isinstance(name, str) or (registered is None and name not in available):
            refuse_superseded("mechanisms: ", name)
            raise ArgumentError(
                f"mechanisms: {quoted(name)} is not known{did_you_mean(name, available)}; "
                f"expected names out of {listed}"
            )
        chosen.append(name)
    return chosen


def _shares(spectrum: object, columns: int) -> Floats:
    if isinstance(spectrum, str):
        if spectrum not in SPECTRA:
            names = ", ".join(f'"{name}"' for name in SPECTRA)
            raise ArgumentError(f"spectrum={spectrum!r}: expected {names} or an array")
        values = np.arange(1.0, columns + 1) ** -SPECTRA[spectrum]
        return np.asarray(values / values.sum())
    try:
        values = np.asarray(spectrum, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    fits = values.ndim == 1 and 1 <= len(values) <= columns
    if not fits or not np.isfinite(values).all() or values.min() < 0 or not values.max() > 0:
        raise ArgumentError(
            f"spectrum of shape {values.shape}: expected 1 to {columns} numbers, the number of "
            "coded columns, none negative and not all 0"
        )
    values = np.sort(values / values.max())[::-1]
    return np.pad(values / values.sum(), (0, columns - len(values)))


def shares_of_norm(value: object) -> tuple[float, ...]:
    """Return the lengths of rows, one or several, all different; none for None."""
    if value is None:
        return ()
    values = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    listed = tuple(map(real, values))
    for length, number in zip(values, listed, strict=True):
        if not 0 < number <= 1:
            raise ArgumentError(
                f"row_length={quoted(length)}: expected a number above 0, up to 1, or a list of "
                "such"
            )
    if not listed or len(set(listed)) < len(listed):
        raise ArgumentError(
            "row_length=: expected a number above 0, up to 1, or different ones in a list, such "
            "as [0.1, 0.3, 1]"
        )
    return listed


# ``compare_mechanisms`` for formulas with a response: the loss of each in a fit.

FAMILIES = ("gaussian", "binomial", "poisson")


def compared_fits(
    spec: VerbSpec[object],
    names: list[str],
    assuming: Callable[..., comparison.FitRequest],
    shares: Callable[[int], Floats],
) -> comparison.FitComparison:
    """Compare mechanisms of ``dp_lm`` or ``dp_glm``.

    `assuming` makes its request, given all but the rows; `shares` gives the eigenvalues of so many
    variables as shares of their sum.
    """
    verb_request = spec.request
    equation = two_sided(verb_request.formula, verb_request.codebook)
    assumptions = assuming(
        formula=equation.joint.formula,
        family=verb_request.options.get("family", FAMILIES[0]),
        columns=len(equation.terms.names),
        guarantee=verb_request.private,
        adjacency=verb_request.adjacency,
        row_norm=verb_request.options["row_norm"],
    )
    shapes = simulate_block(assumptions.row_lengths)
    trial = mechanism_trials.FitTrial(
        assumptions, spec, equation, shapes, shares(max(len(equation.terms.codebook), 1))
    )
    strategy, _, reason = trial.planned("auto")
    entered = [mechanism_trials.planned_fit_contender(name, trial) for name in names]
    runs = mechanism_trials.run_fit_trials(entered, trial)
    losses, frame = mechanism_trials.summarised(entered, runs, mechanism_trials.FIT_MEASURES)
    frame = frame.sort_values(["error", "error_worst"], kind="stable").reset_index(drop=True)
    likes = [shape.like for shape in shapes.values()]
    descriptions = pd.DataFrame({"shape": list(shapes), "like": likes})
    auto = comparison.Automatic(strategy.info.name, reason)
    return comparison.FitComparison(assumptions, frame, losses, descriptions, auto)


def fit_spec(
    formula: str,
    codebook: Codebook,
    guarantee: Guarantee,
    relation: Adjacency,
    family: str,
    scale: str | None,
    row_norm: float | str | None,
) -> VerbSpec[object]:
    """Build the specification of the verb that fits the family."""
    option("family", family, FAMILIES)
    options: dict[str, Option] = {"weights": None, "vcov": "iid"}
    if family != FAMILIES[0]:
        options = {"family": family, "inference": True, "clip": None, "scale": scale}
    elif scale != "range":
        raise ArgumentError(
            f"scale={quoted(scale)}: dp_lm divides columns by their ranges: leave out scale="
        )
    verb = "lm" if family == FAMILIES[0] else "glm"
    options = {**options, "row_norm": row_norm, "person": False}
    if relation.person is not None:
        raise ArgumentError(
            "adjacency=, person= or the codebook protects persons, and regressions are compared "
            "for one row a person: write person=False, and n= for how many persons there are"
        )
    assumptions = requested(verb, formula, codebook, None, 0.0, guarantee, relation, **options)
    return lm_spec(assumptions) if verb == "lm" else glm_by_sums(assumptions)[0]
