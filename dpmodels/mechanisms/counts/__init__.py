"""Mechanisms that release counts of rows, or of parts of rows, by cell."""

from dpmodels.mechanisms.counts.gaussian import Gaussian as Gaussian
from dpmodels.mechanisms.counts.geometric import Geometric as Geometric
from dpmodels.mechanisms.protocol import CountMechanism as CountMechanism

COUNTS: dict[str, type[CountMechanism]] = {
    "geometric": Geometric,
    "gaussian": Gaussian,
}
