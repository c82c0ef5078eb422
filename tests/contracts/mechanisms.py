"""Every mechanism of the package, one line each: its name, what it takes, what it is like."""

from dataclasses import fields, replace
from typing import NamedTuple

from dpmodels.mechanisms import COVARIANCE, SUBSPACE, CovarianceMechanism, SubspaceMechanism
from dpmodels.privacy import ZCDP, ApproxDP, PureDP

PURE = (PureDP, ApproxDP, ZCDP)
GAUSSIAN = (ApproxDP, ZCDP)
# Words for fields of a strategy that choose another method.
OPTIONS = (("eigenvals", "private"), ("sampler", "sequential"), ("denoise", None))


class Mechanism(NamedTuple):
    """A line of the table below.

    Attributes
    ----------
    name, takes, family
        Its word, the guarantees it gives, the table it is in.
    law, counts : {"gaussian", "laplace", ""}
        The law of the noise in the released second moment, and in the number
        of rows and their sum; empty where none is stated.
    norm : {"svec", "L2", "L1", ""}
        The norm of its sensitivity, where it releases one vector with noise of
        the plan's steps: then neighbours are tried here. Elsewhere they are
        tried in the mechanism's own tests.
    directions : bool
        Draws directions with a density ``exp(concentration * energy)``: what
        neighbours do to that is tried here too.
    exact : bool
        A huge budget gives the exact answer.
    slow : bool
        Tried in fewer cases.
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
    law: str = ""
    counts: str = ""
    norm: str = ""
    directions: bool = False
    exact: bool = True
    slow: bool = False
    rereads: bool = False
    baseline: bool = False
    open: bool = False

    @property
    def drawn(self) -> bool:
        """Whether chance enters."""
        return not self.open and (self.family == "subspace" or not self.baseline)

    def make(self) -> CovarianceMechanism | SubspaceMechanism:
        """Make the strategy that the package's table has under this name."""
        return FAMILIES[self.family][self.name]()

    def variants(self) -> list[CovarianceMechanism | SubspaceMechanism]:
        """Make the strategy, and once more with each option it has that is another method."""
        own = self.make()
        names = {field.name for field in fields(own)}
        return [own, *(replace(own, **{name: word}) for name, word in OPTIONS if name in names)]


FAMILIES = {"covariance": COVARIANCE, "subspace": SUBSPACE}

MECHANISMS = (
    Mechanism("gauss", GAUSSIAN, law="gaussian", counts="gaussian", norm="svec"),
    Mechanism("analyze_gauss", GAUSSIAN, law="gaussian", counts="gaussian", norm="L2"),
    Mechanism("mod_sulq", (ApproxDP,), law="gaussian", counts="gaussian", norm="L2"),
    Mechanism("laplace", PURE, law="laplace", counts="laplace", norm="L1"),
    Mechanism("projection", GAUSSIAN, law="gaussian", counts="gaussian", norm="svec"),
    Mechanism("separate", GAUSSIAN, law="gaussian", counts="gaussian"),
    Mechanism("separate_pure", PURE, law="laplace", counts="laplace"),
    Mechanism("shells", GAUSSIAN, law="gaussian", counts="gaussian"),
    Mechanism("iterative", PURE, counts="laplace", directions=True, slow=True),
    Mechanism("coinpress", GAUSSIAN, counts="gaussian", slow=True, rereads=True),
    Mechanism("adaptive", GAUSSIAN, counts="gaussian", slow=True),
    Mechanism("adaptive_pure", PURE, counts="laplace", slow=True),
    Mechanism("zero", PURE, exact=False, baseline=True),
    Mechanism("none", PURE, open=True),
    Mechanism("ppca", PURE, family="subspace", directions=True, slow=True),
    Mechanism("power", GAUSSIAN, family="subspace"),
    Mechanism("random", PURE, family="subspace", exact=False, baseline=True),
)
