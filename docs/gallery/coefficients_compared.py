"""Regressions side by side.

Marks and colours distinguish the models; a term that a model lacks has no mark.
"""

from health_insurance import book, rows

import dpmodels as dp

small = dp.dp_lm("visits ~ plan + limitation", rows, codebook=book, eps=4, delta=1e-6)
formula = "visits ~ plan + health + diseases + limitation"
large = dp.dp_lm(formula, rows, codebook=book, eps=4, delta=1e-6)
ax = dp.coefplot({"two variables": small, "four variables": large})
