"""What a study is about, in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Asked:
    """What was measured, how often, from which seed, and which algorithms look at next to nothing.

    Attributes
    ----------
    error, about : str
        The error's word, and what it is.
    repeats, seed : int
        Tables drawn in each cell, and where the simulation began.
    baselines : tuple of str
        Names of the algorithms that every study has.
    """

    error: str
    about: str
    repeats: int
    seed: int
    baselines: tuple[str, ...]
