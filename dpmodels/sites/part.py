"""One site's part of a joint release as a letter, and the release that all letters make."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import FrameError
from dpmodels.noise import simulating, source
from dpmodels.question import canonical
from dpmodels.sites.key_file import Seat
from dpmodels.sites.letter import Letter
from dpmodels.sites.protocol import LetterProtocol
from dpmodels.statistics import Statistic

_DTYPES = {"floats": "<f8", "words": "<u8"}


def write_part(
    protocol: LetterProtocol,
    strategy: Any,
    statistic: Statistic,
    plan: Any,
    terms: dict[str, Any],
    site: str,
    seat: Seat | None,
) -> Letter:
    """Return a site's letter; called once, after the charge."""
    terms = {**terms, "basis": statistic.fingerprint.digest}
    session = canonical(terms)
    values = protocol.part(strategy, statistic, plan, seat, session, source())
    kind, shape = protocol.shape(plan)
    assert values.shape == shape
    _, rows = statistic.cross()
    return Letter(
        terms=terms,
        site=site,
        rows=rows if plan.facts.adjacency.n_public else None,
        values=values.astype(_DTYPES[kind]).tobytes(),
        shape=shape,
        kind=kind,
        number=secrets.token_hex(16),
        simulated=simulating(),
    )


def join_parts(
    protocol: LetterProtocol, strategy: Any, letters: Sequence[Letter], plan: Any, basis: str
) -> Any:
    """Make the release of the letters of all sites, at no further cost."""
    if any(own.terms["basis"] != basis for own in letters):
        raise FrameError(
            "the sites wrote integers on another lattice than these terms give: they used "
            "another version of dpmodels"
        )
    names = tuple(own.site for own in letters)
    rows = [0 if own.rows is None else own.rows for own in letters]
    parts = [_read(own, *protocol.shape(plan)) for own in letters]
    release = protocol.whole(strategy, parts, names, rows, plan)
    shared = replace(release.shared, size=len(letters[0].values))
    return replace(release, simulated=letters[0].simulated, shared=shared)


def protocol_terms(protocol: Any) -> dict[str, Any]:
    """Return a protocol as plain values."""
    return {"name": protocol.trust.name, **asdict(protocol)}


def _read(letter: Letter, kind: str, shape: tuple[int, ...]) -> NDArray[Any]:
    length = 8 * int(np.prod(shape))
    if letter.kind != kind or letter.shape != shape or len(letter.values) != length:
        raise FrameError(f"site {letter.site!r} sent values of another shape than the terms give")
    values = np.frombuffer(letter.values, dtype=_DTYPES[kind])
    return values.astype(np.float64 if kind == "floats" else np.uint64).reshape(shape)
