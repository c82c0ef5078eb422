"""A difference in means.

A t-test's difference with its noise interval and its confidence interval.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

rows, book = load_randhie(), randhie_codebook()
fit = dp.dp_ttest("mdvis ~ idp", rows, codebook=book, eps=0.5)
ax = fit.plot()
