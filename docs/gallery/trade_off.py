"""What a guarantee allows an adversary.

The smallest false negative rate of any test for one row, by its false positive rate.
"""

from health_insurance import book, rows

import dpmodels as dp

fit = dp.dp_mean("visits ~ plan", rows, codebook=book, eps=1, delta=1e-6)
ax = dp.reading(fit).plot()
