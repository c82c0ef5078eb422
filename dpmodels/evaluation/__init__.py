"""Principled evaluation of algorithms on public or simulated tables: ``dp.evaluate``.

It stands beside the house: nothing imports it. Its verb is `dpmodels.evaluation.verb.evaluate`,
its tables `dpmodels.evaluation.shapes`, and published algorithms to compare with are in
`dpmodels.evaluation.algorithms`.
"""

from dpmodels.evaluation import report as report
from dpmodels.evaluation import shapes as shapes
from dpmodels.evaluation.algorithms import BASELINES as BASELINES
from dpmodels.evaluation.algorithms import LINE as LINE
from dpmodels.evaluation.algorithms import PLANE as PLANE
from dpmodels.evaluation.study import Study as Study
from dpmodels.evaluation.verb import evaluate as evaluate
