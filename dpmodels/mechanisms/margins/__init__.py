"""Mechanisms that release margins of one table, which agree, from one budget."""

from dpmodels.mechanisms.margins.graph import Graph as Graph
from dpmodels.mechanisms.margins.marginals import Marginals as Marginals
from dpmodels.mechanisms.margins.residual import Residual as Residual
from dpmodels.mechanisms.protocol import MarginMechanism as MarginMechanism

MARGINS: dict[str, type[MarginMechanism]] = {
    "residual": Residual,
    "marginals": Marginals,
}
GRAPHS: dict[str, type[Graph]] = {
    "graph": Graph,
}
