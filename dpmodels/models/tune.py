"""``tune``: an option of which several values are tried, and one is chosen privately."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final

import numpy as np

from dpmodels.arguments import finite
from dpmodels.errors import ArgumentError, said

# Every one of them costs a part of the budget: a choice.
MOST: Final = 20


@dataclass(frozen=True)
class Tune:
    """Values of an option to choose from; None stands for the mechanism's own."""

    values: tuple[float | None, ...]


def tune(values: Iterable[float | None]) -> Tune:
    """Say that an option is to be chosen privately from several values.

    Parameters
    ----------
    values : iterable of float or None
        Two to 20 public numbers, none twice. None is what the mechanism would
        take by itself.

    Returns
    -------
    Tune
        For ``ridge=`` of :func:`dp_glm` and :func:`dp_svm`.

    Raises
    ------
    ArgumentError
        If there are none, too many, or one twice; if one is not a number.

    Notes
    -----
    Of the budget 40 % goes on the choice. Coins part the rows, those of a person
    together: each value is tried on three quarters of them, and the other
    quarter draws one by the exponential mechanism, by its Brier score
    (``dp_glm``) or its wrong labels (``dp_svm``). As a row is on one side alone,
    trials and draw cost no more than trials. The value that was drawn is fitted
    to all rows for the other 60 %. It is one charge; no score is released. One
    value alone is no choice: it is fitted for the whole budget.

    *When it does not help*, which is mostly. The mechanism's own ridge is made
    for its noise: in ``benchmarks/tune.py``, with 2,000 and 20,000 rows of six
    shapes at eps = 1, a larger one is better by hindsight in 2 of 48 cells, by
    3 % at most. A choice of three costs its share of the budget where it is
    right: with 20,000 rows the excess error is 1.0 to 2.4 times that of no
    choice in 22 of 24 cells. Where trials are mostly noise, which a larger ridge
    always hides, it is wrong: with 2,000 rows the error is up to 10 times as
    large, and in two cells of 20,000 rows 19 and 115 times. Tune few values, far
    apart, of many rows, where predictions matter and the own ridge is known to
    be wrong.

    *Intervals* (``inference=True``) are those of the value that was drawn, as if
    it had been given. Of k intervals of 95 %, one a value, all cover with a
    chance of 1 - 0.05 k at least, so the one that was drawn does, whatever it
    was drawn by. Where the ridge's pull is taken off they hardly differ, and
    cover as without a choice.

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
    given: object = values
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ArgumentError(f"tune({said(given)}): expected several numbers; {write}")
    found = tuple(None if own is None else finite("tune: a value", own) for own in given)
    if not 1 <= len(found) <= MOST:
        raise ArgumentError(f"tune: {len(found)} values; expected 2 to {MOST}: {write}")
    if len(set(found)) < len(found):
        raise ArgumentError("tune: a value is listed twice, and would be paid for twice: once each")
    return Tune(found)


def asked_ridge(given: object) -> object:
    """Return the word of a question: candidates as a tuple, anything else as it is."""
    if isinstance(given, Tune):
        return given.values
    if isinstance(given, Sequence | set | np.ndarray):
        raise ArgumentError(
            f"ridge= is of type {type(given).__name__}: expected one number, or "
            "ridge=dp.tune([None, 100, 1000]), which chooses one privately"
        )
    return given


def with_ridge(strategy: Any, ridge: float | None) -> Any:
    """Return a strategy with a ridge; ArgumentError where it has none, or one of its own."""
    named = {own.name for own in fields(strategy)} if is_dataclass(strategy) else set()
    if "ridge" not in named:
        raise ArgumentError(
            f'ridge= goes with mechanism="objective" or "output"; {strategy.card.name!r} has none '
            "to choose: leave ridge= out"
        )
    if strategy.ridge not in (None, ridge):
        raise ArgumentError(
            f"ridge= is said twice, and mechanism= has {strategy.ridge:g}: say it in one of them"
        )
    return replace(strategy, ridge=ridge)
