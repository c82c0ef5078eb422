"""What printed reports say of whose rows a release counted, and how they are alike."""

from __future__ import annotations

from dpmodels.privacy import Adjacency
from dpmodels.released import (
    AnyRelease,
    BoughtCurvature,
    CellsRelease,
    CoefficientsRelease,
    LevelsRelease,
    Meat,
    MomentsRelease,
    SelectionRelease,
    SubspaceRelease,
)
from dpmodels.report import count
from dpmodels.results.call import AnyCall, DescribedCall
from dpmodels.results.estimate_table import counted_as as counted_as


def observations(release: AnyRelease) -> str:
    """Say how many rows or persons were read, where that is public."""
    own = release.adjacency
    if release.rows is None:
        return "private"
    if own.person is None:
        return f"{count(release.rows)} (public)"
    persons = f"{count(release.rows // own.design_effect)} persons (public)"
    return persons if own.counts_persons else f"{persons}, at most {count(own.places)} rows each"


def counted_notes(call: AnyCall, release: AnyRelease) -> tuple[str, ...]:
    """Say what rows outside a subset count as, and how sampling errors take rows of one person."""
    subset = (
        "Rows outside the subset count as incomplete ones: how many are in it is not published, "
        "but in the number of complete ones, with its noise."
    )
    kin = {_kin(own) for own in _errors_of(call, release)} if release.adjacency.places > 1 else ()
    return ((subset,) * (release.subset is not None)) + tuple(sorted(kin))


def _errors_of(call: AnyCall, release: AnyRelease) -> tuple[tuple[Adjacency, bool], ...]:
    """Return whether errors are of persons, for each table; nothing where there are no errors."""
    own = release.adjacency
    match release:
        case SubspaceRelease() | CellsRelease() | LevelsRelease() | SelectionRelease():
            return ()
        case MomentsRelease(meat=Meat(person=str())):
            return ()
        case CoefficientsRelease(curvature=None | BoughtCurvature(person=str())):
            return ()
    tables = call.tables if isinstance(call, DescribedCall) else ()
    exact = tuple(own.person is not None and table.degree == 2 for table in tables)
    return tuple((own, one) for one in exact or (False,))


def _kin(of: tuple[Adjacency, bool]) -> str:
    own, exact = of
    if exact:
        return (
            f"Sampling errors of means are clustered by person ({own.person}): each is one "
            "observation, whatever its rows have in common. Standard deviations are of persons."
        )
    if own.counts_persons:
        return (
            "A person counts as one observation, whose sampling error is taken for that of one of "
            "its rows: no interval is too short for it, most are longer than need be."
        )
    kin = "Rows of a person" if own.person else f"Any {own.places} rows"
    return (
        f"{kin} may be alike: sampling errors allow for {own.places} times the variance that "
        "independent rows have, so that no interval is too short for it."
    )
