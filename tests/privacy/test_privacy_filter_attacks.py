"""No adaptive analyst of a wide family exceeds what a ledger's filter holds: by exact values."""

import random

import pytest
from adaptive_attacks import PLACES, Attack, Move, Tight

from dpmodels.privacy import ApproxDP
from dpmodels.privacy.filters import Filter

GUARANTEES = [ApproxDP(1.0, 1e-6), ApproxDP(0.5, 0.05), ApproxDP(3.0, 1e-6), ApproxDP(0.1, 1e-3)]
# Sums of mu**2 may exceed theirs by 1e-9, a plan's delta its own by 1e-6; sums over the grid are
# good to 5e-6 for these.
SLACK = 1e-5


class Either:
    """Two filters, of which one is chosen at the end: no filter either."""

    def __init__(self, guarantee):
        self.guarantee = guarantee
        self.both = Filter(guarantee), Filter(guarantee, 0.5 * guarantee.eps, "gaussian")

    def plus(self, totals, events):
        before = totals if isinstance(totals, tuple) else (totals, totals)
        return tuple(
            ledger_filter.plus(totals_before, events)
            for ledger_filter, totals_before in zip(self.both, before, strict=True)
        )

    def holds(self, totals):
        return any(value.holds(total) for value, total in zip(self.both, totals, strict=True))


def moves(draw, n_moves):
    return tuple(
        Move(
            draw.choice(["gaussian", "gaussian", "pure", "ranged"]),
            draw.choice([0.02, 0.1, 0.25, 0.5, 0.7, 0.9, 0.97, 0.999, 1.0]),
            draw.choice(PLACES),
        )
        for _ in range(n_moves)
    )


@pytest.mark.parametrize("kind", ["", "zcdp", "steps"])
@pytest.mark.parametrize("share", [0.0, 0.4])
@pytest.mark.parametrize("guarantee", GUARANTEES[:2])
def test_no_analyst_exceeds_the_guarantee(guarantee, share, kind):
    attack = Attack(Filter(guarantee, share * guarantee.eps, kind), moves(random.Random(1), 3))
    assert attack.value(3) <= guarantee.delta * (1 + SLACK)


@pytest.mark.parametrize("guarantee", GUARANTEES[:2])
def test_the_attack_reaches_what_is_held(guarantee):
    attack = Attack(Filter(guarantee), (Move("gaussian", 0.5), Move("pure", 0.3)))
    assert attack.value(3) >= guarantee.delta * (1 - 1e-6)


@pytest.mark.product
@pytest.mark.parametrize("rule", [Tight, Either])
def test_the_attack_finds_rules_that_are_no_filters(rule):
    result = rule(ApproxDP(1.0, 1e-6))
    attack = Attack(result, (Move("gaussian", 0.7), Move("pure", 0.3)))
    assert attack.value(3) > 1.01 * result.guarantee.delta


@pytest.mark.slow
def test_no_analyst_of_many_exceeds_the_guarantee(reduced):
    draw = random.Random(2)
    for _ in range(2 if reduced else 12):
        for guarantee in GUARANTEES:
            for kind in ("", "gaussian", "zcdp", "steps"):
                ledger_filter = Filter(
                    guarantee, draw.choice([0.0, 0.4, 0.8]) * guarantee.eps, kind
                )
                n_moves = draw.choice([2, 3, 4])
                value = Attack(ledger_filter, moves(draw, n_moves)).value(
                    {2: 6, 3: 5, 4: 4}[n_moves]
                )
                assert value <= guarantee.delta * (1 + SLACK)
