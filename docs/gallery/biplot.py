"""Variables in the plane of two components.

Arrows are loadings, ellipses their noise. Rows are private and not drawn.
"""

from health_insurance import book, rows

import dpmodels as dp

numbers = "~ visits + diseases + limitation + coinsurance + incentive + ceiling"
fit = dp.dp_pca(numbers, rows, codebook=book, eps=0.5, delta=1e-6)
ax = fit.biplot()
