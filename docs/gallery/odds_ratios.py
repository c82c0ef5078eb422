"""Odds ratios.

Exponentials of the coefficients of a logistic regression, on a logarithmic axis.
"""

from health_insurance import book, rows

import dpmodels as dp

formula = "visits > 2 ~ plan + health + diseases + limitation"
fit = dp.dp_glm(formula, rows, codebook=book, eps=4, delta=1e-6)
ax = fit.plot(exponentiate=True)
