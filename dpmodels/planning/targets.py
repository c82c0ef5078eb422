"""Inputs of a plan: calls by name, the form of their budgets, targets and weights."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpmodels.arguments import real
from dpmodels.errors import ArgumentError, BudgetError, quoted
from dpmodels.planning.noise_curve import Form
from dpmodels.privacy import ZCDP, ApproxDP, Guarantee, PureDP, resolve_budget
from dpmodels.sessions.call import Call
from dpmodels.sessions.methods import Calls
from dpmodels.typing import Floats

MOST_CALLS: Final = 100
_WRITE: Final = (
    '[dp.call.mean("wage ~ sex"), ("lm", "wage ~ age + sex")], or a dict of them by name'
)


def named_calls(calls: object) -> dict[str, Call]:
    """Return calls by name: the keys of a mapping, or their verbs, numbered if repeated."""
    if isinstance(calls, Mapping):
        if not all(isinstance(name, str) and name for name in calls):
            raise ArgumentError(f"calls=: expected names that are strings; write {_WRITE}")
        written = {name: call.read(value) for name, value in calls.items()}
    elif isinstance(calls, str | Call) or not isinstance(calls, Iterable):
        raise ArgumentError(f"calls of type {type(calls).__name__}: write {_WRITE}")
    else:
        listed = [call.read(value) for value in calls]
        counts: Counter[str] = Counter()
        written = {}
        for entry in listed:
            counts[entry.name] += 1
            number = counts[entry.name]
            written[entry.name if number == 1 else f"{entry.name} {number}"] = entry
    if not 1 <= len(written) <= MOST_CALLS:
        raise ArgumentError(f"{len(written)} calls: expected 1 to {MOST_CALLS}; write {_WRITE}")
    return written


@dataclass(frozen=True)
class Target:
    """Upper limit of a call's standard error, or of the share of noise in the variance."""

    kind: str  # "se" or "noise"
    level: float

    def describe(self) -> str:
        """Describe the target."""
        word = "total se" if self.kind == "se" else "share of noise"
        return f"{word} at most {self.level:g}"


def targets_of(targets: object, names: Sequence[str]) -> dict[str, tuple[Target, ...]]:
    """Read targets, of all calls or by name."""
    write = 'write targets={"noise": 0.5}, or by call targets={"mean": {"se": 0.2}}'
    if targets is None:
        return {}
    if not isinstance(targets, Mapping) or not targets:
        raise ArgumentError(f"targets of type {type(targets).__name__}: {write}")
    if set(targets) <= {"se", "noise"}:
        targets = dict.fromkeys(names, targets)
    result = {}
    for name, levels in targets.items():
        if name not in names:
            raise ArgumentError(
                f"targets: {quoted(name)} is not a call; calls are {', '.join(names)}"
            )
        if not isinstance(levels, Mapping) or not levels or not set(levels) <= {"se", "noise"}:
            raise ArgumentError(f"targets of {name}: {write}")
        result[name] = tuple(Target(kind, _level(name, kind, levels[kind])) for kind in levels)
    return result


def _level(name: str, kind: str, value: object) -> float:
    level = real(value)
    if not (0 < level < (1 if kind == "noise" else math.inf)):
        expected = "a share between 0 and 1" if kind == "noise" else "a positive number"
        raise ArgumentError(f"targets of {name}: {kind}={quoted(value)}, expected {expected}")
    return level


def weights_of(by_name: object, names: Sequence[str]) -> Floats:
    """Read weights by name, 1 by default."""
    if by_name is None:
        return np.ones(len(names))
    write = 'write weights={"mean": 2}, a positive number by call'
    if not isinstance(by_name, Mapping) or not set(by_name) <= set(names):
        raise ArgumentError(f"weights={quoted(by_name)}: {write}; calls are {', '.join(names)}")
    weights = np.array([real(by_name.get(name, 1)) for name in names])
    if not (weights > 0).all():
        raise ArgumentError(f"weights={quoted(by_name)}: {write}")
    return weights


@dataclass(frozen=True)
class Budgeting:
    """The total guarantee, and the form of each call's part."""

    guarantee: Guarantee
    calls: Mapping[str, Call]

    @property
    def left(self) -> Guarantee:
        """The guarantee less the deltas that calls spend."""
        guarantee = self.guarantee
        if not isinstance(guarantee, ApproxDP):
            return guarantee
        spent = math.fsum(self._spent(name) for name in self.calls)
        if spent >= guarantee.delta:
            raise BudgetError(
                f"the deltas of calls add up to {spent:g}, of {guarantee.delta:g} in total: "
                "write smaller ones, such as a hundredth of it"
            )
        return replace(guarantee, delta=guarantee.delta - spent)

    def form(self, name: str) -> Form:
        """Return a function from an amount to a call's guarantee."""
        call, guarantee = self.calls[name], self.guarantee
        stated = self.stated_budget(name)
        if stated is not None:
            return lambda amount: stated
        if isinstance(guarantee, ZCDP):
            return ZCDP
        delta = self._spent(name) or (self.left.delta if isinstance(self.left, ApproxDP) else 0.0)
        if call.options.get("delta") == 0:
            delta = 0.0
        return (lambda amount: ApproxDP(amount, delta)) if delta else PureDP

    def stated_budget(self, name: str) -> Guarantee | None:
        """Return a call's stated budget."""
        options = self.calls[name].options
        if options.get("share") is not None or isinstance(options.get("eps"), str):
            raise BudgetError(
                f"{name}: a plan divides the budget; leave the share out, or write an amount, "
                "eps=0.2"
            )
        eps, budget = options.get("eps"), options.get("budget")
        if eps is None and budget is None:
            return None
        remaining = self.left.delta if isinstance(self.left, ApproxDP) else 0.0
        delta = options.get("delta", remaining if budget is None else 0.0)
        return resolve_budget(eps, delta, budget)

    def _spent(self, name: str) -> float:
        """Return the delta that a call spends, which is not available for Gaussian noise."""
        call, guarantee = self.calls[name], self.guarantee
        delta = call.options.get("delta")
        if not call.spends_delta:
            if delta is not None and delta != 0 and call.silent:
                raise BudgetError(
                    f"{name}: delta={quoted(delta)} without a budget: leave it out, as Gaussian "
                    "noise uses the total delta, or write delta=0 for noise without delta"
                )
            return 0.0
        if delta is None and isinstance(guarantee, ApproxDP):
            raise BudgetError(
                f"{name} spends its delta, and {guarantee.delta:.3g} would leave none for "
                f"Gaussian noise: write delta={guarantee.delta / 100:.3g}, or another part of it"
            )
        return real(delta) if isinstance(guarantee, ApproxDP) else 0.0


# ``call``: the verbs, which describe a call without running it.

call: Final = Calls()
