"""Mechanisms: the only crossing from private to released; one strategy a file.

The tables below name every mechanism; adding one adds a file and a line.
"""

from dpmodels.mechanisms.choose import choose as choose
from dpmodels.mechanisms.covariance.gauss import Gauss as Gauss
from dpmodels.mechanisms.protocol import CovarianceMechanism as CovarianceMechanism
from dpmodels.mechanisms.protocol import Facts as Facts
from dpmodels.mechanisms.protocol import MomentsPlan as MomentsPlan

COVARIANCE: dict[str, type[CovarianceMechanism]] = {
    "gauss": Gauss,
}
