"""Scores: from a released vector to one number, larger where the neighbour is likelier.

Each is learnt on runs of its own. The table names every one of them.
"""

from dpmodels.audit.scores.atoms import low_bits, repeated_coordinate, repeats
from dpmodels.audit.scores.classifier import logistic, nearest
from dpmodels.audit.scores.learned import Learner as Learner
from dpmodels.audit.scores.learned import Score as Score
from dpmodels.audit.scores.learned import coarsened as coarsened
from dpmodels.audit.scores.linear import coordinate, difference, whitened
from dpmodels.audit.scores.quadratic import laplace, norm, normal

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
