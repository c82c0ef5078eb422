"""The specification of one verb's release, and the plan of a mechanism for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from dpmodels.design.parts import SLOTS, SampledPlaces
from dpmodels.design.rows import requested_of
from dpmodels.errors import ArgumentError
from dpmodels.formula.sides import subset
from dpmodels.formula.tally import Sampling
from dpmodels.mechanisms.protocol import AnyStrategy, Calibrated
from dpmodels.models.predicted_laws import Law, always
from dpmodels.postprocess.units import in_persons
from dpmodels.privacy import ZCDP, Adjacency, gaussian_multiplier, group_events, planned_for_group
from dpmodels.privacy.budget import MOST_ROWS
from dpmodels.released import AnyRelease
from dpmodels.request import Request
from dpmodels.results.call import Spec
from dpmodels.sites import Parties
from dpmodels.sites.protocol import POOLED
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
        terms = partial(
            requested_of,
            neighbours=neighbours,
            subset=subset(request.subset, request.codebook | self.private.codebook),
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
    plan: Calibrated = planned_for_group(
        holders.planning(strategy, partial(strategy.plan, spec.facts)),
        lambda plan: plan.events,
        request.guarantee,
        spec.slots.places,
    )
    holders.check(strategy, plan)
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
