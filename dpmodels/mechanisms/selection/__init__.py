"""Mechanisms that release the names of the largest of many candidates."""

from dpmodels.mechanisms.protocol import SelectionMechanism as SelectionMechanism
from dpmodels.mechanisms.selection.noisy_counts import NoisyCounts as NoisyCounts
from dpmodels.mechanisms.selection.peeling import Peeling as Peeling
from dpmodels.mechanisms.selection.permute_and_flip import PermuteAndFlip as PermuteAndFlip
from dpmodels.mechanisms.selection.sparse_vector import SparseVector as SparseVector

SELECTION: dict[str, type[SelectionMechanism]] = {
    "permute_and_flip": PermuteAndFlip,
    "peeling": Peeling,
    "noisy_counts": NoisyCounts,
    "sparse_vector": SparseVector,
}
