"""Loadings of principal components.

Loadings below 0.1, or below twice their noise, are blank.
"""

from health_insurance import book, rows

import dpmodels as dp

numbers = "~ visits + diseases + limitation + coinsurance + incentive + ceiling"
fit = dp.dp_pca(numbers, rows, codebook=book, eps=0.5, delta=1e-6)
ax = fit.plot_loadings()
