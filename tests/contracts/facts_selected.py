"""Public facts of several sizes of selections, for the laws of the plan."""

from dpmodels.mechanisms.association_score import AssociationScore, GainScore
from dpmodels.mechanisms.screening_plan import ScreenFacts
from dpmodels.mechanisms.selection_plan import LevelScore, SelectionFacts
from dpmodels.privacy import Adjacency


def ranked(name: str, relation: Adjacency, way: str) -> tuple[SelectionFacts, ...]:
    """Levels."""
    sizes = ((2, 1, 0.0), (40, 40, 0.5)) if way == "one" else ((9, 2, 1 / 3), (10**6, 10, 0.01))
    return tuple(
        SelectionFacts(LevelScore(size), n_selected, None, share, relation)
        for size, n_selected, share in sizes
    )


def columns(name: str, relation: Adjacency, way: str) -> tuple[SelectionFacts, ...]:
    """Columns, by the way they are ranked."""
    kind = "correlation" if way == "correlation" else "z"
    smallest = 0.1 if name == "sparse_vector" else None
    sizes = ((2, 1, 0.5), (1_000, 10, 0.01), (9, 9, 0.0))
    return tuple(
        SelectionFacts(
            GainScore(size) if way == "gain" else AssociationScore(size, kind),
            *(n_selected, smallest, share, relation),
        )
        for size, n_selected, share in sizes
    )


def screened(name: str, relation: Adjacency, way: str) -> tuple[ScreenFacts, ...]:
    """Columns that are tested."""
    sizes = (1, 1), (20, 5), (1_000, 100)
    return tuple(ScreenFacts(size, n_selected, way, relation) for size, n_selected in sizes)
