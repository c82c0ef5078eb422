"""A table of two factors.

Proportions by cell. Wide bars are noise intervals, thin bars confidence intervals.
"""

from health_insurance import book, rows

import dpmodels as dp

fit = dp.dp_table("~ health + plan", rows, codebook=book, eps=0.02)
ax = fit.plot()
