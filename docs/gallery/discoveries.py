"""Discoveries at a false discovery rate.

Sorted p-values of a regression and the line of Benjamini and Hochberg.
"""

from health_insurance import book, rows

import dpmodels as dp

formula = "visits ~ plan + health + diseases + limitation + incentive + ceiling"
fit = dp.dp_lm(formula, rows, codebook=book, eps=4, delta=1e-6)
ax = fit.fdr(q=0.1).plot()
