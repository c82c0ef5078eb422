"""The least and the largest value of arguments are taken, and the next ones beyond are refused."""

from functools import partial

import numpy as np
import pytest
from folded import each

import dpmodels as dp
from dpmodels.errors import ArgumentError
from dpmodels.evaluation import verb as evaluation_verb
from dpmodels.mechanisms.counts.tree import Tree
from dpmodels.mechanisms.tables import TABLES
from dpmodels.models import etable, split
from dpmodels.planning import power

# A mechanism, its option, the least and the largest value.
OPTIONS = (
    ("coinpress", "largest", 1e-9, 1.0),
    ("coinpress", "rounds", 1, 20),
    ("ellipsoid", "alike", 0.001, 1000.0),
    ("gradients", "share", 0.001, 0.9),
    ("gradients", "steps", 1, 10_000),
    ("graph", "rounds", 1, 2),
    ("grid", "side", 2, 2**24),
    ("iterative", "directions", 1, None),
    ("objective", "ridge", 1e-6, 1e12),
    ("objective", "share", 0.001, 0.9),
    ("output", "ridge", 1e-6, 1e12),
    ("power", "iterations", 1, 10_000),
    ("tree", "fanout", 2, 2**24),
)
KINDS = {name: kind for table in TABLES.values() for name, kind in table.items()} | {"tree": Tree}
BOOK = dp.codebook(a=(0, 1))
FIT = dp.dp_mean("~ a", {"a": [0.5] * 20}, codebook=BOOK, eps=1.0)


def scored(rows, first, second):
    """A recipe of two stages."""
    return 0.0


STUDY = partial(dp.evaluate, {"flat": partial(dp.dp_hist, "~ v")}, {"flat": np.ones(8)})
POWER = partial(dp.power, "~ a", codebook=BOOK, eps=1.0, effect=0.5)
# Where an argument is checked, a call, the argument, the least and the largest value.
ARGUMENTS = (
    (evaluation_verb, STUDY, "repeats", 2, 100_000),
    (evaluation_verb, STUDY, "scale", 1, 2**31),
    (evaluation_verb, STUDY, "seed", 0, 2**63),
    (etable, partial(dp.etable, [FIT]), "digits", 1, 6),
    (power, POWER, "n", 10, 10**7),
    (split, partial(dp.split_budget, scored, [], eps=1.0), "repeats", 2, 10_000),
)


def beyond(value, step):
    """The next number below or above."""
    return value + step if isinstance(value, int) else float(np.nextafter(value, step * np.inf))


@each("mechanism, name, least, largest", OPTIONS)
def test_options_of_mechanisms_are_taken_up_to_their_bounds(mechanism, name, least, largest):
    kind = KINDS[mechanism]
    assert getattr(kind(**{name: least}), name) == least
    with pytest.raises(ArgumentError, match=f"^{name}="):
        kind(**{name: beyond(least, -1)})
    if largest is not None:
        assert getattr(kind(**{name: largest}), name) == largest
        with pytest.raises(ArgumentError, match=f"^{name}="):
            kind(**{name: beyond(largest, 1)})


class TakenError(Exception):
    """An argument was taken."""


@each("module, ask, name, least, largest", ARGUMENTS)
def test_arguments_of_functions_are_taken_up_to_their_bounds(
    monkeypatch, module, ask, name, least, largest
):
    check = module.integer

    def stopping(argument, *rest):
        check(argument, *rest)
        if argument == name:
            raise TakenError

    with monkeypatch.context() as patch:
        patch.setattr(module, "integer", stopping)
        for value, step in ((least, -1), (largest, 1)):
            with pytest.raises(TakenError):
                ask(**{name: value})
            with pytest.raises(ArgumentError, match=f"^{name}="):
                ask(**{name: value + step})
