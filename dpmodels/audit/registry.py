"""Every mechanism and every verb of the package, as a recipe for an audit.

One line each: a small formula, eps = 1 (delta = 1e-5 for Gaussian noise), the
pair of neighbours whose releases differ most, and the number of releases per
table of a small and of a full audit.
"""

from collections.abc import Iterator
from functools import partial
from inspect import signature
from typing import Any, Final, NamedTuple

from dpmodels.audit.neighbours import Pair, worst_pairs
from dpmodels.audit.verb_recipes import VerbRecipe, verb_recipe
from dpmodels.codebook import codebook
from dpmodels.models.linear import Tune, tune
from dpmodels.models.replay import all_verbs
from dpmodels.survey_design import SurveyDesign
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
    verb: partial[Any]
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
    """Return an audit of a mechanism of moments or directions, for one formula."""
    return _of("pca", "~ a + b", mechanism, options, *rest)


def _of(verb: str, formula: str, mechanism: str, options: dict[str, object], *rest: Any) -> Audited:
    """Return an audit of a verb with a mechanism, for a formula."""
    function = all_verbs()[verb].function
    mechanism_option = (
        {"mechanism": mechanism} if "mechanism" in signature(function).parameters else {}
    )
    return Audited(mechanism, partial(function, formula, **mechanism_option, **options), *rest)


def _sampled(options: dict[str, object]) -> dict[str, object]:
    """Return options with a design whose weights are the column b."""
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

COUNTED: Final = {
    **GAUSSIAN,
    "codebook": codebook(a=(-1, 1), b=(0, 9)),
    "family": "poisson",
}

# More bins than a node has children.
FINE: Final = {**PURE, "breaks": 8}


def _over(periods: int, options: dict[str, object]) -> dict[str, object]:
    """Return the options of counts over `periods` periods."""
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
    _of("lm", "b ~ a", "moments", PURE, GONE, 1_000, 20_000),
    _of("lm", "b ~ a", "moments", GAUSSIAN, GONE_OF_MANY, 1_000, 20_000),
    _of("lm", "b ~ a", "moments", {**GAUSSIAN, "vcov": "HC"}, GONE_OF_MANY, 64, 2_500),
    _of("lm", "a ~ 1", "moments", _sampled(GAUSSIAN), WEIGHED, 64, 2_500),
    _of("lm", "b ~ a", "adassp", GAUSSIAN, TURNED_OF_MANY, 400, 10_000),
    _of("lm", "b ~ a", "ellipsoid", GAUSSIAN, TURNED_OF_MANY, 64, 2_500),
    _of("lm", "b ~ a", "scores", GAUSSIAN, TURNED_OF_MANY, 64, 2_500),
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
