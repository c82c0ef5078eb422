"""Counts by group, ending and interval: what they are counts of."""

from types import SimpleNamespace

import pytest

from dpmodels.results.call import TableCall
from dpmodels.results.survival_curve import SurvivalCounts

ENDINGS, TIMES, GROUPS = ("censored", "event"), ("1", "2", "3"), ("u", "v")


def counts(*factors):
    call = SimpleNamespace(tables=(TableCall(*zip(*factors, strict=True)),))
    return SurvivalCounts(call, None, (1.0, 2.0, 3.0))


@pytest.mark.parametrize("groups", [(), (("g", GROUPS),), (("g", GROUPS), ("h", ("a", "b", "c")))])
def test_times_of_groups_are_without_the_endings(groups):
    timed = counts(*groups, ("ending", ENDINGS), ("time", TIMES)).timed
    assert timed.factors == (*(name for name, _ in groups), "time")
    assert timed.levels == (*(levels for _, levels in groups), TIMES)
