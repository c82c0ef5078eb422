"""Protocols of mechanisms, and the facts and plans they share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, NamedTuple, NoReturn, Protocol, TypedDict, TypeVar

import numpy as np

from dpmodels import released
from dpmodels.design import PrivateDesign
from dpmodels.design.cells import PrivateCells, PrivateLevels, PrivateMargins
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.mechanisms.quantile_facts import QuantileFacts
from dpmodels.noise import Entropy, simulating
from dpmodels.noise.lattice import Lattice
from dpmodels.postprocess.graphical.histograms import FineCells
from dpmodels.postprocess.residuals import Term, cells, components, largest, subsets, unlike
from dpmodels.privacy import Adjacency, Event, Guarantee, Pufferfish
from dpmodels.released import CoefficientsRelease, PValuesRelease, RunsRelease
from dpmodels.statistics import Statistic
from dpmodels.statistics.gradient import Gradients
from dpmodels.statistics.losses import Loss, Multinomial, Poisson, Predictors
from dpmodels.typing import Exact, Floats, Integers, Objects, Scalars

# What a release of margins is planned from, and how far one row moves their components.

# Of so many variables all sets are tried where a row is replaced; of more there is a bound.
MOST_TRIED = 14
# Steps towards the least of a convex function, of which any point gives a bound.
STEPS = 400
# Covers the rounding of the bound, in units of the sum of all weights.
SLACK = 1e-9


FactsOf = TypeVar("FactsOf", covariant=True)


@dataclass(frozen=True)
class PlanOf(Generic[FactsOf]):
    """A calibrated release: everything but the data."""

    guarantee: Guarantee
    events: tuple[Event, ...]  # What the ledger is charged
    facts: FactsOf  # What the plan was made for


@dataclass(frozen=True)
class MarginFacts:
    """Public facts a plan may use; none of them is learnt from a row."""

    sizes: tuple[int, ...]  # Levels of each variable, with one for what is missing or unlisted
    terms: tuple[Term, ...]  # Requested margins
    adjacency: Adjacency
    # Of variables whose levels are fine cells, which a first release of their counts merges.
    numbers: tuple[FineCells, ...] = ()

    @cached_property
    def components(self) -> tuple[Term, ...]:
        """Components of the margins, without the number of rows if that is public."""
        return components(self.terms)[int(self.adjacency.n_public) :]

    @cached_property
    def largest(self) -> tuple[Term, ...]:
        """Margins that all others are sums of."""
        return largest(self.terms)


@dataclass(frozen=True)
class MarginPlan(PlanOf[MarginFacts]):
    """A calibrated release of margins."""

    measured: tuple[Term, ...]  # What noise is added to
    units: tuple[int, ...]  # Of a row, in each of them
    scales: tuple[float, ...]  # Of the noise of a cell, in these units
    noise_sds: tuple[float, ...]  # Its standard deviation, in rows


def all_cells(facts: MarginFacts, variances: Mapping[Term, float]) -> float:
    """Return the sum of the noise variances of all cells of all requested margins.

    `variances` are those of a cell of each component before it is centred.
    """
    shares = _shares(facts)
    return math.fsum(variances[part] * shares[part] for part in facts.components)


def best_variances(
    facts: MarginFacts, weights: Mapping[Term, float] | None = None
) -> dict[Term, float]:
    """Return the variances of components, up to a factor, whose sum over all cells is least.

    At a cost of ``Σ p_A/σ_A²`` the sum ``Σ v_A σ_A²`` is least for ``σ_A² ∝ √(p_A/v_A)``. Cells of
    margins with `weights`, requested or inside of these, count as many times.
    """
    shares = _shares(facts, weights)
    return {part: math.sqrt(unlike(part, facts.sizes) / shares[part]) for part in facts.components}


def _shares(facts: MarginFacts, weights: Mapping[Term, float] | None = None) -> dict[Term, float]:
    """Return what the variance of each component adds to that of all cells, v_A."""
    totals = dict.fromkeys(components(facts.terms), 0.0)
    for term, weight in {**dict.fromkeys(facts.terms, 1.0), **(weights or {})}.items():
        size = cells(term, facts.sizes)
        for part in subsets(term):
            rest = size / cells(part, facts.sizes)
            totals[part] += weight * size * unlike(part, facts.sizes) / rest**2
    return totals


def squared_sensitivity(facts: MarginFacts, variances: Mapping[Term, float]) -> float:
    """Return how far a row moves all components, squared, each in units of its variance.

    A row more or fewer adds ``⊗_{i∈A} (e − 1/n_i)`` to that of A, of squared length
    ``p_A = Π (1 − 1/n_i)``, whatever its levels. If a row is replaced by one that differs from it
    in the variables D, the component of A moves by a square of
    ``2 (p_A − Π_{i∈A∖D} (1 − 1/n_i) Π_{i∈A∩D} (−1/n_i))``: the sum over A, at its largest.
    """
    weights = {part: 1 / variances[part] for part in facts.components}
    alone = math.fsum(weights[part] * unlike(part, facts.sizes) for part in weights)
    if not facts.adjacency.n_public:
        return alone
    used = sorted({i for part in weights for i in part})
    smallest = _least(weights, facts.sizes) if len(used) <= MOST_TRIED else math.inf
    if len(used) > MOST_TRIED:
        smallest = _bound(weights, facts.sizes) - SLACK * math.fsum(weights.values())
    return 2 * (alone - smallest)


def _least(weights: Mapping[Term, float], sizes: tuple[int, ...]) -> float:
    """Return the least of ``Σ w_A Π_{i∈A} g_i`` over all sets of variables, tried one by one.

    ``g_i`` is ``1 − 1/n_i`` outside a set and ``−1/n_i`` inside. An axis a variable: first whether
    it is in A, then whether it is in the set.
    """
    used = sorted({i for part in weights for i in part})
    table = np.zeros((2,) * len(used))
    for part, weight in weights.items():
        table[tuple(int(i in part) for i in used)] = weight
    for axis, i in enumerate(used):
        without, within = np.moveaxis(table, axis, 0)
        slices = [without + (1 - 1 / sizes[i]) * within, without - within / sizes[i]]
        table = np.stack(slices, axis=axis)
    return float(table.min())


def _bound(weights: Mapping[Term, float], sizes: tuple[int, ...]) -> float:
    """Return a number that ``Σ w_A Π_{i∈A} g_i`` is not below for any set of variables.

    Terms of three variables and more are bounded one by one. Of one and two it is
    ``g'Wg/2 + l'g``, and as ``g_i² = (1 − 2/n_i) g_i + (1 − 1/n_i)/n_i`` at both of its values, it
    is with any λ that makes ``W + λI`` positive semidefinite a convex function less a number. That
    is nowhere in the box below its tangent at any point.
    """
    used = sorted({i for part in weights for i in part})
    at = {i: place for place, i in enumerate(used)}
    inverse = 1 / np.array([sizes[i] for i in used], dtype=np.float64)
    matrix, slope, rest = np.zeros((len(used), len(used))), np.zeros(len(used)), 0.0
    for part, weight in weights.items():
        if len(part) == 1:
            slope[at[part[0]]] += weight
        elif len(part) == 2:
            row, column = at[part[0]], at[part[1]]
            matrix[row, column] = matrix[column, row] = weight
        else:
            ratio = max(inverse[at[i]] / (1 - inverse[at[i]]) for i in part)
            rest -= weight * unlike(part, sizes) * ratio
    added = max(-float(np.linalg.eigvalsh(matrix)[0]), 0.0) * (1 + SLACK)
    convex = matrix + added * np.eye(len(used))
    slope = slope - added * (1 - 2 * inverse) / 2
    low, high = -inverse, 1 - inverse
    point = _descended(convex, slope, low, high)
    gradient = convex @ point + slope
    tangent = point @ convex @ point / 2 + slope @ point - gradient @ point
    tangent += np.minimum(gradient * low, gradient * high).sum()
    return float(tangent - added * (high * inverse).sum() / 2) + rest


def _descended(matrix: Floats, slope: Floats, low: Floats, high: Floats) -> Floats:
    """Return a point near the least of a convex quadratic function in a box."""
    step = 1 / max(float(np.linalg.eigvalsh(matrix)[-1]), 1e-300)
    point = ahead = (low + high) / 2
    for count in range(1, STEPS):
        following = np.clip(ahead - step * (matrix @ ahead + slope), low, high)
        ahead = following + (count - 1) / (count + 2) * (following - point)
        point = following
    return np.asarray(point)


# What mechanisms for coefficients share: facts, plans, the rows they read and the hand-over.


@dataclass(frozen=True)
class RegressionFacts:
    """Public facts a plan may use; none of them is learnt from a row."""

    predictors: Predictors  # The linear predictor's coordinates and their scaling
    loss: Loss | Poisson | Multinomial  # What is summed over the rows
    adjacency: Adjacency

    @property
    def columns(self) -> int:
        """Coordinates of the parameter: those of a linear predictor for each line."""
        return self.predictors.columns * self.lines

    @property
    def lines(self) -> int:
        """Linear predictors of a row: one, or of a multinomial model one for each level."""
        return self.loss.levels if isinstance(self.loss, Multinomial) else 1


@dataclass(frozen=True)
class RegressionPlan(PlanOf[RegressionFacts]):
    """A calibrated release of coefficients."""

    # Public numbers the release needs, by the mechanism's own names.
    scales: Mapping[str, float] = field(default_factory=dict)


def bounded_loss(facts: RegressionFacts, name: str) -> Loss:
    """Return the loss; ArgumentError if its gradients are not bounded."""
    if isinstance(facts.loss, Poisson):
        raise ArgumentError(
            f'mechanism="{name}" needs a loss with bounded gradients, which family="poisson" '
            'does not have; write mechanism="scores" or "gradients"'
        )
    if isinstance(facts.loss, Multinomial):
        raise ArgumentError(
            f'mechanism="{name}" is for one linear predictor, but family="multinomial" has one '
            'for each level; write mechanism="gradients"'
        )
    return facts.loss


def passes(design: PrivateDesign, facts: RegressionFacts) -> Gradients:
    """Bind a design's rows for several passes. FrameError if they can be read only once."""
    design.require_passes()
    predictors = facts.predictors
    return Gradients((design,), predictors, facts.loss, predictors.lattice)


def as_gradients(statistic: Statistic) -> Gradients:
    """Return a statistic as what :func:`passes` made."""
    assert isinstance(statistic, Gradients)
    return statistic


# What a release of counts is planned from, and its hand-over.

# Units of one row: sums over a block of 2**13 rows stay below 2**53.
MOST_BITS = 40
# With fewer the rounding of parts to units would show.
LEAST_BITS = 16
# Times the noise scale, what 63 bits have to hold: a Laplace draw outside has
# probability exp(-128).
ROOM_BITS = 7
# The least scale that the sampler takes, in units.
LEAST_SCALE = 2.0**-7
# Room for the rows themselves, beside the noise.
HELD_BITS = 62


@dataclass(frozen=True)
class CountFacts:
    """Public facts a plan may use; none of them is learnt from a row."""

    tables: int  # In how many tables each row is counted
    parts: int  # Counts released, all tables together
    divided: bool  # Whether a row is divided between parts; else it is counted whole
    adjacency: Adjacency
    # Of a table whose cells stand in an order: groups, then cells of each variable.
    shape: tuple[int, ...] = ()
    # Of sampled units: tables to which they add a little more, how many of the tables have products
    # of shares beside them, whether weights are capped, the noise of a wanted sum over that of a
    # part, what it moves by for a unit of weight, and whether totals are wanted, not means alone.
    side_tables: int = 0
    products: int = 0
    capped: bool = True
    numerator: float = 1.0
    moved: float = 1.0
    totals: bool = False


@dataclass(frozen=True)
class CountPlan(PlanOf[CountFacts]):
    """A calibrated release of counts."""

    units_per_row: int  # Units of one row
    scale: float  # Of the noise in each count, in units
    noise_sd: float  # Its standard deviation, in rows
    first: CountPlan | None = None  # Of an earlier round of the same release


def refuse_noise(scale: float, of: str, larger: str = "eps, delta or rho") -> NoReturn:
    """Refuse noise of a scale, and say what it is of."""
    raise BudgetError(
        f"the budget asks for noise of {scale:.2g} {of}, beyond what is meaningful; give a larger "
        f"{larger}"
    )


def units_of(scale: float) -> int:
    """Return how many units a row may have beside noise of a scale; BudgetError if too few."""
    spare = HELD_BITS - ROOM_BITS - math.log2(max(scale, 1.0))
    bits = min(MOST_BITS, math.floor(spare))
    if bits < LEAST_BITS:
        refuse_noise(scale, "rows in each count")
    return int(2**bits)


def counts_released(
    info: released.MechanismInfo, plan: CountPlan, noisy: Scalars, n_rows: int, law: str
) -> released.CountsRelease:
    """Make the release of noisy counts, with the number of rows if that is public."""
    return released.CountsRelease(
        values=noisy.astype(np.float64) / plan.units_per_row,
        law=law,
        noise_sd=plan.noise_sd,
        step=1 / plan.units_per_row,
        **release_terms(info, plan, n_rows),
    )


# Of parts of the moments that are not released with noise of their own.
SILENT = released.MomentNoise(math.nan, math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class Facts:
    """Public facts a plan may use; none of them is learnt from a row."""

    columns: int  # Coded columns of the design
    adjacency: Adjacency
    centred: bool  # Whether the mean is taken off
    components: int = 0  # How many components are wanted, from 1 to `columns`; 0 stands for all
    unit: bool = False  # Whether every row is divided by its norm; for the automatic choice
    # Numbers that the columns are centred at inside products, by code; None where none is.
    centres: tuple[tuple[str, float], ...] | None = None


@dataclass(frozen=True)
class Plan:
    """A calibrated release: everything but the data."""

    guarantee: Guarantee  # Guarantee of the release
    events: tuple[Event, ...]  # What the ledger is charged
    lattice: Lattice  # Where rows and noise live
    facts: Facts  # What the plan was made for
    # Scales of the noise in the number of rows, their sum, and the diagonal and the rest of the
    # second moment, in lattice steps; nan for parts that are not released with noise of their
    # own.
    steps: released.MomentNoise = SILENT
    # Other public numbers the release needs, by the mechanism's own names.
    scales: Mapping[str, float] = field(default_factory=dict)


class PublicFacts(Protocol):
    """Public facts of any mechanism."""

    @property
    def adjacency(self) -> Adjacency:
        """Which tables are neighbours."""


class Calibrated(Protocol):
    """The plan of any mechanism."""

    @property
    def guarantee(self) -> Guarantee | Pufferfish:
        """Guarantee of the release."""

    @property
    def events(self) -> tuple[Event, ...]:
        """What the ledger is charged."""

    @property
    def facts(self) -> PublicFacts:
        """What the plan was made for."""


Known = TypeVar("Known", contravariant=True)
Planned = TypeVar("Planned")
Rows = TypeVar("Rows", contravariant=True)
Released = TypeVar("Released", covariant=True)


class Strategy(Protocol[Known, Planned, Rows, Released]):
    """A mechanism, from public facts and rows to a release."""

    @property
    def info(self) -> released.MechanismInfo:
        """What the mechanism promises."""

    def plan(self, facts: Known, guarantee: Any, /) -> Planned:
        """Calibrate to a guarantee; sees no data and raises before any is read."""

    def measure(self, design: Rows, plan: Planned, /) -> Statistic:
        """Compute the exact statistic that the release is made from."""

    def release(self, statistic: Statistic, plan: Planned, entropy: Entropy, /) -> Released:
        """Add noise and hand over; called once, after the ledger was charged."""


class MomentMechanism:
    """The base of user-supplied mechanisms: a name, the law of its noise, a plan and a release.

    Its class is made without arguments.

    Attributes
    ----------
    name : str
        The word that selects it, an identifier.
    law : {"gaussian", "laplace"}
        The law of its noise, independent on and above the diagonal.
    """

    name: str
    law: str

    def plan(self, facts: Facts, guarantee: Guarantee) -> released.MomentNoise:
        """Return standard deviations of the noise, from public facts alone.

        They are of the number of rows, of each coordinate of their sum, and of each diagonal and
        off-diagonal entry of their second moment, for rows in the unit ball. The same arguments
        give the same answer.
        """
        raise NotImplementedError

    def release(self, moments: Floats, sd: Floats, draw: Callable[[Floats], Floats]) -> Floats:
        """Return the moments with the planned noise, as a symmetric matrix.

        `moments` is exact: the sum of ``z zᵀ`` over complete rows, ``z = (1, x)``, shape
        (columns + 1, columns + 1). `sd` has the planned standard deviations in the same shape,
        and ``draw(sd)`` draws independent noise, from the only source of random numbers.
        """
        upper = np.triu(draw(sd))
        return np.asarray(moments + upper + np.triu(upper, 1).T)


# As ``mechanism=`` takes it, once its class is registered.
Registered = MomentMechanism | type[MomentMechanism]


class Ranked(NamedTuple):
    """Scores of all candidates, whole numbers, the best the largest.

    All that a neighbour changes them by lies in an interval of length `width`, which begins or
    ends at 0 where they are `monotone`, and else is symmetric. `threshold` is None where there is
    none; a score is so many `unit`.
    """

    scores: Exact
    width: int
    monotone: bool
    threshold: int | None = None
    unit: float = 1.0
    about: Any = None  # What was released on the way to the scores
    # Where names change the scores of what is left: the next, once a candidate is named.
    after: Callable[[int], Ranked] | None = None


class Score(Protocol):
    """Scores that rank candidates, and values that are released for those named."""

    @property
    def size(self) -> int:
        """How many candidates there are."""

    @property
    def own_share(self) -> float:
        """Share of the budget for what has to be released before there are scores."""

    def width(self, adjacency: Adjacency, /) -> float:
        """Return the length of the interval of a neighbour's changes, in the scores' unit."""

    def bought(self, facts: Any, paid: Callable[[float], Guarantee], eps: float, /) -> Any:
        """Plan what is released besides the names, for draws of an eps: `events`, `noise_sd`.

        `paid` takes a share of the budget and returns what that guarantees.
        """

    def measure(self, private: Any, facts: Any, /) -> Statistic:
        """Compute the exact statistic that scores and values are made from."""

    def ranked(self, exact: Exact, facts: Any, bought: Any, entropy: Entropy, /) -> Ranked:
        """Return the exact scores."""

    def valued(
        self, exact: Objects, ranked: Ranked, places: Integers, bought: Any, entropy: Entropy, /
    ) -> dict[str, Any]:
        """Release values of what was named with fresh noise, as fields of a release."""


# Of any verb: which facts, plan and rows belong together, its verb knows.
AnyStrategy = Strategy[Any, Any, Any, released.AnyRelease]
# The plan of one of them, which the same strategy reads.
PlanOfStrategy = Any
# Of the second moment of rows in the unit ball.
CovarianceMechanism = Strategy[Facts, Plan, PrivateDesign, released.MomentsRelease]
# Of orthonormal directions of such rows.
SubspaceMechanism = Strategy[Facts, Plan, PrivateDesign, released.SubspaceRelease]
# Of the coefficients of a linear predictor.
RegressionMechanism = Strategy[RegressionFacts, RegressionPlan, PrivateDesign, CoefficientsRelease]
# Of counts of rows, or of parts of rows, by cell.
CountMechanism = Strategy[CountFacts, CountPlan, PrivateCells, released.CountsRelease]
# Of sums of rows over runs of cells that stand in an order.
SumsMechanism = Strategy[CountFacts, CountPlan, PrivateCells, released.SumsRelease | RunsRelease]
# Of counts of cells that rows answer with.
ResponseMechanism = Strategy[CountFacts, Any, PrivateCells, released.AnswersRelease]
# Of counts of states that depend on each other; its facts and its guarantee are its own.
ChainMechanism = Strategy[Any, Any, PrivateCells, released.CountsRelease]
# Of counts of rows in margins that agree.
MarginMechanism = Strategy[MarginFacts, MarginPlan, PrivateMargins, released.MarginsRelease]
# Of counts of rows by cell of several numbers.
CellMechanism = Strategy[CountFacts, CountPlan, PrivateCells, released.CellsRelease]
# Of levels that nobody declared; each has facts and a plan of its own.
LevelMechanism = Strategy[Any, Any, PrivateLevels, released.LevelsRelease]
# Of columns by how they go with a response; each has a plan of its own.
ScreeningMechanism = Strategy[Any, Any, PrivateDesign, released.ScreenedRelease | PValuesRelease]
# Of quantiles by group; each has a plan of its own.
QuantileMechanism = Strategy[QuantileFacts, Any, PrivateCells, released.QuantilesRelease]
# Of names of candidates, by their scores.
SelectionMechanism = Strategy[Any, Any, Any, released.SelectionRelease]


# Fields that describe how a release was made.


class ReleaseTerms(TypedDict):
    """The fields that all releases share."""

    rows: int | None
    info: released.MechanismInfo
    guarantee: Guarantee | Pufferfish
    adjacency: Adjacency
    events: tuple[Event, ...]
    simulated: bool


def release_terms(info: released.MechanismInfo, plan: Calibrated, n_rows: int) -> ReleaseTerms:
    """Return the fields that all releases share, with the number of rows if that is public."""
    adjacency = plan.facts.adjacency
    return {
        "rows": n_rows if adjacency.n_public else None,
        "info": info,
        "guarantee": plan.guarantee,
        "adjacency": adjacency,
        "events": plan.events,
        "simulated": simulating(),
    }


class CoefficientTerms(ReleaseTerms):
    """These fields and the ridge, of releases of coefficients."""

    ridge: float


def coefficient_terms(
    info: released.MechanismInfo, plan: RegressionPlan, statistic: Statistic
) -> CoefficientTerms:
    """Return the fields that all releases of coefficients share."""
    # Counting takes a pass over the rows.
    n_rows = as_gradients(statistic).rows if plan.facts.adjacency.n_public else 0
    return {**release_terms(info, plan, n_rows), "ridge": plan.scales["ridge"]}
