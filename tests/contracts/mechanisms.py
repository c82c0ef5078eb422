"""Every mechanism of the package, one line each: its name, what it takes, what it is like."""

from dataclasses import fields, replace
from typing import Any, NamedTuple

from families import FAMILIES, Family

from dpmodels.privacy import ZCDP, ApproxDP, PureDP

ADJACENCIES = ("replace", "add-remove")
PURE = (PureDP, ApproxDP, ZCDP)
GAUSSIAN = (ApproxDP, ZCDP)
BARE = (PureDP,)
# Words for fields of a strategy that choose another method.
OPTIONS = (
    ("eigenvals", "private"),
    ("sampler", "sequential"),
    ("denoise", None),
    ("steps", 1),
    ("fourth", True),
    ("ridge", 50.0),
)
RIDGE = (("ridge", 1.0),)


class Mechanism(NamedTuple):
    """A line of the table below; a second where another guarantee has another law of noise.

    Attributes
    ----------
    name, takes, family
        Its word, the guarantees it gives, the table it is in.
    between : tuple of str
        The neighbours it knows.
    law, counts : {"gaussian", "laplace", ""}
        Where moments are released, the law of the noise in the second one, and
        in the number of rows and their sum; empty where none is stated.
    norm : {"svec", "L2", "L1", ""}
        The norm of its sensitivity, where it releases one vector with noise of
        the plan's steps: then neighbours are tried here.
    directions : bool
        Draws directions with a density ``exp(concentration * energy)``: what
        neighbours do to that is tried here too.
    tried : str
        Where neighbours are tried, if not here: ``test_mechanisms_{tried}.py``,
        by default that of its name.
    exact : bool
        A huge budget gives the exact answer.
    given : tuple of (str, value)
        Fields of the strategy without which it does not.
    slow : bool
        Tried in fewer cases.
    weighted : bool
        Takes rows with weights, where its family has a way for these.
    rereads : bool
        Reads the rows several times, so takes no iterable of tables.
    baseline : bool
        Nothing of the rows is released and nothing charged.
    open : bool
        There is no noise: works in simulations only.
    """

    name: str
    takes: tuple[type, ...]
    family: str = "covariance"
    between: tuple[str, ...] = ADJACENCIES
    law: str = ""
    counts: str = ""
    norm: str = ""
    directions: bool = False
    tried: str = ""
    exact: bool = True
    given: tuple[tuple[str, Any], ...] = ()
    slow: bool = False
    weighted: bool = True
    rereads: bool = False
    baseline: bool = False
    open: bool = False

    @property
    def drawn(self) -> bool:
        """Whether chance enters."""
        return not self.open and (self.family == "subspace" or not self.baseline)

    @property
    def kin(self) -> Family:
        """Its family."""
        return FAMILIES[self.family]

    @property
    def ways(self) -> tuple[str, ...]:
        """Of asking the same verb."""
        return tuple(way for way in self.kin.ways if self.weighted or way != "weighted")

    @property
    def strategy(self) -> type:
        """The class that the package's table has under this name."""
        return self.kin.table[self.name]

    def make(self) -> Any:
        """Make the strategy."""
        return self.strategy()

    def variants(self) -> list[Any]:
        """Make the strategy, and once more with each option it has that is another method."""
        mechanism = self.make()
        names = {field.name for field in fields(mechanism)}
        options = [*OPTIONS, ("inference", not getattr(mechanism, "inference", False))]
        return [
            mechanism,
            *(replace(mechanism, **{name: word}) for name, word in options if name in names),
        ]


MECHANISMS = (
    Mechanism("gauss", GAUSSIAN, law="gaussian", counts="gaussian", norm="svec"),
    Mechanism("analyze_gauss", GAUSSIAN, law="gaussian", counts="gaussian", norm="L2"),
    Mechanism("mod_sulq", (ApproxDP,), law="gaussian", counts="gaussian", norm="L2"),
    Mechanism("laplace", PURE, law="laplace", counts="laplace", norm="L1"),
    Mechanism("projection", GAUSSIAN, law="gaussian", counts="gaussian", norm="svec"),
    Mechanism("separate", GAUSSIAN, law="gaussian", counts="gaussian"),
    Mechanism("separate_pure", PURE, law="laplace", counts="laplace", tried="separate"),
    Mechanism("shells", GAUSSIAN, law="gaussian", counts="gaussian"),
    Mechanism("iterative", PURE, counts="laplace", directions=True, slow=True),
    Mechanism("coinpress", GAUSSIAN, counts="gaussian", slow=True, rereads=True),
    Mechanism("rounds", GAUSSIAN, law="gaussian", counts="gaussian", rereads=True),
    Mechanism("rounds_pure", PURE, law="laplace", counts="laplace", tried="rounds", rereads=True),
    Mechanism("adaptive", GAUSSIAN, counts="gaussian", slow=True),
    Mechanism("adaptive_pure", PURE, counts="laplace", tried="adaptive", slow=True),
    Mechanism("zero", PURE, exact=False, baseline=True),
    Mechanism("none", PURE, open=True),
    Mechanism("ppca", PURE, family="subspace", directions=True, slow=True),
    Mechanism("power", GAUSSIAN, family="subspace"),
    Mechanism("random", PURE, family="subspace", exact=False, baseline=True),
    Mechanism("moments", BARE, "regression", law="laplace", counts="laplace", norm="L1"),
    Mechanism("moments", GAUSSIAN, "regression", law="gaussian", counts="gaussian", norm="svec"),
    Mechanism(
        *("adassp", GAUSSIAN, "regression"),
        law="gaussian",
        counts="gaussian",
        tried="least_squares",
    ),
    Mechanism(
        *("ellipsoid", GAUSSIAN, "regression"),
        law="gaussian",
        counts="gaussian",
        weighted=False,
        rereads=True,
    ),
    Mechanism(
        *("scores", GAUSSIAN, "regression"),
        law="gaussian",
        counts="gaussian",
        weighted=False,
        rereads=True,
    ),
    Mechanism(
        *("scores_pure", PURE, "regression"),
        law="laplace",
        counts="laplace",
        weighted=False,
        rereads=True,
    ),
    Mechanism("objective", BARE, "coefficients", rereads=True),
    Mechanism("objective", GAUSSIAN, "coefficients", rereads=True),
    Mechanism("gradients", GAUSSIAN, "coefficients", norm="L2", rereads=True),
    Mechanism("output", BARE, "coefficients", tried="objective", given=RIDGE, rereads=True),
    Mechanism("output", GAUSSIAN, "coefficients", tried="objective", given=RIDGE, rereads=True),
    Mechanism("scores", GAUSSIAN, "rates", tried="rate_scores", rereads=True),
    Mechanism("geometric", PURE, "counts", norm="L1"),
    Mechanism("gaussian", GAUSSIAN, "counts", norm="L2"),
    Mechanism("randomized_response", PURE, "responses", between=("replace",)),
    Mechanism("marginals", PURE, "margins", norm="L1"),
    Mechanism("residual", GAUSSIAN, "margins", norm="L2"),
    Mechanism("graph", GAUSSIAN, "graphs"),
    Mechanism("tree", PURE, "ordered"),
    Mechanism("wavelet", PURE, "ordered"),
    Mechanism("grid", (PureDP,), "plane", norm="L1"),
    Mechanism("grid", GAUSSIAN, "plane", norm="L2"),
    Mechanism("rounds", PURE, "measured", tried="clipped_rounds", rereads=True),
    Mechanism("factorisation", GAUSSIAN, "running", norm="L2"),
    Mechanism("ranges", PURE, "bounds", rereads=True),
    Mechanism("partition", (ApproxDP,), "levels"),
    Mechanism("partition", PURE, "ordered", tried="runs"),
    Mechanism("partition", PURE, "plane", tried="runs"),
    Mechanism("permute_and_flip", PURE, "selection", tried="selection"),
    Mechanism("peeling", PURE, "selection", tried="selection"),
    Mechanism("noisy_counts", PURE, "selection", tried="selection"),
    Mechanism("permute_and_flip", PURE, "columns", tried="columns"),
    Mechanism("peeling", PURE, "columns", tried="columns"),
    Mechanism("peeling", PURE, "gains", tried="gain"),
    Mechanism("sparse_vector", PURE, "above", tried="columns"),
    Mechanism("peeling", PURE, "screening", tried="screening"),
    Mechanism("moments", PURE, "screening", tried="screening"),
    Mechanism("centred", GAUSSIAN, "centred"),
    Mechanism("adapt", GAUSSIAN, "mirrored", tried="screening"),
    Mechanism("dp_bh", PURE, "logs"),
    Mechanism("paired", PURE, "means", between=("replace",)),
    Mechanism("refined", (PureDP, ApproxDP), "quantiles", norm="L1"),
    Mechanism("refined", (ZCDP,), "quantiles", norm="L2"),
    Mechanism("tree", (PureDP, ApproxDP), "quantiles", norm="L1", tried="rank_tree"),
    Mechanism("tree", (ZCDP,), "quantiles", norm="L2", tried="rank_tree"),
    Mechanism("exponential", PURE, "quantiles", norm="L1"),
    Mechanism("bracketed", PURE, "quantiles", norm="L1"),
)
