"""Faults in regressions, counts and quantiles, each planted with a monkeypatch."""

import dataclasses
from typing import Any

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design import PrivateDesign
from dpmodels.formula import coding, sides
from dpmodels.mechanisms import count_noise, gradient_noise, quantile_rounds
from dpmodels.mechanisms.counts import ranges, tree
from dpmodels.mechanisms.regression import objective
from dpmodels.mechanisms.scalar import exponential
from dpmodels.models import quantile, table
from dpmodels.noise import lattice
from dpmodels.statistics import gradient
from dpmodels.statistics.losses import Poisson


class _Unclipped:
    """numpy, but for the clip."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def clip(values: Any, *ends: Any, out: Any = None) -> Any:
        if out is None:
            return values
        out[...] = values
        return out


def values_are_not_clipped_to_their_bounds(patch: pytest.MonkeyPatch) -> None:
    for module in (coding, sides, lattice):
        patch.setattr(module, "np", _Unclipped())


def replacing_a_counted_row_is_taken_for_adding_one(patch: pytest.MonkeyPatch) -> None:
    original = count_noise.count_sensitivity
    patch.setattr(
        count_noise,
        "count_sensitivity",
        lambda adjacency, tables, norm: original(adjacency, tables, norm) / 2 ** (1 / norm),
    )


def the_sensitivity_of_counts_forgets_the_tables(patch: pytest.MonkeyPatch) -> None:
    original = count_noise.count_sensitivity
    patch.setattr(
        count_noise,
        "count_sensitivity",
        lambda adjacency, tables, norm: original(adjacency, 1, norm),
    )


def the_noise_of_counts_is_halved(patch: pytest.MonkeyPatch) -> None:
    for name in ("discrete_laplace", "discrete_gaussian"):
        original = getattr(count_noise, name)
        patch.setattr(count_noise, name, lambda scale, *rest, draw=original: draw(scale / 2, *rest))


def each_round_takes_the_whole_budget(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ranges, "part_without_delta", lambda guarantee, share: guarantee)


def a_residual_is_not_clipped(patch: pytest.MonkeyPatch) -> None:
    def pull(self, linear, response):
        return (response - np.exp(np.minimum(linear, 9.0))) / self.clip

    def unheld(rows, lattice):
        return np.rint(rows * lattice.steps)

    patch.setattr(Poisson, "pull", pull)
    patch.setattr(gradient, "on_lattice", unheld)


def a_gradient_has_no_noise(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gradient_noise, "add_noise", lambda exact, *rest: exact.astype(float))


def the_noise_of_gradients_is_halved(patch: pytest.MonkeyPatch) -> None:
    original = gradient_noise.add_noise
    patch.setattr(
        gradient_noise, "add_noise", lambda exact, scale, *rest: original(exact, scale / 2, *rest)
    )


def the_minimum_is_not_masked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(objective, "masked", lambda point, *rest: point.rounded)


def the_objective_is_tilted_by_half(patch: pytest.MonkeyPatch) -> None:
    for name in ("spherical", "normals"):
        original = getattr(objective, name)
        patch.setattr(objective, name, lambda *words, draw=original: draw(*words) / 2)


def the_noise_of_the_minimum_is_halved(patch: pytest.MonkeyPatch) -> None:
    for name in ("spherical", "normals"):
        original = getattr(objective, name)
        patch.setattr(objective, name, lambda *words, draw=original: draw(*words) / 2)


def quantiles_are_planned_twice_as_close(patch: pytest.MonkeyPatch) -> None:
    plan = exponential.Exponential.plan

    def close(self, facts, guarantee):
        plan_made = plan(self, facts, guarantee)
        return dataclasses.replace(plan_made, middle=tuple(2 * slope for slope in plan_made.middle))

    patch.setattr(exponential.Exponential, "plan", close)


def quantiles_are_drawn_twice_as_close(patch: pytest.MonkeyPatch) -> None:
    original = exponential.draw_cell

    def close(ranks, prob, concentration, entropy):
        return original(ranks, prob, 2 * concentration, entropy)

    patch.setattr(exponential, "draw_cell", close)


def replacing_a_row_of_rounds_is_taken_for_adding_one(patch: pytest.MonkeyPatch) -> None:
    original = quantile_rounds.count_sensitivity

    def alone(*facts):
        return original(*facts) / 2 ** (1 / facts[-1])

    patch.setattr(quantile_rounds, "count_sensitivity", alone)


def a_tree_is_taken_for_its_cells(patch: pytest.MonkeyPatch) -> None:
    original = quantile_rounds.count_sensitivity
    patch.setattr(
        quantile_rounds,
        "count_sensitivity",
        lambda relation, levels, norm: original(relation, 1, norm),
    )


def blocks_are_taken_for_cells(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tree, "block_sizes", lambda shape, side: (shape,))


def the_noise_of_rounds_is_halved(patch: pytest.MonkeyPatch) -> None:
    for name in ("discrete_laplace", "discrete_gaussian"):
        original = getattr(quantile_rounds, name)
        patch.setattr(
            quantile_rounds, name, lambda scale, *rest, draw=original: draw(scale / 2, *rest)
        )


def groups_are_no_reason_to_pay_more(patch: pytest.MonkeyPatch) -> None:
    original = exponential.loss_range

    def alone(facts, prob):
        return original(dataclasses.replace(facts, groups=1), prob)

    patch.setattr(exponential, "loss_range", alone)


def a_histogram_forgets_the_ledger(patch: pytest.MonkeyPatch) -> None:
    original = table.dp_hist

    def free(formula, data, *, ledger=None, **words):
        return original(formula, data, **words)

    patch.setattr(dp, "dp_hist", free)


def a_quantile_forgets_the_ledger(patch: pytest.MonkeyPatch) -> None:
    original = quantile.dp_quantile

    def free(formula, data, *, ledger=None, **words):
        return original(formula, data, **words)

    patch.setattr(dp, "dp_quantile", free)


def coefficients_are_measured_before_the_charge(patch: pytest.MonkeyPatch) -> None:
    """Where it is asked whether rows can be read again, they are read."""

    def eager(self):
        next(self.rows.source.chunks(self.public.variables, 1))

    patch.setattr(PrivateDesign, "require_passes", eager)


def joint_rows_are_read_before_the_charge(patch: pytest.MonkeyPatch) -> None:
    original = PrivateDesign.bind

    def eager(self, data):
        bound = original(self, data)
        next(bound.rows.source.chunks(bound.public.variables, 1))
        return bound

    patch.setattr(PrivateDesign, "bind", eager)
