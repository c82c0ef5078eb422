"""``reading``: the inference about a row that a guarantee allows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from dpmodels import privacy
from dpmodels.arguments import checked_keywords, fraction
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.privacy import Adjacency, AdjacencyName, Guarantee, Ledger, Pufferfish
from dpmodels.privacy.register import convergence_notes
from dpmodels.privacy.trade_off import curve_of
from dpmodels.results.base import Result
from dpmodels.results.call import ALPHA, PRIOR, convergence_words, is_local
from dpmodels.results.comparison import ReadingResult


@checked_keywords("dp.reading")
def reading(
    budget: Guarantee | Iterable[Guarantee] | Ledger | Result | None = None,
    *,
    eps: float | Iterable[float] | None = None,
    delta: float = 0.0,
    alpha: float = ALPHA,
    prior: float = PRIOR,
    adjacency: AdjacencyName | Adjacency | None = None,
    person: str | None = None,
    rows: int | Literal["mean"] | None = None,
) -> ReadingResult:
    """Interpret guarantees: power of tests, posteriors, advantages, lies.

    Parameters
    ----------
    budget : PureDP, ApproxDP or ZCDP, list of these, Ledger or result, optional
        Guarantees; a ledger, for its guarantee and its charges so far; or a result, for its
        guarantee and that of its noise where this is only Gaussian, or without delta.
    eps, delta : optional
        Instead of `budget`; several eps may be listed.
    alpha : float, default 0.05
        Level of the test, in (0, 1), and the probability with which bounds of the posterior may
        fail where there is a delta or Gaussian noise.
    prior : float, default 0.5
        Probability, in (0, 1), that an adversary gives beforehand to somebody's part in the table.
    adjacency, person, rows : optional
        Who is protected, as for the verbs; leave out for a ledger or a result, which state it.

    Returns
    -------
    ReadingResult
        Its ``table`` has a row for each guarantee, of one unit that it protects and of two;
        ``trade_off(alarms)`` the curves; ``plot()`` draws them.

    Raises
    ------
    BudgetError
        If `budget` is of another kind, such as a Pufferfish guarantee, or invalid.
    ArgumentError
        If `alpha` or `prior` is not between 0 and 1, or neighbours are set twice.

    Notes
    -----
    A test at level alpha has at most a rate alpha of false alarms. Its power is then
    ``1 - f(alpha)`` at most, f the trade-off curve of the guarantee [1]_ [2]_: with (eps, delta)
    ``max(0, 1 - delta - e^eps alpha, e^-eps (1 - delta - alpha))``. The odds of a prior are
    multiplied by ``e^eps`` at most without delta, and else by ``alpha / f(1 - alpha)`` but for
    outputs of probability alpha. The advantage is ``(e^eps - 1 + 2 delta) / (e^eps + 1)``. A yes
    that is a lie with probability ``1 / (1 + e^eps)`` has the guarantee eps.

    References
    ----------
    .. [1] Wasserman, L. and Zhou, S. (2010). "A statistical framework for differential privacy."
       JASA 105, 375-389.
    .. [2] Dong, J., Roth, A. and Su, W. (2022). "Gaussian Differential Privacy." Journal of the
       Royal Statistical Society B 84(1), 3-37.

    Examples
    --------
    >>> import dpmodels as dp
    >>> read = dp.reading(eps=[0.1, 1.0, 5.0])
    >>> read.table[["guarantee", "power", "posterior", "advantage", "lie"]].head(3).round(3)
       guarantee  power  posterior  advantage    lie
    0  eps = 0.1  0.055      0.525      0.050  0.475
    1    eps = 1  0.136      0.731      0.462  0.269
    2    eps = 5  0.994      0.993      0.987  0.007
    >>> dp.reading(dp.ZCDP(0.5)).table["power"].round(3).tolist()
    [0.336, 0.798]
    """
    chosen = None if adjacency is person is rows is None else adjacency or "replace"
    relation = None if chosen is None else privacy.protecting(chosen, rows, person)
    alpha = fraction("alpha", alpha, ", such as 0.05")
    prior = fraction("prior", prior, ", such as 0.5")
    stated = eps is not None or delta != 0
    if isinstance(budget, Ledger | Result):
        if stated or relation is not None:
            raise ArgumentError(
                f"budget={type(budget).__name__} states its guarantee and neighbours: leave out "
                "eps=, delta=, adjacency=, person= and rows="
            )
        if isinstance(budget, Ledger):
            return _of_ledger(budget, alpha, prior)
        return _of_result(budget, alpha, prior)
    guarantees = _listed(budget, eps, delta)
    labels = tuple(guarantee.describe() for guarantee in guarantees)
    return ReadingResult("", labels, guarantees, relation or Adjacency("replace"), alpha, prior)


def _listed(budget: object, eps: Any, delta: float) -> tuple[Guarantee, ...]:
    if budget is None:
        guarantees = tuple(privacy.resolve_budget(level, delta) for level in _as_list(eps))
    else:
        guarantees = tuple(
            privacy.resolve_budget(eps, delta, _differential(guarantee))
            for guarantee in _as_list(budget)
        )
    if not guarantees:
        raise BudgetError("no guarantee is listed: write eps=[0.1, 1.0, 5.0], or eps=1.0")
    return guarantees


def _differential(guarantee: Guarantee | Pufferfish) -> Guarantee:
    """Return a guarantee; BudgetError unless it is differentially private."""
    if isinstance(guarantee, Pufferfish):
        raise BudgetError(
            f"{guarantee.describe()}: tests and posteriors of who is in the table are bounded by "
            "differential privacy alone; write dp.reading(eps=1.0), or summary(reading=True) of a "
            "result for the odds of a state"
        )
    return guarantee


def _as_list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _of_ledger(ledger: Ledger, alpha: float, prior: float) -> ReadingResult:
    """Return the guarantee of a ledger, and that of its charges so far, if any."""
    guarantee = _differential(ledger.guarantee)
    labels, curves = [f"{guarantee.describe()}, in all"], [guarantee]
    spent = ledger.spent
    if spent.amount > 0:
        labels.append(f"{spent.describe()}, so far")
        curves.append(spent.guarantee)
    notes = convergence_notes(ledger.register()["mechanism"])
    return ReadingResult(
        "; ".join((f"ledger {ledger.place}".strip(), *notes)),
        tuple(labels),
        tuple(curves),
        ledger.adjacency,
        alpha,
        prior,
        spent=spent.amount > 0,
    )


def _of_result(fit: Result, alpha: float, prior: float) -> ReadingResult:
    release = fit.release
    guarantee, caveat = _differential(release.guarantee), convergence_words(release)
    labels = [guarantee.describe()]
    curves: list[Guarantee | privacy.GaussianEvent] = [guarantee]
    curve = curve_of(release.events)
    if curve is not None and not isinstance(guarantee, privacy.PureDP):
        curves.append(curve)
        if isinstance(curve, privacy.GaussianEvent):
            labels.append(f"Gaussian noise, mu = {1 / curve.multiplier:.3g}")
        else:
            labels.append(f"{curve.describe()}, without delta")
    return ReadingResult(
        ", ".join(filter(None, (f"{type(fit).__name__} {fit.call.formula}", caveat))),
        tuple(labels),
        tuple(curves),
        release.adjacency,
        alpha,
        prior,
        local=is_local(release),
        simulated=release.simulated,
    )
