"""A difference in means.

A t-test's difference with its noise interval and its confidence interval.
"""

from health_insurance import book, rows

import dpmodels as dp

fit = dp.dp_ttest("visits ~ plan", rows, codebook=book, eps=0.5)
ax = fit.plot()
