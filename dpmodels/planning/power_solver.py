"""Rows, eps or effects at which a verb has a given power."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtr, ndtri

from dpmodels.errors import ArgumentError
from dpmodels.planning.population import Effect
from dpmodels.planning.power_simulation import Cell, PowerInputs, Trial, without_noise
from dpmodels.typing import Floats

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


def rows_for(asking: PowerInputs, eps: float | None, effect: Effect, target: float) -> int:
    """Return the number of rows at which every tested term has the power."""

    def power(n_rows: float) -> float:
        return _least(asking.trial(Cell(round(n_rows), eps, effect)))

    n_rows = _search(power, (1_000.0, LEAST_ROWS, MOST_ROWS), target, asking.alpha, _ROWS_SLOPE)
    if math.isnan(n_rows):
        raise ArgumentError(
            f"power={target:g}: no number of rows up to {MOST_ROWS:,} reaches it under this "
            "guarantee; give a larger eps or effect, or fewer terms"
        )
    return math.ceil(n_rows)


def eps_for(asking: PowerInputs, n_rows: int, effect: Effect, target: float) -> float:
    """Return the eps at which every tested term has the power."""
    noiseless_power = without_noise(
        asking.trial(Cell(n_rows, 1.0, effect)).posed, n_rows, asking.alpha
    )
    if np.nanmin(noiseless_power) <= target + POWER_TOLERANCE / 2:
        raise ArgumentError(
            f"power={target:g}: {n_rows:,} rows have the power {np.nanmin(noiseless_power):.2g} "
            "without any noise, so no eps reaches it; give a larger n or effect"
        )

    def power(eps: float) -> float:
        return _least(asking.trial(Cell(n_rows, eps, effect)))

    solution = _search(power, (1.0, LEAST_EPS, MOST_EPS), target, asking.alpha, _EPS_SLOPE)
    if math.isnan(solution):
        raise ArgumentError(
            f"power={target:g}: no eps up to {MOST_EPS:g} reaches it with {n_rows:,} rows; give "
            "a larger n or effect"
        )
    return solution


def identifying_eps(asking: PowerInputs, cell: Cell) -> float:
    """Return about the smallest eps at which most releases have standard errors of every term.

    nan if the cell has no eps, or if no eps up to the largest suffices.
    """
    if cell.eps is None:
        return math.nan
    low = high = cell.eps
    while _identified_fraction(asking, cell._replace(eps=high)) < IDENTIFIED_FRACTION:
        low, high = high, 2 * high
        if high > MOST_EPS:
            return math.nan
    middle = math.sqrt(low * high)
    return (
        middle
        if _identified_fraction(asking, cell._replace(eps=middle)) >= IDENTIFIED_FRACTION
        else high
    )


def _identified_fraction(asking: PowerInputs, cell: Cell) -> float:
    """Return the share of a few releases that identify the least identified term."""
    expected = asking.trial(cell).expected(max(2, asking.power.runs // FEW_RUNS_DIVISOR))
    return float(expected.identified.min())


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
    """Rescale effects whose simulated power differs from the target."""
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

    def power(w: float) -> float:
        return _least(asking.trial(Cell(n_rows, eps, w)))

    start = 3 / math.sqrt(n_rows)
    try:
        solution = _search(power, (min(start, 0.3), 1e-5, 10.0), target, asking.alpha, 1.0)
    except ArgumentError:
        solution = math.nan
    if math.isnan(solution):
        raise ArgumentError(
            f"power={target:g}: no dependence that these shares of levels allow reaches it with "
            f"{n_rows:,} rows under this guarantee; give a larger n or eps"
        )
    return solution


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


def _least(trial: Trial) -> float:
    """Return the smallest power of the tested terms."""
    return float(np.nanmin(trial.expected(RUNS_DIVISOR).power))


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
    """Return the effect, in standard errors, that has a power."""
    clipped = min(max(power, alpha + 0.005), 1 - 1e-6)
    return float(ndtri(clipped) - ndtri(alpha / 2))
