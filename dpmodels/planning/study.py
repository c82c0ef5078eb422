r"""An analysis simulated on assumed rows: noise of its calls by budget, and divisions.

Divide a budget between calls so that privacy increases their errors as little as possible.

Amounts add up in the currency of their noise: eps, rho, or, for Gaussian noise under eps and delta,
``1/m**2`` of the multipliers m. If only some calls have Gaussian noise, the composed eps of these
is added to those of the others. Gaussian calls are composed at the part of delta that a session's
ledger has for them (:mod:`dpmodels.privacy.steps`), so that a session accepts what is planned.

A call's loss is the ratio of its standard error to that without privacy; it decreases in its
amount. Bisection finds the smallest upper limit of all losses: each call gets the smallest amount
that meets it. From there sequential quadratic programming minimises the geometric mean of the
losses. For Laplace noise, parts at the optimum are proportional to the share of noise in each
call's squared error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpmodels.planning import noise_curve
from dpmodels.planning.analysis import Budgeting, PlanRequest, Target
from dpmodels.privacy import ZCDP, ApproxDP, Guarantee, Ledger, gaussian_multiplier
from dpmodels.privacy.calibrate import gaussian_eps
from dpmodels.privacy.spent import capacity, price
from dpmodels.privacy.steps import GAUSSIAN_PART
from dpmodels.sessions.call import Call
from dpmodels.typing import Floats

# Search range of the logarithm of the loss.
_LOSSES: Final = (-14.0, 14.0)
_MARGIN: Final = 1e-9
# Overspending allowed in the optimisation, before its parts are scaled to the total.
_OVERSPEND: Final = 1.01


def with_amount(guarantee: Guarantee, amount: float) -> Guarantee:
    """Return a guarantee of the same kind with another eps or rho."""
    if isinstance(guarantee, ZCDP):
        return ZCDP(amount)
    return replace(guarantee, eps=amount)


@dataclass(frozen=True)
class TotalBudget:
    """A guarantee to divide, and which of the calls have only Gaussian noise."""

    guarantee: Guarantee  # Less the deltas that calls spend themselves
    gaussian: tuple[bool, ...]
    fixed: tuple[float | None, ...]  # Stated amounts of calls

    @property
    def amount(self) -> float:
        """The total eps or rho."""
        return capacity(self.guarantee).amount

    @property
    def stated_amounts(self) -> Floats:
        """Stated amounts of calls, 0 for all others."""
        return np.array([amount or 0.0 for amount in self.fixed])

    @property
    def normal(self) -> tuple[bool, ...]:
        """Whether each call's noise adds up by ``1/m**2``."""
        curved = isinstance(self.guarantee, ApproxDP)
        return tuple(curved and is_gaussian for is_gaussian in self.gaussian)

    def scaled(self, amount: float) -> TotalBudget:
        """Return the same kind of budget with another amount, and no stated parts."""
        guarantee = with_amount(self.guarantee, amount)
        return replace(self, guarantee=guarantee, fixed=(None,) * len(self.fixed))

    def cost(self, amounts: Floats) -> float:
        """Return the composed amount of all calls."""
        normal = np.array(self.normal)
        return float(amounts[~normal].sum()) + self._together(amounts[normal])

    def shares(self, amounts: Floats) -> Floats:
        """Return shares of the total, which sum to 1 if it is spent."""
        normal, shares = np.array(self.normal), amounts / self.amount
        if normal.any():
            squares = self._squares(amounts[normal])
            together = self._together(amounts[normal])
            shares[normal] = together / self.amount * squares / squares.sum()
        return shares

    def filled(self, amounts: Floats) -> Floats:
        """Scale the free amounts until the total is spent."""
        from scipy.optimize import brentq

        free = np.array([amount is None for amount in self.fixed])
        if not free.any():
            return amounts

        def left(log_scale: float) -> float:
            return self.cost(np.where(free, amounts * math.exp(log_scale), amounts)) - self.amount

        scale = math.exp(brentq(left, -30.0, 30.0, xtol=1e-13)) * (1 - _MARGIN)
        return np.where(free, amounts * scale, amounts)

    def _together(self, amounts: Floats) -> float:
        if len(amounts) < 2 and len(self.gaussian) < 2:
            return float(amounts.sum())
        if not len(amounts):
            return 0.0
        guarantee = self.guarantee
        assert isinstance(guarantee, ApproxDP)
        square = self._squares(amounts).sum()
        return gaussian_eps(GAUSSIAN_PART * guarantee.delta, square**-0.5) if square else 0.0

    def _squares(self, amounts: Floats) -> Floats:
        guarantee = self.guarantee
        assert isinstance(guarantee, ApproxDP)
        squares = [
            gaussian_multiplier(replace(guarantee, eps=float(eps))) ** -2.0 if eps else 0.0
            for eps in amounts
        ]
        return np.asarray(squares)


@dataclass(frozen=True)
class Losses:
    """Losses of the calls by budget, and the smallest budget allowed for each."""

    budget: TotalBudget
    curves: Sequence[noise_curve.NoiseCurve]
    weights: Floats
    floors: Floats  # Smallest amounts allowed, 0 for no limit

    @property
    def least(self) -> float:
        """Composed amount of the floors; infinite if no tried budget suffices."""
        amounts = self._fixed(np.maximum(self.floors, [curve.amounts[0] for curve in self.curves]))
        return self.budget.cost(amounts) if np.isfinite(amounts).all() else math.inf

    @property
    def is_stated(self) -> NDArray[np.bool_]:
        """Whether a call's part is fixed."""
        return np.array([amount is not None for amount in self.budget.fixed])

    def even(self) -> Floats:
        """Divide equally: the calls of each kind of noise have equal amounts."""
        return self.budget.filled(self._fixed(np.ones(len(self.curves))))

    def least_worst(self) -> Floats:
        """Minimise the largest weighted loss."""
        from scipy.optimize import brentq

        def excess(level: float) -> float:
            return self.budget.cost(self._needs(math.exp(level))) - self.budget.amount

        low, high = _LOSSES
        if excess(low) <= 0 or excess(high) >= 0:
            level = low if excess(low) <= 0 else high
        else:
            level = brentq(excess, low, high, xtol=1e-10)
            level += 0.0 if excess(level) <= 0 else 1e-9
        return self.budget.filled(self._needs(math.exp(level)))

    def least_mean(self) -> Floats:
        """Minimise the weighted mean of the log ratios."""
        worst = self.least_worst()
        starts = [worst, np.maximum(self.even(), self.floors)]
        descended, most = map(self._descended, starts), self.budget.amount * _OVERSPEND
        candidates = [worst, *(design for design in descended if self.budget.cost(design) <= most)]
        return min(map(self.budget.filled, candidates), key=self._sum)

    def _descended(self, start: Floats) -> Floats:
        from scipy.optimize import minimize

        free = ~self.is_stated
        smallest = np.maximum(self.floors, [curve.amounts[0] for curve in self.curves])[free]

        def amounts(logs: Floats) -> Floats:
            candidate = start.copy()
            candidate[free] = np.exp(logs)
            return candidate

        def left(logs: Floats) -> float:
            return math.log(self.budget.amount / self.budget.cost(amounts(logs)))

        log_whole = math.log(self.budget.amount)
        optimum = minimize(  # type: ignore[call-overload]
            lambda logs: self._sum(amounts(logs)),
            np.log(start[free]),
            method="SLSQP",
            bounds=[(min(math.log(bound), log_whole), log_whole) for bound in smallest],
            constraints={"type": "ineq", "fun": left},
        )
        return amounts(optimum.x)

    def _sum(self, amounts: Floats) -> float:
        ratios = [
            np.interp(log_amount, np.log(fine), np.log(values))
            for log_amount, (fine, values) in zip(np.log(amounts), self._tables, strict=True)
        ]
        return float(self.weights @ np.minimum(ratios, _LOSSES[1]))

    def _needs(self, level: float) -> Floats:
        pairs = zip(self.weights, self._tables, strict=True)
        needs = [least_at(fine, ratios, 1 + level / weight) for weight, (fine, ratios) in pairs]
        return self._fixed(np.maximum(needs, self.floors))

    @cached_property
    def _tables(self) -> list[tuple[Floats, Floats]]:
        return [(curve.fine, curve.ratios(curve.fine)) for curve in self.curves]

    def _fixed(self, amounts: Floats) -> Floats:
        pairs = zip(amounts, self.budget.fixed, strict=True)
        return np.array([amount if fixed is None else fixed for amount, fixed in pairs])


def least_at(fine: Floats, falling: Floats, level: float) -> float:
    """Return the smallest amount at which a decreasing function reaches a level, or the last."""
    reached = falling <= level
    if reached[0] or not reached.any():
        return float(fine[0] if reached[0] else fine[-1])
    at = int(np.argmax(reached))
    high, low = math.log(falling[at - 1]), math.log(falling[at])
    part = (high - math.log(level)) / (high - low) if math.isfinite(high) and high > low else 1.0
    return float(fine[at - 1] ** (1 - part) * fine[at] ** part)


# Choices: releases at each tried budget, and at a recommended one; the number of tried budgets,
# from which fraction of an equal share, to which multiple of the total.
REPEATS: Final = 4
_REFINED_REPEATS: Final = 8
_BUDGETS: Final = 8
_BELOW: Final = 30
_ABOVE: Final = 4


@dataclass(frozen=True)
class Study:
    """Calls by name, the assumed rows, and the inputs of the plan."""

    calls: Mapping[str, Call]
    world: noise_curve.World
    request: PlanRequest
    span: tuple[float, float] | None = None  # Of tried budgets, if one is solved for
    tried_curves: tuple[noise_curve.NoiseCurve, ...] = ()  # Courses simulated before

    @cached_property
    def budgeting(self) -> Budgeting:
        """The form of each call's budget."""
        return Budgeting(self.request.guarantee, self.calls)

    @cached_property
    def amounts(self) -> Floats:
        """Budgets that are tried."""
        total = capacity(self.request.guarantee).amount
        low, high = self.span or (total / (_BELOW * len(self.calls)), total * _ABOVE)
        return np.geomspace(low, high, _BUDGETS)

    @cached_property
    def simulated_call(self) -> dict[str, noise_curve.SimulatedCall]:
        """The calls on assumed rows, without noise."""
        if self.tried_curves:
            return {curve.name: curve.simulated_call for curve in self.tried_curves}
        form = self.budgeting.form
        return {
            name: noise_curve.simulate_call(call, self.world, form(name))
            for name, call in self.calls.items()
        }

    @cached_property
    def curves(self) -> tuple[noise_curve.NoiseCurve, ...]:
        """Noise of each call at the tried budgets."""
        over = self.request.over
        return self.tried_curves or tuple(
            noise_curve.simulate_curve(name, simulated, over, self._tried(name), REPEATS)
            for name, simulated in self.simulated_call.items()
        )

    def refined(self, amounts: Floats) -> Study:
        """Return a copy with one more tried budget per call."""
        pairs = zip(self.curves, amounts, strict=True)
        tried = tuple(curve.refined(float(amount), _REFINED_REPEATS) for curve, amount in pairs)
        return replace(self, tried_curves=tried)

    def _tried(self, name: str) -> Floats:
        budget = self.budgeting.stated_budget(name)
        return self.amounts if budget is None else capacity(budget).amount * np.array([1.0, 1.01])

    @cached_property
    def losses(self) -> Losses:
        """Losses of the calls, and the constraints on their budgets."""
        gaussian = tuple(curve.gaussian for curve in self.curves)
        open_ = TotalBudget(self.budgeting.left, gaussian, (None,) * len(self.curves))
        budget = replace(open_, fixed=tuple(map(self._stated_amount, self.curves)))
        # Of what stated budgets leave; of the total if they leave nothing.
        shared = budget if budget.cost(budget.stated_amounts) < budget.amount else open_
        part = open_.amount / len(self.curves)
        parts = [part if amount is None else amount for amount in shared.fixed]
        equal = shared.filled(np.array(parts))
        floors = np.array([_floor(curve, self._targets(curve.name)) for curve in self.curves])
        losses = Losses(budget, self.curves, self.request.weights, floors)
        return self._identifying(losses, equal)

    def _stated_amount(self, curve: noise_curve.NoiseCurve) -> float | None:
        if self.budgeting.stated_budget(curve.name) is None:
            return None
        return price(curve.releases[0].events, self.request.guarantee).amount

    def _identifying(self, losses: Losses, equal: Floats) -> Losses:
        """Require identifying budgets; the calls that need most get equal parts if not all fit."""
        needs = np.array([curve.identifying for curve in self.curves])
        aimed = np.array([bool(self._targets(curve.name)) for curve in self.curves])
        for _ in self.curves:
            floors = np.where(losses.is_stated, 0.0, np.maximum(losses.floors, needs))
            free = ~(losses.is_stated | aimed)
            if not free.any() or replace(losses, floors=floors).least <= losses.budget.amount:
                floors = np.where(np.isfinite(needs), floors, losses.floors)
                return replace(losses, floors=floors)
            worst = int(np.argmax(np.where(free, needs, -1.0)))
            fixed = list(losses.budget.fixed)
            fixed[worst] = float(equal[worst])
            losses = replace(losses, budget=replace(losses.budget, fixed=tuple(fixed)))
        return losses

    def _targets(self, name: str) -> tuple[Target, ...]:
        return self.request.targets.get(name, ())

    @property
    def needed(self) -> float:
        """Smallest total budget that meets all targets; infinite if none tried does."""
        return self.losses.least

    def with_budget(self, amount: float) -> Study:
        """Return a copy with another total budget."""
        request = replace(self.request, guarantee=with_amount(self.request.guarantee, amount))
        return Study(self.calls, self.world, request)

    def with_rows(self, n_rows: int) -> Study:
        """Return a copy with another number of rows."""
        request = replace(self.request, n_rows=n_rows)
        return Study(self.calls, replace(self.world, n_rows=n_rows), request)

    def ratios(self, amounts: Floats) -> Floats:
        """Return each call's interpolated error over that without privacy."""
        pairs = zip(self.curves, amounts, strict=True)
        return np.array([curve.ratios(np.array([amount]))[0] for curve, amount in pairs])

    def pure(self, amounts: Floats) -> float:
        """Return the eps of calls without Gaussian noise, if others have it."""
        normal = np.array(self.losses.budget.normal)
        return float(amounts[~normal].sum()) if 0 < normal.sum() < len(normal) else 0.0

    def fits(self, amounts: Floats) -> bool:
        """Whether a ledger of the total accepts all calls, one by one."""
        total, relation, pure = self.request.guarantee, self.request.adjacency, self.pure(amounts)
        rule = "steps" if isinstance(total, ApproxDP) else None
        ledger = Ledger(budget=total, adjacency=relation, pure=pure, rule=rule)
        pairs = zip(self.simulated_call.values(), amounts, strict=True)
        charges = [
            simulated.terms.price(simulated.call, {"budget": simulated.form(float(amount))}).events
            for simulated, amount in pairs
        ]
        order = np.argsort(self.losses.budget.normal, kind="stable")
        return all(entry.fits for entry in ledger.forecast(charges[place] for place in order))


def _floor(curve: noise_curve.NoiseCurve, targets: tuple[Target, ...]) -> float:
    floors = [0.0]
    for target in targets:
        falling = target_values(curve, curve.fine, target)
        met = falling[-1] <= target.level
        floors.append(least_at(curve.fine, falling, target.level) if met else math.inf)
    return max(floors)


def target_values(curve: noise_curve.NoiseCurve, amounts: Floats, target: Target) -> Floats:
    """Return the quantity that a target limits, by budget."""
    totals = curve.totals(amounts)
    shares = 1 - (curve.simulated_call.sampling / totals) ** 2
    return curve.of_all(totals if target.kind == "se" else shares)
