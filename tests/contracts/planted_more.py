"""Faults of a single step between a row and its statistic, each planted with a monkeypatch."""

import math
from importlib import import_module

import numpy as np
import pytest

from dpmodels.noise.lattice import lengths
from dpmodels.statistics import gradient
from dpmodels.statistics.losses import LinearRows, Predictors

# The package's re-export hides the module of the same name.
PRIVATE = import_module("dpmodels.design.private")


def cells_are_rounded_up(patch: pytest.MonkeyPatch) -> None:
    """Away from zero, after the norm was held with room for rounding to the nearest."""

    def rounded_up(coded, factor, shift, lattice, out, squares=None, ends=(), extremes=None):
        rows = out
        in_range = np.clip(coded, *(end[:, None] for end in ends)) if ends else np.stack(coded)
        rows[:] = (in_range * factor[:, None] - shift[:, None]) * lattice.steps
        complete = ~np.isnan(rows).any(axis=0)
        rows[:, ~complete] = 0.0
        norms = np.sqrt((rows**2).sum(axis=0))
        rows *= np.minimum(1, lattice.steps / np.maximum(norms, 1.0))
        rows[:] = np.copysign(np.ceil(np.abs(rows)), rows)
        return complete

    patch.setattr(PRIVATE, "to_lattice", rounded_up)


def the_norm_of_the_constant_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Terms of length 1 beside a constant, and nothing that holds both together."""

    def unheld(rows, lattice):
        return np.rint(rows * lattice.steps)

    patch.setattr(Predictors, "share", 1.0)
    patch.setattr(gradient, "on_lattice", unheld)


def _but_the_last(function, replacement):
    """Compute what a register does not hold by other code, as libraries do on some processors."""

    def whole(numbers, *rest):
        answers = function(numbers, *rest)
        last = len(answers) // 8 * 8
        answers[last:] = replacement(numbers, *rest)[last:]
        return answers

    return whole


def a_predictor_is_a_product_of_floats(patch: pytest.MonkeyPatch) -> None:
    def one_by_one(z, parameter):
        return np.array([math.fsum(line) for line in z.T * parameter])

    product = _but_the_last(lambda z, parameter: parameter @ z, one_by_one)

    def linear_rows(self, block, lattice, parameter):
        z = self.read(block, lattice)
        return LinearRows(z, product(z, parameter)[None])

    patch.setattr(Predictors, "linear_rows", linear_rows)


def lengths_are_added_in_any_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PRIVATE, "lengths", _but_the_last(lengths, lambda rows: lengths(rows[::-1])))
