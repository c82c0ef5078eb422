"""What verbs on linear predictors share: their specification, and the call of a result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from dpmodels.arguments import checked_keywords, finite
from dpmodels.design import PrivateDesign, row_coder
from dpmodels.design.regression import joint_design
from dpmodels.errors import ArgumentError, FormulaError, quoted, shorten
from dpmodels.formula.response import TwoSided, two_levels, two_sided
from dpmodels.formula.tally import Sampling, sampling_of
from dpmodels.formula.values import Category
from dpmodels.mechanisms.choose import Choice, choose_strategy
from dpmodels.mechanisms.protocol import AnyStrategy, RegressionFacts, RegressionMechanism
from dpmodels.mechanisms.sampled_rows import Sampled, strata_used
from dpmodels.mechanisms.tuning import Tuned
from dpmodels.mechanisms.weighted_scores import with_step
from dpmodels.models.assumed_rows import of_outcomes
from dpmodels.models.verb_spec import VerbSpec, slots_of
from dpmodels.released import CoefficientsRelease
from dpmodels.request import Request
from dpmodels.results.call import INTERCEPT, CoefficientsCall
from dpmodels.statistics.losses import Loss, Multinomial, Poisson, Predictors
from dpmodels.typing import Coder, Floats

Result = TypeVar("Result")
ROUNDED = (
    "The sums of losses and gradients that it minimises are added over the sites in floating "
    "point, not exactly: the noise allows for their rounding, as for one table."
)
ALONE = "With a single ridge nothing was chosen: it was fitted to all rows with the whole budget."
# A choice: levels of a response, more than a table of coefficients can show.
MOST_LEVELS = 100
# Families of a response that may have many levels.
_LEVELLED: Final = ("multinomial", "ordinal")
Table = Mapping[str, type[RegressionMechanism]]


class Linear(NamedTuple):
    """The equation, its design without rows, and how rows become predictors."""

    equation: TwoSided
    design: PrivateDesign
    predictors: Predictors


class Model(NamedTuple):
    """The family, the loss summed over rows, and the levels of a response that has them."""

    family: str
    loss: Loss | Poisson | Multinomial
    levels: tuple[str, ...]


def linear(request: Request) -> Linear:
    """Code a question's formula."""
    family = request.options.get("family")
    most = MOST_LEVELS if family in _LEVELLED else 2
    equation = two_sided(request.formula, request.codebook, most=most, linked=True)
    if family != "poisson":
        equation = two_levels(equation)
    if equation.offset and family not in ("binomial", "poisson"):
        raise FormulaError(
            f"{shorten(equation.offset)!r}: an offset goes with dp_lm, or dp_glm of one linear "
            "predictor; write it as a term, whose coefficient is estimated"
        )
    design = joint_design(
        equation,
        request.codebook,
        scale=request.options["scale"],
        row_norm=request.options["row_norm"],
        # Without an intercept a centred column would be another model.
        center=equation.intercept,
    )
    scaled, points = design.scaling, equation.response.blocks[0].points
    responses = slice(-points.shape[1], None)
    distances = (points - scaled.centre[responses]) / scaled.scale[responses]
    response_length = float(np.linalg.norm(distances, axis=1).max())
    units, known = scaled.scale * scaled.row_norm, None
    if equation.known is not None:
        at = len(equation.terms.names)
        known = (float(scaled.centre[at]), float(units[at]))
        ends = np.array([equation.known.lower[0], equation.known.upper[0]]) - scaled.centre[at]
        response_length = math.hypot(response_length, np.abs(ends).max() / scaled.scale[at])
    longest = 0.0
    if equation.terms.names:
        longest = math.sqrt(scaled.row_norm**2 - response_length**2) / scaled.row_norm
    predictors = Predictors(
        terms=len(equation.terms.names),
        intercept=equation.intercept,
        radius=longest,
        middle=float(scaled.centre[-1]),
        reach=float(units[-1]),
        responses=points.shape[1],
        known=known,
    )
    return Linear(equation, design, predictors)


def levels(equation: TwoSided, verb: str) -> tuple[str, ...]:
    """Return the levels of the response: of two the modelled one last, else the reference first."""
    factor = equation.response.blocks[0].factors[0]
    if isinstance(factor, Category):
        return tuple(map(str, factor.levels))
    name = shorten(equation.response.names[0])
    declare = f'declare {name}=["no", "yes"] or (0, 1) in the codebook, or '
    write = f"{declare if name.isidentifier() else ''}compare it, as in '{name} > 1 ~ ...'"
    if "binomial" in verb:
        write += ', or write family="poisson" for a count'
    elif "family" in verb:
        write = f"write C({name}) if it is whole, or cut({name}, [...]) with public breaks"
    raise FormulaError(
        f"the response {name!r} is a number; {verb} needs two levels or more: {write}"
    )


def coefficients_spec(
    request: Request,
    terms: Linear,
    model: Model,
    table: Table,
    automatic: tuple[str, str],
    result: Callable[[CoefficientsCall, CoefficientsRelease, Coder | None], Result],
) -> VerbSpec[Result]:
    """Build the specification of a verb on a linear predictor."""
    sampling = sampling_of(request.codebook)
    slots = request.adjacency if sampling is None else slots_of(request.adjacency)
    facts = RegressionFacts(terms.predictors, model.loss, slots)
    options = {"inference": False, **request.options}

    def with_coder(call: CoefficientsCall, release: CoefficientsRelease) -> Result:
        coded, known = terms.equation.terms, terms.equation.known
        has_columns = coded.names or known is not None
        return result(call, release, row_coder(coded, known) if has_columns else None)

    def chosen(mechanism: object, private: Sequence[object]) -> tuple[AnyStrategy, str]:
        ridge, choices = options.get("ridge"), list[Choice[Any]]()
        for value in ridge if isinstance(ridge, tuple) else (ridge,):
            choice = choose_strategy(
                mechanism, table, lambda: automatic, {**options, "ridge": value}
            )
            with_value = choice.strategy if ridge is None else with_ridge(choice.strategy, value)
            choices.append(choice._replace(strategy=with_value))
        strategy, reason = choices[0]
        if len(choices) > 1:
            strategy = Tuned(tuple(candidate.strategy for candidate in choices))
        elif isinstance(ridge, tuple):
            reason = f"{reason} {ALONE}".strip()
        rounded = len(private) > 1 and strategy.info.numerics == "idealised"
        if sampling is not None:
            levels = strata_used(sampling, is_domain=request.subset is not None)
            strategy = Sampled(with_step(strategy, facts, levels), sampling)
        return strategy, f"{reason} {ROUNDED}" if reason and rounded else reason

    return VerbSpec(
        request,
        _call(request, terms, model),
        with_coder,
        terms.design,
        facts,
        chosen,
        passes=True,
        law=of_outcomes,
        sizes={} if sampling is None else sizes_of_scores(facts.columns, sampling),
        sampling=sampling,
    )


def sizes_of_scores(parameters: int, sampling: Sampling | None) -> dict[str, int]:
    """Return the sizes of the arrays of scores that a call does not determine."""
    sizes = {"parameter": parameters, "parameter_": parameters}
    if sampling is not None and sampling.strata is not None:
        sizes["stratum"] = len(sampling.strata.levels)
    return sizes


def _call(request: Request, terms: Linear, model: Model) -> CoefficientsCall:
    equation, scaled, predictors = terms.equation, terms.design.scaling, terms.predictors
    return CoefficientsCall(
        formula=equation.response.formula,
        codebook=terms.design.public.codebook,
        names=(INTERCEPT,) * equation.intercept + equation.terms.names,
        response=equation.response.names[0],
        levels=model.levels,
        family=model.family,
        matrix=_matrix(terms),
        row_norm=predictors.radius * scaled.row_norm,
        worst_case=_worst_case(terms),
        scale=request.options["scale"],
        clip=model.loss.clip if isinstance(model.loss, Poisson) else math.nan,
        offset=equation.offset or None,
    )


def _worst_case(linear: Linear) -> float:
    scaled, predictors = linear.design.scaling, linear.predictors
    if not predictors.terms:
        return 0.0
    if scaled.worst_case == scaled.row_norm:
        return predictors.radius * scaled.row_norm
    response = scaled.row_norm**2 * (1 - predictors.radius**2)
    return math.sqrt(scaled.worst_case**2 - response)


def _matrix(linear: Linear) -> Floats:
    predictors, scaled = linear.predictors, linear.design.scaling
    first, size = int(predictors.intercept), predictors.columns
    matrix = np.zeros((size, size))
    if predictors.terms:
        terms = slice(predictors.terms)
        factors = predictors.share / (predictors.radius * scaled.row_norm) / scaled.scale[terms]
        matrix[first:, first:] = np.diag(factors)
        if first:
            matrix[0, 1:] = -factors * scaled.centre[terms]
    if first:
        matrix[0, 0] = predictors.constant
    return matrix


# ``tune``: values of an option, of which one is chosen privately.

# A choice: every value costs a part of the budget.
MOST: Final = 20


@dataclass(frozen=True)
class Tune:
    """Values of an option to choose from; None stands for the mechanism's default."""

    values: tuple[float | None, ...]


@checked_keywords("dp.tune")
def tune(values: Iterable[float | None]) -> Tune:
    """Say that an option is to be chosen privately from several values.

    Parameters
    ----------
    values : iterable of float or None
        Two to 20 public numbers, none twice. None stands for the mechanism's default.

    Returns
    -------
    Tune
        For ``ridge=`` of :func:`dp_glm` and :func:`dp_svm`.

    Raises
    ------
    ArgumentError
        If there is no value, too many or a duplicate; if a value is not a number.

    Notes
    -----
    The choice takes 40 % of the budget. Rows are split at random, those of a person together: each
    value is fitted to three quarters of them, and the other quarter draws one by the exponential
    mechanism, by its Brier score (``dp_glm``) or its wrong labels (``dp_svm``). As each row is in
    one part only, fits and draw cost no more than the fits. The drawn value is fitted to all rows
    with the other 60 %. It is one charge; no score is released. A single value is fitted with the
    whole budget.

    *It rarely helps.* The mechanism's default ridge suits its noise: in ``benchmarks/tune.py``,
    with 2,000 and 20,000 rows of six shapes at eps = 1, a larger one is better by hindsight in 2 of
    48 cells, by 3 % at most. A choice of three costs its share of the budget where it is right:
    with 20,000 rows the excess error is 1.0 to 2.4 times that of no choice in 22 of 24 cells. Where
    the fits are mostly noise, which favours a larger ridge, it is wrong: with 2,000 rows the error
    is up to 10 times as large, and in two cells of 20,000 rows 19 and 115 times. Tune few values,
    far apart, of many rows, where predictions matter and the default ridge is known to be wrong.

    *Intervals* (``inference=True``) are those of the drawn value, as if it had been given. Of k
    intervals of 95 %, one per value, all cover with a probability of at least 1 - 0.05 k, so
    the drawn one does too, however it was drawn. Where the ridge's bias is corrected they
    hardly differ, and cover as without a choice.

    Examples
    --------
    >>> import dpmodels as dp
    >>> from dpmodels.models.svm import dp_svm
    >>> cb = dp.codebook(x=(-1, 1), label=["a", "b"])
    >>> rows = {"x": [-0.8, -0.5, 0.4, 0.9] * 1000, "label": ["a", "a", "b", "b"] * 1000}
    >>> fit = dp_svm("label ~ x", rows, codebook=cb, eps=1.0, ridge=dp.tune([20, 200]))
    >>> fit.release.tuning.ridges
    (20.0, 200.0)
    """
    write = "write ridge=dp.tune([None, 100, 1000])"
    unchecked: object = values
    if isinstance(unchecked, str) or not isinstance(unchecked, Iterable):
        raise ArgumentError(f"tune({quoted(unchecked)}): expected several numbers; {write}")
    numbers = tuple(
        None if value is None else finite("tune: a value", value) for value in unchecked
    )
    if not 1 <= len(numbers) <= MOST:
        raise ArgumentError(f"tune: {len(numbers)} values; expected 2 to {MOST}: {write}")
    if len(set(numbers)) < len(numbers):
        raise ArgumentError(
            "tune: a value is listed twice, and would be paid for twice; list each once"
        )
    return Tune(numbers)


def requested_ridge(value: object) -> object:
    """Return the option of a request: candidates as a tuple, other values unchanged."""
    if isinstance(value, Tune):
        return value.values
    if isinstance(value, Sequence | set | np.ndarray):
        raise ArgumentError(
            f"ridge= is of type {type(value).__name__}: expected one number, or "
            "ridge=dp.tune([None, 100, 1000]), which chooses one privately"
        )
    return value


def with_ridge(strategy: Any, ridge: float | None) -> Any:
    """Return a strategy with a ridge; ArgumentError where it takes none, or has another."""
    field_names = {field.name for field in fields(strategy)} if is_dataclass(strategy) else set()
    if "ridge" not in field_names:
        raise ArgumentError(
            f'ridge= goes with mechanism="objective" or "output"; {strategy.info.name!r} has none '
            "to choose: leave ridge= out"
        )
    if strategy.ridge not in (None, ridge):
        raise ArgumentError(
            f"ridge= is set twice, and mechanism= has {strategy.ridge:g}: set it in one of them"
        )
    return replace(strategy, ridge=ridge)
