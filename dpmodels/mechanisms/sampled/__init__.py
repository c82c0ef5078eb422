"""Mechanisms that release weighted sums of the units of a survey design."""

from dpmodels.mechanisms.protocol import CountMechanism
from dpmodels.mechanisms.sampled.capped import Capped as Capped

SAMPLED: dict[str, type[CountMechanism]] = {"capped": Capped}
