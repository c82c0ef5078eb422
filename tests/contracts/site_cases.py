"""Verbs on rows that lie at four sites, under every protocol of the package's table."""

import inspect
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import pandas as pd
import pytest
from contract_cases import Case, Mine, TouchedError, minefield, table
from mechanisms import MECHANISMS, Mechanism
from verbs_models import TUNED

import dpmodels as dp
from dpmodels.errors import ArgumentError
from dpmodels.privacy import ApproxDP
from dpmodels.sites import PROTOCOLS

SITES = ("north", "east", "south", "west")
# Of noise on sums of integers, which every protocol takes.
SUMMED = ("gauss", "moments", "gaussian")
# Of rows that are read again, or of draws: what adds is exact, before there is any noise.
POOLED = (
    *("gradients", "objective", "exponential", "ranges", "partition", "randomized_response"),
    *("residual", "graph", "factorisation", "permute_and_flip", "peeling", "noisy_counts"),
    *("sparse_vector", "centred", "adapt", "dp_bh"),
)
# Words for fields of a protocol that change its noise; of four sites.
OPTIONS = (("colluders", 0), ("colluders", 2), ("dropouts", 1))


def variants(kind: type) -> list[Any]:
    """Make a protocol, and once more with each option that changes its noise."""
    protocol = kind()
    names = {field.name for field in fields(protocol)}
    return [
        protocol,
        *(replace(protocol, **{name: word}) for name, word in OPTIONS if name in names),
    ]


def divided(data: Any) -> dict[str, Any]:
    """Half of the rows, one, some, and a quarter; what has no rows to count, at one site."""
    if isinstance(data, Mapping) and any(isinstance(column, Mine) for column in data.values()):
        return {name: dict(data) for name in SITES}
    if not isinstance(data, Mapping | pd.DataFrame):
        return {name: table(3) for name in SITES} | {SITES[0]: data}
    rows = len(next(iter(data.values()))) if isinstance(data, Mapping) else len(data)
    ends = (0, rows // 2, rows // 2 + 1, rows - rows // 4, rows)
    return {name: taken(data, slice(*ends[place : place + 2])) for place, name in enumerate(SITES)}


def taken(data: Any, rows: slice) -> Any:
    if isinstance(data, pd.DataFrame):
        return data.iloc[rows]
    return {name: column[rows] for name, column in data.items()}


@dataclass(frozen=True)
class SiteCase(Case):
    """A verb on rows that lie at four sites, under one protocol."""

    protocol: Any = None

    def __str__(self) -> str:
        options = [
            f"{field.name}={getattr(self.protocol, field.name)}" for field in fields(self.protocol)
        ]
        return "-".join([self.verb.name, self.protocol.trust.name, *options, self.adjacency])

    @property
    def subject(self) -> object:
        return self.protocol.trust.name

    @property
    def whole(self) -> Case:
        """The same on one table."""
        return Case(self.mechanism, self.kind, self.adjacency, self.way, self.verb)

    @property
    def seated(self) -> tuple[str, ...]:
        """The sites that take part."""
        return tuple(self.protocol.participants(SITES))

    @property
    def honest(self) -> int:
        """How many sites' noise has to hide every row."""
        protocol = self.protocol
        if not protocol.passes_noise:
            return len(self.seated)
        colluders = getattr(protocol, "colluders", len(self.seated) - 1)
        return len(self.seated) - colluders - getattr(protocol, "dropouts", 0)

    def _stopped(self, *given: Any, **more: Any) -> tuple[Any, Any, Any]:
        """Neither strategy nor plan depend on where rows lie."""
        return self.whole._stopped(*given, **more)

    def fit(self, formula: str, data: object, codebook: dp.Codebook, **more: Any) -> Any:
        verb = getattr(dp, self.verb.name)
        options = {"sites": divided(data), "protocol": self.protocol, "codebook": codebook}
        return verb(formula, **(options | self.words | more))


def verbs_of_sites() -> set[str]:
    """Name the verbs that take sites."""
    verbs = (name for name in dir(dp) if name.startswith("dp_"))
    return {name for name in verbs if "sites" in inspect.signature(getattr(dp, name)).parameters}


def _asked() -> Iterator[tuple[Mechanism, Any]]:
    verbs = verbs_of_sites()
    for mechanism in MECHANISMS:
        if mechanism.name in (*SUMMED, *POOLED) and ApproxDP in mechanism.takes:
            for verb in mechanism.kin.verbs:
                # Each site throws coins of its own: the law is that of one table, not the numbers.
                if verb is TUNED:
                    continue
                if verb.name in verbs and mechanism.name in (
                    verb.mechanisms or mechanism.kin.table
                ):
                    yield mechanism, verb


def _takes(case: SiteCase) -> bool:
    """Whether the protocol takes the verb: else it has to say so before a row is read."""
    try:
        case.ask(minefield())
    except TouchedError:
        return True
    except ArgumentError:
        return False
    return pytest.fail("no row was read")


def of_protocol(protocol: Any) -> list[SiteCase]:
    """All verbs that a protocol takes, in turns with each kind of neighbours and in each way."""
    cases = [
        SiteCase(mechanism, ApproxDP, relation, way, verb, protocol)
        for number, (mechanism, verb) in enumerate(_asked())
        for relation in (mechanism.between[number % len(mechanism.between)],)
        for way in (mechanism.ways[number % len(mechanism.ways)],)
    ]
    return [case for case in cases if _takes(case)]


def lawful(case: SiteCase) -> bool:
    """Whether what is released is a sum with noise of known law."""
    release = case.ask(table(9)).release
    noise_sd = release.noise_sd if hasattr(release, "noise_sd") else release.noise.diagonal
    return not math.isnan(noise_sd)


def _in_turn(cases: tuple[SiteCase, ...]) -> Iterator[SiteCase]:
    for number, verb in enumerate(dict.fromkeys(case.verb for case in cases)):
        cases_of_verb = [case for case in cases if case.verb is verb]
        yield cases_of_verb[number % len(cases_of_verb)]


EVERY = tuple(case for kind in PROTOCOLS.values() for case in of_protocol(kind()))
FIRST = {case.protocol.trust.name: case for case in reversed(EVERY)}
LAWFUL = frozenset(name for name, case in FIRST.items() if lawful(case))
SUMS = tuple(
    case
    for case in EVERY
    if case.protocol.trust.name in LAWFUL
    and case.mechanism.name in SUMMED
    and case.mechanism.family != "screening"
)
AGGREGATED = tuple(case for case in EVERY if case.protocol.trust.name == "pooled")
# Each protocol by its first verb, and each verb by a protocol in turn.
SOME = tuple(dict.fromkeys((*FIRST.values(), *_in_turn(EVERY))))
_WAYS = [
    replace(case, protocol=variant, adjacency=relation, way=case.mechanism.ways[0])
    for case in SUMS
    if case.verb.name in ("dp_cov", "dp_hist")
    for relation in ("replace", "add-remove")
    for variant in variants(type(case.protocol))
]
# One verb of moments and one of counts, with both neighbours; the first without other words.
BOTH = tuple(case for case in _WAYS if case.protocol == type(case.protocol)())
NOISES = tuple(case for case in _WAYS if case.adjacency == "replace")
