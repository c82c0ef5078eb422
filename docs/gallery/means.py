"""Means by group.

Groups with few rows have wide intervals.
"""

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook

rows, book = load_randhie(), randhie_codebook()
fit = dp.dp_mean("mdvis ~ hlthp + idp", rows, codebook=book, eps=0.5)
ax = fit.plot()
