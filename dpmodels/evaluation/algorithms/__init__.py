"""Published algorithms for tables of counts, with proofs; for evaluations alone.

Each is a function of counts by cell and eps, which adds noise from ``dpmodels.noise``: baselines
first, then those for one axis and those for two.
"""

from dpmodels.evaluation.algorithms.ahp import ahp
from dpmodels.evaluation.algorithms.efpa import efpa
from dpmodels.evaluation.algorithms.identity import identity, uniform
from dpmodels.evaluation.algorithms.levels import greedyh, quadtree
from dpmodels.evaluation.algorithms.mwem import mwem
from dpmodels.evaluation.algorithms.ugrid import agrid, ugrid

BASELINES = {"identity": identity, "uniform": uniform}
LINE = {"greedyh": greedyh, "mwem": mwem, "ahp": ahp, "efpa": efpa}
PLANE = {"quadtree": quadtree, "ugrid": ugrid, "agrid": agrid, "ahp": ahp}
