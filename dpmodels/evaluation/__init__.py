"""Principled evaluation of algorithms on public or simulated tables: ``dp.evaluate``.

No other subpackage but the shell imports it. Its verb is `dpmodels.evaluation.verb.evaluate`, its
tables are in `dpmodels.evaluation.shapes`; `published_algorithms` imports algorithms to compare
with from benchmarks/algorithms.py of the source tree.
"""

from dpmodels.evaluation import report as report
from dpmodels.evaluation import shapes as shapes
from dpmodels.evaluation.recipe import published_algorithms as published_algorithms
from dpmodels.evaluation.study import Study as Study
from dpmodels.evaluation.verb import evaluate as evaluate
