r"""Privacy filters: which charges a ledger accepts from an adaptive analyst.

*Adversary.* Charges come one after another; each may be chosen knowing all
earlier answers. A **filter** accepts or refuses a charge by its totals so far.
It is valid if everything accepted satisfies the guarantee for every such
analyst. That the totals compose to less than the budget for *fixed* charges is
not enough: the tight composition of mixtures is not a valid filter.

*Theorem.* The rules below are valid filters. Write L for the privacy loss of the
whole transcript, and call ``E[(1 - exp(eps - L))_+]`` its delta at eps.

1. ``sum of eps`` for `PureDP`: then ``L <= eps`` on every path; for `Pufferfish`, over quilts of
   one series only, by the theorem in `quilts`.
2. ``sum of rho`` for `ZCDP` [2]_, [3]_.
3. For `ApproxDP`, with a share ``p`` of eps for pure releases (``eps_m = eps - p`` is
   left for all others), a charge is accepted while one of these holds for all
   charges together:

   a. all are pure, and their eps add up to at most eps;
   b. the pure eps put into the share add up to at most p, and all other charges
      pass one filter for ``(eps_m, delta)``: either (Gaussian) their
      ``mu**2`` add up to at most ``1/m**2``, m the exact multiplier of
      ``(eps_m, delta)`` [4]_; or (zCDP) their rho add up to at most the largest
      rho whose conversion at delta is at most ``eps_m``;
   c. for some step ``p_j = j eps / 16``, the eps of all pure releases add up to at
      most ``p_j``, and the ``1/m**2`` of all Gaussian ones to at most that of
      ``(eps - p_j, delta_c / 16)``;
   d. the first charge, as a plan announced before any answer, costs ``eps_1`` at
      delta by tight composition, all later ones are pure, and ``eps_1`` and
      their eps add up to at most eps. It is tried only if all other rules refuse
      the first charge.

   Rule (c) has ``delta_c = 1e-11 delta``, (b) the rest: the loss for the parts of
   an exact split is below rounding. The filter in (b) is stated by the user, or
   fixed by the first charge: zCDP if that mixes Gaussian noise with other noise,
   else Gaussian. The share is stated by the user; under the Gaussian filter it
   rises, at the first charge that is not pure, to the eps of the earlier pure
   ones.

   Releases with their own delta (`ApproxEvent`) count as pure ones of their eps,
   and their deltas add up to at most ``D``, the sum at the first charge that puts
   anything outside the share; until then it grows, up to delta. All rules have
   ``delta - D`` instead of delta. The other guarantees accept no such release.

   A **void** charge released nothing. If no other charge followed, the totals
   return to their values before it, and the path is the one without it, on
   which later charges were chosen; otherwise it stays spent.

*Proof of 3.* Totals only grow along a path, so a path that satisfies a rule at
its end satisfied it all along, and is a path of the analyst who is stopped by
that rule only. So the total delta is at most the sum of the deltas of the rules.
Paths that end in (a) have ``L <= eps`` and add nothing. For a fixed share p
let P be the distribution of the transcript on one table, Q on its neighbour,
and R when the releases of the share use the table and all others the
neighbour. P and R differ only in the others, R and Q only in the share
(whatever is the same in both is part of the analyst), so for every set S

    P(S) <= exp(eps_m) R(S) + delta <= exp(eps_m + p) Q(S) + delta:

(b) and each step of (c) add no more than their own delta. If the share rises
to the sum s of the earlier pure eps, it does so before any release that is not
pure: given the path up to there, whose loss is at most s, the rest satisfies
``(eps - s, delta)`` by the same argument, for every such path. (d) is basic
composition [1]_ with deltas (delta, 0, 0, ...), and the first charge decides
whether it applies, before any answer.

*Releases that fail.* The two distributions of such a release are mixtures: with
probability delta_i under both it fails and reveals the table, otherwise it is
eps-private. Up to the first charge outside the share let w be the product of ``1 -
delta_i`` along a path h, so that ``1 - w <= D(h)``; later ones have a sum of 0, as
D is fixed. Paths without a failure have the distributions ``w dP'`` and ``w dQ'``,
P' and Q' those of pure releases of loss at most s, followed by a ``(eps - s, delta -
D)``-private continuation given h: for every set S

    P(S) <= exp(eps) Q(S) + E'[w (delta - D) + 1 - w] <= exp(eps) Q(S) + delta,

E' the mean over P', since ``w (delta - D) + 1 - w`` decreases with w and is ``delta -
D (delta - D)`` at ``w = 1 - D``. If nothing is put outside the share the sum of all
deltas is at most delta, and the same holds with 0 for ``delta - D``.

*Numerics.* Costs and sums are rounded up (`compose`). The parts of an exact split
are rounded, so sums may exceed their limits: of eps by an ulp for each charge, of
rho by a relative 1e-12, of ``mu**2`` by 2e-10, and a plan's delta by 1e-6.
`gaussian_multiplier` is certified with an allowance for the 2e-10.

References
----------
.. [1] Rogers, R., Roth, A., Ullman, J. and Vadhan, S. (2016). "Privacy Odometers
   and Filters: Pay-as-you-Go Composition." NeurIPS 2016.
.. [2] Feldman, V. and Zrnic, T. (2021). "Individual Privacy Accounting via a Renyi
   Filter." NeurIPS 2021.
.. [3] Whitehouse, J., Ramdas, A., Rogers, R. and Wu, Z. S. (2023). "Fully-Adaptive
   Composition in Differential Privacy." ICML 2023.
.. [4] Smith, A. and Thakurta, A. (2022). "Fully Adaptive Composition for Gaussian
   Differential Privacy." arXiv:2210.17520.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from dpmodels.errors import ArgumentError, BudgetError, quoted
from dpmodels.privacy import pufferfish, steps
from dpmodels.privacy.budget import ZCDP, Adjacency, ApproxDP, Guarantee, PureDP, finite_number
from dpmodels.privacy.calibrate import gaussian_multiplier
from dpmodels.privacy.compose import Totals, rounded_up, summed_eps, total_eps, zcdp_to_approx
from dpmodels.privacy.events import Event, GaussianEvent, PufferfishEvent, failing, unfailing
from dpmodels.privacy.pufferfish import Pufferfish
from dpmodels.privacy.spent import Spent, capacity
from dpmodels.privacy.steps import LEAST_DELTA, SQUARES, ULP, fraction, squares_eps, tolerance

RULES: Final = ("gaussian", "zcdp", "steps")
# Relative allowances for rounding: of rho, of messages and of a plan's delta.
_RHO: Final = 1e-12
TOLERANCE: Final = 1e-9
_DELTA: Final = 1e-6
# Rule (c): the number of steps and its fraction of delta.
_STEPS: Final = 16
_ASIDE: Final = 1e-11


@dataclass(frozen=True, slots=True)
class Filter:
    """The acceptance rule of a ledger: all accepted charges together satisfy the guarantee.

    `pure` is the share of the eps of an `ApproxDP` that is reserved for pure releases. An empty
    `kind` is fixed by the first charge.

    >>> budget = Filter(ApproxDP(2.0, 1e-6), pure=1.0)
    >>> after = budget.plus(Totals(), [GaussianEvent(gaussian_multiplier(ApproxDP(1.0, 1e-6)))])
    >>> budget.holds(after), budget.spent(after).describe()
    (True, 'eps = 1, delta = 1e-06')
    """

    guarantee: Guarantee | Pufferfish
    pure: float = 0.0
    kind: str = ""

    def plus(self, totals: Totals, events: Iterable[Event]) -> Totals:
        """Return the totals after a charge, accepted or not."""
        charge = tuple(events)
        if isinstance(self.guarantee, Pufferfish):
            return pufferfish.plus(self.guarantee, totals, charge)
        if any(isinstance(event, PufferfishEvent) for event in charge):
            infinite, charges = math.inf, totals.charges + 1
            return replace(
                totals, charges=charges, pure=infinite, normal=infinite, mu2=infinite, rho=infinite
            )
        if self._in_steps:
            return self._plus_in_steps(totals, charge)
        after = self._plus_in_sums(totals, charge)
        if totals.charges or not isinstance(self.guarantee, ApproxDP):
            return after
        return self._first(self.guarantee, charge, after)

    def _plus_in_sums(self, totals: Totals, charge: tuple[Event, ...]) -> Totals:
        """Return the totals after a charge by sums of eps, of rho and of ``mu**2``."""
        failed, aside = totals.lost(failing(charge))
        charged = unfailing(charge)
        has_gaussian = any(isinstance(event, GaussianEvent) for event in charged)
        has_other = any(not isinstance(event, GaussianEvent) for event in charged)
        share = rounded_up(totals.share, summed_eps(charged))
        gaussian, share_limit = totals.gaussian, totals.most
        if totals.charges == 0:
            gaussian = self.kind != "zcdp" if self.kind else not (has_gaussian and has_other)
            share_limit = self.pure
        if gaussian and not has_gaussian and not totals.mu2:
            share_limit = max(share_limit, share)
        mixed = isinstance(self.guarantee, ApproxDP)
        in_share = mixed and share <= share_limit * tolerance(totals.charges + 1)
        after = totals.plus(charged, gaussian=gaussian, share_limit=share_limit, in_share=in_share)
        return replace(after, failing=failed, aside=aside)

    def own_delta_left(self, totals: Totals) -> float | None:
        """Return what is left for the releases' own deltas; None if their sum is fixed."""
        if not isinstance(self.guarantee, ApproxDP):
            return 0.0
        if math.isinf(totals.mu2) or (
            totals.normal if self._in_steps else totals.mu2 or totals.rho
        ):
            return None
        limit = self.guarantee.delta
        if self._in_steps and totals.charges:
            limit = steps.failing_limit(self.guarantee, totals)
        return max(limit - totals.failing, 0.0)

    @property
    def _in_steps(self) -> bool:
        return self.kind == "steps" and isinstance(self.guarantee, ApproxDP)

    def _plus_in_steps(self, totals: Totals, charge: tuple[Event, ...]) -> Totals:
        """Return the totals after a charge by the rules of `steps`."""
        assert isinstance(self.guarantee, ApproxDP)
        delta, charged, first = failing(charge), unfailing(charge), totals.charges == 0
        failed = rounded_up(totals.failing, delta)
        is_fixed = totals.normal > 0 or math.isinf(totals.mu2)
        after = totals.plus(
            charged,
            gaussian=not delta if first else totals.gaussian,
            share_limit=self.pure,
            in_share=False,
        )
        after = replace(after, failing=failed, aside=totals.aside if is_fixed else failed)
        if not first or (self.pure and not self.holds(after)):
            return after
        return self._first(self.guarantee, charge, after)

    def _first(self, guarantee: ApproxDP, events: tuple[Event, ...], after: Totals) -> Totals:
        """Return the totals of a first charge; as a plan, rule (d), if all others refuse it."""
        tight = total_eps(events, guarantee.delta)
        if self.holds(after):
            return replace(after, alone=tight)
        if guarantee.eps < tight <= guarantee.eps * (1 + TOLERANCE):
            delta = min(guarantee.delta * (1 + _DELTA), math.nextafter(1, 0))
            tight = max(total_eps(events, delta), guarantee.eps)
        plan = Totals(charges=1, pure=tight, mu2=math.inf, rho=math.inf)
        return replace(plan, failing=after.failing, aside=after.aside)

    def admits(self, totals: Totals, charge: tuple[Event, ...]) -> bool:
        """Return whether a charge is accepted after others with these totals."""
        return self.holds(self.plus(totals, charge))

    def holds(self, totals: Totals) -> bool:
        """Return whether charges with these totals are accepted."""
        match self.guarantee:
            case PureDP(eps) | Pufferfish(eps):
                return totals.summed <= eps * tolerance(totals.charges) and not totals.failing
            case ZCDP(rho):
                return totals.rho <= rho * (1 + _RHO) and not totals.failing
            case guarantee:
                if not self._fails_within(guarantee, totals):
                    return False
                if self._in_steps:
                    limit = guarantee.eps * tolerance(totals.charges)
                    return totals.summed <= limit or steps.accepts(guarantee, totals)
                rest = _left(guarantee, totals)
                mixed = totals.mu2 if totals.gaussian else totals.rho
                return totals.summed <= guarantee.eps * tolerance(totals.charges) or (
                    rest is not None
                    and (
                        mixed <= self._mixed_limit(rest, totals)
                        or totals.normal <= _step_limit(rest, self._step(rest, totals))
                    )
                )

    def spent(self, totals: Totals) -> Spent:
        """Return the totals in the unit of the guarantee.

        At most the budget if they are accepted; infinite if they have no cost in this unit.
        """
        budget = capacity(self.guarantee)
        return Spent(self._cheapest(totals)[0], budget.unit, budget.delta)

    def taken(self, before: Totals, after: Totals) -> float:
        """Return the fraction of the remaining budget that a charge used; above 1 if refused.

        A fraction of eps or of rho. With a delta: of the share, for pure releases within it, else
        of the limit on the sum of ``mu**2``, or of rho, of all others; of eps while all charges
        are pure and raise the share, or once the others have nothing left.
        """
        match self.guarantee:
            case PureDP(eps) | Pufferfish(eps):
                return math.inf if after.failing else fraction(before.summed, after.summed, eps)
            case ZCDP(rho):
                return math.inf if after.failing else fraction(before.rho, after.rho, rho)
            case guarantee:
                if not self._fails_within(guarantee, after):
                    return math.inf
                if self._in_steps:
                    return steps.fraction_used(guarantee, before, after)
                pure_part = (
                    math.inf if after.normal else fraction(before.pure, after.pure, guarantee.eps)
                )
                if after.gaussian and not after.normal:
                    return pure_part
                spent, mixed = (t.mu2 if after.gaussian else t.rho for t in (before, after))
                if spent == mixed:
                    return fraction(before.share, after.share, after.most)
                left = _left(guarantee, after)
                part = (
                    math.inf
                    if left is None
                    else fraction(spent, mixed, self._mixed_limit(left, after))
                )
                return part if math.isfinite(part) else pure_part

    def rule(self, totals: Totals) -> str:
        """Return the name of the composition rule; empty if there is only one."""
        return self._cheapest(totals)[1]

    def _cheapest(self, totals: Totals) -> tuple[float, str]:
        match self.guarantee:
            case PureDP() | Pufferfish():
                return math.inf if totals.failing else totals.summed, ""
            case ZCDP():
                return math.inf if totals.failing else totals.rho, ""
            case guarantee:
                if not self._fails_within(guarantee, totals):
                    return math.inf, ""
                rest, planned = _left(guarantee, totals), math.isinf(totals.mu2)
                mixed = "GDP" if totals.gaussian else "zCDP"
                prices = [
                    (totals.alone, mixed if totals.normal else "summed"),
                    (totals.summed, "plan" if planned else "summed"),
                ]
                if self._in_steps:
                    prices.append(steps.price(guarantee, totals))
                elif rest is not None:
                    prices.append((self._mixed_eps(rest, totals), mixed))
                    prices.append((self._stepped_eps(rest, totals), "summed"))
                return min(prices, key=lambda price: price[0])

    def _fails_within(self, guarantee: ApproxDP, totals: Totals) -> bool:
        """Return whether the releases' own deltas are within their limit."""
        limit = steps.failing_limit(guarantee, totals) if self._in_steps else guarantee.delta
        return totals.failing <= min(totals.aside, limit * tolerance(totals.charges))

    def _mixed_limit(self, guarantee: ApproxDP, totals: Totals) -> float:
        """Return the limit on mu**2 or rho outside the share, -1 if the share exceeds eps."""
        if totals.most > guarantee.eps * tolerance(totals.charges):
            return -1.0
        rest = ApproxDP(max(guarantee.eps - totals.most, 1e-100), guarantee.delta * (1 - _ASIDE))
        if totals.gaussian:
            return gaussian_multiplier(rest) ** -2 * (1 + SQUARES)
        return largest_rho(rest) * (1 + _RHO)

    def _mixed_eps(self, guarantee: ApproxDP, totals: Totals) -> float:
        mixed = totals.mu2 if totals.gaussian else totals.rho
        if mixed == 0 or math.isinf(mixed):
            return totals.share + mixed
        delta = guarantee.delta * (1 - _ASIDE)
        if totals.gaussian:
            return totals.share + squares_eps(delta, mixed)
        return totals.share + zcdp_to_approx(mixed, delta)

    def _step(self, guarantee: ApproxDP, totals: Totals) -> int:
        """Return the smallest step of rule (c) that covers the pure eps."""
        return (
            math.ceil(min(totals.pure / guarantee.eps * _STEPS - _STEPS * ULP, 2.0 * _STEPS))
            if math.isfinite(totals.mu2)
            else _STEPS
        )

    def _stepped_eps(self, guarantee: ApproxDP, totals: Totals) -> float:
        step, delta = self._step(guarantee, totals), guarantee.delta * _ASIDE / _STEPS
        if step >= _STEPS or delta < LEAST_DELTA or not totals.normal:
            return math.inf
        return guarantee.eps * step / _STEPS + squares_eps(delta, totals.normal)


def _left(guarantee: ApproxDP, totals: Totals) -> ApproxDP | None:
    """Return the guarantee with the remaining delta, None if nothing remains."""
    delta = guarantee.delta - totals.aside
    return (
        replace(guarantee, delta=delta)
        if delta > guarantee.delta * ULP * (1 + totals.charges)
        else None
    )


def requested_filter(
    guarantee: Guarantee | Pufferfish, relation: Adjacency, pure: object, rule: object
) -> Filter:
    """Return the filter that the arguments of a ledger state."""
    if isinstance(guarantee, Pufferfish) and relation != Adjacency("replace"):
        raise BudgetError(
            "adjacency=, person= and rows= state what differential privacy protects, but this "
            "ledger has a Pufferfish guarantee, of each state of each person: leave them out"
        )
    write = "write pure=0.5, less than eps, or leave it out"
    share = finite_number("pure", pure, write)
    if rule is not None and rule not in RULES:
        raise ArgumentError(f"rule={quoted(rule)}: expected 'gaussian', 'zcdp', 'steps' or None")
    if share or rule is not None:
        if not isinstance(guarantee, ApproxDP):
            raise BudgetError(
                "pure= and rule= need a ledger with eps and delta, but this one has "
                f"{guarantee.describe()}: leave them out"
            )
        if not 0 <= share < guarantee.eps:
            raise BudgetError(f"pure={share:g} is not in [0, {guarantee.eps:g}), the eps: {write}")
    return Filter(guarantee, share, str(rule or ""))


def _step_limit(guarantee: ApproxDP, step: int) -> float:
    """Return the limit on the sum of ``1/m**2`` beside pure releases of `step` steps."""
    delta = guarantee.delta * _ASIDE / _STEPS
    if step >= _STEPS or delta < LEAST_DELTA:
        return -1.0
    return gaussian_multiplier(ApproxDP(guarantee.eps * (1 - step / _STEPS), delta)) ** -2


@lru_cache(maxsize=256)
def largest_rho(guarantee: ApproxDP) -> float:
    """Return the largest rho whose conversion meets the guarantee."""
    from scipy.optimize import brentq

    eps, delta = guarantee.eps, guarantee.delta
    # Gaussian noise of the same rho has to meet the guarantee too.
    upper = gaussian_multiplier(guarantee) ** -2 / 2

    def excess(fraction: float) -> float:
        return zcdp_to_approx(upper * fraction, delta) - eps

    root = float(brentq(excess, 1e-3, 1.0, rtol=1e-12)) * (1 - 1e-11)
    while excess(root) > 0:
        root *= 1 - 1e-9
    return upper * root
