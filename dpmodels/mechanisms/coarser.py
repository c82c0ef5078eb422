"""A coarser lattice for planned noise, where some larger noise is to fit too."""

from __future__ import annotations

from dataclasses import astuple
from typing import NamedTuple

from dpmodels.noise.lattice import Lattice, choose_lattice
from dpmodels.released import MomentNoise


class Coarser(NamedTuple):
    """A lattice and the scales of the noise on it, in lattice steps."""

    lattice: Lattice
    steps: MomentNoise


def coarser(lattice: Lattice, steps: MomentNoise, sigma: float, smallest: float) -> Coarser:
    """Return the same noise on the finest lattice that holds noise of scale `sigma` too.

    `sigma` is in units of the squared unit length, `steps` and `smallest` in lattice steps.

    BudgetError if `sigma` leaves no useful lattice.
    """
    other = choose_lattice(lattice.columns, sigma)
    if other.bits >= lattice.bits:
        return Coarser(lattice, steps)
    shrink = (other.radius / lattice.radius) ** 2
    # A nan stays nan: max keeps its first.
    return Coarser(other, MomentNoise(*(max(step * shrink, smallest) for step in astuple(steps))))
