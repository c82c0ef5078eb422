"""Faults in the sensitivity and in the noise, each planted with a monkeypatch."""

import dataclasses

import numpy as np
import pytest

from dpmodels.mechanisms.covariance import gauss
from dpmodels.noise import discrete_gaussian, seeded
from dpmodels.released import MomentNoise
from dpmodels.statistics import MomentWeights, moment_sensitivity, moment_weights


def replacing_a_row_is_taken_for_adding_one(patch: pytest.MonkeyPatch) -> None:
    def without_root_two(adjacency, weights):
        return moment_sensitivity(adjacency, weights) / np.sqrt(2)

    patch.setattr(gauss, "moment_sensitivity", without_root_two)


def the_weights_are_left_out_of_the_sensitivity(patch: pytest.MonkeyPatch) -> None:
    def unweighted(adjacency, weights):
        return moment_sensitivity(adjacency, MomentWeights(0.0, 0.0))

    patch.setattr(gauss, "moment_sensitivity", unweighted)


def the_count_weighs_twice_what_is_paid(patch: pytest.MonkeyPatch) -> None:
    def doubled(adjacency, *, centred):
        own = moment_weights(adjacency, centred=centred)
        return dataclasses.replace(own, count=2 * own.count)

    def unpaid(adjacency, weights):
        paid = dataclasses.replace(weights, count=weights.count / 2)
        return moment_sensitivity(adjacency, paid)

    patch.setattr(gauss, "moment_weights", doubled)
    patch.setattr(gauss, "moment_sensitivity", unpaid)


def the_mean_is_planned_with_too_little_noise(patch: pytest.MonkeyPatch) -> None:
    plan = gauss.Gauss.plan

    def careless(self, facts, guarantee):
        own = plan(self, facts, guarantee)
        steps = dataclasses.replace(own.steps, mean=own.steps.mean * 0.9)
        return dataclasses.replace(own, steps=steps)

    patch.setattr(gauss.Gauss, "plan", careless)


def the_sensitivity_is_twice_too_large(patch: pytest.MonkeyPatch) -> None:
    def wasteful(adjacency, weights):
        return 2 * moment_sensitivity(adjacency, weights)

    patch.setattr(gauss, "moment_sensitivity", wasteful)


def the_noise_is_halved(patch: pytest.MonkeyPatch) -> None:
    def half(scale, size, entropy):
        return discrete_gaussian(scale / 2, size, entropy)

    patch.setattr(gauss, "discrete_gaussian", half)


def the_noise_is_ten_percent_too_small(patch: pytest.MonkeyPatch) -> None:
    def short(scale, size, entropy):
        return discrete_gaussian(0.9 * scale, size, entropy)

    patch.setattr(gauss, "discrete_gaussian", short)


def the_noise_is_uniform(patch: pytest.MonkeyPatch) -> None:
    def uniform(scale, size, entropy):
        unit = (entropy.words(size) >> np.uint64(11)) * 2.0**-53 - 0.5
        return np.rint(unit * scale * np.sqrt(12)).astype(np.int64)

    patch.setattr(gauss, "discrete_gaussian", uniform)


def no_noise_off_the_diagonal(patch: pytest.MonkeyPatch) -> None:
    symmetric = gauss._noised_symmetric

    def bare(exact, steps, entropy):
        noised = exact.astype(float)
        np.fill_diagonal(noised, np.diagonal(symmetric(exact, steps, entropy)))
        return noised

    patch.setattr(gauss, "_noised_symmetric", bare)


def the_diagonal_has_the_noise_of_the_rest(patch: pytest.MonkeyPatch) -> None:
    symmetric = gauss._noised_symmetric

    def flat(exact, steps, entropy):
        return symmetric(exact, dataclasses.replace(steps, diagonal=steps.off), entropy)

    patch.setattr(gauss, "_noised_symmetric", flat)


def both_triangles_have_noise_of_their_own(patch: pytest.MonkeyPatch) -> None:
    symmetric = gauss._noised_symmetric

    def twice(exact, steps, entropy):
        one, other = (symmetric(exact, steps, entropy) for _ in range(2))
        return np.triu(one) + np.tril(other, -1)

    patch.setattr(gauss, "_noised_symmetric", twice)


def one_draw_serves_the_whole_matrix(patch: pytest.MonkeyPatch) -> None:
    def repeated(scale, size, entropy):
        return np.repeat(discrete_gaussian(scale, 1, entropy), size)

    patch.setattr(gauss, "discrete_gaussian", repeated)


def the_noise_is_used_again(patch: pytest.MonkeyPatch) -> None:
    def stale(scale, size, entropy):
        return discrete_gaussian(scale, size, seeded(7))

    patch.setattr(gauss, "discrete_gaussian", stale)


def the_noise_is_larger_for_more_rows(patch: pytest.MonkeyPatch) -> None:
    def adaptive(exact, scale, entropy):
        more = scale * (1 + float(abs(exact).max()) * 2.0**-50)
        return (exact + discrete_gaussian(more, exact.size, entropy)).astype(np.float64)

    patch.setattr(gauss, "_noised", adaptive)


def the_release_states_half_its_noise(patch: pytest.MonkeyPatch) -> None:
    def half(count, mean, diagonal, off):
        return MomentNoise(count / 2, mean / 2, diagonal / 2, off / 2)

    patch.setattr(gauss, "MomentNoise", half)
