r"""A filter whose total does not depend on the order of the charges: rule ``"steps"``.

*Rules.* With sums over all charges, P of the pure eps, V of the ``1/m**2`` of Gaussian noise and M
of the ``mu**2`` of every release, charges are accepted while one of these holds:

0. nothing is Gaussian, and ``P <= eps``;
1. without a declared share ``M <= v(eps, .8 delta)``; with a share p ``P <= p`` and
   ``V <= v(eps - p, .8 delta)``;
2. for a step ``p_j = j eps / 32`` of at least the declared share, j from 0 to 31, ``P <= p_j`` and
   ``V <= v(eps - p_j, delta_j)``, ``delta_j = .2 delta / 32``,

where ``v(eps, delta)`` is ``1/m**2`` of the exact Gaussian multiplier. The totals are sums and the
rules are fixed before the first charge, so neither the bill nor what is accepted next depends on
the order of earlier charges.

*Theorem.* These rules together are a valid filter for ``(eps, delta)``.

*Proof.* Totals only grow along a path. Assign every path of the transcript to the first rule that
holds at its end; the rule held all along, so it is a path of the analyst who is stopped by that
rule alone. Let A_j be the paths of rule j, P and Q the distributions on two neighbouring tables.
On A_0 the loss is at most eps. On A_1 without a share, all releases are dominated by Gaussian
ones, whose ``mu**2`` add up under an adaptive choice (`filters`, reference 4):
``P(S & A_1) <= exp(eps) Q(S & A_1) + .8 delta`` for every set S. A rule with a share is that of
`filters`, (b): with R the distribution where the pure releases use the table and the others its
neighbour, ``P(S & A_j) <= exp(eps - p_j) R(S & A_j) + delta_j <= exp(eps) Q(S & A_j) + delta_j``.
The sum over the rules is ``P(S) <= exp(eps) Q(S) + delta``.

*Releases with their own delta* count as pure ones of their eps, and before the first Gaussian
release their deltas add up to D, which is then fixed. Rule 1 without a share holds only on paths
with D = 0, and rules 2 have ``(.2 delta - D) / 32``: by the proof in `filters`, given the path h up
to the first Gaussian release, paths of the rules 0 and 2 add at most ``w (.2 delta - D) + 1 - w``
with ``1 - w <= D``, which is at most .2 delta; rule 1 adds .8 delta as before. If the first charge
of all, chosen before any answer, has its own delta, rule 1 is left out and rules 2 have ``(delta -
D) / 32``. With a declared share all rules have ``delta - D`` in place of delta.

*Numerics.* Sums are rounded up; P may exceed its limit by an ulp for each charge, and V and M by a
relative 2e-10, for which `gaussian_multiplier` has an allowance.
"""

import math
from functools import lru_cache
from typing import Final

from dpmodels.privacy.budget import ApproxDP
from dpmodels.privacy.calibrate import LATTICE_LOSS, gaussian_eps, gaussian_multiplier
from dpmodels.privacy.compose import Totals

# Relative allowances for rounding: of sums of eps for each charge, and of mu**2.
ULP: Final = 2.0**-51
SQUARES: Final = 2e-10
LEAST_DELTA: Final = 1e-300
# Choices: the number of steps, and the fraction of delta of rule 1, for Gaussian releases. More
# steps waste less eps and leave less delta for each.
_STEPS: Final = 32
GAUSSIAN_PART: Final = 0.8


def tolerance(charges: int) -> float:
    """Return what rounding may add to a sum of eps, as a factor."""
    return 1 + charges * ULP


@lru_cache(maxsize=1024)
def squares_limit(eps: float, delta: float) -> float:
    """Return the limit on the sum of ``mu**2``; negative if nothing is left for it."""
    if eps <= 0 or delta < LEAST_DELTA:
        return -1.0
    return gaussian_multiplier(ApproxDP(eps, delta)) ** -2 * (1 + SQUARES)


def squares_eps(delta: float, squares: float) -> float:
    """Return the eps of Gaussian releases with a sum of ``mu**2``."""
    multiplier = squares**-0.5 * (1 - LATTICE_LOSS)
    return gaussian_eps(delta * (1 - 1e-12), multiplier) * (1 + 1e-10)


def failing_limit(guarantee: ApproxDP, totals: Totals) -> float:
    """Return the limit on the sum of the releases' own deltas."""
    planned = math.isinf(totals.mu2)
    has_all = planned or totals.most or not totals.gaussian
    return guarantee.delta * (1.0 if has_all else 1 - GAUSSIAN_PART)


def deltas(guarantee: ApproxDP, totals: Totals) -> tuple[float, float]:
    """Return the delta of rule 1 and that of each step; zero if the rule does not apply."""
    if math.isinf(totals.mu2):
        return 0.0, 0.0
    if totals.most:
        left = max(guarantee.delta - totals.aside, 0.0)
        return GAUSSIAN_PART * left, (1 - GAUSSIAN_PART) * left / _STEPS
    left = max(failing_limit(guarantee, totals) - totals.aside, 0.0)
    main = GAUSSIAN_PART * guarantee.delta if totals.gaussian and not totals.aside else 0.0
    return main, left / _STEPS


def price(guarantee: ApproxDP, totals: Totals) -> tuple[float, str]:
    """Return the eps of all charges by rule 1 or a step, and the name of the rule."""
    if not totals.normal and (totals.most or not totals.mu2):
        return totals.summed, "summed"
    main_delta, step_delta = deltas(guarantee, totals)
    main = stepped = math.inf
    if main_delta and totals.pure <= totals.most * tolerance(totals.charges):
        main = totals.most + squares_eps(main_delta, totals.normal)
    elif main_delta and not totals.most:
        main = squares_eps(main_delta, totals.mu2)
    step = _step(guarantee, totals)
    if step < _STEPS and step_delta >= LEAST_DELTA and totals.normal:
        stepped = guarantee.eps * step / _STEPS + squares_eps(step_delta, totals.normal)
    amount, rule = min((main, "GDP"), (stepped, "steps"))
    return (min(amount, guarantee.eps) if accepts(guarantee, totals) else amount), rule


def accepts(guarantee: ApproxDP, totals: Totals) -> bool:
    """Return whether rule 1 or a step holds."""
    return (
        _main_fraction(guarantee, Totals(), totals) <= 1
        or _step_fraction(guarantee, Totals(), totals) <= 1
    )


def fraction_used(guarantee: ApproxDP, before: Totals, after: Totals) -> float:
    """Return the fraction of the remaining budget that a charge used; above 1 if refused.

    Of the rules' limits, under the rule of which it used least.
    """
    pure = math.inf if after.normal else fraction(before.pure, after.pure, guarantee.eps)
    main = _main_fraction(guarantee, before, after)
    return min(pure, main, _step_fraction(guarantee, before, after))


def fraction(before: float, after: float, limit: float) -> float:
    """Return the fraction of what is left of a limit that a charge used."""
    if after == before:
        return 0.0 if before <= limit else math.inf
    return (after - before) / (limit - before) if before < limit else math.inf


def _main_fraction(guarantee: ApproxDP, before: Totals, after: Totals) -> float:
    delta, _ = deltas(guarantee, after)
    limit = squares_limit(guarantee.eps - after.most, delta)
    if not after.most:
        return fraction(before.mu2, after.mu2, limit)
    return max(
        fraction(before.pure, after.pure, after.most * tolerance(after.charges)),
        fraction(before.normal, after.normal, limit),
    )


def _step_fraction(guarantee: ApproxDP, before: Totals, after: Totals) -> float:
    step = _step(guarantee, after)
    limit = _step_limit(guarantee, after, step)
    if after.normal > limit:
        return math.inf
    while after.pure > before.pure and after.normal <= _step_limit(guarantee, after, step + 1):
        step += 1
    pure_limit = guarantee.eps * step / _STEPS * tolerance(after.charges)
    return max(
        fraction(before.pure, after.pure, pure_limit), fraction(before.normal, after.normal, limit)
    )


def _step(guarantee: ApproxDP, totals: Totals) -> int:
    """Return the smallest step that covers the pure eps and a declared share."""
    covered = max(totals.pure, totals.most)
    limit = guarantee.eps * tolerance(totals.charges)
    return max(0, math.ceil(min(covered / limit * _STEPS, 2.0 * _STEPS)))


def _step_limit(guarantee: ApproxDP, totals: Totals, step: int) -> float:
    _, delta = deltas(guarantee, totals)
    return -1.0 if step >= _STEPS else squares_limit(guarantee.eps * (1 - step / _STEPS), delta)
