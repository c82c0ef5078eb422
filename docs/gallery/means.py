"""Means by group.

Groups with few rows have wide intervals.
"""

from health_insurance import book, rows

import dpmodels as dp

fit = dp.dp_mean("visits ~ health + plan", rows, codebook=book, eps=0.5)
ax = fit.plot()
