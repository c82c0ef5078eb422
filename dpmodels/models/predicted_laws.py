"""How clear a release will be, where a law is known: from public facts, before the charge."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeGuard

import numpy as np

from dpmodels import privacy
from dpmodels.design import PrivateDesign
from dpmodels.formula.coding import Block, Factor
from dpmodels.formula.tally import Tally
from dpmodels.formula.values import Category, Real
from dpmodels.mechanisms import Plan
from dpmodels.mechanisms.add_noise import GAUSSIAN, LAPLACE, noise_of
from dpmodels.mechanisms.protocol import CountPlan, RegressionPlan
from dpmodels.statistics.losses import Multinomial, Poisson
from dpmodels.typing import Floats

# The accuracy of a release depends on where the rows lie within their bounds, which is not public.
# So it is assumed: numbers have a standard deviation of a sixth of their range, levels are equally
# frequent, outcomes have a rate of 0.3. Laws may be too pessimistic for rows that fill their
# bounds, and too optimistic for rows that fill little of them.

# The variance of a number at both ends of its range over the assumed one, a sixth of the range.
FILLED = 9.0
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

NUMBERS = "numbers have a standard deviation of a sixth of their range"
EQUAL_GROUPS = "groups are of one size"


class Prediction(NamedTuple):
    """How clear a release will be, in units in which all is lost below `lost_below`."""

    strength: float  # Proportional to the number of rows and to one over the noise
    lost_below: float
    clear_from: float  # From which on most releases have what is lacking
    lacking: str
    assumption: str

    @property
    def lost(self) -> bool:
        """Whether very likely nothing is identified."""
        return 0 < self.strength < self.lost_below

    @property
    def clear(self) -> bool:
        """Whether most releases identify what is at stake."""
        return self.strength >= self.clear_from


# From a plan and a public number of rows; None where no law is known.
Law = Callable[[object, int], Prediction | None]


def always(plan: object, rows: int) -> Prediction:
    """Predict a verb whose estimates always have noise of a known size, such as counts."""
    return Prediction(math.inf, 0.0, 0.0, "", "")


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


def covariances(design: PrivateDesign, plan: object, rows: int) -> Prediction:
    """Predict a covariance matrix, whose entries always have noise of a known size."""
    return components(design, plan, rows) or always(plan, rows)


def components(design: PrivateDesign, plan: object, rows: int) -> Prediction | None:
    """Predict a covariance matrix: all of its variance in one component against the noise."""
    if not is_one_release(plan) or design.scaling.unit:
        return None
    if sum(event.count for event in plan.events) > 1:
        return None
    variances = assumed_variances(design)
    strength = rows * float(variances.sum()) / noise_edge(plan, len(variances))
    falling = float((1 / np.arange(1.0, len(variances) + 1)).sum())
    lacking = "no component will stand clear of the noise"
    return Prediction(strength, 1.0, 2 * falling, lacking, f"{NUMBERS} and eigenvalues fall as 1/i")


def group_means(tallies: tuple[Tally, ...], plan: object, rows: int) -> Prediction | None:
    """Predict means by group: the rows of a cell against the noise of their number."""
    means = [tally for tally in tallies if tally.degree]
    if not means:
        return always(plan, rows)
    if not isinstance(plan, CountPlan):
        return None
    widest = min(means, key=lambda tally: tally.cells * math.sqrt(tally.parts))
    rounds = [plan] if plan.first is None else [plan, plan.first]
    noise = max(part.noise_sd for part in rounds) * math.sqrt(widest.parts)
    what = "hardly any group will have a mean" if widest.cells > 1 else "there will be no mean"
    prediction = Prediction(rows / widest.cells / noise, LOST_ROWS, CLEAR_ROWS, what, EQUAL_GROUPS)
    return prediction if plan.first is None or prediction.clear else None


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


def is_one_release(plan: object) -> TypeGuard[Plan]:
    """Whether moments of the codebook's ball are released at once, with a known noise law."""
    if not isinstance(plan, Plan) or not plan.events:
        return False
    in_rounds = any(name.startswith(("lengths", "sum", "columns")) for name in plan.scales)
    return not math.isnan(plan.steps.off) and not in_rounds


def noise_edge(plan: Plan, columns: int) -> float:
    """Return the edge of the noise in the eigenvalues of so many columns."""
    law = LAPLACE if isinstance(plan.events[0], privacy.LaplaceEvent) else GAUSSIAN
    return 2 * noise_of(plan, law).off * math.sqrt(columns)


def enlarged(
    guarantee: privacy.Guarantee, events: Sequence[privacy.Event], factor: float
) -> privacy.Guarantee:
    """Return the guarantee under which noise is smaller by a factor, rounded to two digits.

    >>> from dpmodels.privacy import PureDP, ZCDP
    >>> enlarged(PureDP(0.5), (), 3.1), enlarged(ZCDP(0.01), (), 10)
    (PureDP(eps=1.6), ZCDP(rho=1.0))
    """
    match guarantee:
        case privacy.ZCDP(rho=rho):
            return privacy.ZCDP(two_digits(rho * factor**2))
        case privacy.ApproxDP(eps=eps, delta=delta):
            if any(isinstance(event, privacy.GaussianEvent) for event in events):
                eps = privacy.gaussian_eps(delta, privacy.gaussian_multiplier(guarantee) / factor)
                return privacy.ApproxDP(two_digits(eps), delta)
            return privacy.ApproxDP(two_digits(eps * factor), delta)
        case privacy.PureDP(eps=eps):
            return privacy.PureDP(two_digits(eps * factor))


def two_digits(value: float) -> float:
    """Round to two digits."""
    return float(f"{value:.2g}")
