"""What every release says: how it was made, what it cost, the card of its mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpmodels.privacy import Adjacency, Event, Guarantee, Pufferfish


@dataclass(frozen=True)
class Card:
    """What a mechanism promises, in the words its table prints."""

    name: str  # the word that selects it
    theorem: str
    sensitivity: str  # the inequality that the theorem rests on
    noise: str
    numerics: str  # "exact lattice": the guarantee holds to the last bit, or "idealised"
    source: str


@dataclass(frozen=True)
class Shared:
    """How disjoint sites made one release."""

    protocol: str  # the word that selects it
    sites: tuple[str, ...]  # public names of those that took part
    sees: str  # what the aggregator sees of a site
    holds: str  # against whom the guarantee holds
    numbers: int  # that each site sent; 0 where it sent none
    size: int  # of these, in bytes


@dataclass(frozen=True, kw_only=True)
class Released:
    """What every release has beside its values and the law of their noise.

    Attributes
    ----------
    rows : int or None
        Number of rows read, where that is public: of persons, if each counts as one, else the most
        that they have.
    card : Card
        The mechanism.
    guarantee : Guarantee
        What the release satisfies.
    adjacency : Adjacency
        Between which neighbours.
    events : tuple of Event
        What an accountant composes.
    simulated : bool
        True inside ``dp.simulation``: then nothing here is private.
    shared : Shared or None
        How sites made it; None where the rows were in one place.
    subset : str or None
        The condition on the rows that counted; None where all did.
    table : tuple of (str, str) or None
        Public facts on how the table was read, as headings and texts of a report.
    whole : str or None
        Digest of the release that it was taken from at no further cost; None where it is all.
    """

    rows: int | None
    card: Card
    guarantee: Guarantee | Pufferfish
    adjacency: Adjacency
    events: tuple[Event, ...]
    simulated: bool
    shared: Shared | None = None
    subset: str | None = None
    whole: str | None = None
    table: tuple[tuple[str, str], ...] | None = None

    # Fields that the first version had not: no digest is of them where they are None.
    later: ClassVar[frozenset[str]] = frozenset({"subset", "whole", "table"})
