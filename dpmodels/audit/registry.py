"""Every mechanism and every verb of the package as a recipe, and all audits in one table.

One line each: a small formula, eps = 1 (delta = 1e-5 for Gaussian noise), the
pair of neighbours whose releases differ most, and the number of releases per
table of a small and of a full audit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from inspect import signature
from types import ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from dpmodels.audit.neighbours import PERSON, Pair, of_persons, worst_pairs
from dpmodels.audit.result import AuditTable, Outcome
from dpmodels.audit.verb import audit
from dpmodels.audit.verb_recipes import VerbRecipe, numbers, verb_recipe
from dpmodels.codebook import codebook
from dpmodels.column_roles import SurveyDesign
from dpmodels.models.linear import Tune, tune
from dpmodels.models.lm import dp_lm
from dpmodels.models.moments import dp_cov
from dpmodels.models.release import all_verbs
from dpmodels.models.select import dp_fdr, dp_select
from dpmodels.noise import source
from dpmodels.sites import PROTOCOLS, Parties, SecureSum, SiteProtocol, Witness
from dpmodels.sites.parties import NOBODY
from dpmodels.source_tree import load_source
from dpmodels.typing import Floats, Table
from dpmodels.variables import Integer

BOOK: Final = codebook(a=(-1, 1), b=(-1, 1), g=["x", "y"])
PURE: Final[dict[str, object]] = {"codebook": BOOK, "eps": 1.0}
GAUSSIAN: Final[dict[str, object]] = {**PURE, "delta": 1e-5}

GONE: Final = "a row against none, few others"
GONE_OF_MANY: Final = "a row against none, among its like"
TURNED: Final = "orthogonal rows, few others"
TURNED_OF_MANY: Final = "orthogonal rows, among its like"
OPPOSITE: Final = "opposite corners, among its like"
# Directions are drawn with a density: with fewer equal rows its normalising constant moves less,
# with more a direction across them is rarer.
TURNED_OF_EIGHT: Final = Pair(
    {"a": [1.0] * 8, "b": [1.0] * 8},
    {"a": [1.0] * 8, "b": [1.0] * 7 + [-1.0]},
    name="orthogonal rows, seven others alike",
)
# Far above the threshold, where noisy counts reveal most.
CHANGED_LEVEL: Final = Pair(
    {"g": ["x"] * 60 + ["y"] * 60},
    {"g": ["x"] * 59 + ["y"] * 61},
    name="a row of another level, among its like",
)
# A row that changes all four nodes of two levels; and the longest of eight columns.
MOVED: Final = Pair(
    {"t": [0, 20, 40, 40]}, {"t": [63, 20, 40, 40]}, name="the first period against the last"
)
LEFT: Final = Pair(
    {"t": [0, 2, 5, 5]}, {"t": [None, 2, 5, 5]}, name="the first period against none"
)

DIED: Final = Pair(
    {"t": [3, 1, 2, 3], "e": [1, 1, 0, 0]},
    {"t": [None, 1, 2, 3], "e": [None, 1, 0, 0]},
    name="the last event against none",
)

# The positively and the negatively associated column change: one product falls, the other rises.
EXCHANGED: Final = Pair(
    {"a": [1.0, -1.0] * 20, "b": [-1.0, 1.0] * 20, "g": ["y", "x"] * 20},
    {
        "a": [1.0, -1.0] * 19 + [1.0, 1.0],
        "b": [-1.0, 1.0] * 19 + [-1.0, -1.0],
        "g": ["y", "x"] * 20,
    },
    name="a row at the other ends of both columns",
)
# Nearly equal products: the size of one falls, and that of the other rises.
_AGAINST = [-1.0, 1.0] * 18
SWAPPED: Final = Pair(
    {
        "a": [1.0, -1.0] * 18 + [-1.0, -1.0, -1.0, -1.0],
        "b": [*_AGAINST, 1.0, 1.0, 1.0, -1.0],
        "g": ["y", "x"] * 20,
    },
    {
        "a": [1.0, -1.0] * 18 + [-1.0, -1.0, -1.0, 1.0],
        "b": [*_AGAINST, 1.0, 1.0, 1.0, 1.0],
        "g": ["y", "x"] * 20,
    },
    name="a row at the other ends of two columns that nearly agree",
)

# The only row of a level moves from one bound to the other: the longest possible gradients.
RAREST: Final = Pair(
    {"a": [1.0, -1.0] * 40 + [1.0], "c": ["x"] * 80 + ["y"]},
    {"a": [1.0, -1.0] * 40 + [-1.0], "c": ["x"] * 80 + ["y"]},
    name="the only row of a level at the other end",
)

# A row of the largest weight against one that does not count.
WEIGHED: Final = Pair(
    {"a": [1.0, -1.0, 1.0, -1.0], "b": [1.0] * 4, "g": ["x"] * 4},
    {"a": [1.0, -1.0, 1.0, -1.0], "b": [-1.0, 1.0, 1.0, 1.0], "g": ["x"] * 4},
    name="a row of the largest weight against none",
)

# A row's answer reveals most without other rows.
CHANGED_ANSWER: Final = Pair({"g": ["x"]}, {"g": ["y"]}, name="a row of another level, alone")


class Audited(NamedTuple):
    """A verb with all its arguments except the rows, and a mechanism, for an audit."""

    mechanism: str
    verb: partial[object]
    worst: str | Pair
    small: int
    full: int

    @property
    def is_sampled(self) -> bool:
        """Whether its rows have a survey design, which says what a unit is."""
        return "design" in self.verb.keywords

    @property
    def name(self) -> str:
        """The verb, the mechanism, its options, the unit of protection, and the budget."""
        options = self.verb.keywords
        spent = "eps, delta" if "delta" in options else "eps"
        persons = f"of persons, {options['rows']}" if "person" in options else ""
        tuned = "tuned" if isinstance(options.get("ridge"), Tune) else ""
        parts = (
            self.verb.func.__name__,
            self.mechanism,
            options.get("vcov", ""),
            options.get("score", ""),
            options.get("family", ""),
            tuned,
            "of a design" if self.is_sampled else "",
            persons,
        )
        return f"{' '.join(filter(None, parts))} ({spent})"

    @property
    def pair(self) -> Pair:
        """The neighbours to distinguish."""
        if isinstance(self.worst, Pair):
            return self.worst
        return named_pair(verb_recipe(self.verb), self.worst)


def named_pair(recipe: VerbRecipe, name: str) -> Pair:
    """Return the pair of this name among the worst pairs of a verb's formula and codebook."""
    pairs = worst_pairs(recipe.formula, recipe.request.codebook, recipe.request.adjacency.name)
    return next(pair for pair in pairs if pair.name == name)


def _pca(mechanism: str, options: dict[str, object], *rest: object) -> Audited:
    return _of("pca", "~ a + b", mechanism, options, *rest)


def _of(verb: str, formula: str, mechanism: str, options: dict[str, object], *rest: Any) -> Audited:
    function = all_verbs()[verb].function
    mechanism_option = (
        {"mechanism": mechanism} if "mechanism" in signature(function).parameters else {}
    )
    return Audited(mechanism, partial(function, formula, **mechanism_option, **options), *rest)


def _sampled(options: dict[str, object]) -> dict[str, object]:
    return {**options, "design": SurveyDesign("b", bounds=(0.5, 1), weights_are="design")}


def declared_lines() -> Iterator[Audited]:
    """Yield the audits of verbs that declare a formula and a mechanism for them."""
    for name, verb in all_verbs().items():
        if verb.audited:
            yield _of(name, *verb.audited, PURE, GONE, 1_000, 40_000)


# Uncentred, so that no noise in a mean masks the effect of a row; one direction for all of eps.
ABOUT_ZERO: Final = {**PURE, "center": False}
FIRST: Final = {**ABOUT_ZERO, "ncomp": 1}

# Names of two levels: a row raises one count and lowers the other.
NAMED: Final = {**PURE, "values": False}

ADDED: Final = {**GAUSSIAN, "score": "gain", "k": 2}
ABOVE: Final = {**PURE, "values": False, "threshold": 0.2, "most": 1}
# Few candidates, since each is fitted in every run.
TRIED: Final = tune([10, 100])

MIRRORED: Final = {"most": 1, "alternative": "larger"}

THREE: Final = {
    **GAUSSIAN,
    "codebook": codebook(a=(-1, 1), c=["x", "y", "z"]),
    "family": "multinomial",
}

COUNTED: Final = {**GAUSSIAN, "codebook": codebook(a=(-1, 1), b=(0, 9)), "family": "poisson"}

# More bins than a node has children.
FINE: Final = {**PURE, "breaks": 8}


def _over(periods: int, options: dict[str, object]) -> dict[str, object]:
    return {**options, "time": "t", "codebook": codebook(t=Integer(0, periods - 1))}


# Few intervals, so that removing a row changes the rows at risk in all of them.
FOLLOWED: Final = {**PURE, "codebook": codebook(t=Integer(0, 3), e=Integer(0, 1)), "breaks": 4}

REGISTRY: Final = (
    _pca("gauss", GAUSSIAN, GONE_OF_MANY, 1_000, 60_000),
    _pca("analyze_gauss", GAUSSIAN, GONE, 1_000, 20_000),
    _pca("mod_sulq", GAUSSIAN, GONE, 1_000, 20_000),
    _pca("projection", GAUSSIAN, GONE_OF_MANY, 400, 10_000),
    _of("pca", "~ a", "laplace", ABOUT_ZERO, GONE, 1_000, 60_000),
    _pca("separate", GAUSSIAN, TURNED_OF_MANY, 400, 10_000),
    _pca("separate_pure", PURE, TURNED_OF_MANY, 400, 10_000),
    _pca("shells", GAUSSIAN, TURNED, 200, 6_000),
    _pca("iterative", PURE, TURNED_OF_MANY, 300, 8_000),
    _pca("coinpress", GAUSSIAN, TURNED_OF_MANY, 64, 2_500),
    _pca("rounds", GAUSSIAN, TURNED_OF_MANY, 64, 2_500),
    _of("pca", "~ a", "rounds_pure", ABOUT_ZERO, GONE, 200, 20_000),
    _pca("adaptive", GAUSSIAN, TURNED_OF_MANY, 64, 4_000),
    _pca("adaptive_pure", PURE, TURNED_OF_MANY, 300, 8_000),
    _pca("ppca", FIRST, TURNED_OF_EIGHT, 1_000, 60_000),
    _pca("power", GAUSSIAN, TURNED_OF_MANY, 200, 6_000),
    _of("cov", "~ a + b", "gauss", GAUSSIAN, GONE_OF_MANY, 400, 20_000),
    _of("moments", "~ a + b", "gauss", GAUSSIAN, GONE_OF_MANY, 400, 20_000),
    _of("cca", "a ~ b", "gauss", GAUSSIAN, GONE_OF_MANY, 400, 20_000),
    _of("cca", "a ~ b", "rounds", GAUSSIAN, TURNED_OF_MANY, 64, 2_500),
    _of("lm", "b ~ a", "moments", PURE, GONE, 1_000, 20_000),
    _of("lm", "b ~ a", "moments", GAUSSIAN, GONE_OF_MANY, 1_000, 20_000),
    _of("lm", "b ~ a", "moments", {**GAUSSIAN, "vcov": "HC"}, GONE_OF_MANY, 64, 2_500),
    _of("lm", "a ~ 1", "moments", _sampled(GAUSSIAN), WEIGHED, 64, 2_500),
    _of("lm", "b ~ a", "adassp", GAUSSIAN, TURNED_OF_MANY, 400, 10_000),
    _of("lm", "b ~ a", "ellipsoid", GAUSSIAN, TURNED_OF_MANY, 64, 2_500),
    _of("lm", "b ~ a", "scores", GAUSSIAN, TURNED_OF_MANY, 64, 2_500),
    _of("lm", "b ~ a", "scores_pure", PURE, TURNED_OF_MANY, 64, 2_500),
    _of("glm", "g ~ a", "objective", PURE, TURNED_OF_MANY, 64, 1_000),
    _of("glm", "g ~ a", "objective", GAUSSIAN, TURNED_OF_MANY, 64, 1_000),
    _of("glm", "g ~ a", "gradients", GAUSSIAN, TURNED_OF_MANY, 64, 1_000),
    _of("glm", "c ~ a", "gradients", THREE, RAREST, 64, 1_000),
    _of("glm", "b ~ a + offset(a)", "scores", COUNTED, TURNED_OF_MANY, 64, 1_000),
    _of("glm", "g ~ a", "output", {**PURE, "ridge": TRIED}, TURNED, 64, 1_000),
    _of("glm", "g ~ a", "output", PURE, TURNED_OF_MANY, 64, 2_000),
    _of("glm", "g ~ a", "output", GAUSSIAN, TURNED_OF_MANY, 64, 2_000),
    _of("svm", "g ~ a", "objective", PURE, TURNED_OF_MANY, 64, 1_000),
    _of("svm", "g ~ a", "gradients", GAUSSIAN, TURNED_OF_MANY, 64, 1_000),
    _of("mean", "a ~ g", "geometric", PURE, TURNED, 1_000, 40_000),
    _of("mean", "a ~ g", "gaussian", GAUSSIAN, GONE, 1_000, 40_000),
    _of("mean", "~ a", "paired", PURE, GONE, 1_000, 40_000),
    _of("mean", "a ~ g", "rounds", PURE, TURNED, 400, 10_000),
    _of("mean", "a ~ g", "capped", _sampled(PURE), WEIGHED, 400, 10_000),
    _of("total", "a ~ g", "geometric", PURE, GONE, 1_000, 40_000),
    _of("total", "a ~ g", "capped", _sampled(GAUSSIAN), WEIGHED, 400, 10_000),
    _of("hist", "~ a", "tree", FINE, GONE, 1_000, 40_000),
    _of("hist", "~ a", "wavelet", FINE, GONE, 1_000, 40_000),
    _of("hist", "~ a + b", "grid", {**PURE, "breaks": 4}, TURNED, 64, 20_000),
    _of("hist", "~ a", "partition", {**PURE, "breaks": 16}, GONE, 200, 6_000),
    _of("table", "~ g", "capped", _sampled(PURE), WEIGHED, 400, 10_000),
    _of("table", "~ g", "randomized_response", PURE, CHANGED_ANSWER, 1_000, 40_000),
    _of("margins", "~ g*(a > 0)", "marginals", PURE, OPPOSITE, 1_000, 40_000),
    _of("margins", "~ g*(a > 0)", "residual", GAUSSIAN, OPPOSITE, 1_000, 40_000),
    _of("margins", "~ g*(a > 0)", "capped", _sampled(GAUSSIAN), WEIGHED, 400, 10_000),
    _of("synth", "~ g + a", "graph", {**GAUSSIAN, "cuts": 3}, OPPOSITE, 200, 10_000),
    _of("summary", "~ a + g", "geometric", PURE, OPPOSITE, 1_000, 40_000),
    _of("summary", "~ a + g", "capped", _sampled(PURE), WEIGHED, 400, 10_000),
    _of("ttest", "a ~ g", "geometric", PURE, TURNED, 1_000, 40_000),
    _of("bounds", "~ a", "ranges", PURE, TURNED_OF_MANY, 64, 2_500),
    _of("fdr", "a ~ g", "moments", PURE, EXCHANGED, 200, 20_000),
    _of("fdr", "a ~ g", "centred", GAUSSIAN, EXCHANGED, 200, 20_000),
    _of("fdr", "a + b ~ g", "peeling", {**PURE, "most": 1}, EXCHANGED, 200, 20_000),
    _of("fdr", "a + b ~ g", "peeling", {**GAUSSIAN, "most": 2}, EXCHANGED, 100, 10_000),
    _of("fdr", "a + b ~ g", "dp_bh", {**PURE, "most": 1}, SWAPPED, 64, 5_000),
    _of("fdr", "a + b ~ g", "adapt", {**GAUSSIAN, **MIRRORED}, EXCHANGED, 64, 5_000),
    _of("levels", "~ g", "partition", GAUSSIAN, CHANGED_LEVEL, 1_000, 40_000),
    _of("select", "~ g", "permute_and_flip", NAMED, CHANGED_LEVEL, 1_000, 40_000),
    _of("select", "~ g", "peeling", NAMED, CHANGED_LEVEL, 1_000, 40_000),
    _of("select", "~ g", "noisy_counts", NAMED, CHANGED_LEVEL, 1_000, 40_000),
    _of("select", "g ~ a + b", "peeling", GAUSSIAN, TURNED, 100, 6_000),
    _of("select", "g ~ a + b", "sparse_vector", ABOVE, TURNED, 200, 10_000),
    _of("select", "g ~ a + b", "peeling", ADDED, TURNED, 100, 6_000),
    _of("series", "~ 1", "tree", _over(64, PURE), MOVED, 400, 20_000),
    _of("series", "~ 1", "factorisation", _over(8, GAUSSIAN), LEFT, 1_000, 40_000),
    _of("survfit", "Surv(t, e) ~ 1", "geometric", FOLLOWED, DIED, 1_000, 40_000),
    _of("quantile", "a ~ g", "refined", PURE, TURNED_OF_MANY, 200, 6_000),
    _of("quantile", "a ~ g", "tree", PURE, TURNED_OF_MANY, 64, 6_000),
    _of("quantile", "a ~ g", "exponential", PURE, TURNED_OF_MANY, 200, 6_000),
    _of("quantile", "a ~ g", "bracketed", PURE, TURNED_OF_MANY, 200, 6_000),
    *declared_lines(),
)

LEFT_OUT: Final = {
    "zero": "its release does not depend on the rows",
    "random": "its release does not depend on the rows",
    "none": "claims no privacy and runs only in simulations",
    "quilt": "hides states of a series under a class of models, not rows: exhibits attack it",
}


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
        joint, statistics = self.measurement(rows)
        entropy, views = source(), []
        for _ in range(runs):
            view = self.protocol.view(joint, statistics, entropy)
            if view is None:
                view = numbers(self.protocol.release(joint, statistics, entropy))
            views.append(view)
        return np.stack(views)


class JointAudited(NamedTuple):
    """A protocol for an audit, like :class:`dpmodels.audit.registry.Audited`."""

    name: str
    verb: JointRecipe
    pair: Pair
    small: int  # releases per table in a small audit, and in a full one
    full: int


def joint_audited(protocol: SiteProtocol) -> JointAudited:
    """Return an audit of a protocol, for a small formula."""
    return _joint(protocol, partial(dp_cov, "~ a", center=False, mechanism="gauss"), 200, 6_000)


def _joint(protocol: SiteProtocol, call: partial[Any], small: int, full: int) -> JointAudited:
    verb = partial(call, codebook=codebook(a=(-1, 1), b=(-1, 1)), eps=1.0, delta=1e-5)
    recipe, rows_of_sites = verb_recipe(verb), {"a": [0.5, -0.25], "b": [0.25, 0.5]}
    joint = JointRecipe(recipe.verb, recipe.formula, recipe.kwargs, protocol, rows_of_sites)
    mechanism, by = verb.keywords["mechanism"], f"{protocol.trust.name} by {len(SITES)} sites"
    name = f"{verb.func.__name__} {mechanism}, {by}"
    return JointAudited(name, joint, named_pair(recipe, GONE), small, full)


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
