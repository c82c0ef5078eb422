"""Coefficients of a regression.

Wide bars are noise intervals, thin bars confidence intervals.
"""

from health_insurance import book, rows

import dpmodels as dp

formula = "visits ~ plan + health + diseases + limitation"
fit = dp.dp_lm(formula, rows, codebook=book, eps=4, delta=1e-6)
ax = fit.plot()
