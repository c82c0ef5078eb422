"""A histogram.

Counts by bin with their noise intervals.
"""

from health_insurance import book, rows

import dpmodels as dp

fit = dp.dp_hist("~ diseases", rows, codebook=book, eps=0.5)
ax = fit.plot()
