"""Mechanisms that release single numbers by group."""

from dpmodels.mechanisms.protocol import CountMechanism
from dpmodels.mechanisms.protocol import QuantileMechanism as QuantileMechanism
from dpmodels.mechanisms.quantile_facts import QuantileFacts as QuantileFacts
from dpmodels.mechanisms.scalar.exponential import Bracketed as Bracketed
from dpmodels.mechanisms.scalar.exponential import Exponential as Exponential
from dpmodels.mechanisms.scalar.paired import Paired as Paired
from dpmodels.mechanisms.scalar.refined import RankTree as RankTree
from dpmodels.mechanisms.scalar.refined import Refined as Refined

QUANTILES: dict[str, type[QuantileMechanism]] = {
    "refined": Refined,
    "tree": RankTree,
    "exponential": Exponential,
    "bracketed": Bracketed,
}
MEANS: dict[str, type[CountMechanism]] = {"paired": Paired}
