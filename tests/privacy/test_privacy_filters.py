"""Whatever an analyst chooses after seeing answers, the ledger's guarantee holds: by exact values.

The value of a strategy is its delta at the ledger's eps: the expectation of
``max(1 - exp(eps - L), 0)`` over the privacy loss L of everything it asked. Its supremum over all
strategies of a family is found by backward induction, without sampling: an answer of an eps-private
release has the loss eps or -eps (randomised response, the worst), a Gaussian one a normal loss.
"""

import math
from functools import cache

import numpy as np
import pytest
from adaptive_attacks import Tight
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, ndtr, ndtri

from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.privacy import (
    ZCDP,
    ApproxDP,
    BoundedRangeEvent,
    GaussianEvent,
    Ledger,
    PureDP,
    PureEvent,
    gaussian_multiplier,
    split_gaussian,
    total_eps,
    total_rho,
)
from dpmodels.privacy.calibrate import hockey_stick
from dpmodels.privacy.compose import Totals, pure_mu
from dpmodels.privacy.filters import Filter

GUARANTEES = [ApproxDP(0.5, 0.05), ApproxDP(1.0, 1e-6), ApproxDP(3.0, 1e-6), ApproxDP(0.1, 1e-3)]


def largest(ledger_filter, totals, event):
    """The largest x for which event(x) is accepted; zero if none is."""
    # To 1e-9, from below.
    fits, too_much = 0.0, 64.0
    for _ in range(36):
        tried = (fits + too_much) / 2
        if tried > 0 and ledger_filter.holds(ledger_filter.plus(totals, [event(tried)])):
            fits = tried
        else:
            too_much = tried
    return fits


def normal(mu):
    return GaussianEvent(1 / mu)


def shortfall(eps):
    return -np.expm1(np.minimum(eps, 0.0))


def last_values(ledger_filter, totals, losses, eps):
    """What the best last release makes of each loss so far."""
    pure, mu, ranged = (
        largest(ledger_filter, totals, e) for e in (PureEvent, normal, BoundedRangeEvent)
    )
    best = shortfall(eps - losses)
    chance = expit(pure)
    delta = chance * shortfall(eps - losses - pure) + (1 - chance) * shortfall(eps - losses + pure)
    best = np.maximum(best, delta)
    if mu > 1e-12:
        best = np.maximum(best, hockey_stick(eps - losses, 1 / mu))
    for odds in np.linspace(-3, 3, 7) + ranged / 2 if ranged else ():
        up, down = np.log(expit(odds) / expit(odds - ranged)), None
        down = up - ranged
        chance = expit(odds)
        delta = chance * shortfall(eps - losses - up) + (1 - chance) * shortfall(
            eps - losses - down
        )
        best = np.maximum(best, delta)
    return best


def value_after_responses(ledger_filter, first, count, limit):
    """The best strategy of up to `most` randomised responses and one free last release.

    Parameters
    ----------
    own : Filter
        What accepts.
    first : float
        Eps of each response.
    count : int
        Responses that are asked for in any case, as the first charges.
    most : int
    """
    eps, totals = ledger_filter.guarantee.eps, [Totals()]
    while len(totals) <= limit:
        after = ledger_filter.plus(totals[-1], [PureEvent(first)])
        if not ledger_filter.holds(after):
            break
        totals.append(after)
    chance, values = expit(first), None
    for step in range(len(totals) - 1, -1, -1):
        losses = first * (2 * np.arange(step + 1) - step)
        left = last_values(ledger_filter, totals[step], losses, eps)
        if values is not None:
            left = np.maximum(left, chance * values[1:] + (1 - chance) * values[:-1])
            if step < count:
                left = chance * values[1:] + (1 - chance) * values[:-1]
        values = left
    return float(values[0])


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("kind", ["", "gaussian", "zcdp"])
@pytest.mark.parametrize("share", [0.0, pytest.param(0.4, marks=pytest.mark.product)])
def test_two_stages_and_sixteen(guarantee, kind, share):
    ledger_filter = Filter(guarantee, share * guarantee.eps, kind)
    for first in (0.02, 0.2, 0.6):
        for count, limit in ((1, 1), (0, 16)):
            value = value_after_responses(ledger_filter, first * guarantee.eps, count, limit)
            assert value <= guarantee.delta * (1 + 2e-6)


@pytest.mark.product
def test_many_small_answers_and_a_free_last_one():
    for kind in ("", "zcdp"):
        ledger_filter = Filter(ApproxDP(1.0, 1e-6), kind=kind)
        assert value_after_responses(ledger_filter, 0.01, 0, 200) <= 1e-6 * (1 + 2e-6)


@pytest.mark.expensive
@pytest.mark.parametrize(
    ("guarantee", "first", "limit", "smallest"),
    [(ApproxDP(0.5, 0.05), 0.1, 1, 1.3), (ApproxDP(1.0, 1e-6), 0.02, 16, 2.0)],
)
def test_tight_composition_is_no_filter(guarantee, first, limit, smallest):
    value = value_after_responses(Tight(guarantee), first, 1, limit)
    assert value > smallest * guarantee.delta


# --- Gaussian first: the loss is a normal variable on a fine grid


@cache
def _grid():
    return np.linspace(-14.0, 14.0, 5601)


def gaussian_step(values, mu):
    """The expectation of a value after one more Gaussian answer, by normal masses of cells."""
    z = np.linspace(-8.5, 8.5, 681)
    mass = np.diff(ndtr(np.concatenate([[-np.inf], (z[1:] + z[:-1]) / 2, [np.inf]])))
    grid, after = _grid(), np.zeros_like(values)
    for node, weight in zip(z, mass, strict=True):
        after += weight * np.interp(grid + mu * mu / 2 + mu * node, grid, values)
    return after


@pytest.mark.parametrize("guarantee", [ApproxDP(0.5, 0.05), ApproxDP(1.0, 1e-3)])
@pytest.mark.parametrize("share", [0.0, 0.4])
def test_gaussian_answers_and_then_anything(guarantee, share):
    """Up to four Gaussian answers, after each of which the last release is chosen."""
    ledger_filter = Filter(guarantee, share * guarantee.eps)
    total = 1 / gaussian_multiplier(ApproxDP((1 - share) * guarantee.eps, guarantee.delta))
    mu, totals = total / math.sqrt(5), [Totals()]
    for _ in range(4):
        totals.append(ledger_filter.plus(totals[-1], [normal(mu)]))
        assert ledger_filter.holds(totals[-1])
    values = last_values(ledger_filter, totals[4], _grid(), guarantee.eps)
    for step in (3, 2, 1, 0):
        values = gaussian_step(values, mu)
        if step:
            values = np.maximum(
                values, last_values(ledger_filter, totals[step], _grid(), guarantee.eps)
            )
    # The grid's masses and interpolation are good to 1e-4 of the value.
    assert values[_grid().size // 2] <= guarantee.delta * (1 + 1e-3)


# --- what is accepted


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(GUARANTEES),
    st.lists(st.floats(0.01, 1), min_size=1, max_size=6),
    st.sampled_from(["", "gaussian"]),
)
def test_parts_of_an_exact_gaussian_split_are_accepted_one_by_one(guarantee, weights, kind):
    ledger_filter, totals = Filter(guarantee, kind=kind), Totals()
    for part in split_gaussian(gaussian_multiplier(guarantee), weights):
        totals = ledger_filter.plus(totals, [GaussianEvent(part)])
        assert ledger_filter.holds(totals)
    assert ledger_filter.spent(totals).amount == pytest.approx(guarantee.eps, rel=1e-7)
    assert not ledger_filter.holds(ledger_filter.plus(totals, [normal(1e-3 / totals.mu2**-0.5)]))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(GUARANTEES), st.floats(0.01, 0.99))
def test_pure_releases_before_others_leave_the_rest(guarantee, part):
    ledger_filter = Filter(guarantee)
    before = ledger_filter.plus(Totals(), [PureEvent(part * guarantee.eps)])
    rest = ApproxDP((1 - part) * guarantee.eps, guarantee.delta)
    assert ledger_filter.holds(
        ledger_filter.plus(before, [GaussianEvent(gaussian_multiplier(rest))])
    )
    gaussian_event = GaussianEvent(gaussian_multiplier(rest) * (1 - 1e-6))
    assert not ledger_filter.holds(ledger_filter.plus(before, [gaussian_event]))


@pytest.mark.product
@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([*GUARANTEES, PureDP(1.0), ZCDP(0.1)]),
    st.lists(
        st.one_of(
            st.floats(1e-4, 2).map(PureEvent),
            st.floats(0.3, 100).map(GaussianEvent),
            st.floats(1e-4, 2).map(BoundedRangeEvent),
        ),
        max_size=8,
    ),
    st.sampled_from(["", "gaussian", "zcdp"]),
)
def test_spent_is_at_most_the_whole_exactly_where_charges_hold(guarantee, events, kind):
    mixed = isinstance(guarantee, ApproxDP)
    ledger_filter, totals = Filter(guarantee, kind=kind if mixed else ""), Totals()
    total = guarantee.rho if isinstance(guarantee, ZCDP) else guarantee.eps
    for event in events:
        after = ledger_filter.plus(totals, [event])
        assert ledger_filter.holds(after) == (
            ledger_filter.spent(after).amount <= total * (1 + 2e-9)
        )
        assert ledger_filter.spent(after).amount >= ledger_filter.spent(totals).amount * (
            1 - 1e-9
        ) or (totals.charges == 0)
        if not ledger_filter.holds(after):
            break
        totals = after


EVENTS = [PureEvent(0.1), GaussianEvent(5.0, 2), BoundedRangeEvent(0.2), PureEvent(0.3, 3)]


@pytest.mark.parametrize("events", [EVENTS, EVENTS[:1], EVENTS[2:]])
def test_a_ledger_of_one_currency_adds_everything_up(events):
    rho, eps = Filter(ZCDP(1.0)), Filter(PureDP(9.0))
    for one_by_one in (True, False):
        totals, pure = Totals(), Totals()
        for charged in [[event] for event in events] if one_by_one else [events]:
            totals, pure = rho.plus(totals, charged), eps.plus(pure, charged)
        assert rho.spent(totals).amount == pytest.approx(total_rho(events), rel=1e-12)
        assert eps.spent(pure).amount == pytest.approx(total_eps(events, 0.0), rel=1e-12)


def test_gaussian_noise_and_a_few_pure_releases_fit_without_a_share():
    ledger = Ledger(eps=3.0, delta=1e-6)
    ledger.charge([GaussianEvent(gaussian_multiplier(ApproxDP(1.0, 1e-6)))], adjacency="replace")
    for _ in range(2):
        ledger.charge([PureEvent(0.25)], adjacency="replace")


# --- prices


@pytest.mark.parametrize("eps", [1e-6, 1e-3, 0.1, 1.0, 3.0, 10.0, 40.0])
def test_the_price_of_a_pure_release_is_that_of_the_corner_of_randomised_response(eps):
    corner = expit(-eps)
    if 1e-2 < eps < 30:
        assert ndtr(ndtri(1 - corner) - pure_mu(eps)) == pytest.approx(corner, rel=1e-6)
    # A Gaussian's curve lies below randomised response's where its deltas lie above, at every eps.
    at = np.linspace(0, 1.2 * eps, 400)
    response = np.maximum(expit(eps) - np.exp(at) * expit(-eps), 0)
    assert (hockey_stick(at, 1 / pure_mu(eps)) >= response * (1 - 1e-9) - 1e-15).all()


@pytest.mark.parametrize("eps", [0.01, 0.3, 1.0, 4.0, 12.0])
def test_the_worst_release_of_bounded_range_is_the_symmetric_one(eps):
    odds = np.linspace(-30, 30, 60_001) + eps / 2
    with np.errstate(invalid="ignore"):
        mu = ndtri(expit(odds)) - ndtri(expit(odds - eps))
    assert np.nanmax(mu) <= pure_mu(eps / 2) * (1 + 1e-7)


# --- words


@pytest.mark.parametrize(
    ("words", "error", "reported"),
    [
        ({"eps": 1.0, "pure": 0.5}, BudgetError, "pure= and rule= need"),
        ({"eps": 1.0, "delta": 1e-6, "pure": 1.0}, BudgetError, "pure=1 is not in"),
        ({"eps": 1.0, "delta": 1e-6, "pure": "half"}, BudgetError, "is not a finite number"),
        ({"eps": 1.0, "delta": 1e-6, "rule": "rdp"}, ArgumentError, "expected 'gaussian', 'zcdp'"),
        ({"budget": ZCDP(1.0), "rule": "zcdp"}, BudgetError, "leave them out"),
    ],
)
def test_words_that_make_no_sense(words, error, reported):
    with pytest.raises(error, match=reported):
        Ledger(**words)
