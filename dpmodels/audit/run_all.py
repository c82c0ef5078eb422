"""All audits of the package, or of the exhibits, and their table."""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from dpmodels.audit.neighbours import PERSON, Pair, of_persons
from dpmodels.audit.registry import GONE, REGISTRY, Audited, named_pair
from dpmodels.audit.report import AuditTable, Outcome
from dpmodels.audit.verb import audit
from dpmodels.audit.verb_recipes import VerbRecipe, numbers, verb_recipe
from dpmodels.codebook import codebook
from dpmodels.models.fdr import dp_fdr
from dpmodels.models.lm import dp_lm
from dpmodels.models.moments import dp_cov
from dpmodels.models.select import dp_select
from dpmodels.noise import source
from dpmodels.sites import PROTOCOLS, Parties, SecureSum, SiteProtocol, Witness
from dpmodels.sites.parties import NOBODY
from dpmodels.source_tree import load_source
from dpmodels.typing import Floats, Table

# A verb on rows of several sites, as a recipe: the joint view of a coalition.
#
# The pair of neighbours is the first site's rows; the others are artificial and the
# same for both. The last sites collude with the aggregator and subtract their own
# noise and masks.

SITES: Final = ("north", "east", "south")


@dataclass(frozen=True, repr=False)
class JointRecipe(VerbRecipe):
    """A verb on the rows of the first of several sites; all others have the same few rows."""

    protocol: SiteProtocol
    other_rows: Table  # rows of each other site

    def holders(self, rows: object, witness: Witness) -> Parties:
        """Return the sites, with the rows at the first one."""
        seated = self.protocol.participants(SITES)
        data = (rows, *(deepcopy(self.other_rows) for _ in seated[1:]))
        return Parties(seated, data, self.protocol, witness=witness)

    def __call__(self, rows: object) -> object:
        """Run the verb, with the rows at the first site."""
        return self._run(self.holders(rows, NOBODY))

    def batch(self, rows: Table, runs: int) -> Floats:
        """Run the verb once, and the protocol `runs` times: shape (runs, k)."""
        (strategy, statistics, names, plan), entropy = self.measurement(rows), source()
        views = []
        for _ in range(runs):
            view = self.protocol.view(strategy, statistics, plan, entropy)
            if view is None:
                joint = self.protocol.release(strategy, statistics, names, plan, entropy)
                view = numbers(joint)
            views.append(view)
        return np.stack(views)


class JointAudited(NamedTuple):
    """A protocol for an audit, like :class:`dpmodels.audit.registry.Audited`."""

    name: str
    verb: JointRecipe
    pair: Pair
    small: int  # releases per table in a small audit, and in a full one
    full: int


def joint_audited(protocol: SiteProtocol, small: int = 200, full: int = 6_000) -> JointAudited:
    """Return an audit of a protocol, for a small formula."""
    return _joint(protocol, partial(dp_cov, "~ a", center=False, mechanism="gauss"), small, full)


def _joint(protocol: SiteProtocol, call: partial[Any], small: int, full: int) -> JointAudited:
    verb = partial(call, **_WORDS)
    recipe = verb_recipe(verb)
    pair = named_pair(recipe, GONE)
    recipe_of_sites = JointRecipe(
        recipe.verb, recipe.formula, recipe.kwargs, protocol, {"a": [0.5, -0.25], "b": [0.25, 0.5]}
    )
    return JointAudited(
        f"{verb.func.__name__} {verb.keywords['mechanism']}, {protocol.trust.name} by {len(SITES)} "
        "sites",
        recipe_of_sites,
        pair,
        small,
        full,
    )


_WORDS: Final[dict[str, object]] = {
    "codebook": codebook(a=(-1, 1), b=(-1, 1)),
    "eps": 1.0,
    "delta": 1e-5,
}

_HALVES: Final = "~ cut(a, [-1, 0, 1])"
# Every protocol of the package with its default options.
JOINT: Final = tuple(joint_audited(kind()) for kind in PROTOCOLS.values())
# Mechanisms of many rounds, by all that a coalition sees of them.
IN_ROUNDS: Final = (
    _joint(SecureSum(), partial(dp_cov, "~ a", mechanism="rounds"), 64, 2_500),
    _joint(SecureSum(), partial(dp_lm, "b ~ a", mechanism="scores"), 64, 2_500),
    _joint(SecureSum(), partial(dp_fdr, "a ~ b", mechanism="centred"), 64, 2_500),
    _joint(SecureSum(), partial(dp_select, _HALVES, mechanism="noisy_counts"), 64, 2_500),
)


# Audits for persons: the pairs and lines of the registry, with one person for each row.


def for_persons(line: Audited, rows: object) -> Audited:
    """Return a line of the registry with protection of persons with `rows` rows, or "mean"."""
    verb = partial(line.verb, person=PERSON, rows=rows)
    (pair,) = of_persons([line.pair], rows if isinstance(rows, int) else 2)
    return line._replace(verb=verb, worst=pair)


# Mechanisms that support only one value of `rows`.
_ONLY: Final = {"paired": "mean", "randomized_response": 2}

# At most two rows of a person, and all of them, alternately.
PERSONS: Final = tuple(
    for_persons(line, _ONLY.get(line.mechanism, 2 if index % 2 else "mean"))
    for index, line in enumerate(line for line in REGISTRY if not line.is_sampled)
)


# Confidence of each audit: high enough that none of many correct recipes is flagged by chance.
SMALL: Final = 1 - 1e-6
FULL: Final = 1 - 2e-4
EXHIBIT: Final = 0.95


def run_all(
    lines: Sequence[Audited | JointAudited] = (*REGISTRY, *PERSONS, *JOINT, *IN_ROUNDS),
    *,
    full: bool = False,
) -> AuditTable:
    """Audit mechanisms, verbs and protocols between sites, all by default.

    A full audit of all takes minutes, a small one seconds.
    """
    outcomes, confidence = [], FULL if full else SMALL
    for line in lines:
        runs = line.full if full else line.small
        start = time.perf_counter()
        result = audit(line.verb, line.pair, runs=runs, confidence=confidence)
        outcomes.append(Outcome.of(line.name, result, time.perf_counter() - start))
    size = "at full size" if full else "small"
    return AuditTable(f"Audits of the package, {size}", confidence, tuple(outcomes))


def exhibits() -> ModuleType:
    """Import the mechanisms with known faults, ``EXHIBITS``, and their corrections, ``CORRECT``.

    They are part of the tests of the source tree. NotAvailable without it.
    """
    return load_source("exhibits", "tests/audit/exhibits", "the exhibits")


def run_exhibits() -> AuditTable:
    """Audit every exhibit, and its corrected version."""
    outcomes, faults = [], exhibits()
    for name, exhibit in faults.EXHIBITS.items():
        outcomes += [
            _exhibited(name, exhibit, EXHIBIT, faulty=True),
            _exhibited(f"{name}, mended", faults.CORRECT[name], FULL, faulty=False),
        ]
    return AuditTable("Audits of the exhibits", FULL, tuple(outcomes))


def _exhibited(name: str, exhibit: Any, confidence: float, *, faulty: bool) -> Outcome:
    start = time.perf_counter()
    result = audit(
        exhibit.recipe,
        exhibit.pair,
        eps=exhibit.eps,
        delta=exhibit.delta,
        runs=exhibit.runs,
        confidence=confidence,
    )
    return Outcome.of(name, result, time.perf_counter() - start, faulty=faulty)
