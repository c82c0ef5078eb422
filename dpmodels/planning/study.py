"""An analysis studied on guessed rows: courses of its calls, divisions, and what solves it."""

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

# Choices: releases at each budget that is tried, and at one that was recommended; how many budgets
# are tried, from which part of an equal share to how many times the whole.
REPEATS: Final = 4
_REFINED_REPEATS: Final = 8
_BUDGETS: Final = 8
_BELOW: Final = 30
_ABOVE: Final = 4


@dataclass(frozen=True)
class Study:
    """Calls by name, the rows they are guessed to be made on, and what is asked of them."""

    calls: Mapping[str, Call]
    world: World
    question: PlanQuestion
    span: tuple[float, float] | None = None  # Of budgets that are tried, where one is looked for
    tried_courses: tuple[Course, ...] = ()  # Courses that were tried already

    @cached_property
    def budgeting(self) -> Budgeting:
        """In what form each call has its part."""
        return Budgeting(self.question.guarantee, self.calls)

    @cached_property
    def amounts(self) -> Floats:
        """Budgets that are tried."""
        total = capacity(self.question.guarantee).amount
        low, high = self.span or (total / (_BELOW * len(self.calls)), total * _ABOVE)
        return np.geomspace(low, high, _BUDGETS)

    @cached_property
    def imagined(self) -> dict[str, Imagined]:
        """The calls on guessed rows, without noise."""
        if self.tried_courses:
            return {course.name: course.imagined for course in self.tried_courses}
        form = self.budgeting.form
        return {name: imagined(call, self.world, form(name)) for name, call in self.calls.items()}

    @cached_property
    def courses(self) -> tuple[Course, ...]:
        """What each call comes to at the budgets that are tried."""
        over = self.question.over
        return self.tried_courses or tuple(
            course(name, simulated, over, self._tried(name), REPEATS)
            for name, simulated in self.imagined.items()
        )

    def refined(self, amounts: Floats) -> Study:
        """Return the same with another budget tried of each call."""
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
        """What can be divided, and what has to be kept."""
        gaussian = tuple(course.gaussian for course in self.courses)
        open_ = TotalBudget(self.budgeting.left, gaussian, (None,) * len(self.courses))
        budget = replace(open_, fixed=tuple(map(self._stated_amount, self.courses)))
        # Of what calls leave that say their own; of all where they leave nothing.
        shared = budget if budget.cost(budget.stated_amounts) < budget.amount else open_
        part = open_.amount / len(self.courses)
        equal = shared.filled(
            np.array([part if amount is None else amount for amount in shared.fixed])
        )
        floors = np.array([_floor(course, self._targets(course.name)) for course in self.courses])
        losses = Losses(budget, self.courses, self.question.weights, floors)
        return self._identifying(losses, equal)

    def _stated_amount(self, course: Course) -> float | None:
        """Return the amount that a call says itself."""
        if self.budgeting.stated_budget(course.name) is None:
            return None
        return price(course.releases[0].events, self.question.guarantee).amount

    def _identifying(self, losses: Losses, equal: Floats) -> Losses:
        """Keep what identifies the calls; those that need most have equal parts if not all can."""
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
        """The least whole budget at which all targets are met; infinite where none tried does."""
        return self.losses.least

    def with_budget(self, amount: float) -> Study:
        """Return the same with another whole budget."""
        guarantee = with_amount(self.question.guarantee, amount)
        question = replace(self.question, guarantee=guarantee)
        return Study(self.calls, self.world, question)

    def with_rows(self, n_rows: int) -> Study:
        """Return the same with another number of rows."""
        question = replace(self.question, n_rows=n_rows)
        return Study(self.calls, replace(self.world, n_rows=n_rows), question)

    def ratios(self, amounts: Floats) -> Floats:
        """Return of each call the error over that without privacy, as interpolated."""
        pairs = zip(self.courses, amounts, strict=True)
        return np.array([course.ratios(np.array([amount]))[0] for course, amount in pairs])

    def charges(self, amounts: Floats) -> list[tuple[Event, ...]]:
        """Return what each call would be charged."""
        pairs = zip(self.imagined.values(), amounts, strict=True)
        return [
            priced(simulated.call, simulated.terms, simulated.form(float(amount))).events
            for simulated, amount in pairs
        ]

    def pure(self, amounts: Floats) -> float:
        """Return the eps that a ledger keeps for noise that is not Gaussian, beside other noise."""
        normal = np.array(self.losses.budget.normal)
        return float(amounts[~normal].sum()) if 0 < normal.sum() < len(normal) else 0.0

    def fits(self, amounts: Floats) -> bool:
        """Whether a ledger of the whole takes all calls, one by one."""
        question = self.question
        ledger = Ledger(
            budget=question.guarantee, adjacency=question.adjacency, pure=self.pure(amounts)
        )
        charges = self.charges(amounts)
        order = np.argsort(self.losses.budget.normal, kind="stable")
        return all(entry.fits for entry in ledger.forecast(charges[place] for place in order))


def _floor(course: Course, targets: tuple[Target, ...]) -> float:
    """Return the least budget that meets a call's targets; infinite beyond those tried."""
    floors = [0.0]
    for target in targets:
        falling = target_values(course, course.fine, target)
        met = falling[-1] <= target.level
        floors.append(least_at(course.fine, falling, target.level) if met else math.inf)
    return max(floors)


def target_values(course: Course, amounts: Floats, target: Target) -> Floats:
    """Return what a target is of, by budget."""
    totals = course.totals(amounts)
    shares = 1 - (course.imagined.sampling / totals) ** 2
    return course.of_all(totals if target.kind == "se" else shares)
