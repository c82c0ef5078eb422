"""The cases every law is run on: mechanism x guarantee x adjacency x centred."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import product
from typing import Any, NoReturn

import numpy as np
import pytest
from mechanisms import MECHANISMS, Mechanism

import dpmodels as dp
from dpmodels.design import PrivateDesign, private_design
from dpmodels.mechanisms import Facts, Plan
from dpmodels.privacy import ZCDP, ApproxDP, Guarantee, PureDP, adjacency
from dpmodels.results import CovResult, PCAResult, SubspaceResult
from dpmodels.statistics import Statistic

Table = Mapping[str, Any]

ADJACENCIES = ("replace", "add-remove")

USUAL = {PureDP: PureDP(1.0), ApproxDP: ApproxDP(1.0, 1e-6), ZCDP: ZCDP(0.1)}
LARGE = {PureDP: PureDP(50.0), ApproxDP: ApproxDP(50.0, 1e-6), ZCDP: ZCDP(50.0)}
HUGE = {PureDP: PureDP(1e9), ApproxDP: ApproxDP(1e9, 1e-6), ZCDP: ZCDP(1e9)}
TINY = {PureDP: PureDP(1e-6), ApproxDP: ApproxDP(1e-9, 1e-9), ZCDP: ZCDP(1e-18)}


@dataclass(frozen=True)
class Case:
    """A mechanism under one guarantee, one adjacency, centred or not."""

    mechanism: Mechanism
    kind: type
    adjacency: str
    centred: bool

    def __str__(self) -> str:
        about = "centred" if self.centred else "origin"
        return f"{self.mechanism.name}-{self.kind.__name__}-{self.adjacency}-{about}"

    @property
    def guarantee(self) -> Guarantee:
        return USUAL[self.kind]

    @property
    def words(self) -> dict[str, Any]:
        """What a verb is told."""
        return {
            "budget": self.guarantee,
            "adjacency": self.adjacency,
            "center": self.centred,
            "mechanism": self.mechanism.name,
        }

    @property
    def inside(self) -> AbstractContextManager[None]:
        """Where the mechanism works at all."""
        return dp.simulation(seed=0) if self.mechanism.open else nullcontext()

    def facts(self, columns: int, components: int = 0) -> Facts:
        return Facts(columns, adjacency(self.adjacency), self.centred, components)

    def plan(
        self, columns: int, guarantee: Guarantee | None = None, *, components: int = 0
    ) -> Plan:
        facts = self.facts(columns, components)
        with self.inside:
            return self.mechanism.make().plan(facts, guarantee or self.guarantee)

    def fit(
        self, formula: str, data: object, codebook: dp.Codebook, **more: Any
    ) -> PCAResult | SubspaceResult:
        with self.inside:
            return dp.dp_pca(formula, data, codebook=codebook, **(self.words | more))

    def cov(self, formula: str, data: object, codebook: dp.Codebook, **more: Any) -> CovResult:
        with self.inside:
            return dp.dp_cov(formula, data, codebook=codebook, **(self.words | more))

    def design(
        self, formula: str, data: object, codebook: dp.Codebook, **scaling: Any
    ) -> PrivateDesign:
        return private_design(formula, data, codebook, center=self.centred, **scaling)

    def exact(
        self,
        formula: str,
        data: object,
        codebook: dp.Codebook,
        *,
        guarantee: Guarantee | None = None,
        **scaling: Any,
    ) -> tuple[Statistic, Plan]:
        """The statistic of the rows, by the verb's own path, and the plan it is made for."""
        design = self.design(formula, data, codebook, **scaling)
        plan = self.plan(len(design.public.names), guarantee)
        return self.mechanism.make().measure(design, plan), plan


def _tried(mechanism: Mechanism) -> Iterator[tuple[type, str, bool]]:
    """Choices in which every two of guarantee, neighbours and centring meet.

    A slow mechanism is tried with one guarantee, both neighbours and both centrings.
    """
    kinds = mechanism.takes[:1] if mechanism.slow else mechanism.takes
    for number, kind in enumerate(kinds):
        for relation in ADJACENCIES:
            yield kind, relation, (relation == "replace") == (number % 2 == 0)


CASES = tuple(Case(one, *choice) for one in MECHANISMS for choice in _tried(one))
# For laws that are about the plan alone: all there are.
PLANS = tuple(
    Case(one, *choice)
    for one in MECHANISMS
    for choice in product(one.takes[: 1 if one.slow else None], ADJACENCIES, (True, False))
)
# For laws in which the guarantee's kind plays no part.
FEWER = tuple(case for case in CASES if case.kind is case.mechanism.takes[0])
OTHERS = tuple(case for case in PLANS if case.kind is case.mechanism.takes[0] and case not in FEWER)
# For laws about rows on their way, in which the mechanism plays no part.
ANY = tuple(case for case in (*FEWER, *OTHERS) if case.mechanism.name == "gauss")

Law = Callable[[Case], None]
Where = Callable[[Mechanism], bool]


def everywhere(mechanism: Mechanism) -> bool:
    return True


def parameters(laws: Mapping[Law, Where], cases: Iterable[Case]) -> list[Any]:
    """Pair every law with the cases of the mechanisms it is about."""
    return [
        pytest.param(law, case, id=f"{law.__name__}-{case}")
        for (law, about), case in product(laws.items(), cases)
        if about(case.mechanism)
    ]


BOOK = dp.codebook(age=(0, 100), wage=(-5.0, 45.0), sex=["F", "M"], region=["n", "e", "s"])
FORMULA = "~ age + wage + sex + region"


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


class TouchedError(Exception):
    """A row was read."""


class Mine:
    """A column that tells its length and nothing else."""

    shape = (7,)

    def _explode(self, *_: object, **__: object) -> NoReturn:
        raise TouchedError

    __array__ = __getitem__ = __iter__ = __len__ = __eq__ = _explode
    __hash__ = None


def minefield(names: tuple[str, ...] = tuple(BOOK)) -> dict[str, Any]:
    """A table whose names may be seen and whose cells may not."""
    return {name: Mine() for name in names}


def mined_stream(names: tuple[str, ...] = tuple(BOOK)) -> Iterator[dict[str, Any]]:
    """An iterable of tables whose cells may not be seen."""
    yield minefield(names)
    raise TouchedError
