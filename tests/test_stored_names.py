"""Digests, ledgers and files hold the names that classes and fields had when they were written."""

from dataclasses import fields, is_dataclass
from typing import get_args

import numpy as np

from dpmodels.digest import release_digest
from dpmodels.external_files import CLASSES, FIELDS, class_name, field_names, fields_of
from dpmodels.mechanisms import Gauss
from dpmodels.privacy import PureDP, adjacency
from dpmodels.released import AnyRelease, CountsRelease, MechanismInfo
from dpmodels.results.store import arrays_of

KINDS = get_args(AnyRelease)


def _classes(kind):
    """The dataclass and all in its fields."""
    yield kind
    for shape in fields_of(kind).values():
        for part in (shape, *get_args(shape)):
            if is_dataclass(part):
                yield from _classes(part)


def _all_classes():
    return {part for kind in KINDS for part in _classes(kind)}


def test_a_digest_is_that_of_the_former_names():
    release = CountsRelease(
        values=np.array([3.0, 0.0]),
        law="laplace",
        noise_sd=1.0,
        step=1.0,
        rows=3,
        info=MechanismInfo("geometric", "eps-DP", "1", "discrete Laplace", "exact lattice", "here"),
        guarantee=PureDP(1.0),
        adjacency=adjacency("replace"),
        events=(),
        simulated=True,
    )
    assert release_digest(release) == DIGEST


DIGEST = "18054b8a9c228b096b12496eb3dbbab035b85df1cebae8b604a8ed1b2fcf5f8e"


def test_every_listed_name_is_of_a_class_that_is_stored():
    names = {base.__name__ for kind in _all_classes() for base in kind.__mro__}
    assert CLASSES.keys() <= names
    assert FIELDS.keys() <= names
    for kind in _all_classes():
        stored = FIELDS.get(kind.__name__, {})
        assert stored.keys() <= {field.name for field in fields(kind)}


def test_no_two_classes_or_fields_are_stored_under_one_name():
    kinds = _all_classes()
    assert len({class_name(kind) for kind in kinds}) == len(kinds)
    for kind in kinds:
        assert len(field_names(kind)) == len(fields(kind))


def test_arrays_are_in_fields_that_kept_their_names():
    renamed = {name for names in FIELDS.values() for name in (*names, *names.values())}
    assert not any(renamed & set(path) for kind in KINDS for path, _ in arrays_of(kind))


def test_an_info_is_hashed_by_its_former_class_name():
    assert class_name(type(Gauss.info)) == "Card"
    assert field_names(CountsRelease)["card"] == "info"
