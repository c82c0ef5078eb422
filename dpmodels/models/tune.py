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
    Coins part the rows: each value has a fit on three quarters of them, and the
    other quarter draws one by the exponential mechanism, by its Brier score
    (``dp_glm``) or its wrong labels (``dp_svm``). The call costs what is asked,
    once: k fits share it on their rows, and the draw has as much on the others.
    The result is the fit that was drawn; no score is released. One value alone
    is no choice: it is fitted to all rows for the whole budget.

    *What it costs in accuracy.* The noise of each fit is that of a k-th of the
    budget on three quarters of the rows: 4k/3 times as large relative to the
    rows under ``eps`` alone, 4/3 √k times with Gaussian noise. So a choice of
    three costs about a factor of 4, or of 2.3, before it gains anything. Where
    rows are few or eps is small that is more than any ridge gives back, and the
    mechanism's own, which is made for its noise, is better: in
    ``benchmarks/tune.py`` it is in most cells. Tune few values, far apart, where
    predictions matter and a fixed ridge is known to be wrong.

    *Intervals* (``inference=True``) are those of the fit that was drawn, as if
    its ridge had been given. Given the coins they are of other rows than those
    that drew it. Of k intervals of 95 % all cover with a chance of 1 - 0.05 k
    or more, whatever is drawn and why.

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
    write = "write ridge=dp.tune([1, 10, 100])"
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
            "ridge=dp.tune([1, 10, 100]), which chooses one privately"
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
