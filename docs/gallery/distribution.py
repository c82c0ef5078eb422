"""A distribution function.

With its noise band and its confidence band.
"""

from health_insurance import book, rows

import dpmodels as dp

fit = dp.dp_hist("~ diseases", rows, codebook=book, eps=0.02)
ax = fit.plot_cdf()
