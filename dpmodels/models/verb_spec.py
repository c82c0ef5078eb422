"""The specification of one verb's release, and the plan of a mechanism for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from dpmodels.design.rows import requested_of
from dpmodels.errors import ArgumentError
from dpmodels.formula.sides import subset
from dpmodels.mechanisms.protocol import AnyStrategy
from dpmodels.models.predicted_laws import Law, always
from dpmodels.postprocess.units import in_persons
from dpmodels.privacy import (
    ZCDP,
    Adjacency,
    gaussian_multiplier,
    group_events,
    planned_for_group,
)
from dpmodels.released import AnyRelease
from dpmodels.request import Request
from dpmodels.results.call import Spec
from dpmodels.sites import Parties
from dpmodels.verbs import VERBS

Result = TypeVar("Result", covariant=True)


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

    def __post_init__(self) -> None:
        request = self.request
        neighbours = self.reads or request.adjacency
        terms = partial(
            requested_of,
            neighbours=neighbours,
            subset=subset(request.subset, request.codebook | self.private.codebook),
            missing_ids=request.codebook.missing_ids(neighbours.person),
        )
        object.__setattr__(self, "private", self.private.among(terms))


class Planned(NamedTuple):
    """A strategy, its plan from public facts, and the reason."""

    strategy: AnyStrategy
    plan: Any
    reason: str


def of_question(release: Any, request: Request, holders: Parties | None = None) -> AnyRelease:
    """Return a release in its unit, with its guarantee, neighbours and events."""
    facts = [("Records", text) for text in holders.records] if holders else []
    facts += [("Codebook", "attached to the table")] if request.attached else []
    neighbours, drafted = request.adjacency, request.drafted
    guarantee, events = request.guarantee, group_events(release.events, neighbours.places)
    if drafted is not None:
        facts += [("Codebook", drafted.text)]
        guarantee, events = drafted.guarantee, (*drafted.events, *events)
    table = tuple(facts) or None
    converted = in_persons(release, neighbours.places) if neighbours.counts_persons else release
    return replace(
        converted,
        guarantee=guarantee,
        events=events,
        subset=request.subset,
        table=table,
    )


def planned(
    spec: VerbSpec[Any], holders: Parties, mechanism: object, private: Sequence[Any]
) -> Planned:
    """Choose a strategy and plan it from public facts; refuse what cannot be released."""
    request = spec.request
    candidate, protocol_reason = holders.mechanism(
        mechanism, VERBS[request.verb].gaussian, request, lawful=spec.lawful
    )
    spec, strategy, reason = _chosen(spec, holders, candidate, private)
    if getattr(strategy, "passes", "many" if spec.passes else "one") == "many":
        for source in private:
            source.require_passes()
    plan: Any = planned_for_group(
        holders.planning(strategy, partial(strategy.plan, spec.facts)),
        lambda plan: plan.events,
        request.guarantee,
        request.adjacency.places,
    )
    holders.check(strategy, plan)
    return Planned(strategy, plan, protocol_reason or reason)


def _chosen(
    spec: VerbSpec[Any], holders: Parties, mechanism: object, private: Sequence[Any]
) -> tuple[VerbSpec[Any], AnyStrategy, str]:
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
        auto = "" if mechanism == "auto" else "mechanism='auto', or "
        raise ArgumentError(
            f"protocol={protocol!r}: sites add Gaussian noise to sums of integers, and mechanism "
            f"{name!r} needs more than that: write {auto}protocol='pooled', where one trusted "
            "aggregator takes any mechanism"
        )
    return (gaussian if holders.in_rounds(strategy) else spec), strategy, reason


class _OfUnknownNumber:
    """Rows of one site, whose number no other knows before a mechanism is chosen."""

    nrows: Final = None

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)
