"""A statistic adds, and hands its integers to a mechanism alone."""

import copy
import pickle

import numpy as np
import pytest

from dpmodels.errors import PrivacyError
from dpmodels.statistics import Statistic
from dpmodels.statistics.moments import numbers_by_cell

LARGE = 10**30


def make(value, rows):
    return Statistic("sum", np.array([[value, 1], [1, 2]], dtype=object), rows)


def test_parts_add_without_overflow():
    exact, rows = (make(LARGE, 3) + make(LARGE + 1, 4)).cross()
    assert exact.tolist() == [[2 * LARGE + 1, 2], [2, 4]]
    assert rows == 7


def test_adding_leaves_the_parts_as_they_were():
    first, second = make(5, 1), make(7, 1)
    first + second
    assert first.cross()[0][0, 0] == 5
    assert second.cross()[0][0, 0] == 7


def test_its_text_shows_its_name_and_nothing_else():
    assert repr(make(LARGE, 12345)) == str(make(1, 1)) == "<Statistic sum, not released>"


@pytest.mark.parametrize("copier", [pickle.dumps, copy.copy, copy.deepcopy])
def test_it_is_not_copied(copier):
    with pytest.raises(PrivacyError, match="cannot be pickled or copied"):
        copier(make(1, 1))


def test_it_takes_no_further_attributes():
    with pytest.raises(AttributeError):
        make(1, 1).note = "x"


LIMITS = [
    (),
    (1.0,),
    (-1.0, 0.0, 0.0, 1.5, np.inf),
    (1.0, 1.001),
    tuple(0.25 * 2.0 ** (np.arange(25) / 4)),
    (5e-324, 1e-310, 1.5),
]


@pytest.mark.parametrize("limits", LIMITS)
def test_numbers_by_cell_are_those_of_looking_up_each_value(limits):
    values = np.random.default_rng(1).normal(size=300).round(1)
    values[:5] = np.nan, np.inf, -np.inf, 0.0, -0.0
    near = [np.nextafter(limit, to) for limit in limits for to in (-np.inf, limit, np.inf)]
    values = np.concatenate([values, near])
    cells = np.searchsorted(limits, values)
    expected = np.bincount(cells, minlength=len(limits) + 1)
    assert numbers_by_cell(values, limits).tolist() == expected.tolist()
    assert numbers_by_cell(values[:0], limits).tolist() == [0] * (len(limits) + 1)
