"""What a table of results side by side says of each one's release."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from dpmodels.privacy import BoundedRangeEvent, GaussianEvent, LaplaceEvent
from dpmodels.report import Fact, Row
from dpmodels.results.base import release_row
from dpmodels.results.etable_columns import Column
from dpmodels.results.etable_releases import together
from dpmodels.results.reading_line import is_local, protected

LAWS: Final = {
    GaussianEvent: "Gaussian",
    LaplaceEvent: "Laplace",
    BoundedRangeEvent: "exponential mechanism",
}


def _neighbours(release: Any) -> str:
    local = is_local(release) and not release.events
    return "one respondent's answers" if local else str(release.adjacency.describe())


def _law(release: Any) -> str:
    """Name the laws of the noise; of what is no law by name, the mechanism's own."""
    if is_local(release) and not release.events:
        return "coins of respondents"
    return ", ".join(
        dict.fromkeys(LAWS.get(type(event), "of its own law") for event in release.events)
    )


# What is the same for all columns stands once, above the table.
SHARED: Final[dict[str, Callable[[Any], str]]] = {
    "Neighbours": _neighbours,
    "Numerics": lambda release: str(release.card.numerics),
    "Subset": lambda release: release.subset or "all rows",
}


# What differs stands in rows, in fewer words.
APART: Final[dict[str, dict[str, Callable[[Any], str]]]] = {
    **{name: {name: said} for name, said in SHARED.items()},
    "Neighbours": {
        "Neighbours": lambda release: str(release_row(release)["adjacency"]),
        "Protected": lambda release: protected(release.adjacency, is_local(release), 1),
    },
}


def common_facts(columns: Sequence[Column]) -> tuple[Fact, ...]:
    """Return what all releases have in common; of a subset nothing where there is none."""
    facts = []
    for name, said in SHARED.items():
        told = {said(column.result.release) for column in columns}
        if len(told) == 1 and told != {"all rows"}:
            facts.append((name, told.pop()))
    return tuple(facts)


def privacy_rows(columns: Sequence[Column]) -> list[Row]:
    """Return a row for each budget word that is used, then what differs between the releases."""
    releases = [column.result.release for column in columns]
    lines = [release_row(release) for release in releases]
    for own in lines:
        own["delta"] = math.nan if math.isnan(own["eps"]) else own["delta"]
    rows = [Row("Privacy", ("",) * len(columns), heading=True)]
    for name in ("eps", "delta", "rho"):
        told = tuple("" if math.isnan(own[name]) else f"{own[name]:g}" for own in lines)
        if name != "delta" or any(own["delta"] > 0 for own in lines):
            rows += [Row(name, told)] * any(told)
    for name, said in SHARED.items():
        if len(set(map(said, releases))) > 1:
            rows += [Row(label, tuple(map(of, releases))) for label, of in APART[name].items()]
    rows.append(Row("Mechanism", tuple(release.card.name for release in releases)))
    rows.append(Row("Noise", tuple(map(_law, releases))))
    return [*rows, *_which(columns)]


def _which(columns: Sequence[Column]) -> list[Row]:
    """Letter the releases where two columns share one."""
    found = together(columns)
    models = {name: at for at, names in enumerate(found.values()) for name in names}
    own = [models[column.model] for column in columns]
    if len(set(own)) == len(own):
        return []
    return [Row("Release", tuple(_letter(at) for at in own))]


def _letter(at: int) -> str:
    return chr(ord("A") + at) if at < 26 else f"A{at}"
