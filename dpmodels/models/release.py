"""The steps of every release: bind, choose, plan, check, charge, measure, release, record."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeGuard, TypeVar

import numpy as np

from dpmodels.design import PrivateDesign
from dpmodels.design.rows import requested_of
from dpmodels.digest import release_digest
from dpmodels.errors import BudgetWarning, FrameError, frames_up, shorten
from dpmodels.formula.coding import Block, Factor
from dpmodels.formula.sides import subset
from dpmodels.formula.tally import Tally
from dpmodels.formula.values import Category, Real
from dpmodels.frames.protocol import before_charge
from dpmodels.mechanisms import Facts, Plan
from dpmodels.mechanisms.add_noise import GAUSSIAN, LAPLACE, noise_of
from dpmodels.mechanisms.ledger_price import priced_on
from dpmodels.mechanisms.protocol import AnyStrategy, CountPlan, RegressionPlan
from dpmodels.mechanisms.regression import Moments, Scores
from dpmodels.mechanisms.regression.scores import column_ranges
from dpmodels.mechanisms.user_supplied import stated_info
from dpmodels.noise import simulating
from dpmodels.options import ledger_of
from dpmodels.postprocess.units import in_persons
from dpmodels.privacy import (
    ZCDP,
    Adjacency,
    ApproxDP,
    Charge,
    GaussianEvent,
    Guarantee,
    LaplaceEvent,
    Ledger,
    PureDP,
    charge,
    gaussian_eps,
    gaussian_multiplier,
    group_events,
    planned_for_group,
)
from dpmodels.released import AnyRelease
from dpmodels.request import Request
from dpmodels.results.call import Spec
from dpmodels.sites import Parties, parties, together
from dpmodels.statistics import Statistic
from dpmodels.statistics.losses import Multinomial, Poisson
from dpmodels.typing import Floats
from dpmodels.verbs import VERBS

# Predictions, from public facts, of what a release will very likely miss, and the warning. The
# accuracy of a release depends on where the rows lie within their bounds, which is not public. So
# it is assumed: numbers have a standard deviation of a sixth of their range, levels are equally
# frequent, outcomes have a rate of 0.3. A warning appears only where releases of such rows, and of
# most others, lack the result. It may be too early for rows that fill their bounds, and is too rare
# for rows that fill little of them.

# The variance of a number at both ends of its range over the assumed one, a sixth of the range.
FILLED = 9.0
# Of moments: strengths of X'X, and of a component, read off noisy moments.
LOST_SLOPES, CLEAR_SLOPES = 0.7, 2.0
# Choices by simulation, of the assumed variance of a number in half-ranges over the noise in it:
# below the first no slope has a standard error, from the second on most have.
LOST_LINE, CLEAR_LINE = 0.2, 1.25
# Choices by simulation, of rows times 0.8 over the noise of the released curvature and d√d: below
# the first no slope has a standard error, from the second on most have, with an estimated radius
# and without.
LOST_CURVATURE, CLEAR_CURVATURE = 8.0, 40.0
LOST_PURE, CLEAR_PURE = 2.0, 18.0
# The same of rows times 0.2 over the noise of a sum of gradients and d: below the first predictions
# have a correlation of about 0.1 with those without noise, from the second on of 0.9.
LOST_PULL, CLEAR_PULL = 0.25, 4.0
# Variance of an outcome with the assumed rate: its curvature is a share of the largest, a quarter.
OUTCOME = 0.3 * 0.7
# Rows of a cell in noise sds of their number: fewer are lost, so many are mostly detected.
LOST_ROWS, CLEAR_ROWS = 1.0, 6.0

# A choice: larger multiples of the budget are not suggested.
LARGEST_FACTOR = 1e4

# Choices: the likely radius of terms, in root mean squares, times that of residuals, in sds; and by
# how much the noise of one release exceeds that in X'y alone.
EXPECTED_LIMITS, NOISE_IN_GRAM = 2.5, 1.6

NUMBERS = "numbers have a standard deviation of a sixth of their range"
EQUAL_GROUPS = "groups are of one size"


class Prediction(NamedTuple):
    """How clear a release will be, in units in which all is lost below `lost_below`."""

    strength: float  # Proportional to the number of rows and to one over the noise
    lost_below: float
    clear_from: float  # From which on most releases have what is lacking
    lacking: str
    assumption: str


# From a plan and a public number of rows; None where nothing is predicted.
Predictor = Callable[[object, int], Prediction | None]


def nothing(plan: object, rows: int) -> None:
    """Predict nothing."""


def slopes_of_moments(design: PrivateDesign, plan: object, rows: int) -> Prediction | None:
    """Predict least squares of the last column: the strength of X'X along its widest column."""
    variances, lacking = assumed_variances(design)[:-1], "no slope will have a standard error"
    if not len(variances) or not isinstance(plan, Plan):
        return None
    if "narrowed" in plan.scales:
        radius = column_ranges(design.public.blocks, design.scaling).radius
        strength = rows / FILLED / (plan.scales["powers"] * radius)
        return Prediction(strength, LOST_LINE, CLEAR_LINE, lacking, NUMBERS)
    if not _one_release(plan):
        return None
    strength = rows * float(variances.max()) / _edge(plan, len(variances))
    return Prediction(strength, LOST_SLOPES, CLEAR_SLOPES, lacking, NUMBERS)


def predicted_errors(design: PrivateDesign, facts: Facts, guarantee: Guarantee) -> dict[str, float]:
    """Return predicted median noise of slopes times the rows, by mechanism of least squares.

    Of assumed rows, see :func:`assumed_variances`, whose residuals have the variance of the
    response.
    """
    spread = np.sqrt(assumed_variances(design))
    spread, residual_sd = spread[:-1], float(spread[-1])
    once, about = Moments().plan(facts, guarantee), Scores().plan(facts, guarantee)
    noise = 2 * about.scales["final"] / math.sqrt(1 + facts.adjacency.n_public)
    length = math.sqrt(facts.columns) * EXPECTED_LIMITS * residual_sd
    return {
        "moments": float(np.median(NOISE_IN_GRAM * noise_of(once).off / spread**2)),
        "scores": float(np.median(noise * length / spread)),
    }


def of_outcomes(plan: object, rows: int) -> Prediction | None:
    """Predict a model of outcomes: the released curvature, or else gradient, against its noise.

    Counts have no prediction, since their mean within the bounds is unknown.
    """
    if not isinstance(plan, RegressionPlan) or isinstance(plan.facts.loss, Poisson | Multinomial):
        return None
    columns = plan.facts.columns
    curvature = plan.scales.get("along", plan.scales.get("both"))
    if not plan.facts.predictors.terms or (curvature is None and "tilt" not in plan.scales):
        return None
    if curvature is None:
        strength = rows * OUTCOME / (plan.scales["sd"] * columns)
        lacking = "predictions will be little better than chance"
        return Prediction(strength, LOST_PULL, CLEAR_PULL, lacking, NUMBERS)
    strength = rows * 4 * OUTCOME / (curvature * columns**1.5)
    lost_below, clear_from = LOST_CURVATURE, CLEAR_CURVATURE
    if "lengths" not in plan.scales:
        strength, lost_below, clear_from = strength / columns, LOST_PURE, CLEAR_PURE
    return Prediction(
        strength, lost_below, clear_from, "no slope will have a standard error", NUMBERS
    )


def components(design: PrivateDesign, plan: object, rows: int) -> Prediction | None:
    """Predict a covariance matrix: all of its variance in one component against the noise."""
    if not _one_release(plan) or design.scaling.unit:
        return None
    if sum(event.count for event in plan.events) > 1:
        return None
    variances = assumed_variances(design)
    strength = rows * float(variances.sum()) / _edge(plan, len(variances))
    falling = float((1 / np.arange(1.0, len(variances) + 1)).sum())
    lacking = "no component will stand clear of the noise"
    return Prediction(strength, 1.0, 2 * falling, lacking, f"{NUMBERS} and eigenvalues fall as 1/i")


def group_means(tallies: tuple[Tally, ...], plan: object, rows: int) -> Prediction | None:
    """Predict means by group: the rows of a cell against the noise of their number."""
    means = [tally for tally in tallies if tally.degree]
    if not isinstance(plan, CountPlan) or plan.first is not None or not means:
        return None
    widest = min(means, key=lambda tally: tally.cells * math.sqrt(tally.parts))
    noise = plan.noise_sd * math.sqrt(widest.parts)
    strength = rows / widest.cells / noise
    what = "hardly any group will have a mean" if widest.cells > 1 else "there will be no mean"
    return Prediction(strength, LOST_ROWS, CLEAR_ROWS, what, EQUAL_GROUPS)


def assumed_variances(design: PrivateDesign) -> Floats:
    """Return assumed variances of a design's columns in its unit ball, shape (columns,)."""
    blocks, units = design.public.blocks, design.scaling.scale * design.scaling.row_norm
    parts = np.split(units, np.cumsum([len(block.names) for block in blocks])[:-1])
    return np.concatenate([*map(_of_block, blocks, parts)])


def _of_block(block: Block, units: Floats) -> Floats:
    """Return variances of equally frequent levels and ends of ranges."""
    numbers = sum(map(_fills_little, block.factors))
    return np.asarray((block.points / units).var(axis=0) / FILLED**numbers)


def _fills_little(factor: Factor) -> bool:
    """Whether a factor is neither a category nor a whole number of two values."""
    match factor:
        case Category():
            return False
        case Real(lower=lower, upper=upper, step=step):
            return step < upper - lower
    return True


def _one_release(plan: object) -> TypeGuard[Plan]:
    """Whether moments of the codebook's ball are released at once, with a known noise law."""
    if not isinstance(plan, Plan) or not plan.events:
        return False
    return not math.isnan(plan.steps.off) and _rounds(plan) == 0


def _rounds(plan: Plan) -> int:
    return sum(name.startswith(("lengths", "sum", "columns")) for name in plan.scales)


def _edge(plan: Plan, columns: int) -> float:
    """Return the edge of the noise in the eigenvalues of so many columns."""
    law = LAPLACE if isinstance(plan.events[0], LaplaceEvent) else GAUSSIAN
    return 2 * noise_of(plan, law).off * math.sqrt(columns)


def warn(prediction: Prediction | None, request: Request, plan: Any, rows: int) -> None:
    """Warn of results that will be missing, and what budget suffices, at the user's line."""
    if prediction is None or not 0 < prediction.strength < prediction.lost_below:
        return
    factor = prediction.clear_from / prediction.strength
    formula = shorten(request.formula)
    budget_hint = ""
    if factor <= LARGEST_FACTOR:
        budget_hint = f"{enlarged(request.private, plan.events, factor).describe()}, or "
    text = (
        f"dp_{request.verb}({formula!r}): very likely {prediction.lacking} at "
        f"{request.guarantee.describe()} with n = {rows:,}: about {budget_hint}n = "
        f"{round(_digits(rows * factor)):,} is needed if {prediction.assumption}. Nothing is "
        "charged yet: see dp.errors.BudgetWarning to stop before the charge, or to silence this."
    )
    warnings.warn(text, BudgetWarning, stacklevel=frames_up())


def enlarged(guarantee: Guarantee, events: Any, factor: float) -> Guarantee:
    """Return the guarantee under which noise is smaller by a factor, rounded to two digits.

    >>> enlarged(PureDP(0.5), (), 3.1), enlarged(ZCDP(0.01), (), 10)
    (PureDP(eps=1.6), ZCDP(rho=1.0))
    """
    match guarantee:
        case ZCDP(rho=rho):
            return ZCDP(_digits(rho * factor**2))
        case ApproxDP(eps=eps, delta=delta):
            if any(isinstance(event, GaussianEvent) for event in events):
                eps = gaussian_eps(delta, gaussian_multiplier(guarantee) / factor)
                return ApproxDP(_digits(eps), delta)
            return ApproxDP(_digits(eps * factor), delta)
        case PureDP(eps=eps):
            return PureDP(_digits(eps * factor))


def _digits(value: float) -> float:
    return float(f"{value:.2g}")


Result = TypeVar("Result", covariant=True)


@dataclass(frozen=True, repr=False)
class VerbSpec(Spec[Result]):
    """The specification of one verb's release, built before any rows are read."""

    request: Request
    private: Any  # A design or cells without rows; its `bind` binds those of each holder
    facts: Any  # Public ones, from which a plan is made
    # From mechanism= and the holders' bound rows, none of them read, to a strategy and its reason.
    choose: Callable[[object, Sequence[Any]], tuple[AnyStrategy, str]]
    lawful: bool = False  # Whether the result needs noise of a known law
    passes: bool = False  # Whether all strategies of the verb read the rows more than once
    # Persons and their rows that count, where these differ from the unit of the guarantee.
    reads: Adjacency | None = None
    predict: Predictor = nothing  # What a plan will very likely miss with a public number of rows

    def __post_init__(self) -> None:
        request = self.request
        neighbours = self.reads or request.adjacency
        terms = partial(
            requested_of,
            neighbours=neighbours,
            subset=subset(request.subset, request.codebook | self.private.codebook),
            missing_ids=request.codebook.missing_ids(neighbours.person),
        )
        object.__setattr__(self, "private", self.private.among(terms))


class Planned(NamedTuple):
    """A strategy, its plan from public facts, and the reason."""

    strategy: AnyStrategy
    plan: Any
    reason: str


class Measured(NamedTuple):
    """Exact statistics, one per holder, charged and not yet released."""

    planned: Planned
    statistics: tuple[Statistic, ...]
    charged: Charge


def run_release(
    spec: VerbSpec[Result], data: object, mechanism: object, ledger: Ledger | None
) -> Result:
    """Charge the ledger, run the mechanism on all holders' rows, record the release."""
    holders = parties(data)
    (strategy, plan, reason), statistics, charged = measured(spec, holders, mechanism, ledger)
    release = holders.release(strategy, statistics, plan)
    release = replace(release, info=stated_info(strategy, release.info))
    release = of_question(release, spec.request, holders)
    charged.released(lambda: release_digest(release))
    return spec.of(release, charged.ledger_state, reason)


def of_question(release: Any, request: Request, holders: Parties | None = None) -> AnyRelease:
    """Return a release in its unit, with its guarantee, neighbours and events."""
    facts = [("Records", text) for text in holders.records] if holders else []
    facts += [("Codebook", "attached to the table")] if request.attached else []
    table = tuple(facts) or None
    neighbours = request.adjacency
    events = group_events(release.events, neighbours.places)
    converted = in_persons(release, neighbours.places) if neighbours.counts_persons else release
    return replace(
        converted,
        guarantee=request.guarantee,
        events=events,
        subset=request.subset,
        table=table,
    )


def measured(
    spec: VerbSpec[object],
    holders: Parties,
    mechanism: object,
    ledger: Ledger | None,
    claims: tuple[tuple[str, str], ...] = (),
) -> Measured:
    """Check the call and charge for it; only then read the rows."""
    ledger = ledger_of(ledger)
    request, witness = spec.request, holders.witness
    private = holders.bind(spec.private.bind)
    try:
        with priced_on(None if holders.protocol else ledger, request.adjacency.places):
            choice = planned(spec, holders, mechanism, private)
    except FrameError as error:  # The number of persons is public: they are counted first
        raise FrameError(before_charge(error)) from None
    witness.planned(choice.strategy, private, choice.plan)
    events = group_events(choice.plan.events, request.adjacency.places)
    witness.charging(choice.strategy.info.name, events)
    _warn_before_charge(spec, holders, choice.plan, private)
    charged = charge(
        ledger,
        events,
        adjacency=request.adjacency,
        about=request.about(choice.strategy.info.name, spec.private.codebook),
        claims=claims,
    )
    statistics = tuple(choice.strategy.measure(source, choice.plan) for source in private)
    witness.measured(choice.strategy, statistics, holders.names, choice.plan)
    return Measured(choice, statistics, charged)


def _warn_before_charge(
    spec: VerbSpec[object], holders: Parties, plan: object, private: Sequence[Any]
) -> None:
    """Warn of what a release will very likely miss; never from a private number of rows.

    Not for persons, whose number is only known after reading, nor in a simulation, nor where other
    sites have rows.
    """
    relation = spec.reads or spec.request.adjacency
    if simulating() or not relation.n_public or relation.person is not None or holders.others:
        return
    rows = together(source.nrows for source in private)
    if rows is not None:
        warn(spec.predict(plan, rows), spec.request, plan, rows)


def planned(
    spec: VerbSpec[Any], holders: Parties, mechanism: object, private: Sequence[Any]
) -> Planned:
    """Choose a strategy and plan it from public facts; refuse what cannot be released."""
    request = spec.request
    candidate, protocol_reason = holders.mechanism(
        mechanism, VERBS[request.verb].gaussian, request, lawful=spec.lawful
    )
    strategy, reason = spec.choose(candidate, private)
    if getattr(strategy, "passes", "many" if spec.passes else "one") == "many":
        for source in private:
            source.require_passes()
    plan: Any = planned_for_group(
        partial(strategy.plan, spec.facts),
        lambda plan: plan.events,
        request.guarantee,
        request.adjacency.places,
    )
    holders.check(strategy, plan)
    return Planned(strategy, plan, protocol_reason or reason)
