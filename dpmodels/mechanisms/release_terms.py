"""What a release says of how it was made, whatever its values are."""

from __future__ import annotations

from typing import Any

from dpmodels.noise import simulating
from dpmodels.released import Card


def release_terms(card: Card, plan: Any, rows: int) -> dict[str, Any]:
    """Return the fields that all releases share; the number of rows goes along where public."""
    adjacency = plan.facts.adjacency
    return {
        "rows": rows if adjacency.n_public else None,
        "card": card,
        "guarantee": plan.guarantee,
        "adjacency": adjacency,
        "events": plan.events,
        "simulated": simulating(),
    }
