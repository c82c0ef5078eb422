"""Mechanisms that release counts of rows, or of parts of rows, by cell."""

from dpmodels.mechanisms.counts.geometric import Gaussian as Gaussian
from dpmodels.mechanisms.counts.geometric import Geometric as Geometric
from dpmodels.mechanisms.counts.partition import Partition as Partition
from dpmodels.mechanisms.counts.randomized_response import RandomizedResponse as RandomizedResponse
from dpmodels.mechanisms.counts.ranges import Ranges as Ranges
from dpmodels.mechanisms.counts.ranges import Rounds as Rounds
from dpmodels.mechanisms.counts.runs import Runs as Runs
from dpmodels.mechanisms.counts.tree import Factorisation as Factorisation
from dpmodels.mechanisms.counts.tree import Grid as Grid
from dpmodels.mechanisms.counts.tree import Tree as Tree
from dpmodels.mechanisms.counts.tree import Wavelet as Wavelet
from dpmodels.mechanisms.protocol import CellMechanism as CellMechanism
from dpmodels.mechanisms.protocol import CountMechanism as CountMechanism
from dpmodels.mechanisms.protocol import LevelMechanism as LevelMechanism
from dpmodels.mechanisms.protocol import ResponseMechanism as ResponseMechanism
from dpmodels.mechanisms.protocol import SumsMechanism as SumsMechanism

COUNTS: dict[str, type[CountMechanism]] = {"geometric": Geometric, "gaussian": Gaussian}
# Of one measured number alone.
MEASURED: dict[str, type[CountMechanism]] = {"rounds": Rounds}
# Of cells that stand in an order.
ORDERED: dict[str, type[SumsMechanism]] = {
    "tree": Tree,
    "wavelet": Wavelet,
    "factorisation": Factorisation,
    "partition": Runs,
}
# Of one table, every row of which answers for itself.
RESPONSES: dict[str, type[ResponseMechanism]] = {"randomized_response": RandomizedResponse}
# Of cells in a plane.
PLANE: dict[str, type[SumsMechanism]] = {"grid": Grid, "partition": Runs}
# Of where the rows of several numbers are.
BOUNDS: dict[str, type[CellMechanism]] = {"ranges": Ranges}
# Of levels that nobody declared.
LEVELS: dict[str, type[LevelMechanism]] = {"partition": Partition}
