"""The public bound on the trace of a second moment."""

from __future__ import annotations

from dpmodels.mechanisms.protocol import Facts


def trace_cap(facts: Facts, rows: int) -> float | None:
    """Return the number of rows read, at least 1, where it is public, else None.

    Each row of the unit ball adds at most 1 to the trace.
    """
    return float(max(rows, 1)) if facts.adjacency.n_public else None
