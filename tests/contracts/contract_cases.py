"""The cases every law is run on: mechanism x guarantee x adjacency x way, by a verb."""

import inspect
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from operator import attrgetter
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pytest
import verbs_models
from families import Family
from mechanisms import MECHANISMS, Mechanism
from verb_entry import Verb

import dpmodels as dp
from dpmodels.mechanisms import Facts, Plan
from dpmodels.privacy import ZCDP, ApproxDP, Guarantee, PureDP, adjacency
from dpmodels.sites import Parties, Witness
from dpmodels.statistics import Statistic
from tests.mines import Mine, TouchedError

Table = Mapping[str, Any]

USUAL = {PureDP: PureDP(1.0), ApproxDP: ApproxDP(1.0, 1e-6), ZCDP: ZCDP(0.1)}
LARGE = {PureDP: PureDP(50.0), ApproxDP: ApproxDP(50.0, 1e-6), ZCDP: ZCDP(50.0)}
HUGE = {PureDP: PureDP(1e9), ApproxDP: ApproxDP(1e9, 1e-6), ZCDP: ZCDP(1e9)}
# With noise of many rows, so that whole numbers do not repeat either.
FAINT = {PureDP: PureDP(0.01), ApproxDP: ApproxDP(0.01, 1e-6), ZCDP: ZCDP(1e-5)}
TINY = {PureDP: PureDP(1e-6), ApproxDP: ApproxDP(1e-9, 1e-9), ZCDP: ZCDP(1e-18)}


class Reached(Exception):
    """A verb has come to where it was to be stopped."""


class Stopping(Witness):
    """Stops a verb before it charges, and keeps what it was about to do."""

    def planned(self, spec: Any, choice: Any, private: Sequence[Any], events: Any) -> NoReturn:
        self.made = choice.strategy, private[0], choice.plan
        raise Reached


class Crossing(NamedTuple):
    """What is about to cross: a strategy, the rows, their exact statistic, the plan."""

    strategy: Any
    rows: Any
    statistic: Statistic
    plan: Any


@dataclass(frozen=True)
class Case:
    """A mechanism under one guarantee and adjacency, through a verb asked in one way."""

    mechanism: Mechanism
    kind: type
    adjacency: str
    way: str
    verb: Verb

    def __str__(self) -> str:
        name = f"{self.mechanism.name}-{self.kind.__name__}-{self.adjacency}-{self.way}"
        return (
            name
            if self.verb is self.family.verbs[0]
            else f"{self.verb.name}{self.verb.suffix}-{name}"
        )

    @property
    def subject(self) -> object:
        """What the ordinary run has a case for, or two, of every law."""
        return self.mechanism, self.verb

    @property
    def family(self) -> Family:
        return self.mechanism.kin

    @property
    def guarantee(self) -> Guarantee:
        return USUAL[self.kind]

    @property
    def rereads(self) -> bool:
        """Whether the rows are read several times."""
        return self.mechanism.rereads or self.verb.rereads

    @property
    def book(self) -> dp.Codebook:
        """Where the verb's variables are declared."""
        return BOOK

    @property
    def centred(self) -> bool:
        """Whether sums of rows are released where moments are."""
        center: bool = self.verb.options[self.family.ways.index(self.way)].get("center", True)
        return center

    @property
    def formula(self) -> str:
        return self.verb.formulas[self.family.ways.index(self.way)]

    @property
    def words(self) -> dict[str, Any]:
        """The arguments of the verb."""
        words = {"budget": self.guarantee, "adjacency": self.adjacency}
        if "mechanism" in inspect.signature(getattr(dp, self.verb.name)).parameters:
            words["mechanism"] = self.mechanism.name
        return words | dict(self.verb.options[self.family.ways.index(self.way)])

    @property
    def inside(self) -> AbstractContextManager[None]:
        """Where the mechanism works at all."""
        return dp.simulation(seed=0) if self.mechanism.open else nullcontext()

    def fit(self, formula: str, data: object, codebook: dp.Codebook, **more: Any) -> Any:
        with self.inside:
            verb = getattr(dp, self.verb.name)
            return verb(formula, data, codebook=codebook, **(self.words | more))

    def ask(self, data: object, **more: Any) -> Any:
        """Fit the verb's own formula."""
        return self.fit(self.formula, data, BOOK, **more)

    def through(self, verb: Verb) -> "Case":
        """The same by another verb."""
        return replace(self, verb=verb)

    def facts(self, columns: int, components: int = 0) -> Facts:
        return Facts(columns, adjacency(self.adjacency), self.centred, components)

    def plan(
        self, columns: int, guarantee: Guarantee | None = None, *, components: int = 0
    ) -> Plan:
        return self.planned(self.facts(columns, components), guarantee)

    def planned(self, facts: Any, guarantee: Guarantee | None = None) -> Any:
        with self.inside:
            return self.mechanism.make().plan(facts, guarantee or self.guarantee)

    @property
    def sizes(self) -> tuple[Any, ...]:
        """Public facts of several sizes."""
        return self.family.facts(self.mechanism.name, adjacency(self.adjacency), self.way)

    @cached_property
    def own_plan(self) -> Any:
        """The plan of the verb's own formula, made without a row."""
        return self._stopped(self.formula, minefield(), BOOK)[-1]

    def crossing(self, formula: str, data: object, codebook: dp.Codebook, **more: Any) -> Crossing:
        """What the verb is about to release."""
        strategy, rows, plan = self._stopped(formula, data, codebook, **more)
        return Crossing(strategy, rows, strategy.measure(rows, plan), plan)

    def _stopped(
        self, formula: str, data: object, codebook: dp.Codebook, **more: Any
    ) -> tuple[Any, Any, Any]:
        """The strategy, the bound rows and the plan, where nothing has been charged."""
        witness = Stopping()
        with pytest.raises(Reached):
            self.fit(formula, Parties(("",), (data,), witness=witness), codebook, **more)
        return witness.made

    def exact(
        self,
        formula: str,
        data: object,
        codebook: dp.Codebook,
        *,
        guarantee: Guarantee | None = None,
        **scaling: Any,
    ) -> tuple[Statistic, Any]:
        """The statistic of the rows, by the verb's own path, and the plan it is made for."""
        budget = guarantee or self.guarantee
        crossing = self.crossing(formula, data, codebook, budget=budget, **scaling)
        return crossing.statistic, crossing.plan


def _tried(mechanism: Mechanism) -> Iterator[tuple[type, str, str]]:
    """Choices in which every two of guarantee, neighbours and way meet.

    A slow mechanism is tried with one guarantee, both neighbours and both ways.
    """
    kinds = mechanism.takes[:1] if mechanism.slow else mechanism.takes
    ways = mechanism.ways
    for number, kind in enumerate(kinds):
        for turn, relation in enumerate(mechanism.between):
            yield kind, relation, ways[(turn + number) % len(ways)]


def _first(case: Case) -> bool:
    return case.kind is case.mechanism.takes[0]


CASES = tuple(
    Case(mechanism, *choice, mechanism.kin.verbs[0])
    for mechanism in MECHANISMS
    for choice in _tried(mechanism)
)
# For laws that are about the plan alone: all there are.
PLANS = tuple(
    Case(mechanism, *choice, mechanism.kin.verbs[0])
    for mechanism in MECHANISMS
    for choice in product(
        mechanism.takes[: 1 if mechanism.slow else None], mechanism.between, mechanism.ways
    )
)
# For laws in which the guarantee's kind plays no part.
FEWER = tuple(filter(_first, CASES))
OTHERS = tuple(case for case in PLANS if _first(case) and case not in FEWER)
# For laws about rows on their way, in which the mechanism plays no part.
ANY = tuple(case for case in (*FEWER, *OTHERS) if case.mechanism.name == "gauss")
# For laws about moments.
MATRICES = tuple(case for case in FEWER if case.mechanism.family in ("covariance", "subspace"))
# For laws about rows and results: all verbs but the first of each family, in other cases for
# every other mechanism.
OTHER_VERBS = tuple(
    case.through(verb)
    for number, mechanism in enumerate(MECHANISMS)
    for case in (FEWER, OTHERS)[number % 2]
    if case.mechanism is mechanism
    for verb in mechanism.kin.verbs[1:]
    if mechanism.name in (verb.mechanisms or mechanism.kin.table)
)
# One for each verb.
EACH_VERB = tuple({case.verb: case for case in reversed((*FEWER, *OTHER_VERBS))}.values())

Law = Callable[[Case], None]
Where = Callable[[Mechanism], bool]


def everywhere(mechanism: Mechanism) -> bool:
    return True


SUBJECT = attrgetter("subject")


def parameters(
    laws: Mapping[Law, Where],
    cases: Iterable[Case],
    reduced: Container[Law] = (),
    by: Callable[[Case], Any] = SUBJECT,
) -> list[Any]:
    """Pair every law with the cases of its mechanisms, as `once` does.

    Those that the ordinary run has in a reduced form are the product's in all cases.
    """
    parameters_so_far = []
    for law, about in laws.items():
        cases_about = [case for case in cases if about(case.mechanism)]
        ordinary = () if law in reduced else in_turn(cases_about, by)
        parameters_so_far += [_parameter(case, ordinary, law) for case in cases_about]
    return parameters_so_far


def once(cases: Iterable[Case], by: Callable[[Case], Any] = SUBJECT) -> list[Any]:
    """All cases, of which the ordinary run takes one for each mechanism and verb."""
    every = list(dict.fromkeys(cases))
    ordinary = in_turn(every, by)
    return [_parameter(case, ordinary) for case in every]


def in_turn(cases: Iterable[Case], by: Callable[[Case], Any] = SUBJECT) -> frozenset[Case]:
    """One case for each mechanism and verb, in turns with each guarantee, neighbours and way."""
    groups: dict[Any, list[Case]] = {}
    for case in cases:
        groups.setdefault(by(case), []).append(case)
    return frozenset(group[number % len(group)] for number, group in enumerate(groups.values()))


def _parameter(case: Case, ordinary: Container[Case], *law: Law) -> Any:
    marks = () if case in ordinary else pytest.mark.product
    return pytest.param(
        *law, case, id="-".join([*(part.__name__ for part in law), str(case)]), marks=marks
    )


BOOK = dp.codebook(
    age=(0, 100),
    wage=(-5.0, 45.0),
    sex=["F", "M"],
    region=dp.Categorical(["n", "e", "s"], ordered=True),
)
FORMULA = verbs_models.FORMULA


def table(rows: int, seed: int = 0) -> dict[str, Any]:
    """Rows that the codebook allows, one in ten of them incomplete."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 101, rows).astype(float)
    age[rng.random(rows) < 0.1] = np.nan
    return {
        "age": age,
        "wage": rng.uniform(-5, 45, rows),
        "sex": rng.choice(["F", "M"], rows),
        "region": rng.choice(["n", "e", "s"], rows),
    }


def minefield(names: tuple[str, ...] = tuple(BOOK)) -> dict[str, Any]:
    """A table whose names may be seen and whose cells may not."""
    return {name: Mine() for name in names}


def mined_stream(names: tuple[str, ...] = tuple(BOOK)) -> Iterator[dict[str, Any]]:
    """An iterable of tables whose cells may not be seen."""
    yield minefield(names)
    raise TouchedError
