"""Pufferfish privacy of series: a guarantee that never combines with differential privacy.

*Definition* [1]_. Given secrets, pairs of secrets and a class of distributions of the data, a
release M is eps-Pufferfish private if ``P(M = w | s) <= exp(eps) P(M = w | t)`` for every
distribution of the class, all values w and all pairs of secrets s and t that have positive
probability under it.

*Limits.* It guarantees nothing for distributions outside the class, and does not hide facts that
are not secrets: that somebody is in the table, whose rows are missing, or a whole day. With the
class of all distributions of independent rows it is differential privacy.

*Composition.* In general two such releases do not compose: with dependent rows one release can
reveal the noise of the other [2]_. Releases by quilts of the same class and the same series do
compose, and their eps add up, whatever quilts are active: see `quilts`. So a ledger with this
budget accepts only such releases, all of one series, or a single Wasserstein release.

*Filter.* The rule is valid for adaptive analysts: the theorem does not require scales to be fixed
in advance.

.. [1] Kifer, D. and Machanavajjhala, A. (2014). "Pufferfish: A Framework for Mathematical Privacy
   Definitions." ACM Transactions on Database Systems 39(1).
.. [2] Song, S. and Chaudhuri, K. (2017). "Composition Properties of Inferential Privacy for
   Time-Series Data." Allerton.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from dpmodels.arguments import checked_fields, option
from dpmodels.errors import BudgetError
from dpmodels.privacy.budget import Adjacency, Guarantee, positive_number, resolve_budget
from dpmodels.privacy.chain import MarkovChain
from dpmodels.privacy.compose import Totals, rounded_up
from dpmodels.privacy.events import Event, PufferfishEvent
from dpmodels.privacy.quilts import Quilt, quilt_scale, trivial_quilt

QUILTS: Final = ("auto", "trivial")


@checked_fields("dp.Pufferfish")
@dataclass(frozen=True)
class Pufferfish:
    """The guarantee that the state at each time is hidden, under a public class of chains.

    It is not differential privacy: it holds only if the class contains the truth.

    Parameters
    ----------
    eps : float
        Bound on the log ratio of the probabilities of any answer under two states at a time; above
        zero.
    model : MarkovChain
        The publicly assumed model of how states follow each other, :func:`dp.markov_chain`.
    quilt : {"auto", "trivial"}
        ``"trivial"`` hides all states of a series together, at the cost of group privacy, for any
        chain. A reducible or periodic chain needs it.

    Raises
    ------
    BudgetError, ArgumentError
        If `eps` is not positive, or `model` is not a chain or does not mix.

    Examples
    --------
    >>> from dpmodels.privacy.chain import markov_chain
    >>> chain = markov_chain(["rest", "walk"], stay=0.9)
    >>> budget = Pufferfish(eps=1.0, model=chain)
    >>> budget.describe().partition(", class")[0]
    'Pufferfish (not differential privacy): eps = 1, secrets = the state at each time'
    >>> budget.model.describe()
    'symmetric chains of 2 states that stay with probability 0.9, from any law'
    """

    eps: float
    model: MarkovChain
    quilt: str = "auto"

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", positive_number("eps", self.eps, "write eps=1.0"))
        if not isinstance(self.model, MarkovChain):
            raise BudgetError(
                f"model= is a {type(self.model).__name__}, not a Markov chain: write "
                "model=dp.markov_chain(['rest', 'walk'], [[0.9, 0.1], [0.2, 0.8]]), with public "
                "numbers that were not estimated from the rows."
            )
        option("quilt", self.quilt, QUILTS)
        if self.quilt == "auto" and self.model.trouble:
            raise BudgetError(
                f"model= is {self.model.trouble}, so dependence does not decay in time: write "
                "dp.Pufferfish(eps=..., model=..., quilt='trivial') to hide all states of a series "
                "together, or give a chain that mixes."
            )

    hidden: ClassVar[str] = "Pufferfish: the state at each time"

    def describe(self) -> str:
        """Return the guarantee as reports print it."""
        return (
            f"Pufferfish (not differential privacy): eps = {self.eps:g}, secrets = the state at "
            f"each time, class = {self.model.describe()}"
        )

    def active(self, steps: int) -> Quilt:
        """Return the quilt and the scale of the noise for series of this length.

        >>> from dpmodels.privacy.chain import markov_chain
        >>> chain = markov_chain(["a", "b"], stay=0.9, initial="stationary")
        >>> Pufferfish(1.0, chain).active(1000).describe()
        '12 before and 12 after, 23 near'
        """
        if self.quilt == "trivial":
            return trivial_quilt(steps, self.eps)
        return quilt_scale(self.model, steps, self.eps)


def resolve_any(
    eps: float | None, delta: float, budget: Guarantee | Pufferfish | None
) -> Guarantee | Pufferfish:
    """Return the guarantee that a ledger's arguments state, differential privacy or Pufferfish."""
    if not isinstance(budget, Pufferfish):
        return resolve_budget(eps, delta, budget)
    if eps is not None or delta != 0:
        raise BudgetError(
            "eps= or delta= is given with budget=dp.Pufferfish(...): leave eps and delta out."
        )
    return budget


def refused(guarantee: Pufferfish, totals: Totals, events: Sequence[Event]) -> str:
    """Say why releases do not compose with the earlier ones; empty if they do."""
    chain_events = _of_chains(events)
    if len(chain_events) < len(events):
        return (
            "it is differentially private but this ledger has a Pufferfish guarantee, and the two "
            "do not compose; charge a ledger opened with eps= and delta="
        )
    if any(event.model != guarantee.model.digest for event in chain_events):
        return (
            "it assumes another class of chains than this ledger; write the ledger's model in the "
            "call, or open another ledger"
        )
    series = {event.series for event in chain_events} | ({totals.series} if totals.pure else set())
    single = any(event.mechanism == "wasserstein" for event in chain_events) or "" in series
    if chain_events and single and (totals.pure or sum(event.count for event in chain_events) > 1):
        return (
            "one Wasserstein release does not compose with any other: together they may reveal "
            "what neither reveals; use quilts, dp.dp_table(..., time=...), whose eps add up"
        )
    if len(series) > 1:
        first, second = sorted(series)
        return (
            f"it is of another series ({second} against {first}), and the class does not model "
            "their dependence; open another ledger only if they are independent"
        )
    return ""


def plus(guarantee: Pufferfish, totals: Totals, events: Sequence[Event]) -> Totals:
    """Return the totals after a charge; infinite if it does not compose with the earlier ones."""
    chain_events = _of_chains(events)
    eps = math.fsum(event.eps * event.count for event in chain_events)
    cost = math.inf if refused(guarantee, totals, events) else eps
    quilts = (event.series for event in chain_events if event.mechanism == "quilt")
    return replace(
        totals,
        charges=totals.charges + 1,
        pure=rounded_up(totals.pure, cost) if math.isfinite(cost) else math.inf,
        series=next(quilts, totals.series),
    )


def _of_chains(events: Sequence[Event]) -> list[PufferfishEvent]:
    return [event for event in events if isinstance(event, PufferfishEvent)]


def hidden_by(guarantee: Guarantee | Pufferfish, relation: Adjacency) -> str:
    """Return what a guarantee makes indistinguishable: neighbouring tables, or states."""
    return guarantee.hidden if isinstance(guarantee, Pufferfish) else relation.describe()
