"""Variances of principal components.

Noise intervals of the released variances, and the noise floor.
"""

from health_insurance import book, rows

import dpmodels as dp

numbers = "~ visits + diseases + limitation + coinsurance + incentive + ceiling"
fit = dp.dp_pca(numbers, rows, codebook=book, eps=0.1, delta=1e-6)
ax = fit.plot_scree()
