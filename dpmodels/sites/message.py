"""What sites send, and what a joint release says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpmodels.errors import ArgumentError, said
from dpmodels.mechanisms.protocol import Plan
from dpmodels.released import CountsRelease, MomentNoise, MomentsRelease, Shared
from dpmodels.sites.payload import AnyPlan, Summed
from dpmodels.sites.protocol import Trust
from dpmodels.typing import Floats

WEIGHTS = ("rows", "sites")
WORD = 8


def shared_by(
    release: Any,
    trust: Trust,
    names: tuple[str, ...],
    numbers: int = 0,
    word: int = WORD,
    holds: str = "",
) -> Any:
    """Say on a release how its sites took part.

    Parameters
    ----------
    release : MomentsRelease, SubspaceRelease or CountsRelease
        The joint one.
    trust : Trust
        Of the protocol.
    names : tuple of str
        The sites that took part.
    numbers, word : int
        How many numbers each site sent, and bytes of each; 0 where it sent its
        exact statistic or nothing.
    holds : str
        Against whom the guarantee holds, where that depends on the protocol's words.
    """
    against = holds or trust.holds
    shared = Shared(trust.name, names, trust.sees, against, numbers, numbers * word)
    return replace(release, shared=shared)


def coalition(colluders: int) -> str:
    """Name those who may put together what they know."""
    others = {0: "without any site's help", 1: "with one of the sites"}
    helped = others.get(colluders, f"with up to {colluders} of the sites")
    return f"the aggregator {helped}, all of whom follow the protocol"


def checked_weights(weights: object, plan: AnyPlan, protocol: str) -> None:
    """Refuse unknown weights of the sites, and those that need private numbers of rows.

    Raises
    ------
    ArgumentError
        If `weights` is neither ``"rows"`` nor ``"sites"``, or is ``"sites"``
        where the numbers of rows are private or rows are counted.
    """
    if not isinstance(weights, str) or weights not in WEIGHTS:
        raise ArgumentError(
            f"weights={said(weights)} of protocol {protocol!r}: expected 'rows' (each site in "
            "proportion to its rows) or 'sites' (all alike)"
        )
    moments = isinstance(plan, Plan) and plan.facts.adjacency.n_public
    if weights == "sites" and not moments:
        raise ArgumentError(
            "weights='sites' divides the moments of each site by its number of rows, which has "
            "to be public: write weights='rows', or adjacency='replace'"
        )


def site_weights(weights: str, rows: Sequence[int]) -> Floats:
    """Return what the sum of a site counts, ``N/(S N_s)`` where all sites count alike.

    Of these S a site without rows is none.

    Examples
    --------
    >>> site_weights("sites", [30, 10, 0]).tolist()
    [0.6666666666666666, 2.0, 0.0]
    """
    held = np.array(rows, dtype=np.float64)
    if weights == "rows" or not held.any():
        return np.ones(len(rows))
    return np.where(held > 0, held.sum() / ((held > 0).sum() * np.maximum(held, 1.0)), 0.0)


def weighted(releases: Sequence[Any], weights: Floats) -> Summed:
    """Add releases of disjoint rows; their independent noise adds up in squares.

    Parameters
    ----------
    releases : sequence of MomentsRelease, or of CountsRelease
        Of one plan.
    weights : ndarray, shape (releases,)
        What each counts.
    """
    first = releases[0]
    widening = float(np.sqrt((weights**2).sum()))
    rows = None if first.rows is None else sum(one.rows for one in releases)
    pairs = list(zip(weights.tolist(), releases, strict=True))
    if isinstance(first, CountsRelease):
        values = np.sum([w * one.values for w, one in pairs], axis=0)
        return replace(first, values=values, noise_sd=first.noise_sd * widening, rows=rows)
    assert isinstance(first, MomentsRelease)
    noise = first.noise
    return replace(
        first,
        count=sum(w * one.count for w, one in pairs),
        total=None if first.total is None else np.sum([w * o.total for w, o in pairs], axis=0),
        second=np.sum([w * one.second for w, one in pairs], axis=0),
        noise=MomentNoise(
            noise.count * widening,
            noise.mean * widening,
            noise.diagonal * widening,
            noise.off * widening,
        ),
        rows=rows,
    )
