"""Mechanisms that release single numbers by group."""

from dpmodels.mechanisms.protocol import CountMechanism
from dpmodels.mechanisms.scalar.exponential import Exponential as Exponential
from dpmodels.mechanisms.scalar.exponential import QuantileFacts as QuantileFacts
from dpmodels.mechanisms.scalar.paired import Paired as Paired

QUANTILES: dict[str, type[Exponential]] = {"exponential": Exponential}
MEANS: dict[str, type[CountMechanism]] = {"paired": Paired}
