"""``dp.power``: predict standard errors and power before data are read or budget is spent."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from itertools import product
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from dpmodels.arguments import checked_keywords, fraction, integer, lists_values, real
from dpmodels.errors import ArgumentError, did_you_mean, quoted
from dpmodels.planning.population import Effect
from dpmodels.planning.power_simulation import Cell, PowerInputs, Trial, price, without_noise
from dpmodels.planning.verbs import options_of, verb_with_power
from dpmodels.privacy import Adjacency, AdjacencyName, Guarantee, resolve_budget
from dpmodels.resolve_codebook import Resolved, codebook_of_call
from dpmodels.results.plan import SELDOM, PowerRequest, PowerResult
from dpmodels.typing import Floats
from dpmodels.verbs import Verb

LEAST_ROWS, MOST_ROWS = 10, 10_000_000
LEAST_EPS, MOST_EPS = 1e-3, 100.0
# Choices: most evaluations, tolerance of powers, and divisor of releases during the search.
MOST_STEPS, POWER_TOLERANCE, RUNS_DIVISOR = 9, 0.01, 2
# A choice: simulation error of the power with few releases.
CHANCE_TOLERANCE = 0.05
# Choices: divisor of releases for identification, and the share of them that must be identified.
FEW_RUNS_DIVISOR, IDENTIFIED_FRACTION = 10, 0.8
# Slopes of the log standardised effect in the log of rows and of eps.
_ROWS_SLOPE, _EPS_SLOPE = 0.7, 0.7


def _solution(
    asking: PowerInputs,
    cell_at: Callable[[float], Cell],
    range_: tuple[float, float, float],
    target: float,
    slope: float,
    lacking: str,
) -> float:
    """Return where every tested term has the power; ArgumentError if it is nowhere."""

    def power(at: float) -> float:
        return float(np.nanmin(asking.trial(cell_at(at)).expected(RUNS_DIVISOR).power))

    solution = _search(power, range_, target, asking.alpha, slope)
    if math.isnan(solution):
        raise ArgumentError(f"power={target:g}: {lacking}")
    return solution


def rows_for(asking: PowerInputs, eps: float | None, effect: Effect, target: float) -> int:
    """Return the number of rows at which every tested term has the power."""
    lacking = (
        f"no number of rows up to {MOST_ROWS:,} reaches it under this guarantee; give a larger eps "
        "or effect, or fewer terms"
    )
    limits = (1_000.0, LEAST_ROWS, MOST_ROWS)
    n_rows = _solution(
        asking, lambda n: Cell(round(n), eps, effect), limits, target, _ROWS_SLOPE, lacking
    )
    return math.ceil(n_rows)


def eps_for(asking: PowerInputs, n_rows: int, effect: Effect, target: float) -> float:
    """Return the eps at which every tested term has the power."""
    posed = asking.trial(Cell(n_rows, 1.0, effect)).posed
    noiseless = np.nanmin(without_noise(posed, n_rows, asking.alpha))
    if noiseless <= target + POWER_TOLERANCE / 2:
        raise ArgumentError(
            f"power={target:g}: {n_rows:,} rows have the power {noiseless:.2g} without any noise, "
            "so no eps reaches it; give a larger n or effect"
        )

    lacking = (
        f"no eps up to {MOST_EPS:g} reaches it with {n_rows:,} rows; give a larger n or effect"
    )
    limits = (1.0, LEAST_EPS, MOST_EPS)
    return _solution(
        asking, lambda eps: Cell(n_rows, eps, effect), limits, target, _EPS_SLOPE, lacking
    )


def identifying_eps(asking: PowerInputs, cell: Cell) -> float:
    """Return about the smallest eps at which most releases have standard errors of every term.

    nan if the cell has no eps, or if no eps up to the largest suffices.
    """
    if cell.eps is None:
        return math.nan
    low = high = cell.eps
    part = max(2, asking.power.runs // FEW_RUNS_DIVISOR)

    def suffices(eps: float) -> bool:
        expected = asking.trial(cell._replace(eps=eps)).expected(part)
        return float(expected.identified.min()) >= IDENTIFIED_FRACTION

    while not suffices(high):
        low, high = high, 2 * high
        if high > MOST_EPS:
            return math.nan
    middle = math.sqrt(low * high)
    return middle if suffices(middle) else high


def effect_for(asking: PowerInputs, n_rows: int, eps: float | None, target: float) -> Effect:
    """Return the effect of each term at which its test has the power."""
    trial = asking.trial(Cell(n_rows, eps, None))
    if trial.posed.freedom:
        return _dependence_for(asking, n_rows, eps, target)
    spread = trial.readings(asking.power.runs // RUNS_DIVISOR).spread
    effects = {
        term: size
        for term, column in zip(trial.posed.terms, spread.T, strict=True)
        if math.isfinite(size := _effect_of(column, target, asking.alpha))
    }
    if not effects:
        raise ArgumentError(
            f"power={target:g}: no effect, however large, reaches it with {n_rows:,} rows under "
            "this guarantee, as too few releases have standard errors; give a larger n or eps"
        )
    return _corrected(asking, Cell(n_rows, eps, effects), target)


def _corrected(asking: PowerInputs, cell: Cell, target: float) -> Effect:
    stated = cell.effect
    assert isinstance(stated, dict)
    try:
        trial = asking.trial(cell)
    except ArgumentError:
        raise ArgumentError(
            f"power={target:g}: the effects that reach it with {cell.n_rows:,} rows exceed the "
            "range of the assumed response; give a larger n or eps"
        ) from None
    power = dict(zip(trial.posed.terms, trial.expected(RUNS_DIVISOR).power, strict=True))
    goal = _standardised(target, asking.alpha)
    off_target = {term: abs(power[term] - target) > CHANCE_TOLERANCE for term in stated}
    return {
        term: size * (goal / _standardised(power[term], asking.alpha) if off_target[term] else 1.0)
        for term, size in stated.items()
    }


def _dependence_for(asking: PowerInputs, n_rows: int, eps: float | None, target: float) -> Effect:
    """Return Cohen's w at which the test of independence has the power."""
    lacking = (
        f"no dependence that these shares of levels allow reaches it with {n_rows:,} rows under "
        "this guarantee; give a larger n or eps"
    )
    limits = (min(3 / math.sqrt(n_rows), 0.3), 1e-5, 10.0)
    try:
        return _solution(asking, lambda w: Cell(n_rows, eps, w), limits, target, 1.0, lacking)
    except ArgumentError:  # Also of a w that the shares do not allow
        raise ArgumentError(f"power={target:g}: {lacking}") from None


def _effect_of(spread: Floats, target: float, alpha: float) -> float:
    """Return the effect whose test has the power, given the standard errors of releases."""
    from scipy.optimize import brentq

    quantile, identified = -float(ndtri(alpha / 2)), spread[np.isfinite(spread)]
    if not len(identified) or target >= len(identified) / len(spread):
        return math.nan

    def beyond(effect: float) -> float:
        pull = effect / identified
        power = ndtr(pull - quantile) + ndtr(-pull - quantile)
        return float(power.sum()) / len(spread) - target

    return float(brentq(beyond, 0.0, 40 * float(identified.max())))


def _search(
    power: Callable[[float], float],
    range_: tuple[float, float, float],
    target: float,
    alpha: float,
    slope: float,
) -> float:
    """Find where an increasing power reaches the target; nan if it does not.

    The standardised effect grows approximately as a power law: secant steps on log scales are
    kept within the bracket.
    """
    at, lower, upper = range_
    goal, low, high = _standardised(target, alpha), 0.0, math.inf
    history: list[tuple[float, float]] = []
    for _ in range(MOST_STEPS):
        reached = power(at)
        if abs(reached - target) <= POWER_TOLERANCE:
            return at
        low, high = (at, high) if reached < target else (low, at)
        point = (math.log(at), math.log(_standardised(reached, alpha)))
        if history and history[-1][0] != point[0]:
            between = (point[1] - history[-1][1]) / (point[0] - history[-1][0])
            slope = min(max(between, 0.3), 2.0)
        history.append(point)
        step = math.exp(min(max((math.log(goal) - point[1]) / slope, -2.5), 2.5))
        after = min(max(at * step, lower), upper)
        if not low < after < high:
            after = math.sqrt(max(low, lower) * min(high, upper))
        if after == at or high / max(low, 1e-300) < 1.01:
            return math.nan if reached < target and at >= upper else at
        at = after
    return high if math.isfinite(high) else math.nan


def _standardised(power: float, alpha: float) -> float:
    clipped = min(max(power, alpha + 0.005), 1 - 1e-6)
    return float(ndtri(clipped) - ndtri(alpha / 2))


# A choice: cells of a plan; each takes up to two seconds.
MOST_CELLS: Final = 100


@checked_keywords("dp.power")
def power(
    formula: str,
    *,
    verb: str = "lm",
    codebook: Resolved = None,
    n: int | Sequence[int] | None = None,
    eps: float | Sequence[float] | None = None,
    effect: float | Sequence[float] | Mapping[str, float] | str | None = None,
    power: float | None = None,
    delta: float = 0.0,
    budget: Guarantee | None = None,
    alpha: float = 0.05,
    shape: object = "normal",
    mechanism: object = "auto",
    adjacency: AdjacencyName | Adjacency | None = None,
    **options: object,
) -> PowerResult:
    """Predict standard errors and power before a budget is spent, or solve for n, eps or effect.

    Leave out exactly one of `n`, `eps` (or `budget`), `effect` and `power`, which
    is solved for. No data are read, and no budget is charged.

    Parameters
    ----------
    formula : str
        Formula of the verb, such as ``"wage ~ age + C(region)"``.
    verb : str
        Name of the verb: ``"lm"`` for :func:`dp_lm`, or any other whose intervals are of noise
        and sampling; not ``"cov"``, ``"moments"`` and ``"pca"``, whose intervals allow for the
        worst that clipping may do.
    codebook : Codebook
        Public bounds and levels of the variables.
    n : int or sequence of int, optional
        Number of complete rows in the subset, from 10 to 10,000,000.
    eps, delta, budget
        The guarantee, as for the verb.
    effect : float, mapping, str or sequence of float, optional
        Distance of the truth from the null hypothesis, in the verb's unit:
        slopes (of log odds or log counts) by coefficient, ``{"age": 0.5}``, or
        one number for all; a difference of means, first level less second; the
        distance of one mean, share or other estimate from the tested number;
        Cohen's w of two or more factors. ``"sample"`` takes the effects of a frame given as
        `shape`.
    power : float, optional
        Probability that the verb's test rejects, between `alpha` and 1; for
        several terms the smallest.
    alpha : float
        Level of the tests, two-sided.
    shape : str, mapping or frame
        Assumed distribution of the rows: ``"normal"`` (in the middle of the
        bounds, which are 3 sd away), ``"uniform"``, ``"skewed"``, ``"zeros"``
        (half at the lower bound), ``"tails"``, ``"narrow"`` (bounds ten times too
        wide); by variable ``{"wage": "skewed", "age": ("normal", 41, 12),
        "sex": [0.6, 0.4]}``; or a frame of **public or simulated rows** like the
        private ones. Never pass private rows: the output has no privacy
        guarantee, and this is not checked.
    mechanism, adjacency, **options
        As for the verb: ``family="poisson"``, ``vcov="HC"``, ``subset="age > 30"``.

    Returns
    -------
    PowerResult
        Its `table` has ``std_error, noise_sd, sampling_se, power, identified,
        without_noise, price`` and more by term. Several `n`, `eps` or effects give a cell
        each, and :meth:`PowerResult.plot` draws curves.

    Raises
    ------
    ArgumentError
        If not exactly one of the four is left out, an effect is 0 or of no term, a
        power is not between `alpha` and 1 or cannot be reached, the verb is not
        supported, or the assumptions lack a variable.
    FormulaError, CodebookError, BudgetError
        As the verb.

    Notes
    -----
    The verb's mechanism and inference run on 64 to 600 samples of `n` rows, drawn
    from about two thousand assumed ones, or up to 8,192 of a frame's. Power is the
    mean probability of rejection given the standard error if nearly every release
    has one, the share of releases that reject if few have, and the mean of both
    in between; ``power_se`` is the simulation error. Without an effect the
    assumed variables are independent.

    With an effect a response keeps its assumed mean, and in a linear regression
    its variance; as it is clipped to its bounds, ``effect`` in the table may be
    slightly less than stated. Each person has one row: for several rows a person,
    plan with the number of persons.

    References
    ----------
    .. [1] Cohen, J. (1988). "Statistical Power Analysis for the Behavioral
       Sciences." 2nd edition, Erlbaum.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(wage=(0, 80), sex=["F", "M"])
    >>> plan = dp.power("wage ~ sex", verb="ttest", codebook=cb, n=2_000, eps=1.0, effect=2.0)
    >>> plan.table[["term", "identified"]].values.tolist()
    [['F - M', 1.0]]
    >>> bool(0.75 < plan.power["F - M"] < plan.table["without_noise"].item() < 0.99)
    True
    """
    verb_spec, kind = verb_with_power(verb)
    options = _checked_options(verb_spec, options)
    solved = _left_out(n, eps, budget, effect, power)
    level = fraction("alpha", alpha)
    target = _target(power, level)
    for amount in [1.0] if eps is None and budget is None else _listed(eps):
        resolve_budget(None if amount is None else real(amount), delta, budget)
    asking = PowerInputs(
        verb_spec,
        kind,
        formula,
        codebook_of_call(codebook, None, None, formula),
        shape,
        delta,
        budget,
        mechanism,
        adjacency,
        level,
        options,
    )
    sizes = [None if size is None else integer("n", size, 10, MOST_ROWS) for size in _listed(n)]
    cells = list(product(sizes, _listed(eps), _listed(effect)))
    if len(cells) > MOST_CELLS:
        raise ArgumentError(f"{len(cells)} cells are listed: expected at most {MOST_CELLS}")
    frames, mechanisms = [], []
    for number, (n_rows, cell_eps, size) in enumerate(cells):
        cell = _solved(asking, solved, (n_rows, cell_eps, size), target)
        trial = asking.trial(cell)
        frames.append(_table(trial, cell, number))
        strategy, _, reason = trial.choice
        mechanisms.append(": ".join(filter(None, (str(strategy.info.name), reason))))
    table = pd.concat(frames, ignore_index=True)
    swamped = len(cells) == 1 and solved == "power" and table["identified"].min() < SELDOM
    return PowerResult(
        PowerRequest(
            verb=verb,
            formula=" ".join(formula.split()),
            assumed=asking.assumed.about,
            guarantee=_guarantee(delta, budget),
            adjacency=trial.spec.request.adjacency,
            alpha=level,
            solved=solved,
            target=target,
            mechanisms=tuple(mechanisms),
            enough=identifying_eps(asking, cell) if swamped else math.nan,
            tested="independence of the factors" if trial.posed.freedom else kind.tested,
        ),
        table,
    )


def _left_out(n: object, eps: object, budget: object, effect: object, power: object) -> str:
    arguments = {"n": n, "eps": eps if budget is None else budget, "effect": effect, "power": power}
    absent = [name for name, value in arguments.items() if value is None]
    if len(absent) != 1:
        left = ", ".join(absent) or "none of them"
        raise ArgumentError(
            f"left out: {left}; leave out exactly one of n, eps, effect and power, which is then "
            "solved for: n=5_000, eps=1.0, effect=0.5 gives the power"
        )
    return absent[0]


def _target(power: object, alpha: float) -> float:
    if power is None:
        return math.nan
    number = real(power)
    if not alpha < number < 1:
        raise ArgumentError(
            f"power={quoted(power)}: expected a number between alpha={alpha:g} and 1, such as 0.8"
        )
    return number


def _listed(value: object) -> list[object]:
    if not lists_values(value) or isinstance(value, Mapping):
        return [value]
    values = list(value)
    if not values:
        raise ArgumentError("an empty list: write one value, or several such as n=[1_000, 5_000]")
    return values


def _checked_options(verb: Verb, options: Mapping[str, object]) -> dict[str, object]:
    for name in options:
        if name in ("person", "rows"):
            raise ArgumentError(
                f"{name}=: power assumes one row per person; leave it out, and give the number of "
                "persons as n"
            )
        if name not in options_of(verb):
            expected = ", ".join(options_of(verb))
            raise ArgumentError(
                f"{name}= is not expected{did_you_mean(name, options_of(verb))}; "
                f"dp_{verb.name} has the options {expected}"
            )
    options = {**options_of(verb), **options}
    for name in (name for name, value in options.items() if value is Parameter.empty):
        raise ArgumentError(f"dp_{verb.name} needs {name}=: write it as for the verb")
    return options


def _solved(asking: PowerInputs, solved: str, inputs: tuple[Any, Any, Any], target: float) -> Cell:
    """Return a cell in which nothing is left out."""
    n_rows, eps, effect = inputs
    if solved == "n":
        n_rows = rows_for(asking, eps, effect, target)
    elif solved == "eps":
        eps = eps_for(asking, n_rows, effect, target)
    elif solved == "effect":
        effect = effect_for(asking, n_rows, eps, target)
    return Cell(n_rows, eps, effect)


def _table(trial: Trial, cell: Cell, number: int) -> pd.DataFrame:
    expected, posed = trial.expected(), trial.posed
    is_seldom = expected.identified < SELDOM
    rows_factor = price(posed, expected, cell.n_rows, trial.alpha)
    lines = {
        "cell": number,
        "n": cell.n_rows,
        "eps": np.nan if cell.eps is None else float(cell.eps),
        "term": posed.terms,
        "effect": posed.effect,
        "std_error": expected.se,
        "se_low": expected.se_low,
        "se_high": expected.se_high,
        "noise_sd": expected.noise,
        "sampling_se": posed.sampling / math.sqrt(cell.n_rows),
        "power": expected.power,
        "power_se": expected.power_se,
        "identified": expected.identified,
        "without_noise": without_noise(posed, cell.n_rows, trial.alpha),
        "price": np.where(is_seldom & (posed.sampling > 0), np.nan, rows_factor),
    }
    return pd.DataFrame(lines)


def _guarantee(delta: float, budget: Guarantee | None) -> str:
    if budget is not None:
        return budget.describe()
    return f"(eps, delta)-DP, delta = {delta:g}" if delta else "pure eps-DP"
