"""Faults in the sensitivity and in the noise, each planted with a monkeypatch."""

import dataclasses
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from dpmodels.mechanisms import add_noise, clipping_shells
from dpmodels.mechanisms.covariance import gauss, none, separate
from dpmodels.mechanisms.subspace import PPCA
from dpmodels.noise import seeded
from dpmodels.released import MomentNoise
from dpmodels.statistics import MomentWeights, moment_sensitivity, moment_weights

# Given the right draw, then scale, size and entropy.
Draw = Callable[..., np.ndarray]


def replacing_a_row_is_taken_for_adding_one(patch: pytest.MonkeyPatch) -> None:
    def without_root_two(adjacency, weights):
        return moment_sensitivity(adjacency, weights) / np.sqrt(2)

    patch.setattr(add_noise, "moment_sensitivity", without_root_two)


def the_weights_are_left_out_of_the_sensitivity(patch: pytest.MonkeyPatch) -> None:
    def unweighted(adjacency, weights):
        return moment_sensitivity(adjacency, MomentWeights(0.0, 0.0))

    patch.setattr(add_noise, "moment_sensitivity", unweighted)


def the_count_weighs_twice_what_is_paid(patch: pytest.MonkeyPatch) -> None:
    def doubled(adjacency, *, centred):
        weights = moment_weights(adjacency, centred=centred)
        return dataclasses.replace(weights, count=2 * weights.count)

    def unpaid(adjacency, weights):
        paid = dataclasses.replace(weights, count=weights.count / 2)
        return moment_sensitivity(adjacency, paid)

    patch.setattr(add_noise, "moment_weights", doubled)
    patch.setattr(add_noise, "moment_sensitivity", unpaid)


def the_mean_is_planned_with_too_little_noise(patch: pytest.MonkeyPatch) -> None:
    plan = gauss.Gauss.plan

    def careless(self, facts, guarantee):
        plan_made = plan(self, facts, guarantee)
        steps = dataclasses.replace(plan_made.steps, mean=plan_made.steps.mean * 0.9)
        return dataclasses.replace(plan_made, steps=steps)

    patch.setattr(gauss.Gauss, "plan", careless)


def the_sensitivity_is_twice_too_large(patch: pytest.MonkeyPatch) -> None:
    def wasteful(adjacency, weights):
        return 2 * moment_sensitivity(adjacency, weights)

    patch.setattr(add_noise, "moment_sensitivity", wasteful)


def _drawn_by(patch: pytest.MonkeyPatch, draw: Draw) -> None:
    """Put another draw, given the right one, in its place."""
    original = add_noise.noisy_sums

    def drawn(parts, right, entropy):
        return original(parts, partial(draw, right), entropy)

    patch.setattr(add_noise, "noisy_sums", drawn)


def the_noise_is_halved(patch: pytest.MonkeyPatch) -> None:
    _drawn_by(patch, lambda draw, scale, size, entropy: draw(scale / 2, size, entropy))


def the_noise_is_ten_percent_too_small(patch: pytest.MonkeyPatch) -> None:
    _drawn_by(patch, lambda draw, scale, size, entropy: draw(0.9 * scale, size, entropy))


def the_noise_is_uniform(patch: pytest.MonkeyPatch) -> None:
    def uniform(draw, scale, size, entropy):
        unit = (entropy.words(size) >> np.uint64(11)) * 2.0**-53 - 0.5
        return np.rint(unit * scale * np.sqrt(12)).astype(np.int64)

    _drawn_by(patch, uniform)


def the_laplace_noise_is_gaussian(patch: pytest.MonkeyPatch) -> None:
    def other(draw, scale, size, entropy):
        return add_noise.GAUSSIAN.draw(np.sqrt(2) * scale, size, entropy)

    _drawn_by(patch, other)


def no_noise_off_the_diagonal(patch: pytest.MonkeyPatch) -> None:
    original = add_noise.noisy_sums

    def bare(parts, *words):
        noisy = original(parts, *words)
        if len(parts) > 1:
            noisy[-2] = parts[-2][0]  # What is above the diagonal
        return noisy

    patch.setattr(add_noise, "noisy_sums", bare)


def the_diagonal_has_the_noise_of_the_rest(patch: pytest.MonkeyPatch) -> None:
    triangle = add_noise._triangle
    patch.setattr(add_noise, "_triangle", lambda exact, _, off: triangle(exact, off, off))


def both_triangles_have_noise_of_their_own(patch: pytest.MonkeyPatch) -> None:
    original, symmetric, lower = add_noise.noisy_sums, add_noise._symmetric, []

    def noted(parts, *words):
        if len(parts) > 1:
            lower[:] = [original(parts[-2:-1], *words)[0].astype(float)]
        return original(parts, *words)

    def twice(above, diagonal):
        return np.triu(symmetric(above, diagonal)) + np.tril(symmetric(lower[0], diagonal), -1)

    patch.setattr(add_noise, "noisy_sums", noted)
    patch.setattr(add_noise, "_symmetric", twice)


def one_draw_serves_the_whole_matrix(patch: pytest.MonkeyPatch) -> None:
    def repeated(draw, scale, size, entropy):
        return np.repeat(draw(scale, 1, entropy), size)

    _drawn_by(patch, repeated)


def the_noise_is_used_again(patch: pytest.MonkeyPatch) -> None:
    _drawn_by(patch, lambda draw, scale, size, entropy: draw(scale, size, seeded(7)))


def the_noise_is_larger_for_more_rows(patch: pytest.MonkeyPatch) -> None:
    original = add_noise.noisy_sums

    def adaptive(parts, *words):
        sizes = [float(abs(exact).max(initial=0)) for exact, _ in parts]
        wider = [(e, s * (1 + size * 2.0**-50)) for (e, s), size in zip(parts, sizes, strict=True)]
        return original(wider, *words)

    patch.setattr(add_noise, "noisy_sums", adaptive)


def the_release_states_half_its_noise(patch: pytest.MonkeyPatch) -> None:
    def half(count, mean, diagonal, off):
        return MomentNoise(count / 2, mean / 2, diagonal / 2, off / 2)

    patch.setattr(add_noise, "MomentNoise", half)


def the_laplace_sensitivity_is_halved(patch: pytest.MonkeyPatch) -> None:
    original = add_noise.absolute_sensitivity
    patch.setattr(add_noise, "absolute_sensitivity", lambda *facts: original(*facts) / 2)


def an_increment_has_no_noise(patch: pytest.MonkeyPatch) -> None:
    original = clipping_shells.noised_symmetric

    def missing(exact, diagonal, off, entropy):
        # The middle one of three, by its scale.
        small = diagonal * (1 if diagonal != _middle(diagonal) else 0.01)
        return original(exact, small, off * small / diagonal, entropy)

    recorded: list[float] = []

    def _middle(diagonal):
        recorded.append(diagonal)
        return diagonal if len(recorded) % 3 == 2 else None

    patch.setattr(clipping_shells, "noised_symmetric", missing)


def delta_is_spent_twice(patch: pytest.MonkeyPatch) -> None:
    """Two releases with half of eps and all of delta each."""

    def halves(multiplier, shares):
        return tuple(multiplier * np.sqrt(2) * 0.9 for _ in shares)

    patch.setattr(separate, "split_gaussian", halves)


def eps_is_spent_twice(patch: pytest.MonkeyPatch) -> None:
    original = separate.laplace_multipliers

    def whole(guarantee, shares=(1.0,)):
        return original(guarantee) * len(shares)

    patch.setattr(separate, "laplace_multipliers", whole)


def the_trace_is_capped_at_a_tenth(patch: pytest.MonkeyPatch) -> None:
    original = add_noise.trace_cap
    patch.setattr(add_noise, "trace_cap", lambda facts, rows: 0.1 * (original(facts, rows) or rows))


def no_noise_is_no_matter(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(none, "_refuse_a_release", lambda: None)


def directions_are_drawn_twice_as_close(patch: pytest.MonkeyPatch) -> None:
    plan = PPCA.plan

    def close(self, facts, guarantee):
        plan_made = plan(self, facts, guarantee)
        scales = {**plan_made.scales, "concentration": 2 * plan_made.scales["concentration"]}
        return dataclasses.replace(plan_made, scales=scales)

    patch.setattr(PPCA, "plan", close)
