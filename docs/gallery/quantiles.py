"""Quantiles by group.

Confidence intervals count noise and sampling.
"""

from health_insurance import book, rows

import dpmodels as dp

fit = dp.dp_quantile("diseases ~ health", rows, codebook=book, eps=1)
ax = fit.plot()
