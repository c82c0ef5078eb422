"""Results of planning: calls with their prices, divisions of a budget, and power."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from dpmodels.arguments import boolean, checked_keywords
from dpmodels.errors import NotAvailable
from dpmodels.privacy import Adjacency, Event, Guarantee, Ledger, Spent, hidden_by, verified
from dpmodels.privacy.spent import capacity
from dpmodels.results.base import STAMP, Printed
from dpmodels.typing import Axes, Floats
from dpmodels.verbs import documented


class PlannedCall(NamedTuple):
    """A call that has not been made: public facts."""

    call: str  # as it would be written
    verb: str
    formula: str
    mechanism: str
    events: tuple[Event, ...]
    price: Spent  # by itself
    total: Spent  # of all that was spent and planned before, and it
    fits: bool
    identified: float = math.nan  # expected share of estimates; nan if it was not predicted
    reading: str = ""  # of rows in a database: where their sums are computed


@dataclass(frozen=True, repr=False, eq=False)
class PlanResult(Printed):
    """The prices of calls, one after another; nothing was read, nothing spent."""

    guarantee: Guarantee  # of the ledger
    adjacency: Adjacency
    ledger_state: str  # what the ledger reported before the calls
    calls: tuple[PlannedCall, ...]
    announced: Spent  # after all calls, charged as one

    @property
    def fits(self) -> bool:
        """Whether the ledger would accept every call."""
        return all(call.fits for call in self.calls)

    @property
    def predicts(self) -> bool:
        """Whether it is predicted of any call which share of its estimates is identified."""
        return any(not math.isnan(call.identified) for call in self.calls)

    @property
    def events(self) -> tuple[Event, ...]:
        """What all calls would be charged, for :meth:`dp.Ledger.charge`."""
        return tuple(event for call in self.calls for event in call.events)

    @property
    def table(self) -> pd.DataFrame:
        """One row a call.

        Columns: ``call``, ``verb``, ``formula``, ``mechanism``; its ``noise``; its ``price`` by
        itself and the ``total`` after it, in eps or rho; whether it ``fits``; the share of
        estimates expected to be ``identified``, nan if no number of rows was given. One that does
        not fit is left out of the totals of those after it.
        """
        lines = [
            {
                **{name: getattr(call, name) for name in ("call", "verb", "formula", "mechanism")},
                "noise": "; ".join(event.describe() for event in call.events),
                "price": call.price.amount,
                "total": call.total.amount,
                "fits": call.fits,
                "identified": call.identified,
            }
            for call in self.calls
        ]
        return pd.DataFrame(lines)

    @documented
    def plot(self, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw what the calls would spend one after another, against the ledger's budget.

        Parameters
        ----------
        caption : bool
            Whether guarantee and neighbours stand under the picture.
        """
        from dpmodels.plots.heat import spending

        bars, spent = [], math.nan
        for call in self.calls:
            start = max(call.total.amount - call.price.amount, 0.0) if math.isnan(spent) else spent
            bars.append((start, call.total.amount))
            spent = call.total.amount if call.fits else start
        return spending(
            np.array(bars, dtype=np.float64).reshape(-1, 2),
            ["planned" if call.fits else "does not fit" for call in self.calls],
            capacity(self.guarantee).amount,
            labels=[f"{call.verb} {call.formula}" for call in self.calls],
            unit=capacity(self.guarantee).unit,
            ax=ax,
            caption=_caption(self, enabled=caption),
        )

    def __repr__(self) -> str:
        left_out = sum(not call.fits for call in self.calls)
        status = f"{left_out} do not fit" if left_out else "all fit"
        return f"<PlanResult of {len(self.calls)} calls: {status}, nothing spent>"


def _caption(budgeted: PlanResult | Ledger, *, enabled: bool) -> str | None:
    """Return the caption of a picture of a budget, None where it is disabled."""
    guarantee, hidden = budgeted.guarantee, hidden_by(budgeted.guarantee, budgeted.adjacency)
    caption = f"Privacy of all together: {guarantee.describe()}; neighbours: {hidden}."
    return caption if boolean("caption", enabled) else None


# Expected standard errors and power of analyses, before any budget is spent.

# A choice: below it a release has very likely no standard error.
SELDOM = 0.5
# A choice: beyond it a median standard error says little about the next one.
UNEVEN = 2.0
AXES = {"n": "rows", "eps": "eps", "effect": "effect"}


@dataclass(frozen=True)
class PowerRequest:
    """The planned analysis: public facts and stated assumptions."""

    verb: str
    formula: str
    assumed: str  # the assumed distribution of rows
    guarantee: str  # all of it but an eps that varies
    adjacency: Adjacency
    alpha: float
    solved: str  # "n", "eps", "effect" or "power"
    target: float  # the requested power; nan where power was solved for
    mechanisms: tuple[str, ...]  # by cell, and why
    tested: str  # what the verb's test is
    enough: float  # about the eps at which most releases have standard errors; nan where they do


@dataclass(frozen=True, repr=False, eq=False)
class PowerResult(Printed):
    """Expected precision and power of a verb by term; nothing was read and nothing spent.

    Notes
    -----
    `table` has a row for each term of each cell, a number of rows and an eps:
    ``n, eps, term, effect``; ``std_error`` as the verb's table will print it,
    the median of the releases that have one, with their 10 and 90 % quantiles
    ``se_low, se_high``; ``noise_sd`` in it, and ``sampling_se`` without noise;
    ``power`` and its simulation error ``power_se``; ``identified``, the share of
    releases in which the term has a standard error at all; ``without_noise``, the
    power of the same rows without privacy; and ``price``, how many times the rows
    it takes for the same standard error, or power where a test has none; nan
    where most releases have none.
    """

    request: PowerRequest
    table: pd.DataFrame

    @property
    def n(self) -> int:
        """The number of rows, of one cell."""
        return int(self._single("n"))

    @property
    def eps(self) -> float:
        """The privacy loss eps, of one cell; nan where a budget was given instead."""
        return float(self._single("eps"))

    @property
    def power(self) -> pd.Series[float]:
        """Power by term, of one cell; nan where nothing is tested."""
        return self._by_term("power")

    @property
    def effect(self) -> pd.Series[float]:
        """Effects by term, of one cell."""
        return self._by_term("effect")

    @property
    def bse(self) -> pd.Series[float]:
        """Expected standard errors by term, of one cell."""
        return self._by_term("std_error")

    @property
    def cells(self) -> int:
        """How many cells there are: numbers of rows, eps and effects."""
        return int(self.table["cell"].nunique())

    def _single(self, column: str) -> float:
        if self.cells > 1:
            raise NotAvailable(
                f"{column} has several values: this plan has {self.cells} cells; see table"
            )
        return float(self.table[column].iloc[0])

    def _by_term(self, column: str) -> pd.Series[float]:
        self._single("n")
        index = pd.Index(self.table["term"], name="term")
        return pd.Series(self.table[column].to_numpy(), index=index, name=column)

    def tidy(self) -> pd.DataFrame:
        """Return the table, a copy."""
        return self.table.drop(columns="cell")

    def glance(self) -> pd.DataFrame:
        """Return one row about the plan: the least power, and the chance that all is identified."""
        request, table = self.request, self.table
        row: dict[str, object] = {"verb": request.verb, "solved": request.solved}
        row |= {"n": table["n"].max(), "eps": table["eps"].max(), "power": table["power"].min()}
        row |= {"identified": table["identified"].min(), "alpha": request.alpha}
        return pd.DataFrame([row])

    @documented
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw power by term against what varies from cell to cell, with that without noise.

        Raises
        ------
        NotAvailable
            If there is one cell, or no term is tested.
        """
        from dpmodels.plots.curves import curves

        tested = self.table[self.table["power"].notna()]
        varying = [name for name in AXES if tested.groupby("term")[name].nunique().max() > 1]
        if not varying:
            raise NotAvailable(
                "plot() draws power against rows, eps or effects: list several of them, such as "
                "n=[1_000, 3_000, 10_000]"
            )
        across = varying[0]
        groupings = [name for name in varying[1:] if name != "effect"]
        lines = []
        for key, group in tested.groupby(["term", *groupings], sort=False):
            ordered = group.sort_values(across)
            parts = key if isinstance(key, tuple) else (key,)
            names = zip(["", *groupings], parts, strict=True)
            label = ", ".join(f"{name} {part}".strip() for name, part in names)
            columns = (ordered[name].to_numpy(np.float64) for name in (across, *_CURVES))
            lines.append((label, np.stack([*columns])))
        return curves(lines, across=AXES[across], logarithmic=across != "effect", ax=ax)

    def __repr__(self) -> str:
        request = self.request
        size = f"{self.cells} cells" if self.cells > 1 else f"n={self.n:,}, eps={self.eps:.3g}"
        return f"<PowerResult of {request.verb} {request.formula!r}: {size}, nothing spent>"


_CURVES = ("power", "without_noise", "identified")


# Divisions of a budget between the stages of a recipe, tried in simulation.

# Two-sided, for one difference between two divisions.
LEVEL = 0.95


@dataclass(frozen=True)
class SplitRequest:
    """The tried divisions of a budget: public facts."""

    recipe: str  # its name
    stages: tuple[str, ...]
    guarantee: Guarantee  # what all stages together satisfy
    adjacency: Adjacency
    repeats: int  # runs of each division
    best: str  # which score is: "largest" or "smallest"


@dataclass(frozen=True, repr=False, eq=False)
class SplitResult(Printed):
    """Scores of a recipe under divisions of its budget: simulated, nothing was spent.

    In a column of `scores` the runs use the same random numbers.
    """

    request: SplitRequest
    shares: Floats  # of the budget, shape (divisions, stages)
    divisions: tuple[tuple[Guarantee, ...], ...]  # what the shares come to
    scores: Floats  # what the recipe returned, shape (divisions, repeats)

    @property
    def table(self) -> pd.DataFrame:
        """One row a division.

        Columns: the share of each stage, by its name; the mean ``score`` and
        its standard error ``score_se``; ``behind``, by how much the mean is
        worse than the best one's, and ``behind_se``, from differences run by
        run; whether it is ``best``; and whether it is ``near``: the interval
        of level 95 % for ``behind`` reaches 0.
        """
        behind, behind_se = _mean_and_se(self._sign * (self.scores[self._first] - self.scores))
        mean, se = _mean_and_se(self.scores)
        shares = dict(zip(self.request.stages, self.shares.T, strict=True))
        reach = float(stdtrit(self.request.repeats - 1, (1 + LEVEL) / 2))
        numbers = {"score": mean, "score_se": se, "behind": behind, "behind_se": behind_se}
        best = np.arange(len(mean)) == self._first
        is_near = behind <= reach * behind_se
        return pd.DataFrame({**shares, **numbers, "best": best, "near": is_near | best})

    @property
    def best(self) -> dict[str, float]:
        """Shares of the division with the best mean score, by stage."""
        return dict(zip(self.request.stages, self.shares[self._first].tolist(), strict=True))

    @property
    def labels(self) -> tuple[str, ...]:
        """The divisions as text, such as ``"0.3 : 0.7"``."""
        return tuple(ratio(shares) for shares in self.shares)

    @property
    def near(self) -> pd.DataFrame:
        """The rows of the table that are not distinguished from the best, with itself."""
        table = self.table
        return table[table["near"]]

    @property
    def budgets(self) -> dict[str, Guarantee]:
        """Guarantees of the stages in the best division: the argument ``budget`` of their verbs."""
        return dict(zip(self.request.stages, self.divisions[self._first], strict=True))

    @property
    def simulated(self) -> bool:
        """True: the scores depend on the rows without any guarantee."""
        return True

    def tidy(self) -> pd.DataFrame:
        """Return one row a division and stage: ``division, stage, share, eps`` or ``rho, ...``."""
        request, table = self.request, self.table.drop(columns=list(self.request.stages))
        common = [dict(zip(map(str, table), line, strict=True)) for line in table.to_numpy(object)]
        lines: list[dict[str, object]] = []
        for number, (shares, budgets) in enumerate(zip(self.shares, self.divisions, strict=True)):
            for stage, share, budget in zip(request.stages, shares, budgets, strict=True):
                row = {"division": number, "stage": stage, "share": share}
                spent = capacity(budget)
                lines.append({**row, spent.unit: spent.amount, **common[number]})
        return pd.DataFrame(lines)

    def glance(self) -> pd.DataFrame:
        """Return one row about the whole trial."""
        request, table = self.request, self.table
        row = {
            **{f"best_{stage}": share for stage, share in self.best.items()},
            "score": table["score"].iloc[self._first],
            "score_se": table["score_se"].iloc[self._first],
            "divisions": len(table),
            "near": int(table["near"].sum()),
            "repeats": request.repeats,
            "guarantee": request.guarantee.describe(),
            "adjacency": request.adjacency.name,
            "simulated": self.simulated,
        }
        return pd.DataFrame([row])

    @documented
    def plot(self, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw mean scores with their standard errors against the first stage's share.

        With more than two stages the divisions stand side by side.
        """
        from dpmodels.plots.coefficients import divisions

        request, table = self.request, self.table
        neighbours = request.adjacency.describe()
        caption_text = f"Privacy: {request.guarantee.describe()}; neighbours: {neighbours}."
        places, labels = np.arange(len(table), dtype=np.float64), self.labels
        across = " : ".join(request.stages)
        if len(request.stages) == 2:
            places, across = self.shares[:, 0], f"share of {request.stages[0]}"
            labels = tuple(f"{share:.3g}" for share in places)
        return divisions(
            table["score"].to_numpy(),
            table["score_se"].to_numpy(),
            places=places,
            labels=labels,
            best=self._first,
            near_best=table["near"].to_numpy(),
            across=across,
            up=f"score, {request.best} is best",
            ax=ax,
            stamp=self.stamp,
            caption=caption_text if boolean("caption", caption) else None,
        )

    @property
    def _sign(self) -> float:
        return 1.0 if self.request.best == "largest" else -1.0

    @cached_property
    def _first(self) -> int:
        """The best division; of equal ones the most even."""
        means = self._sign * self.scores.mean(axis=1)
        evenness = -np.abs(self.shares - 1 / self.shares.shape[1]).sum(axis=1)
        return int(np.lexsort((evenness, means))[-1])

    def __repr__(self) -> str:
        request, names = self.request, " : ".join(self.request.stages)
        return (
            f"<SplitResult of {request.recipe}: best {names} = {self.labels[self._first]}, "
            f"{request.guarantee.describe()}, {STAMP}>"
        )


def ratio(shares: Floats) -> str:
    """Write shares as they are compared: ``0.3 : 0.7``."""
    return " : ".join(f"{share:.3g}" for share in shares)


def _mean_and_se(runs: Floats) -> tuple[Floats, Floats]:
    return runs.mean(axis=1), runs.std(axis=1, ddof=1) / math.sqrt(runs.shape[1])


# ``plot_ledger``: what a budget was spent on.


@checked_keywords("dp.plot_ledger")
@documented
def plot_ledger(ledger: Ledger, *, ax: Axes | None = None, caption: bool = True) -> Axes:
    """Draw what a ledger was charged by each release, against its budget.

    Parameters
    ----------
    ledger : Ledger
        In memory or in a file; it is verified first.
    caption : bool
        Whether guarantee and neighbours stand under the picture.

    Returns
    -------
    matplotlib Axes
        A bar a charge, from what was spent before it to what was after, in eps or rho. Charges
        without a recorded release are hatched: they stay spent.

    Raises
    ------
    LedgerError
        If a line was changed.
    ArgumentError
        If it is not a ledger.

    Examples
    --------
    >>> import dpmodels as dp
    >>> ledger = dp.Ledger(eps=2.0)
    >>> rows, cb = {"age": [20, 40, 60] * 900}, dp.codebook(age=(0, 100))
    >>> fit = dp.dp_mean("~ age", rows, codebook=cb, eps=0.5, ledger=ledger)
    >>> ax = dp.plot_ledger(ledger)
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['1 dp_mean ~ age']
    """
    from dpmodels.plots.heat import spending

    register = verified(ledger).register().reset_index()
    after = register["total"].to_numpy(dtype=np.float64)
    return spending(
        np.column_stack([np.append(0.0, after)[:-1], after]),
        register["state"].tolist(),
        capacity(ledger.guarantee).amount,
        labels=[f"{line.charge} {line.label}".strip() for line in register.itertuples()],
        unit=ledger.spent.unit,
        ax=ax,
        caption=_caption(ledger, enabled=caption),
    )
