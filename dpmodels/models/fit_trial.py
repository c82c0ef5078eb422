"""Mechanisms of regressions tried on invented rows of several shapes, before there are any data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.formula.response import TwoSided
from dpmodels.mechanisms.regression import COEFFICIENTS, REGRESSION
from dpmodels.mechanisms.user_supplied import registered_card
from dpmodels.models.crossing import Planned, Way, of_question, planned
from dpmodels.models.invented import Shape
from dpmodels.models.invented_fit import InventedFit, invented_fit
from dpmodels.models.trial import SEED, outcomes, reason
from dpmodels.noise import simulation, source
from dpmodels.results.fit_comparison import FitQuestion
from dpmodels.sites import parties
from dpmodels.typing import Floats

# Whether the least or the largest is the worst.
FIT_MEASURES = {"error": "largest", "excess": "largest", "identified": "least"}


class Assumed(NamedTuple):
    """Rows that there will be, as far as an automatic choice asks for them."""

    nrows: int
    rereadable: bool = True

    def require_passes(self) -> None:
        """Let the rows be read more than once."""


class FitTrial(NamedTuple):
    """What all mechanisms are tried on."""

    question: FitQuestion
    way: Way[Any]
    both: TwoSided
    shapes: Mapping[str, Shape]
    shares: Floats  # Relative eigenvalues of the variables, with the sum 1

    def planned(self, mechanism: str) -> Planned:
        """Choose and plan as the verb would; BudgetError or ArgumentError where it does not fit."""
        return planned(self.way, parties({}), mechanism, [Assumed(self.question.rows)])


class Exact(NamedTuple):
    """The fit without privacy to invented rows."""

    model: Any  # Of statsmodels
    params: Floats
    bse: Floats
    deviance: float
    explained: float  # How much less that is than of the constant alone

    def excess(self, params: Floats) -> float:
        """Return what part of the explained deviance other coefficients lose."""
        with np.errstate(over="ignore"):
            mean = self.model.predict(params)
        own = self.model.family.deviance(
            self.model.endog, mean, freq_weights=self.model.freq_weights
        )
        return (float(own) - self.deviance) / self.explained if self.explained > 0 else math.nan


class FitWorld(NamedTuple):
    """Invented rows, and the fit to them without privacy."""

    shape: str
    repeat: int
    rows: InventedFit
    exact: Exact | None


class FitContender(NamedTuple):
    """A mechanism that is tried, or the reason why it is not."""

    name: str
    plan: Planned | None
    note: str

    @property
    def known(self) -> dict[str, object]:
        """What is said of it besides what is predicted."""
        known = REGRESSION | COEFFICIENTS
        card = known[self.name].card if self.name in known else registered_card(self.name)
        return {
            "numerics": "" if card is None else card.numerics,
            "fits": self.plan is not None,
            "note": self.note,
        }


def fit_contenders(names: list[str], made: FitTrial) -> list[FitContender]:
    """Plan every mechanism for the guarantee."""
    return [_contender(name, made) for name in names]


def fits_tried(entered: list[FitContender], made: FitTrial) -> pd.DataFrame:
    """Release from every world; one row a mechanism, shape and repetition."""
    total = len(made.shapes) * made.question.repeats

    def found(one: FitContender, world: FitWorld) -> tuple[float, ...]:
        return _outcome(_simulated(one, world, made), world, made)

    return outcomes(entered, _worlds(made), total, found, FIT_MEASURES)


def _contender(name: str, made: FitTrial) -> FitContender:
    try:
        return FitContender(name, made.planned(name), "")
    except (BudgetError, ArgumentError) as error:
        return FitContender(name, None, reason(error))


def _worlds(made: FitTrial) -> Iterator[FitWorld]:
    """Invent the rows of each shape and repetition, one after another."""
    asked = made.question
    for name, shape in made.shapes.items():
        for repeat in range(asked.repeats):
            rng = np.random.default_rng([SEED, repeat])
            own = (made.both, asked.family, shape, made.shares, asked.rows, rng)
            rows = invented_fit(*own)
            yield FitWorld(name, repeat, rows, _exact(rows, asked.family))


def _exact(rows: InventedFit, family: str) -> Exact | None:
    """Fit without privacy; None where the rows leave a coefficient open without noise too."""
    import statsmodels.api as sm

    there = rows.times > 0
    regressors, response = rows.regressors[there], rows.response[there]
    spread = np.abs(regressors).max(axis=0)
    if not spread.all() or np.linalg.matrix_rank(regressors / spread) < regressors.shape[1]:
        return None
    law = {"gaussian": sm.families.Gaussian, "binomial": sm.families.Binomial}
    kind = law.get(family, sm.families.Poisson)()
    fit = sm.GLM(response, regressors, kind, freq_weights=rows.times[there]).fit()
    constant = np.average(response, weights=rows.times[there]) if rows.intercept else 0.0
    null = kind.link.inverse(0.0) if not rows.intercept else constant
    alone = kind.deviance(response, np.full(len(response), null), freq_weights=rows.times[there])
    return Exact(fit.model, fit.params, fit.bse, fit.deviance, float(alone) - fit.deviance)


def _simulated(one: FitContender, world: FitWorld, made: FitTrial) -> Any:
    """Return the result of invented rows; every mechanism meets the same rows and noise."""
    assert one.plan is not None
    strategy, plan, _ = one.plan
    with simulation(seed=SEED + world.repeat):
        statistic = world.rows.within(made.way.private).measured(strategy, plan)
        release = strategy.release(statistic, plan, source())
        return made.way.of(of_question(release, made.way.question))


def _outcome(result: Any, world: FitWorld, made: FitTrial) -> tuple[float, float, float]:
    """Return errors over standard errors, excess, and the share of coefficients that have errors.

    Of the slopes, or of the constant where there are none.
    """
    first = int(made.both.intercept and bool(made.both.terms.names))
    known = np.asarray(result.identified, dtype=np.float64)[first:]
    exact = world.exact
    if exact is None:
        return math.nan, math.nan, float(known.mean())
    params = np.asarray(result.params, dtype=np.float64)
    off = ((params - exact.params) / exact.bse)[first:]
    return math.sqrt(float((off**2).mean())), exact.excess(params), float(known.mean())
