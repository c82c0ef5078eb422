"""An analysis simulated on assumed rows: noise of its calls by budget, and divisions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from dpmodels.planning.analysis import PlanRequest
from dpmodels.planning.assumptions import World, priced
from dpmodels.planning.division import Losses, TotalBudget, least_at, with_amount
from dpmodels.planning.noise_curve import NoiseCurve, SimulatedCall, simulate_call, simulate_curve
from dpmodels.planning.targets import Budgeting, Target
from dpmodels.privacy import ApproxDP, Event, Ledger
from dpmodels.privacy.spent import capacity, price
from dpmodels.sessions.call import Call
from dpmodels.typing import Floats

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
    world: World
    request: PlanRequest
    span: tuple[float, float] | None = None  # Of tried budgets, if one is solved for
    tried_curves: tuple[NoiseCurve, ...] = ()  # Courses simulated before

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
    def simulated_call(self) -> dict[str, SimulatedCall]:
        """The calls on assumed rows, without noise."""
        if self.tried_curves:
            return {curve.name: curve.simulated_call for curve in self.tried_curves}
        form = self.budgeting.form
        return {
            name: simulate_call(call, self.world, form(name)) for name, call in self.calls.items()
        }

    @cached_property
    def curves(self) -> tuple[NoiseCurve, ...]:
        """Noise of each call at the tried budgets."""
        over = self.request.over
        return self.tried_curves or tuple(
            simulate_curve(name, simulated, over, self._tried(name), REPEATS)
            for name, simulated in self.simulated_call.items()
        )

    def refined(self, amounts: Floats) -> Study:
        """Return a copy with one more tried budget per call."""
        pairs = zip(self.curves, amounts, strict=True)
        return replace(
            self,
            tried_curves=tuple(curve.refined(float(at), _REFINED_REPEATS) for curve, at in pairs),
        )

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
        equal = shared.filled(
            np.array([part if amount is None else amount for amount in shared.fixed])
        )
        floors = np.array([_floor(curve, self._targets(curve.name)) for curve in self.curves])
        losses = Losses(budget, self.curves, self.request.weights, floors)
        return self._identifying(losses, equal)

    def _stated_amount(self, curve: NoiseCurve) -> float | None:
        """Return a call's stated amount."""
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
            if not free.any() or losses.with_floors(floors).least <= losses.budget.amount:
                return losses.with_floors(np.where(np.isfinite(needs), floors, losses.floors))
            worst = int(np.argmax(np.where(free, needs, -1.0)))
            losses = losses.fixing(worst, float(equal[worst]))
        return losses

    def _targets(self, name: str) -> tuple[Target, ...]:
        return self.request.targets.get(name, ())

    @property
    def needed(self) -> float:
        """Smallest total budget that meets all targets; infinite if none tried does."""
        return self.losses.least

    def with_budget(self, amount: float) -> Study:
        """Return a copy with another total budget."""
        guarantee = with_amount(self.request.guarantee, amount)
        request = replace(self.request, guarantee=guarantee)
        return Study(self.calls, self.world, request)

    def with_rows(self, n_rows: int) -> Study:
        """Return a copy with another number of rows."""
        request = replace(self.request, n_rows=n_rows)
        return Study(self.calls, replace(self.world, n_rows=n_rows), request)

    def ratios(self, amounts: Floats) -> Floats:
        """Return each call's interpolated error over that without privacy."""
        pairs = zip(self.curves, amounts, strict=True)
        return np.array([curve.ratios(np.array([amount]))[0] for curve, amount in pairs])

    def charges(self, amounts: Floats) -> list[tuple[Event, ...]]:
        """Return the charge of each call."""
        pairs = zip(self.simulated_call.values(), amounts, strict=True)
        return [
            priced(simulated.call, simulated.terms, simulated.form(float(amount))).events
            for simulated, amount in pairs
        ]

    def pure(self, amounts: Floats) -> float:
        """Return the eps of calls without Gaussian noise, if others have it."""
        normal = np.array(self.losses.budget.normal)
        return float(amounts[~normal].sum()) if 0 < normal.sum() < len(normal) else 0.0

    def fits(self, amounts: Floats) -> bool:
        """Whether a ledger of the total accepts all calls, one by one."""
        request = self.request
        has_delta = isinstance(request.guarantee, ApproxDP)
        ledger = Ledger(
            budget=request.guarantee,
            adjacency=request.adjacency,
            pure=self.pure(amounts),
            rule="steps" if has_delta else None,
        )
        charges = self.charges(amounts)
        order = np.argsort(self.losses.budget.normal, kind="stable")
        return all(entry.fits for entry in ledger.forecast(charges[place] for place in order))


def _floor(curve: NoiseCurve, targets: tuple[Target, ...]) -> float:
    """Return the smallest budget that meets a call's targets; infinite if none tried does."""
    floors = [0.0]
    for target in targets:
        falling = target_values(curve, curve.fine, target)
        met = falling[-1] <= target.level
        floors.append(least_at(curve.fine, falling, target.level) if met else math.inf)
    return max(floors)


def target_values(curve: NoiseCurve, amounts: Floats, target: Target) -> Floats:
    """Return the quantity that a target limits, by budget."""
    totals = curve.totals(amounts)
    shares = 1 - (curve.simulated_call.sampling / totals) ** 2
    return curve.of_all(totals if target.kind == "se" else shares)
