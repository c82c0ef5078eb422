"""The specification of one release, the plan of a mechanism, and the counts beside the release."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from dpmodels import privacy
from dpmodels.design.bound_rows import BoundRows
from dpmodels.design.cells import PrivateCells
from dpmodels.design.parts import SLOTS, SampledPlaces
from dpmodels.design.rows import requested_of
from dpmodels.errors import ArgumentError, BudgetError, FrameError
from dpmodels.formula.sides import subset
from dpmodels.formula.tally import Sampling, Tally
from dpmodels.formula.values import BoundSide, Category
from dpmodels.mechanisms.counts import Gaussian, Geometric
from dpmodels.mechanisms.protocol import AnyStrategy, Calibrated, CountFacts, CountPlan
from dpmodels.models.assumed_rows import Law, always
from dpmodels.options import current_settings
from dpmodels.postprocess.units import in_persons
from dpmodels.privacy import ZCDP, Adjacency, gaussian_multiplier, group_events, planned_for_group
from dpmodels.privacy.budget import MOST_ROWS
from dpmodels.privacy.events import all_gaussian
from dpmodels.released import AnyRelease, CountsRelease
from dpmodels.released.terms import Clipping
from dpmodels.request import Request
from dpmodels.results.call import Spec
from dpmodels.sites import Parties, together
from dpmodels.sites.protocol import POOLED, Joint
from dpmodels.variables import Numeric
from dpmodels.verbs import VERBS

Result = TypeVar("Result", covariant=True)

# The unit of a survey design without sampling units, where a mechanism asks whose a row is.
ROW: Final = "row"


@dataclass(frozen=True, repr=False)
class VerbSpec(Spec[Result]):
    """The specification of one verb's release, built before any rows are read."""

    request: Request
    private: Any  # A design or cells without rows; its `bind` binds those of each holder
    facts: Any  # Public ones, from which a plan is made
    # From mechanism= and the holders' bound rows, none of them read, to a strategy and its reason.
    choose: Callable[[object, Sequence[Any]], tuple[AnyStrategy, str]]
    lawful: bool = False  # Whether the result needs noise of a known law
    passes: bool = False  # Whether all strategies of the verb read the rows more than once
    # Persons and their rows that count, where these differ from the unit of the guarantee.
    reads: Adjacency | None = None
    law: Law = always  # What a plan will very likely miss with a public number of rows
    # From a public number of rows to the specification, where a grid is chosen by it.
    sized: Callable[[int], VerbSpec[Result]] | None = None
    # Of a survey design whose rows take places of their unit by weight.
    sampling: Sampling | None = None

    def __post_init__(self) -> None:
        request = self.request
        neighbours = self.reads or request.adjacency
        if self.sampling is not None:
            psu = request.adjacency.person
            # All rows of a sampling unit are read; their places follow from their weights.
            neighbours = Adjacency(request.adjacency.name, MOST_ROWS if psu else None, psu)
        condition = None
        if request.subset is not None:
            condition = subset(request.subset, request.codebook | self.private.codebook)
        terms = partial(
            requested_of,
            neighbours=neighbours,
            subset=condition,
            missing_ids=request.codebook.missing_ids(neighbours.person),
            sampled=None if self.sampling is None else SampledPlaces(self.sampling),
        )
        object.__setattr__(self, "private", self.private.among(terms))

    @property
    def slots(self) -> Adjacency:
        """The neighbours for which a mechanism is planned."""
        neighbours = self.request.adjacency
        return neighbours if self.sampling is None else slots_of(neighbours)


def slots_of(neighbours: Adjacency) -> Adjacency:
    """Return the neighbours of a survey design, whose units have places that rows take."""
    return Adjacency(neighbours.name, SLOTS, neighbours.person or ROW)


class Planned(NamedTuple):
    """A strategy, its plan from public facts, and the reason."""

    strategy: AnyStrategy
    plan: Calibrated
    reason: str


def of_question(
    release: Any, request: Request, holders: Parties | None = None, slots: Adjacency | None = None
) -> AnyRelease:
    """Return a release in its unit, with its guarantee, neighbours and events.

    `slots` are the neighbours for which it was planned, by default those of the request.
    """
    facts = [("Records", text) for text in holders.records] if holders else []
    facts += [("Codebook", "attached to the table")] if request.attached else []
    neighbours, drafted = slots or request.adjacency, request.drafted
    guarantee, events = request.guarantee, group_events(release.events, neighbours.places)
    if drafted is not None:
        facts += [("Codebook", drafted.text)]
        guarantee, events = drafted.guarantee, (*drafted.events, *events)
    design, is_sampled = request.codebook.design, neighbours != request.adjacency
    facts += [("Design", design.describe())] if is_sampled and design is not None else []
    table = tuple(facts) or None
    in_units = neighbours.counts_persons or is_sampled
    converted = in_persons(release, neighbours.places) if in_units else release
    return replace(
        converted,
        adjacency=request.adjacency if is_sampled else release.adjacency,
        guarantee=guarantee,
        events=events,
        subset=request.subset,
        table=table,
    )


def planned(
    spec: VerbSpec[object], holders: Parties, mechanism: object, private: Sequence[Any]
) -> Planned:
    """Choose a strategy and plan it from public facts; refuse what cannot be released."""
    request = spec.request
    if spec.sampling is not None and (len(private) != 1 or holders.others or holders.protocol):
        raise ArgumentError(
            "a survey design needs all rows in one table, since one cap is released for their "
            "weights: write data= instead of sites=, or design=False"
        )
    candidate, protocol_reason = holders.mechanism(
        mechanism, VERBS[request.verb].gaussian, request, lawful=spec.lawful
    )
    spec, strategy, reason = _chosen(spec, holders, candidate, private)
    if getattr(strategy, "passes", "many" if spec.passes else "one") == "many":
        for source in private:
            source.require_passes()
    sites = holders.others or holders.names
    plan_of: Callable[[privacy.Guarantee], Calibrated] = partial(strategy.plan, spec.facts)
    if holders.protocol is not None and holders.in_rounds(strategy):  # All sites add the noise
        plan_of = holders.protocol.planning(plan_of, len(sites))
    plan: Calibrated = planned_for_group(
        plan_of, lambda plan: plan.events, request.guarantee, spec.slots.places
    )
    if holders.protocol is not None:
        holders.protocol.check(Joint(strategy, plan, sites))
    return Planned(strategy, plan, protocol_reason or reason)


def _chosen(
    spec: VerbSpec[object], holders: Parties, mechanism: object, private: Sequence[object]
) -> tuple[VerbSpec[object], AnyStrategy, str]:
    """Choose a strategy; where sites add the noise, as for a guarantee of Gaussian noise."""
    if holders.protocol is None or not holders.joint:
        return spec, *spec.choose(mechanism, private)
    if holders.exchange is not None:
        private = [_OfUnknownNumber(rows) for rows in private]
    declared = VERBS[spec.request.verb]
    rho = ZCDP(0.5 / gaussian_multiplier(spec.request.guarantee) ** 2)
    gaussian = declared.spec(replace(spec.request, guarantee=rho))
    names = [mechanism]
    if isinstance(mechanism, str) and mechanism == "auto":
        names += [name for name in (declared.joint, declared.gaussian) if name]
    for name in names:
        strategy, reason = gaussian.choose(name, private)
        if holders.shared(strategy):
            break
    else:
        protocol, name = holders.protocol.trust.name, strategy.info.name
        auto = "write " if mechanism == "auto" else "write mechanism='auto', or "
        remedy = f"{declared.instead}, or write " if declared.instead else auto
        raise ArgumentError(
            f"protocol={protocol!r}: sites add Gaussian noise to sums of integers, and mechanism "
            f"{name!r} needs more than that: {remedy}{POOLED}"
        )
    return (gaussian if holders.in_rounds(strategy) else spec), strategy, reason


class _OfUnknownNumber:
    """Rows of one site, whose number no other knows before a mechanism is chosen."""

    nrows: Final = None

    def __init__(self, rows: object) -> None:
        self._rows = rows

    def __getattr__(self, name: str) -> object:
        return getattr(self._rows, name)


# How many values lie beyond the declared bounds: noisy counts beside a verb's own release.
#
# Theorem
#     The verb's release and these counts are one composition. Of Gaussian releases alone the
#     squares ``1/m²`` of their multipliers add up (Dong, Roth and Su 2022, Corollary 2.2.1), else
#     rho does (Bun and Steinke 2016, Lemma 2.3), or eps, where the counts have a pure guarantee.
# Sensitivity
#     Each value of a variable is in one of three cells: below its bounds, within, above. That of
#     :func:`dpmodels.statistics.counts.count_sensitivity`, for as many tables as variables.
# Noise
#     Discrete Gaussian beside Gaussian noise and under rho, else discrete Laplace.
# Numerics
#     exact, as of :mod:`dpmodels.mechanisms.counts.geometric`.
# Source
#     As there.
#
# Whether values are counted depends on public facts alone: the neighbours, the number of rows where
# it is public, the guarantee and the declared variables.


# Choices: the factor by which the noise of the verb's own release may rise, and the largest noise
# of a count, as a share of the rows, that is worth it.
NOISE_FACTOR: Final = 1.02
MOST_NOISE: Final = 0.1
# The shares of eps, and of rho or 1/m², that raise the noise by the factor.
PURE_SHARE: Final = 1 - 1 / NOISE_FACTOR
GAUSSIAN_SHARE: Final = 1 - 1 / NOISE_FACTOR**2
# Of the distance of the bounds: values rounded to seven digits are not beyond them.
_ROUNDING: Final = 1e-6
# More than the rounding of a few products.
_ROOM: Final = 1 - 1e-12
# Three cells and the incomplete rows.
_PARTS: Final = 4
# Verbs that find bounds, or follow rows up to a bound.
_WITHOUT: Final = frozenset({"bounds", "survfit"})
Strategy = Gaussian | Geometric


class Counting(NamedTuple):
    """Planned counts of values beyond the bounds."""

    strategy: Strategy
    plan: CountPlan
    variables: Mapping[str, Numeric]

    def cells(self, rows: BoundRows) -> PrivateCells:
        """Return the same rows, to be counted."""
        tallies = tuple(_tally(name, number) for name, number in self.variables.items())
        return PrivateCells(rows.rows, "values beyond the bounds", tallies)

    def clipping(self, release: CountsRelease) -> Clipping:
        """Return the released counts by variable."""
        below, within, above, _ = release.values.reshape(-1, _PARTS).T.tolist()
        names, noise_sd = tuple(self.variables), release.noise_sd
        return Clipping(names, tuple(below), tuple(within), tuple(above), noise_sd)


def counted_variables(
    spec: VerbSpec[object], holders: Parties, private: Sequence[BoundRows]
) -> dict[str, Numeric]:
    """Return the numeric variables whose values may be counted; none where they must not be.

    Those of the formula, without those of a condition on the rows. The number of rows has to be
    public, and the rows in one place where they can be read again, or at sites that share noise.
    """
    is_countable = (
        spec.request.verb not in _WITHOUT
        and spec.sampling is None
        and spec.reads is None
        and spec.request.adjacency.n_public
        and not isinstance(spec.request.guarantee, privacy.Pufferfish)
        and all(isinstance(rows, BoundRows) for rows in private)
    )
    if not is_countable or not _are_counted_by(holders):
        return {}
    if not all(rows.rereadable for rows in private):
        if holders.exchange is None:
            return {}
        raise FrameError(
            "values beyond the declared bounds are counted in an exchange, so that rows are read "
            "again: pass one DataFrame or a path, or write dp.options(clipping=False) at all sites"
        )
    return {
        name: entry
        for name, entry in private[0].codebook.items()
        if name in spec.call.codebook and isinstance(entry, Numeric)
    }


def _are_counted_by(holders: Parties) -> bool:
    """Whether the holders of the rows want counts, and can release them together."""
    if holders.exchange is not None:
        return holders.joint and bool(holders.exchange.terms["clipping"])
    pooled = holders.protocol is None or holders.protocol.trust.name == "pooled"
    in_reach = (pooled or holders.joint) and not holders.others
    return in_reach and current_settings().clipping is not False


def planned_with_counts(
    spec: VerbSpec[object], holders: Parties, mechanism: object, private: Sequence[BoundRows]
) -> tuple[Planned, Counting | None]:
    """Plan a release, and counts of values beyond the bounds where they tell enough."""
    choice, request = planned(spec, holders, mechanism, private), spec.request
    variables = counted_variables(spec, holders, private)
    # Of an exchange the number of all rows is known from the first answer on.
    rows = math.inf if holders.exchange is not None else together(row.nrows for row in private)
    if not variables or not rows:
        return choice, None
    guarantee, places, tables = request.private, request.adjacency.places, len(variables)
    facts = CountFacts(tables, _PARTS * tables, divided=False, adjacency=request.adjacency)

    def counted(strategy: Strategy, part: privacy.Guarantee) -> CountPlan:
        plan_of = partial(strategy.plan, facts)
        return privacy.planned_for_group(plan_of, lambda plan: plan.events, part, places)

    try:
        strategy, release_part, part = _divided(guarantee, choice.plan.events)
        if counted(strategy, part).noise_sd > MOST_NOISE * rows:
            return choice, None
        declared = VERBS[request.verb].spec(replace(request, guarantee=release_part))
        beside = planned(declared, holders, mechanism, private)
        if isinstance(guarantee, privacy.ApproxDP) and isinstance(part, privacy.ZCDP):
            part = _left(guarantee, privacy.group_events(beside.plan.events, places))
        return beside, Counting(strategy, counted(strategy, part), variables)
    except BudgetError:  # A part is too small for any noise
        return choice, None


def _divided(
    guarantee: privacy.Guarantee, release: Sequence[privacy.Event]
) -> tuple[Strategy, privacy.Guarantee, privacy.Guarantee]:
    if isinstance(guarantee, privacy.ZCDP):
        rho = guarantee.rho
        counts = privacy.ZCDP(rho * GAUSSIAN_SHARE * _ROOM)
        return Gaussian(), privacy.ZCDP(rho * (1 - GAUSSIAN_SHARE)), counts
    if isinstance(guarantee, privacy.ApproxDP) and all_gaussian(release):
        multiplier = privacy.gaussian_multiplier(guarantee)
        eps = privacy.gaussian_eps(guarantee.delta, multiplier * NOISE_FACTOR)
        counts = privacy.ZCDP(GAUSSIAN_SHARE / 2 / multiplier**2)
        return Gaussian(), replace(guarantee, eps=eps), counts
    rest = replace(guarantee, eps=guarantee.eps * (1 - PURE_SHARE))
    return Geometric(), rest, privacy.PureDP(guarantee.eps * PURE_SHARE * _ROOM)


def _left(guarantee: privacy.ApproxDP, events: Sequence[privacy.Event]) -> privacy.ZCDP:
    """Return what Gaussian events leave of a guarantee; BudgetError unless all are Gaussian."""
    if not all_gaussian(events):
        raise BudgetError("a part of the guarantee is planned without Gaussian noise")
    used = math.fsum(event.count / event.multiplier**2 for event in events)
    return privacy.ZCDP((privacy.gaussian_multiplier(guarantee) ** -2 * _ROOM - used) / 2 * _ROOM)


def _tally(name: str, number: Numeric) -> Tally:
    """Return the table of a variable: below its bounds, within, above."""
    slack = max(number.step / 2, _ROUNDING * (number.upper - number.lower))
    side = BoundSide(name, number.lower - slack, number.upper + slack)
    return Tally((Category(name, ("below", "within", "above"), side),))
