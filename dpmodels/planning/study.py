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
from dpmodels.planning.division import Losses, Whole, least_at, with_amount
from dpmodels.planning.guess import World, priced
from dpmodels.planning.targets import Budgeting, Target
from dpmodels.privacy import Event, Ledger
from dpmodels.privacy.spent import capacity, price
from dpmodels.sessions.call import Call
from dpmodels.typing import Floats

# Choices: releases at each budget that is tried, and at one that was recommended; how many budgets
# are tried, from which part of an equal share to how many times the whole.
REPEATS: Final = 4
_MORE: Final = 8
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
    known: tuple[Course, ...] = ()  # Courses that were tried already

    @cached_property
    def budgeting(self) -> Budgeting:
        """In what form each call has its part."""
        return Budgeting(self.question.guarantee, self.calls)

    @cached_property
    def amounts(self) -> Floats:
        """Budgets that are tried."""
        whole = capacity(self.question.guarantee).amount
        low, high = self.span or (whole / (_BELOW * len(self.calls)), whole * _ABOVE)
        return np.geomspace(low, high, _BUDGETS)

    @cached_property
    def imagined(self) -> dict[str, Imagined]:
        """The calls on guessed rows, without noise."""
        if self.known:
            return {own.name: own.imagined for own in self.known}
        form = self.budgeting.form
        return {name: imagined(own, self.world, form(name)) for name, own in self.calls.items()}

    @cached_property
    def courses(self) -> tuple[Course, ...]:
        """What each call comes to at the budgets that are tried."""
        over = self.question.over
        return self.known or tuple(
            course(name, own, over, self._tried(name), REPEATS)
            for name, own in self.imagined.items()
        )

    def refined(self, amounts: Floats) -> Study:
        """Return the same with another budget tried of each call."""
        each = zip(self.courses, amounts, strict=True)
        return replace(self, known=tuple(one.refined(float(at), _MORE) for one, at in each))

    def _tried(self, name: str) -> Floats:
        own = self.budgeting.own(name)
        return self.amounts if own is None else capacity(own).amount * np.array([1.0, 1.01])

    @cached_property
    def losses(self) -> Losses:
        """What can be divided, and what has to be kept."""
        gaussian = tuple(own.gaussian for own in self.courses)
        open_ = Whole(self.budgeting.left, gaussian, (None,) * len(self.courses))
        whole = replace(open_, fixed=tuple(map(self._said, self.courses)))
        # Of what calls leave that say their own; of all where they leave nothing.
        shared = whole if whole.cost(whole.said) < whole.amount else open_
        part = open_.amount / len(self.courses)
        equal = shared.filled(np.array([part if own is None else own for own in shared.fixed]))
        floors = np.array([_floor(own, self._targets(own.name)) for own in self.courses])
        made = Losses(whole, self.courses, self.question.weights, floors)
        return self._identifying(made, equal)

    def _said(self, own: Course) -> float | None:
        """Return the amount that a call says itself."""
        if self.budgeting.own(own.name) is None:
            return None
        return price(own.releases[0].events, self.question.guarantee).amount

    def _identifying(self, made: Losses, equal: Floats) -> Losses:
        """Keep what identifies the calls; those that need most have equal parts if not all can."""
        needs = np.array([own.identifying for own in self.courses])
        aimed = np.array([bool(self._targets(own.name)) for own in self.courses])
        for _ in self.courses:
            floors = np.where(made.said, 0.0, np.maximum(made.floors, needs))
            free = ~(made.said | aimed)
            if not free.any() or made.with_floors(floors).least <= made.whole.amount:
                return made.with_floors(np.where(np.isfinite(needs), floors, made.floors))
            worst = int(np.argmax(np.where(free, needs, -1.0)))
            made = made.fixing(worst, float(equal[worst]))
        return made

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

    def with_rows(self, rows: int) -> Study:
        """Return the same with another number of rows."""
        question = replace(self.question, rows=rows)
        return Study(self.calls, replace(self.world, rows=rows), question)

    def ratios(self, amounts: Floats) -> Floats:
        """Return of each call the error over that without privacy, as interpolated."""
        each = zip(self.courses, amounts, strict=True)
        return np.array([own.ratios(np.array([amount]))[0] for own, amount in each])

    def charges(self, amounts: Floats) -> list[tuple[Event, ...]]:
        """Return what each call would be charged."""
        each = zip(self.imagined.values(), amounts, strict=True)
        return [priced(own.call, own.terms, own.form(float(amount))).events for own, amount in each]

    def pure(self, amounts: Floats) -> float:
        """Return the eps that a ledger keeps for noise that is not Gaussian, beside other noise."""
        normal = np.array(self.losses.whole.normal)
        return float(amounts[~normal].sum()) if 0 < normal.sum() < len(normal) else 0.0

    def fits(self, amounts: Floats) -> bool:
        """Whether a ledger of the whole takes all calls, one by one."""
        asked = self.question
        ledger = Ledger(budget=asked.guarantee, adjacency=asked.adjacency, pure=self.pure(amounts))
        charges = self.charges(amounts)
        order = np.argsort(self.losses.whole.normal, kind="stable")
        return all(own.fits for own in ledger.forecast(charges[place] for place in order))


def _floor(own: Course, targets: tuple[Target, ...]) -> float:
    """Return the least budget that meets a call's targets; infinite beyond those tried."""
    found = [0.0]
    for target in targets:
        falling = told(own, own.fine, target)
        met = falling[-1] <= target.level
        found.append(least_at(own.fine, falling, target.level) if met else math.inf)
    return max(found)


def told(own: Course, amounts: Floats, target: Target) -> Floats:
    """Return what a target is of, by budget."""
    totals = own.totals(amounts)
    shares = 1 - (own.imagined.sampling / totals) ** 2
    return own.of_all(totals if target.kind == "se" else shares)
