"""Mechanisms that hide states of series, under a Pufferfish guarantee."""

from dpmodels.mechanisms.chains.quilt import QuiltCounts as QuiltCounts
from dpmodels.mechanisms.protocol import ChainMechanism as ChainMechanism

CHAINS: dict[str, type[ChainMechanism]] = {"quilt": QuiltCounts}
