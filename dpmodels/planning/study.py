"""An analysis simulated on assumed rows: noise of its calls by budget, and divisions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from dpmodels.planning.analysis import PlanQuestion
from dpmodels.planning.course import Course, Imagined, course, imagined
from dpmodels.planning.division import Losses, TotalBudget, least_at, with_amount
from dpmodels.planning.guess import World, priced
from dpmodels.planning.targets import Budgeting, Target
from dpmodels.privacy import Event, Ledger
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
    question: PlanQuestion
    span: tuple[float, float] | None = None  # Of tried budgets, if one is solved for
    tried_courses: tuple[Course, ...] = ()  # Courses simulated before

    @cached_property
    def budgeting(self) -> Budgeting:
        """The form of each call's budget."""
        return Budgeting(self.question.guarantee, self.calls)

    @cached_property
    def amounts(self) -> Floats:
        """Budgets that are tried."""
        total = capacity(self.question.guarantee).amount
        low, high = self.span or (total / (_BELOW * len(self.calls)), total * _ABOVE)
        return np.geomspace(low, high, _BUDGETS)

    @cached_property
    def imagined(self) -> dict[str, Imagined]:
        """The calls on assumed rows, without noise."""
        if self.tried_courses:
            return {course.name: course.imagined for course in self.tried_courses}
        form = self.budgeting.form
        return {name: imagined(call, self.world, form(name)) for name, call in self.calls.items()}

    @cached_property
    def courses(self) -> tuple[Course, ...]:
        """Noise of each call at the tried budgets."""
        over = self.question.over
        return self.tried_courses or tuple(
            course(name, simulated, over, self._tried(name), REPEATS)
            for name, simulated in self.imagined.items()
        )

    def refined(self, amounts: Floats) -> Study:
        """Return a copy with one more tried budget per call."""
        pairs = zip(self.courses, amounts, strict=True)
        return replace(
            self,
            tried_courses=tuple(
                course.refined(float(at), _REFINED_REPEATS) for course, at in pairs
            ),
        )

    def _tried(self, name: str) -> Floats:
        budget = self.budgeting.stated_budget(name)
        return self.amounts if budget is None else capacity(budget).amount * np.array([1.0, 1.01])

    @cached_property
    def losses(self) -> Losses:
        """Losses of the calls, and the constraints on their budgets."""
        gaussian = tuple(course.gaussian for course in self.courses)
        open_ = TotalBudget(self.budgeting.left, gaussian, (None,) * len(self.courses))
        budget = replace(open_, fixed=tuple(map(self._stated_amount, self.courses)))
        # Of what stated budgets leave; of the total if they leave nothing.
        shared = budget if budget.cost(budget.stated_amounts) < budget.amount else open_
        part = open_.amount / len(self.courses)
        equal = shared.filled(
            np.array([part if amount is None else amount for amount in shared.fixed])
        )
        floors = np.array([_floor(course, self._targets(course.name)) for course in self.courses])
        losses = Losses(budget, self.courses, self.question.weights, floors)
        return self._identifying(losses, equal)

    def _stated_amount(self, course: Course) -> float | None:
        """Return a call's stated amount."""
        if self.budgeting.stated_budget(course.name) is None:
            return None
        return price(course.releases[0].events, self.question.guarantee).amount

    def _identifying(self, losses: Losses, equal: Floats) -> Losses:
        """Require identifying budgets; the calls that need most get equal parts if not all fit."""
        needs = np.array([course.identifying for course in self.courses])
        aimed = np.array([bool(self._targets(course.name)) for course in self.courses])
        for _ in self.courses:
            floors = np.where(losses.is_stated, 0.0, np.maximum(losses.floors, needs))
            free = ~(losses.is_stated | aimed)
            if not free.any() or losses.with_floors(floors).least <= losses.budget.amount:
                return losses.with_floors(np.where(np.isfinite(needs), floors, losses.floors))
            worst = int(np.argmax(np.where(free, needs, -1.0)))
            losses = losses.fixing(worst, float(equal[worst]))
        return losses

    def _targets(self, name: str) -> tuple[Target, ...]:
        return self.question.targets.get(name, ())

    @property
    def needed(self) -> float:
        """Smallest total budget that meets all targets; infinite if none tried does."""
        return self.losses.least

    def with_budget(self, amount: float) -> Study:
        """Return a copy with another total budget."""
        guarantee = with_amount(self.question.guarantee, amount)
        question = replace(self.question, guarantee=guarantee)
        return Study(self.calls, self.world, question)

    def with_rows(self, n_rows: int) -> Study:
        """Return a copy with another number of rows."""
        question = replace(self.question, n_rows=n_rows)
        return Study(self.calls, replace(self.world, n_rows=n_rows), question)

    def ratios(self, amounts: Floats) -> Floats:
        """Return each call's interpolated error over that without privacy."""
        pairs = zip(self.courses, amounts, strict=True)
        return np.array([course.ratios(np.array([amount]))[0] for course, amount in pairs])

    def charges(self, amounts: Floats) -> list[tuple[Event, ...]]:
        """Return the charge of each call."""
        pairs = zip(self.imagined.values(), amounts, strict=True)
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
        question = self.question
        ledger = Ledger(
            budget=question.guarantee, adjacency=question.adjacency, pure=self.pure(amounts)
        )
        charges = self.charges(amounts)
        order = np.argsort(self.losses.budget.normal, kind="stable")
        return all(entry.fits for entry in ledger.forecast(charges[place] for place in order))


def _floor(course: Course, targets: tuple[Target, ...]) -> float:
    """Return the smallest budget that meets a call's targets; infinite if none tried does."""
    floors = [0.0]
    for target in targets:
        falling = target_values(course, course.fine, target)
        met = falling[-1] <= target.level
        floors.append(least_at(course.fine, falling, target.level) if met else math.inf)
    return max(floors)


def target_values(course: Course, amounts: Floats, target: Target) -> Floats:
    """Return the quantity that a target limits, by budget."""
    totals = course.totals(amounts)
    shares = 1 - (course.imagined.sampling / totals) ** 2
    return course.of_all(totals if target.kind == "se" else shares)
