"""Scores: from a released vector to one number, larger where the neighbour is likelier.

Each is learnt on separate runs. `SCORES` names all of them.
"""

from dpmodels.audit.scores.learned import Learner as Learner
from dpmodels.audit.scores.learned import Score as Score
from dpmodels.audit.scores.learned import coarsened as coarsened
from dpmodels.audit.scores.learned import (
    coordinate,
    difference,
    laplace,
    logistic,
    low_bits,
    nearest,
    norm,
    normal,
    repeated_coordinate,
    repeats,
    whitened,
)

SCORES: dict[str, Learner] = {
    "difference": difference,
    "whitened": whitened,
    "coordinate": coordinate,
    "quadratic": normal,
    "laplace": laplace,
    "norm": norm,
    "logistic": logistic,
    "nearest": nearest,
    "repeats": repeats,
    "repeated coordinate": repeated_coordinate,
    "low bits": low_bits,
}
