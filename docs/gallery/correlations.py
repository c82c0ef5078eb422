"""A correlation matrix.

Small matrices show the values in the cells.
"""

from health_insurance import book, rows

import dpmodels as dp

numbers = "~ visits + diseases + limitation + coinsurance + incentive + ceiling"
fit = dp.dp_cov(numbers, rows, codebook=book, eps=4, delta=1e-6)
ax = fit.plot()
