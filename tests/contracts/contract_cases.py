"""The cases every law is run on: mechanism x guarantee x adjacency x centred."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, NoReturn

import numpy as np
from mechanisms import MECHANISMS, Mechanism

import dpmodels as dp
from dpmodels.design import private_design
from dpmodels.mechanisms import Facts, MomentsPlan
from dpmodels.privacy import ZCDP, ApproxDP, Guarantee, PureDP, adjacency
from dpmodels.results import PCAResult
from dpmodels.statistics import Statistic, moments

Table = Mapping[str, Any]

ADJACENCIES = ("replace", "add-remove")

USUAL = {PureDP: PureDP(1.0), ApproxDP: ApproxDP(1.0, 1e-6), ZCDP: ZCDP(0.1)}
HUGE = {PureDP: PureDP(1e30), ApproxDP: ApproxDP(1e30, 1e-6), ZCDP: ZCDP(1e60)}
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

    def plan(self, columns: int, guarantee: Guarantee | None = None) -> MomentsPlan:
        facts = Facts(columns, adjacency(self.adjacency), centred=self.centred)
        return self.mechanism.make().plan(facts, guarantee or self.guarantee)

    def fit(self, formula: str, data: object, codebook: dp.Codebook, **more: Any) -> PCAResult:
        words = {
            "budget": self.guarantee,
            "adjacency": self.adjacency,
            "center": self.centred,
            "mechanism": self.mechanism.name,
        }
        return dp.dp_pca(formula, data, codebook=codebook, **(words | more))

    def exact(
        self,
        formula: str,
        data: object,
        codebook: dp.Codebook,
        *,
        guarantee: Guarantee | None = None,
        **scaling: Any,
    ) -> tuple[Statistic, MomentsPlan]:
        """The statistic of the rows, by the verb's own path, and the plan it is made for."""
        design = private_design(formula, data, codebook, center=self.centred, **scaling)
        plan = self.plan(len(design.public.names), guarantee)
        public = plan.facts.adjacency.n_public
        return moments(design, plan.lattice, count_public=public), plan


CASES = tuple(
    Case(mechanism, kind, relation, centred)
    for mechanism in MECHANISMS
    for kind, relation, centred in product(
        mechanism.takes, ("replace", "add-remove"), (True, False)
    )
)
# Laws in which the guarantee's kind plays no part are run once for each other choice.
FEWER = tuple(case for case in CASES if case.kind is case.mechanism.takes[0])

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
