"""Exact counts of states in series of persons, each of whom has one state at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmodels.design.cells import PrivateCells, in_cells
from dpmodels.statistics.statistic import Statistic, additive, fingerprint
from dpmodels.typing import Integers


@additive
def state_counts(private: PrivateCells, *, count_public: bool = True) -> Statistic:
    """Count states over all persons and times, last the times without a state.

    The table has a factor of times and one of states. The state of a person at a time is that of
    the first complete row of both: further rows are left out, and rows at other times. So one
    state that is changed moves the counts by 2 altogether, whatever rows there are, and all counts
    add up to as many places as persons have times.
    """
    (tally,) = private.tallies
    steps, states = tally.shape
    found: Integers = np.zeros(states, dtype=np.int64)
    seen = np.zeros((0, steps), dtype=bool)
    places = 0
    for part in private.parts(count_public=count_public):
        places += part.taken
        if part.persons is None:
            continue
        cells = in_cells(tally, part.columns, part.counted).cells
        there = np.flatnonzero((cells >= 0) & (part.persons >= 0))
        person, cell = np.asarray(part.persons)[there].astype(np.int64), cells[there]
        seen = _grown(seen, int(person.max(initial=-1)) + 1)
        slots, first = np.unique(person * steps + cell // states, return_index=True)
        new = ~seen.ravel()[slots]
        seen.ravel()[slots[new]] = True
        found += np.bincount(cell[first[new]] % states, minlength=states)
    times = places // private.neighbours.places * steps
    exact = np.append(found, times - found.sum()).astype(object)
    basis = fingerprint(private.facts, count_public=count_public)
    return Statistic("state counts", exact, times, basis)


def _grown(seen: NDArray[np.bool_], persons: int) -> NDArray[np.bool_]:
    """Make room for persons, twice as much as asked for."""
    more = max(2 * persons - len(seen), 0) if persons > len(seen) else 0
    return np.concatenate([seen, np.zeros((more, seen.shape[1]), dtype=bool)]) if more else seen
