"""Rounds that follow from the answers before: end to end, whatever the answers were."""

import numpy as np
import pytest
from replayed import honest, prices, replayed, wild

import dpmodels as dp
from dpmodels.design import private_design
from dpmodels.digest import release_digest
from dpmodels.mechanisms import Ellipsoid, Facts, Gauss, Rounds, RoundsPure
from dpmodels.mechanisms.clipping_shells import BEYOND
from dpmodels.mechanisms.regression import Moments, Scores, ScoresPure
from dpmodels.mechanisms.robust_covariance import RobustCovariance
from dpmodels.noise import seeded
from dpmodels.privacy import ZCDP, PureDP, adjacency
from tests.private_rows import private_regression

NAMES = ["x1", "x2", "y"]
CORNERS = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T.astype(float)
AWKWARD = [[np.nan] * 3, [np.nan, 1, 1], [1, 1, np.nan], [np.inf, -np.inf, 1e308], [0, 0, 0]]
POOL = np.vstack([CORNERS, 0.01 * CORNERS, np.eye(3), AWKWARD, [[5e-324, 1e-9, -0.3]]])
MECHANISMS = {
    "rounds": Rounds(),
    "rounds_pure": RoundsPure(),
    "rounds, tails": Rounds(inference=True),
    "gauss, tails": Gauss(fourth=True),
    "ellipsoid": Ellipsoid(),
    "scores": Scores(),
    "scores_pure": ScoresPure(),
    "moments, HC": RobustCovariance(Moments()),
    "ellipsoid, HC": RobustCovariance(Ellipsoid()),
    "scores, HC": RobustCovariance(Scores()),
    "scores_pure, HC": RobustCovariance(ScoresPure()),
    "rounds, HC": RobustCovariance(Rounds(), intercept=False),
    "rounds_pure, HC": RobustCovariance(RoundsPure()),
}

MOMENTS_ALONE = ("rounds", "rounds_pure", "rounds, tails", "gauss, tails")


def bound(rows, regressed, center):
    table = dict(zip(NAMES, rows.T.copy(), strict=True))
    book = dp.codebook.uniform(NAMES, (-1, 1))
    if regressed:
        return private_regression("y ~ x1 + x2", table, book)
    return private_design("~ .", table, book, center=center)


def one_and_other(rng, relation):
    """A table and a neighbour, whose rows stand in another order."""
    base = POOL[rng.integers(len(POOL), size=rng.integers(1, 5))]
    row, changed = POOL[rng.integers(len(POOL), size=2)]
    row = row if rng.integers(2) else np.full(3, np.nan)
    if relation == "replace":
        return np.vstack([base, row[None]]), np.vstack([changed[None], base[::-1]])
    return np.vstack([base, row[None]]), base[::-1]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_whatever_the_answers_a_round_costs_its_event_and_nothing_else_is_told(name, relation):
    """Budgets down to those whose lattice is the coarsest; most of each event is used up."""
    mechanism, rng = MECHANISMS[name], np.random.default_rng(5)
    regressed, largest = name not in MOMENTS_ALONE, 0.0
    for draw in range(12):
        rho = 10.0 ** rng.uniform(*((-8, 1) if draw % 3 else (-20, -16)))
        guarantee = PureDP(rho**0.5) if "pure" in name and draw % 2 else ZCDP(rho)
        center = regressed or draw % 3 > 0
        plan = mechanism.plan(Facts(3, adjacency(relation), centred=center), guarantee)

        def release(rows, plan=plan, center=center):
            statistic = mechanism.measure(bound(rows, regressed, center), plan)
            return mechanism.release(statistic, plan, seeded(1))

        left, right = one_and_other(rng, relation)
        answers = honest if draw % 4 == 0 else wild
        (first, second), rounds = replayed(
            lambda rows=left: release(rows), lambda rows=right: release(rows), rng, answers
        )
        assert release_digest(first) == release_digest(second)
        events = list(plan.events)
        if BEYOND in plan.scales and not first.tails.beyond_sd:
            # No row can be outside the ball, and its round is left out.
            del events[-2]
        prices_found = list(prices(events, rounds))
        assert max(prices_found) <= 1 + 1e-9, prices_found
        largest = max(largest, *prices_found)
    assert largest > 0.9


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("name", ["rounds", "rounds, tails", "ellipsoid", "scores", "scores_pure"])
def test_the_smallest_budgets_that_a_plan_accepts_give_a_release(name, relation):
    mechanism = MECHANISMS[name]
    plan = mechanism.plan(Facts(3, adjacency(relation), centred=True), ZCDP(1e-20))
    statistic = mechanism.measure(bound(POOL[:3], not name.startswith("rounds"), True), plan)
    assert np.isfinite(mechanism.release(statistic, plan, seeded(1)).second).all()
