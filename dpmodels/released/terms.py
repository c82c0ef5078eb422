"""The common fields of all releases: mechanism, guarantee, cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpmodels.privacy import Adjacency, Event, Guarantee, Pufferfish


@dataclass(frozen=True)
class MechanismInfo:
    """The description of a mechanism, as tables print it."""

    name: str  # the option that selects it
    theorem: str
    sensitivity: str  # the inequality that the theorem uses
    noise: str
    numerics: str  # "exact lattice": the guarantee holds to the last bit, or "idealised"
    source: str


@dataclass(frozen=True)
class Shared:
    """How disjoint sites made one release."""

    protocol: str  # the option that selects it
    sites: tuple[str, ...]  # public names of the participants
    sees: str  # what the aggregator learns from a site
    holds: str  # against whom the guarantee holds
    numbers: int  # sent by each site; 0 if it sent none
    size: int  # of these, in bytes


@dataclass(frozen=True, kw_only=True)
class Released:
    """The common fields of all releases.

    Attributes
    ----------
    rows : int or None
        Number of rows read, if public: the number of persons if each counts as one, else the
        largest number of rows that they have.
    info : MechanismInfo
        The mechanism.
    guarantee : Guarantee
        The guarantee of the release.
    adjacency : Adjacency
        The neighbouring relation.
    events : tuple of Event
        The privacy events for accountants.
    simulated : bool
        True inside ``dp.simulation``: then nothing here is private.
    shared : Shared or None
        How sites made it; None for rows in one place.
    subset : str or None
        The condition on the rows; None for all rows.
    table : tuple of (str, str) or None
        Public facts on how the table was read, as headings and texts of a report.
    whole : str or None
        Digest of the release of which it is a part at no further cost; None otherwise.
    """

    rows: int | None
    info: MechanismInfo
    guarantee: Guarantee | Pufferfish
    adjacency: Adjacency
    events: tuple[Event, ...]
    simulated: bool
    shared: Shared | None = None
    subset: str | None = None
    whole: str | None = None
    table: tuple[tuple[str, str], ...] | None = None

    # Fields added after the first version: digests omit them where they are None.
    later: ClassVar[frozenset[str]] = frozenset({"subset", "whole", "table"})
