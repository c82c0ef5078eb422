"""Faults between the rows and their exact statistic, each planted with a monkeypatch."""

import warnings
from importlib import import_module

import numpy as np
import pytest

from dpmodels.frames import to_float
from dpmodels.mechanisms import measures
from dpmodels.noise.lattice import to_lattice
from dpmodels.statistics import Statistic, moments

# The packages' re-exports hide modules of the same name.
PRIVATE = import_module("dpmodels.design.private")
COLUMNS = import_module("dpmodels.design.columns")
CLIPPED = import_module("dpmodels.statistics.clipped")
MOMENTS = import_module("dpmodels.statistics.moments")


def rows_are_not_held_in_the_ball(patch: pytest.MonkeyPatch) -> None:
    def unheld(coded, factor, shift, lattice, out, squares, ends, extremes):
        rows = out
        in_range = np.clip(coded, *(end[:, None] for end in ends)) if ends else coded
        rows[:] = np.rint((in_range * factor[:, None] - shift[:, None]) * lattice.steps)
        complete = ~np.isnan(rows).any(axis=0)
        rows[:, ~complete] = 0.0
        return complete

    patch.setattr(PRIVATE, "to_lattice", unheld)


def rows_are_rounded_after_the_norm_is_held(patch: pytest.MonkeyPatch) -> None:
    def rounded_last(coded, factor, shift, lattice, out, squares, ends, extremes):
        rows = out
        in_range = np.clip(coded, *(end[:, None] for end in ends)) if ends else coded
        rows[:] = (in_range * factor[:, None] - shift[:, None]) * lattice.steps
        complete = ~np.isnan(rows).any(axis=0)
        rows[:, ~complete] = 0.0
        norms = np.sqrt((rows**2).sum(axis=0))
        rows[:] = np.rint(rows * np.minimum(1, lattice.radius / np.maximum(norms, 1.0)))
        return complete

    patch.setattr(PRIVATE, "to_lattice", rounded_last)


def incomplete_rows_are_counted(patch: pytest.MonkeyPatch) -> None:
    def counted(coded, factor, shift, lattice, out, squares, ends, extremes):
        return np.ones_like(to_lattice(coded, factor, shift, lattice, out=out, ends=ends))

    patch.setattr(PRIVATE, "to_lattice", counted)


def missing_numbers_become_zero(patch: pytest.MonkeyPatch) -> None:
    def filled(values):
        return np.nan_to_num(to_float(values), nan=0.0)

    patch.setattr(COLUMNS, "to_float", filled)


def rows_are_summed_in_single_precision(patch: pytest.MonkeyPatch) -> None:
    blocks = PRIVATE.PrivateDesign.blocks

    def single(self, function, lattice):
        low = lambda z: function(z.astype(np.float32)).astype(np.float64)  # noqa: E731
        return blocks(self, low, lattice)

    patch.setattr(PRIVATE.PrivateDesign, "blocks", single)


def sums_are_dropped_at_the_carry(patch: pytest.MonkeyPatch) -> None:
    def dropped(design, lattice):
        size = lattice.columns + 1
        pending, rows = np.zeros((size, size), dtype=object), 0
        products = design.blocks(lambda z: z @ z.T, lattice)
        for block, (product, count) in enumerate(products, start=1):
            pending = pending + product.astype(np.int64)
            rows += count
            if block % MOMENTS.BLOCKS_PER_CARRY == 0:
                pending = pending * 0
        return Statistic("dropped", pending, rows)

    patch.setattr(measures, "moments", dropped)


def a_level_of_clipped_rows_forgets_a_band(patch: pytest.MonkeyPatch) -> None:
    products = CLIPPED._by_band

    def forgetful(block, lattice, halvings):
        result = products(block, lattice, halvings)
        if block.shape[1] < 5:
            result.pop(CLIPPED.Band(1, at_surface=True), None)
        return result

    patch.setattr(CLIPPED, "_by_band", forgetful)


def an_empty_sum_is_warned_of(patch: pytest.MonkeyPatch) -> None:
    def warning(design, lattice):
        statistic = moments(design, lattice)
        if statistic.cross()[0][0, 0] == 0:
            warnings.warn("there is no complete row", stacklevel=2)
        return statistic

    patch.setattr(measures, "moments", warning)
