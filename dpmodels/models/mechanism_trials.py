"""Strategies tried on simulated rows of several shapes, before there are any data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpmodels.errors import ArgumentError, BudgetError, DPModelsError, shorten
from dpmodels.formula.centring import ProductMap, product_map
from dpmodels.formula.response import TwoSided
from dpmodels.frames.progress import as_one_of_many, steps
from dpmodels.mechanisms import Facts, Plan, choose_strategy
from dpmodels.mechanisms.choose import rows_of_one
from dpmodels.mechanisms.choose_moments import Mechanism, Table
from dpmodels.mechanisms.regression import COEFFICIENTS, REGRESSION
from dpmodels.mechanisms.user_supplied import registered_info
from dpmodels.models.predictor import simulated_fits
from dpmodels.models.simulated_rows import (
    ONE_LENGTH,
    SHAPES,
    Box,
    Shape,
    SimulatedFit,
    SimulatedRows,
    shaped,
    simulate_fit,
    simulate_rows,
)
from dpmodels.models.verb_spec import Planned, VerbSpec, planned
from dpmodels.noise import simulation, source
from dpmodels.privacy import planned_for_group
from dpmodels.released import Release, SubspaceRelease
from dpmodels.results import MomentsCall
from dpmodels.results.comparison import ComparisonRequest, FitRequest
from dpmodels.results.components import Analysis
from dpmodels.sites import parties
from dpmodels.typing import Floats

BASELINES = frozenset({"zero", "random"})
# Most columns for which a release takes seconds.
MOST_COLUMNS = 1_000
SLOW = {"iterative": 150, "ppca": 150}
# Whether the least or the largest is the worst.
MEASURES = {"energy": "least", "frobenius": "largest", "relative": "largest"}
SEED = 20_120_912  # A choice: any number makes every call invent the same rows and noise


class Contender(NamedTuple):
    """A strategy that is tried, or the reason why it is not."""

    name: str
    strategy: Mechanism
    plan: Plan | None
    fits: bool
    note: str

    @property
    def details(self) -> dict[str, object]:
        """Its facts besides the predicted losses."""
        numerics = self.strategy.info.numerics
        return {"numerics": numerics, "fits": self.fits, "note": self.note}


class Trial(NamedTuple):
    """The setting of all strategies."""

    request: ComparisonRequest
    call: MomentsCall
    facts: Facts
    shares: Floats  # Relative eigenvalues, with the sum 1
    box: Box


class World(NamedTuple):
    """Simulated rows, their covariance, and the energy of its first components."""

    shape: str
    repeat: int
    rows: SimulatedRows
    covariance: Floats
    energy: float


def run_trials(entered: list[Contender], trial: Trial) -> pd.DataFrame:
    """Release from every world; one row per mechanism, shape and repetition."""
    shapes = _shapes(trial.request)
    total = len(shapes) * trial.request.repeats

    def evaluate(contender: Contender, world: World) -> tuple[float, ...]:
        assert contender.plan is not None
        # Every strategy gets the same rows and the same noise.
        with simulation(seed=SEED + world.repeat):
            statistic = world.rows.measured(contender.strategy, contender.plan)
            release = contender.strategy.release(statistic, contender.plan, source())
        return _outcome(release, world, trial)

    return outcomes(entered, _worlds(shapes, trial), total, evaluate, MEASURES)


def outcomes(
    entered: Sequence[Any],
    worlds: Iterator[Any],
    total: int,
    evaluate: Callable[[Any, Any], tuple[float, ...]],
    measures: Iterable[str],
) -> pd.DataFrame:
    """Try all with a plan on every world; one row per mechanism, shape and repetition."""
    tried = [contender for contender in entered if contender.plan is not None]
    worlds, total = (worlds, total) if tried else (iter(()), 0)
    lines: list[tuple[object, ...]] = []
    for world in steps(worlds, total=total, label="comparing"):
        case = world.shape, world.repeat
        with as_one_of_many():
            lines.extend((each.name, *case, *evaluate(each, world)) for each in tried)
    return pd.DataFrame(lines, columns=["mechanism", "shape", "repeat", *measures])


def by_shape(runs: pd.DataFrame, measures: Mapping[str, str] = MEASURES) -> pd.DataFrame:
    """Return means over repetitions with their standard errors, nan for a single one."""
    grouped = runs.groupby(["mechanism", "shape"], sort=False)
    parts = {name: grouped[name].mean() for name in measures}
    errors = {f"{name}_se": grouped[name].sem() for name in measures}
    order = [column for name in measures for column in (name, f"{name}_se")]
    return pd.DataFrame(parts | errors)[order].reset_index()


def over_shapes(
    mechanism: str, shapes: pd.DataFrame, measures: Mapping[str, str] = MEASURES
) -> dict[str, object]:
    """Return a strategy's line of a comparison: the median over shapes, and the worst."""
    results = shapes[shapes["mechanism"] == mechanism]
    line: dict[str, object] = {"mechanism": mechanism}
    for name, worst in measures.items():
        ordered = results[results[name].notna()].sort_values(name, ascending=worst == "largest")
        names = (name, f"{name}_se", f"{name}_worst", f"{name}_worst_at")
        values: tuple[object, ...] = (math.nan, math.nan, math.nan, "")
        if len(ordered):
            middle, last = ordered.iloc[len(ordered) // 2], ordered.iloc[-1]
            values = (middle[name], middle[f"{name}_se"], last[name], last["shape"])
        line |= zip(names, values, strict=True)
    return line


def summarised(
    entered: Sequence[Contender | FitContender],
    runs: pd.DataFrame,
    measures: Mapping[str, str] = MEASURES,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the losses by shape, and a line of the comparison for each that was entered."""
    losses = by_shape(runs, measures)
    lines = [over_shapes(plan.name, losses, measures) | plan.details for plan in entered]
    return losses, pd.DataFrame(lines)


def lengths(trial: Trial) -> pd.DataFrame:
    """Return how long rows of each shape are, in row norms: in 90 % of rows, and about the mean."""
    lines = []
    for name in _shapes(trial.request):
        rows = _rows(name, 0, trial).block
        low, high = np.quantile(np.linalg.norm(rows, axis=0), (0.05, 0.95))
        about = np.linalg.norm(rows - rows.mean(axis=1, keepdims=True), axis=0)
        like = SHAPES[name].like if name in SHAPES else ONE_LENGTH
        lines.append((name, like, low, high, float(np.median(about))))
    return pd.DataFrame(lines, columns=["shape", "like", "length_low", "length_high", "spread"])


def planned_contender(name: str, table: Table, trial: Trial) -> Contender:
    """Plan a strategy for the guarantee, or say why it is not tried."""
    request = trial.request
    options = {"denoise": trial.call.denoise, "eigenvals": None}
    strategy = choose_strategy(name, table, lambda: (name, ""), options).strategy
    max_columns = min(SLOW.get(name, MOST_COLUMNS), MOST_COLUMNS)
    try:
        # With the mean of each person's rows a simulated row is a person.
        plan = planned_for_group(
            partial(strategy.plan, trial.facts),
            lambda plan: plan.events,
            request.guarantee,
            rows_of_one(request.adjacency),
        )
    except BudgetError as error:
        return Contender(name, strategy, None, fits=False, note=reason(error))
    if request.columns > max_columns:
        note = f"not simulated above {max_columns:,} columns"
        return Contender(name, strategy, None, fits=True, note=note)
    if not request.row_lengths and not (trial.box.high > trial.box.low).any():
        return Contender(name, strategy, None, fits=True, note="not simulated: no column varies")
    note = "baseline" if name in BASELINES else ""
    return Contender(name, strategy, plan, fits=True, note=note)


def _worlds(shapes: list[str], trial: Trial) -> Iterator[World]:
    request = trial.request
    for shape in shapes:
        for repeat in range(request.repeats):
            rows = _rows(shape, repeat, trial)
            exact = rows.covariance(centred=request.center)
            energy = float(np.linalg.eigvalsh(exact)[-request.components :].sum())
            yield World(shape, repeat, rows, exact, energy)


def _rows(shape: str, repeat: int, trial: Trial) -> SimulatedRows:
    request = trial.request
    rng = np.random.default_rng([SEED, repeat])
    if shape in SHAPES:
        return shaped(SHAPES[shape], trial.shares, trial.box, request.rows, rng)
    length = request.row_lengths[_shapes(request).index(shape)]
    return simulate_rows(trial.shares, length, request.rows, rng, unit=trial.box.unit)


def _shapes(request: ComparisonRequest) -> list[str]:
    listed = [f"length {length:g}" for length in request.row_lengths]
    return (listed if listed[1:] else [ONE_LENGTH] * len(listed)) or list(SHAPES)


def _outcome(release: Release, world: World, trial: Trial) -> tuple[float, float, float]:
    """Return share of energy, error, and error over the norm, of what a verb would return."""
    exact, error = world.covariance, math.nan
    if isinstance(release, SubspaceRelease):
        frame = release.frame
    else:
        analysis = Analysis(trial.call.held_in(release.ball), release)
        frame = analysis.eigen.vectors[:, : trial.request.components]
        error = float(np.linalg.norm(analysis.denoised - exact))
    energy = float(np.einsum("ij,ij->", frame, exact @ frame))
    share = energy / world.energy if world.energy > 0 else math.nan
    norm = float(np.linalg.norm(exact))
    return share, error, error / norm if norm > 0 else math.nan


def reason(error: DPModelsError) -> str:
    """Return the first clause of a refusal."""
    return shorten(str(error).partition(":")[0].partition(";")[0], 120)


# Mechanisms of regressions tried on simulated rows of several shapes.

# Whether the least or the largest is the worst.
FIT_MEASURES = {"error": "largest", "excess": "largest", "identified": "least"}


class Assumed(NamedTuple):
    """The assumed rows, as far as an automatic choice depends on them."""

    nrows: int
    rereadable: bool = True

    def require_passes(self) -> None:
        """Let the rows be read more than once."""


class FitTrial(NamedTuple):
    """The setting of all mechanisms."""

    request: FitRequest
    spec: VerbSpec[object]
    equation: TwoSided
    shapes: Mapping[str, Shape]
    shares: Floats  # Relative eigenvalues of the variables, with the sum 1

    @property
    def products(self) -> ProductMap | None:
        """The map to the columns of the design, where products in it are centred."""
        centres = getattr(self.spec.facts, "centres", None)
        return product_map(self.equation, centres) if centres else None

    def planned(self, mechanism: str) -> Planned:
        """Choose and plan as the verb would; BudgetError or ArgumentError where it does not fit."""
        return planned(self.spec, parties({}), mechanism, [Assumed(self.request.rows)])


class Exact(NamedTuple):
    """The fit without privacy to simulated rows."""

    model: Any  # Of statsmodels
    params: Floats
    bse: Floats
    deviance: float
    explained: float  # Reduction from the deviance of the constant alone

    def excess(self, params: Floats) -> float:
        """Return the fraction of the explained deviance that other coefficients lose."""
        with np.errstate(over="ignore"):
            mean = self.model.predict(params)
        family, weights = self.model.family, self.model.freq_weights
        lost = float(family.deviance(self.model.endog, mean, freq_weights=weights)) - self.deviance
        return lost / self.explained if self.explained > 0 else math.nan


class FitWorld(NamedTuple):
    """Simulated rows, and the fit to them without privacy."""

    shape: str
    repeat: int
    rows: SimulatedFit
    exact: Exact | None


class FitContender(NamedTuple):
    """A mechanism that is tried, or the reason why it is not."""

    name: str
    plan: Planned | None
    note: str

    @property
    def details(self) -> dict[str, object]:
        """Its facts besides the predicted losses."""
        strategy = (REGRESSION | COEFFICIENTS).get(self.name)
        info = registered_info(self.name) if strategy is None else strategy().info
        numerics = "" if info is None else info.numerics
        return {"numerics": numerics, "fits": self.plan is not None, "note": self.note}


def run_fit_trials(entered: list[FitContender], trial: FitTrial) -> pd.DataFrame:
    """Release from every world; one row per mechanism, shape and repetition."""
    total = len(trial.shapes) * trial.request.repeats

    def evaluate(contender: FitContender, world: FitWorld) -> tuple[float, ...]:
        assert contender.plan is not None
        private = world.rows.within(trial.spec.private, trial.products).bound
        fits = simulated_fits(trial.spec, contender.plan, private, 1, SEED + world.repeat)
        return _fit_outcome(next(fits), world, trial)

    return outcomes(entered, _fit_worlds(trial), total, evaluate, FIT_MEASURES)


def planned_fit_contender(name: str, trial: FitTrial) -> FitContender:
    """Plan a mechanism for the guarantee, or say why it is not tried."""
    try:
        return FitContender(name, trial.planned(name), "")
    except (BudgetError, ArgumentError) as error:
        return FitContender(name, None, reason(error))


def _fit_worlds(trial: FitTrial) -> Iterator[FitWorld]:
    request = trial.request
    for name, shape in trial.shapes.items():
        for repeat in range(request.repeats):
            rng = np.random.default_rng([SEED, repeat])
            settings = (trial.equation, request.family, shape, trial.shares, request.rows, rng)
            rows = simulate_fit(*settings)
            yield FitWorld(name, repeat, rows, _exact(rows, request.family))


def _exact(rows: SimulatedFit, family: str) -> Exact | None:
    """Fit without privacy; None where a coefficient is not identified even without noise."""
    import statsmodels.api as sm

    is_used = rows.times > 0
    regressors, response, times = (
        part[is_used] for part in (rows.regressors, rows.response, rows.times)
    )
    spread = np.abs(regressors).max(axis=0)
    if not spread.all() or np.linalg.matrix_rank(regressors / spread) < regressors.shape[1]:
        return None
    law = {"gaussian": sm.families.Gaussian, "binomial": sm.families.Binomial}
    kind = law.get(family, sm.families.Poisson)()
    fit = sm.GLM(response, regressors, kind, freq_weights=times).fit()
    null = np.average(response, weights=times) if rows.intercept else kind.link.inverse(0.0)
    null_deviance = kind.deviance(response, np.full(len(response), null), freq_weights=times)
    return Exact(fit.model, fit.params, fit.bse, fit.deviance, float(null_deviance) - fit.deviance)


def _fit_outcome(result: Any, world: FitWorld, trial: FitTrial) -> tuple[float, float, float]:
    """Return errors over standard errors, excess, and the share of coefficients that have errors.

    For the slopes, or for the constant without slopes.
    """
    first = int(trial.equation.intercept and bool(trial.equation.terms.names))
    identified = np.asarray(result.identified, dtype=np.float64)[first:]
    exact = world.exact
    if exact is None:
        return math.nan, math.nan, float(identified.mean())
    params = np.asarray(result.params, dtype=np.float64)
    errors = ((params - exact.params) / exact.bse)[first:]
    return math.sqrt(float((errors**2).mean())), exact.excess(params), float(identified.mean())
