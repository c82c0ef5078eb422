"""Whether the parts of a result on randomised answers go together."""

from __future__ import annotations

import math

from dpmodels.errors import FrameError
from dpmodels.released import Channel
from dpmodels.results.survey import SurveyResult

# How far from 1 the sum of a law may be, as its entries are rounded.
NEAR = 1e-9


def require_answers(result: SurveyResult) -> None:
    """Refuse answers that contradict themselves, or are not of the table's questions."""
    (facts,), release = result.call.tables, result.release
    sizes = (facts.cells + 1,) if result.rowwise else facts.shape
    if len(release.channels) != len(sizes):
        raise FrameError("release.channels: expected one a question")
    for own, size in zip(release.channels, sizes, strict=True):
        require_channel(own, size)
    weights = [own for own in (release.weights, release.squares) if own is not None]
    if len(weights) == 1 or not all((own >= 0).all() for own in (release.values, *weights)):
        raise FrameError("arrays 'values', 'weights', 'squares': expected sums of weights")
    if release.shares is not None and len(release.shares) != len(release.strata):
        raise FrameError("release.shares: expected one a stratum")
    if release.incomplete < 0:
        raise FrameError("release.incomplete: expected a number of respondents")


def require_channel(own: Channel, size: int) -> None:
    """Refuse what is the channel of no question of so many levels."""
    total = math.fsum(own.law)
    known = abs(total - 1) < NEAR if own.how else own.truth == 1
    if len(own.law) != size or not 0 < own.truth <= 1 or min(own.law) < 0 or not known:
        raise FrameError("release: a channel is no device of its question")
