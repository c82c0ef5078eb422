"""Predict the errors and power of an analysis before data are read or budget is spent.

No other subpackage imports it.
"""

from dpmodels.planning import analysis as analysis
